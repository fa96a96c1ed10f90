// Colour refinement of agents, ranks, semaphores, pairs of ranks and links.

#include "sim/alike/classes.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "program/jobs/job.h"
#include "program/semantics/occupancy.h"
#include "sim/alike/class_signature.h"
#include "sim/result/host_calls.h"

namespace hemiola::sim {
namespace {

using machine::LinkId;

constexpr std::size_t kMostReferences = 8'000'000;
/// What is unlike spreads by one rank in a round: around a ring it takes as many as there are
/// ranks. Where that leaves hardly anybody alike, or would take more uses to be looked at than
/// this, it is given up after the rounds that small programs need.
constexpr int kFewRounds = 40;
constexpr std::size_t kMostLooks = 200'000'000;

std::size_t distinct(std::vector<Colour> colours) {
  std::ranges::sort(colours);
  return index(std::unique(colours.begin(), colours.end()) - colours.begin());
}

/// Numbers colours in the order in which they are met.
class Numbering {
 public:
  std::int32_t operator()(Colour colour) {
    return numbers_.try_emplace(colour, static_cast<std::int32_t>(numbers_.size())).first->second;
  }
  std::size_t count() const { return numbers_.size(); }

 private:
  std::unordered_map<Colour, std::int32_t> numbers_;
};

// Packets outside FIFOs are found by their addresses, which differ by rank.
bool addresses_matter(const program::Bound& program) {
  for (const program::Body& body : program.bodies()) {
    for (const program::Op& op : body.ops) {
      for (const auto* operands : {&op.src, &op.dst}) {
        for (const program::Operand& operand : *operands)
          if (program::is_packet(operand.access)) return true;
      }
    }
  }
  return false;
}

}  // namespace

std::vector<LinkId> reverse_links(const machine::Machine& machine) {
  struct End {
    machine::NodeId from, to;
    std::int32_t lane;
    LinkId link;
    auto key() const { return std::tuple(from, to, lane); }
  };
  std::vector<End> ends;
  ends.reserve(machine.links.size());
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    const machine::Link& link = machine.links[l];
    ends.push_back({link.from, link.to, link.lane, static_cast<LinkId>(l)});
  }
  const auto before = [](const End& a, const End& b) { return a.key() < b.key(); };
  std::ranges::sort(ends, before);
  std::vector<LinkId> reverse(machine.links.size());
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    const machine::Link& link = machine.links[l];
    const End wanted{link.to, link.from, link.lane, 0};
    const auto found = std::lower_bound(ends.begin(), ends.end(), wanted, before);
    const bool there = found != ends.end() && found->key() == wanted.key();
    reverse[l] = there ? found->link : static_cast<LinkId>(l);
  }
  return reverse;
}

class Refinement {
 public:
  Refinement(const machine::Machine& machine, const program::Bound& program, const Options& options,
             AlikeBy by, bool by_path, Classes& fold)
      : machine_(machine),
        program_(program),
        options_(options),
        by_(by),
        by_path_(by_path),
        fold_(fold) {}

  /// False if it did not come to rest, or there is too much to look at.
  bool run() {
    add_ranks();
    if (!add_references()) return false;
    add_paths();
    std::size_t classes = 0;
    const auto few = index(kFewRounds);
    const std::size_t most = std::clamp(2 * index(program_.ranks()), few,
                                        std::max(few, kMostLooks / (uses_.size() + 1)));
    for (std::size_t round = 0; round < most; ++round) {
      refine();
      const std::size_t agents = distinct(agents_);
      if (round >= few && 2 * agents > agents_.size()) return false;
      const std::size_t now =
          agents + distinct(ranks_) + distinct(semaphores_) + distinct(pairs_) + distinct(links_);
      if (now == classes) {
        number();
        return true;
      }
      classes = now;
    }
    return false;
  }

 private:
  struct Use {  ///< an agent's of a pair of ranks or a semaphore
    Colour label;
    std::int32_t agent;
    std::int32_t pair;  ///< -1: inside the rank
    std::int32_t semaphore = -1;
  };
  struct Step {  ///< a link on a path of a pair
    std::int32_t pair;
    LinkId link;
    Colour place;
  };

  /// A program of a job, in whose own numbers its bodies are written.
  struct Part {
    const program::Bound* bound;
    Signatures signatures;
    std::int32_t first_body;  ///< of those of the job
  };

  void add_ranks();
  bool add_references();
  bool add_launches();
  void find_parts();
  bool add_references_of(std::size_t member, const Part& part, const program::Frame* frame);
  void add_paths();
  void refine();
  void number();
  Colour colour_of_rank(int rank) const;
  Colour colour_of_kernel(const program::Kernel& kernel, std::size_t workgroup,
                          const machine::GpuModel& model, bool apart) const;
  bool alone() const { return by_ == AlikeBy::nothing; }

  const machine::Machine& machine_;
  const program::Bound& program_;
  const Options& options_;
  AlikeBy by_;
  bool by_path_;  ///< the paths of a pair differ: lines choose among them by their address
  Classes& fold_;
  std::vector<Colour> agents_, ranks_, semaphores_, pairs_, links_;
  std::vector<Use> uses_;
  std::vector<PeerUse> references_;  // of one agent
  std::vector<Part> parts_;
  std::vector<std::int32_t> part_of_;  // by launch of a job
  std::vector<Step> steps_;
  std::map<std::pair<int, int>, std::int32_t> pair_of_;
};

Colour Refinement::colour_of_rank(int rank) const {
  if (alone()) return static_cast<Colour>(rank);
  Colour colour = static_cast<Colour>(machine_.gpu_models[index(rank)]);
  if (index(rank) < options_.skew.size())
    colour = mix(colour, static_cast<std::uint64_t>(options_.skew[index(rank)].fs));
  colour =
      mix(colour, static_cast<std::uint64_t>(call_time(machine_, program_, options_, rank, 0)));
  for (const program::Buffer& buffer : program_.buffers())
    if (buffer.chunks.size() > 1)
      colour = mix(colour, static_cast<std::uint64_t>(buffer.chunks[index(rank)]));
  return colour;
}

// Workgroups that have to wait for room on a compute unit are told apart by their order; so are
// all of a job, whose kernels are many and short, if not asked otherwise.
Colour Refinement::colour_of_kernel(const program::Kernel& kernel, std::size_t workgroup,
                                    const machine::GpuModel& model, bool apart) const {
  const std::int32_t threads = kernel.threads_in(workgroup);
  Colour colour = static_cast<Colour>(threads);
  for (const std::int64_t value :
       {static_cast<std::int64_t>(kernel.grain), static_cast<std::int64_t>(kernel.unroll),
        static_cast<std::int64_t>(kernel.load_bytes), static_cast<std::int64_t>(kernel.store_bytes),
        static_cast<std::int64_t>(kernel.stages), static_cast<std::int64_t>(kernel.posts_apart),
        static_cast<std::int64_t>(kernel.large_code), static_cast<std::int64_t>(kernel.bare),
        static_cast<std::int64_t>(kernel.fills_unit), kernel.largest_tile})
    colour = mix(colour, static_cast<std::uint64_t>(value));
  const std::size_t first = kernel.block_of(workgroup);
  colour = mix(colour, kernel.parts_from(first));
  const std::int64_t each =
      program::blocks_per_unit(program::occupancy_of_block(kernel, first, model), model);
  if (apart || kernel.block_count() > model.cu_count * each) colour = mix(colour, workgroup + 1);
  return colour;
}

void Refinement::add_ranks() {
  const bool apart = program_.linked() != nullptr && !options_.fold_workgroups;
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    ranks_.push_back(colour_of_rank(rank));
    const machine::GpuModel& model = machine_.model(rank);
    const program::RankCode& code = program_.code(rank);
    for (std::size_t s = 0; s < code.streams.size(); ++s) {
      for (std::size_t i = 0; i < code.streams[s].size(); ++i) {
        const program::StreamItem& item = code.streams[s][i];
        const Colour place = mix(mix(s, i), static_cast<std::uint64_t>(item.kind));
        ranks_.back() =
            mix(ranks_.back(), mix(place, static_cast<std::uint64_t>(item.duration.fs)));
        Agent agent{rank,
                    static_cast<std::int32_t>(s),
                    static_cast<std::int32_t>(i),
                    -1,
                    item.index,
                    -1,
                    item.frame};
        if (item.kind == program::StreamItem::Kind::engine) {
          fold_.members_.push_back(agent);
          agents_.push_back(mix(place, item.prelaunched));
        } else if (item.kind == program::StreamItem::Kind::kernel) {
          const program::Kernel& kernel = program_.kernels()[index(item.index)];
          agent.kernel = item.index;
          for (std::size_t w = 0; w < kernel.bodies.size(); ++w) {
            agent.workgroup = static_cast<std::int32_t>(w);
            agent.body = kernel.bodies[w];
            fold_.members_.push_back(agent);
            agents_.push_back(mix(place, colour_of_kernel(kernel, w, model, apart)));
          }
        } else {
          ranks_.back() = mix(ranks_.back(), static_cast<std::uint64_t>(item.index));
        }
      }
    }
  }
  fold_.semaphores_ = program_.semaphores().size();
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    for (const program::Semaphore& semaphore : program_.semaphores()) {
      const Colour initial = mix(static_cast<Colour>(semaphore.initial), semaphore.shared);
      semaphores_.push_back(alone() ? semaphores_.size() : initial);
    }
  }
}

// Where nobody is like another, which pairs of ranks have to do with each other is enough.
bool Refinement::add_launches() {
  for (std::size_t a = 0; a < agents_.size(); ++a) agents_[a] = a;
  std::set<std::pair<int, int>> pairs;
  std::set<const void*> seen;
  for (const program::Frame& frame : program_.linked()->frames) {
    if (!seen.insert(frame.ranks.get()).second) continue;
    for (const std::int32_t from : *frame.ranks)
      for (const std::int32_t to : *frame.ranks)
        if (from != to) pairs.emplace(from, to);
  }
  for (const auto& ends : pairs) pair_of_.emplace(ends, static_cast<std::int32_t>(pair_of_.size()));
  return true;
}

void Refinement::find_parts() {
  const program::Linked* linked = program_.linked();
  if (linked == nullptr) {
    parts_.push_back({&program_, Signatures(machine_, program_, by_), 0});
    return;
  }
  for (const program::JobPart& part : *linked->parts)
    parts_.push_back({&part.bound, Signatures(machine_, part.bound, by_), part.first_body});
  part_of_ = program::part_of_launches(*linked->parts, linked->launches.size());
}

bool Refinement::add_references() {
  const program::Linked* linked = program_.linked();
  if (linked != nullptr && alone()) return add_launches();
  find_parts();
  for (std::size_t a = 0; a < fold_.members_.size(); ++a) {
    const program::Frame* frame =
        linked == nullptr ? nullptr : &linked->frames[index(fold_.members_[a].frame)];
    const Part& part =
        frame == nullptr ? parts_.front() : parts_[index(part_of_[index(frame->launch)])];
    if (!add_references_of(a, part, frame)) return false;
  }
  return true;
}

/// `frame`: of a job, what its numbers of ranks and semaphores are made of.
bool Refinement::add_references_of(std::size_t member, const Part& part,
                                   const program::Frame* frame) {
  const Agent& agent = fold_.members_[member];
  const std::int32_t body = agent.body - part.first_body;
  const int own_rank = frame == nullptr ? agent.rank : frame->own_of(agent.rank);
  Colour own = 0;
  std::vector<PeerUse>& references = references_;
  references.clear();
  const std::size_t left = kMostReferences - std::min(kMostReferences, uses_.size());
  if (!part.signatures.references(body, own_rank, left, references, own)) return false;
  if (frame != nullptr) {
    for (const program::Buffer& buffer : part.bound->buffers())
      if (buffer.chunks.size() > 1)
        own = mix(own, static_cast<std::uint64_t>(buffer.chunks[index(own_rank)]));
  }
  agents_[member] = alone() ? member : mix(mix(agents_[member], part.signatures.body(body)), own);
  std::pair<int, int> last{-1, -1};
  std::int32_t last_pair = -1;
  for (PeerUse& reference : references) {
    if (frame != nullptr) {
      reference.rank = frame->rank_of(reference.rank);
      if (reference.semaphore >= 0) reference.semaphore += frame->first_semaphore;
    }
    Use use{reference.label, static_cast<std::int32_t>(member), -1};
    if (reference.semaphore >= 0)
      use.semaphore = static_cast<std::int32_t>(index(reference.rank) * fold_.semaphores_ +
                                                index(reference.semaphore));
    if (reference.rank != agent.rank) {
      const std::pair ends{static_cast<int>(agent.rank), static_cast<int>(reference.rank)};
      if (ends != last) {
        const auto number = static_cast<std::int32_t>(pair_of_.size());
        last_pair = pair_of_.try_emplace(ends, number).first->second;
        last = ends;
      }
      use.pair = last_pair;
    }
    uses_.push_back(use);
  }
  return true;
}

void Refinement::add_paths() {
  const std::vector<LinkId> reverse = reverse_links(machine_);
  links_.assign(machine_.links.size(), 0);
  pairs_.assign(pair_of_.size(), 0);
  std::vector<bool> used(machine_.links.size(), false);
  for (const auto& [ends, pair] : pair_of_) {
    // Data that are loaded or pulled come the other way.
    for (const bool back : {false, true}) {
      const int from = back ? ends.second : ends.first, to = back ? ends.first : ends.second;
      const machine::Routes& routes = machine_.routes(from, to);
      pairs_[index(pair)] = mix(pairs_[index(pair)], static_cast<std::uint64_t>(routes.reach));
      if (routes.count == 0) continue;
      const PathChoice choice = paths_of(machine_, routes, from, to);
      for (std::int32_t p = choice.first; p < choice.first + choice.count; ++p) {
        const auto path = routes.path(p);
        for (std::size_t h = 0; h < path.size(); ++h) {
          const auto which = by_path_ ? static_cast<Colour>(p) : 0;
          const Colour place = ((which << 16) + h) * 4 + (back ? 2 : 0) + 1;
          steps_.push_back({pair, path[h], place});
          steps_.push_back({pair, reverse[index(path[h])], place + 1});
        }
      }
    }
  }
  for (const Step& step : steps_) used[index(step.link)] = true;
  for (std::size_t l = 0; l < machine_.links.size(); ++l) {
    const machine::Link& link = machine_.links[l];
    const machine::Node& from = machine_.nodes[index(link.from)];
    const machine::Node& to = machine_.nodes[index(link.to)];
    if (!program_.groups().empty()) {  // multicast may take links that no pair takes
      steps_.push_back({-1, static_cast<LinkId>(l), 0});
      used[l] = true;
    }
    links_[l] = used[l] ? mix(mix(static_cast<Colour>(link.link_class) + 1,
                                  static_cast<std::uint64_t>(from.kind)),
                              static_cast<std::uint64_t>(to.kind))
                        : 0;
  }
}

// Sums over users do not depend on their order.
void Refinement::refine() {
  std::vector<Colour> agents(agents_.size()), ranks = ranks_, semaphores = semaphores_,
                                              pairs = pairs_, links = links_;
  for (std::size_t a = 0; a < agents.size(); ++a)
    agents[a] = mix(agents_[a], ranks_[index(fold_.members_[a].rank)]);
  for (const Use& use : uses_) {
    Colour& agent = agents[index(use.agent)];
    const Colour seen = mix(use.label, agents_[index(use.agent)]);
    if (use.semaphore >= 0) {
      agent = mix(agent, semaphores_[index(use.semaphore)]);
      semaphores[index(use.semaphore)] += mix(seen, 1);
    }
    if (use.pair >= 0) {
      agent = mix(agent, pairs_[index(use.pair)]);
      pairs[index(use.pair)] += mix(seen, 2);
    }
  }
  for (std::size_t a = 0; a < agents.size(); ++a)
    ranks[index(fold_.members_[a].rank)] += mix(agents_[a], 3);
  for (const auto& [ends, pair] : pair_of_) {
    pairs[index(pair)] += mix(ranks_[index(ends.first)], ranks_[index(ends.second)]);
    ranks[index(ends.first)] += mix(pairs_[index(pair)], 4);
    ranks[index(ends.second)] += mix(pairs_[index(pair)], 5);
  }
  for (const Step& step : steps_) {
    if (step.pair < 0) continue;
    pairs[index(step.pair)] += mix(links_[index(step.link)], step.place);
    links[index(step.link)] += mix(pairs_[index(step.pair)], step.place);
  }
  for (std::size_t s = 0; s < semaphores.size(); ++s)
    semaphores[s] = mix(semaphores[s], ranks_[s / std::max<std::size_t>(1, fold_.semaphores_)]);
  agents_ = std::move(agents);
  ranks_ = std::move(ranks);
  semaphores_ = std::move(semaphores);
  pairs_ = std::move(pairs);
  links_ = std::move(links);
}

void Refinement::number() {
  Numbering agents, ranks, semaphores, links;
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    const std::int32_t number = ranks(ranks_[index(rank)]);
    if (index(number) == fold_.first_rank_.size()) {
      fold_.first_rank_.push_back(rank);
      fold_.ranks_in_.push_back(0);
    }
    ++fold_.ranks_in_[index(number)];
    fold_.rank_class_.push_back(number);
  }
  for (std::size_t a = 0; a < agents_.size(); ++a) {
    const Agent& agent = fold_.members_[a];
    const std::int32_t number = agents(agents_[a]);
    if (index(number) == fold_.classes_.size()) fold_.classes_.push_back({agent});
    AgentClass& found = fold_.classes_[index(number)];
    ++found.members;
    if (agent.rank == found.first.rank)
      found.last_workgroup = std::max(found.last_workgroup, agent.workgroup);
    fold_.class_of_.push_back(number);
  }
  for (const Colour colour : semaphores_) {
    const std::int32_t number = semaphores(colour);
    if (index(number) == fold_.semaphores_in_.size()) fold_.semaphores_in_.push_back(0);
    ++fold_.semaphores_in_[index(number)];
    fold_.semaphore_class_.push_back(number);
  }
  std::vector<bool> used(links_.size(), false);
  for (const Step& step : steps_) used[index(step.link)] = true;
  for (std::size_t l = 0; l < links_.size(); ++l) {
    std::int32_t number = -1;
    if (used[l]) {
      number = links(links_[l]);
      if (index(number) == fold_.links_in_.size()) fold_.links_in_.push_back(0);
      ++fold_.links_in_[index(number)];
    }
    fold_.link_class_.push_back(number);
  }
  fold_.folded_ = fold_.classes_.size() < fold_.members_.size();
}

Classes::Classes(const machine::Machine& machine, const program::Bound& program,
                 const Options& options, AlikeBy by) {
  const bool by_path = by == AlikeBy::addresses;
  if (by == AlikeBy::time && addresses_matter(program)) by = AlikeBy::nothing;
  // What lines of a job's programs go where is not known by its addresses.
  if (by_path && (!program.groups().empty() || program.linked() != nullptr)) by = AlikeBy::nothing;
  if (Refinement(machine, program, options, by, by_path, *this).run()) return;
  *this = Classes();
  if (by != AlikeBy::nothing &&
      Refinement(machine, program, options, AlikeBy::nothing, by_path, *this).run())
    return;
  throw Failure("the engine fluid takes programs of at most " + std::to_string(kMostReferences) +
                    " uses of other ranks' memory and semaphores",
                {.file = program.source()}, "run fewer ranks");
}

}  // namespace hemiola::sim
