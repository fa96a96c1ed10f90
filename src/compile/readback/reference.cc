// What reference() of a fused file says: sums over all ranks, and what is put together from the
// parts of several.
#include <algorithm>
#include <charconv>
#include <optional>

#include "compile/python/kernel_needs.h"
#include "compile/readback/program.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

constexpr std::string_view kChunk = ".chunk(RANKS)[rank]";

std::string without_spaces(std::string_view text) {
  std::string made;
  for (const char c : text)
    if (c != ' ' && c != '\n') made += c;
  return made;
}

plan::Region part_of_tensor(const plan::Plan& plan, std::int32_t tensor, std::size_t axis,
                            std::int64_t part, std::int64_t parts) {
  plan::Box box;
  const auto& shape = plan.tensors[index(tensor)].shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t extent = i == axis ? shape[i] / parts : shape[i];
    box.push_back({constant(i == axis ? part * extent : 0), extent});
  }
  return {.tensor = tensor, .boxes = {std::move(box)}};
}

/// "torch.cat([of["x_k"].chunk(2)[rank//4]forofinheld],1)", or of what ranks made,
/// "torch.cat([of.chunk(RANKS,1)[rank]forofino])".
struct Gathered {
  std::string_view from;
  std::size_t axis = 0;  ///< beside each other along this
  std::size_t cut = 0;   ///< each a part along this
  std::int64_t parts = 1, sharers = 1;

  static std::optional<Gathered> of(std::string_view text, int ranks) {
    Gathered made;
    const auto take = [&](std::string_view word) {
      const bool is_there = text.starts_with(word);
      if (is_there) text.remove_prefix(word.size());
      return is_there;
    };
    const auto until = [&](std::string_view end) {
      const std::string_view before = text.substr(0, text.find(end));
      text.remove_prefix(before.size());
      return before;
    };
    const auto number = [&] {
      std::int64_t value = 0;
      const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
      text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
      return read.ec == std::errc{} && value > 0 ? value : 0;
    };
    if (!take("torch.cat([of")) return std::nullopt;
    const bool is_held = take("[\"");
    if (is_held) made.from = until("\"");
    if (is_held && !take("\"]")) return std::nullopt;
    if (!take(".chunk(")) return std::nullopt;
    made.parts = take("RANKS") ? ranks : number();
    if (take(",")) made.cut = static_cast<std::size_t>(number());
    if (!take(")[rank")) return std::nullopt;
    if (take("//")) made.sharers = number();
    if (!take("]forofin")) return std::nullopt;
    const std::string_view in = until("]");
    if (is_held != (in == "held")) return std::nullopt;
    if (!is_held) made.from = in;
    if (take("],")) made.axis = static_cast<std::size_t>(number());
    const bool is_known = made.parts > 0 && made.sharers > 0;
    return is_known ? std::optional(made) : std::nullopt;
  }
};

class Expecter {
 public:
  Expecter(const Reading& reading, plan::Plan& plan) : reading_(reading), plan_(plan) {}

  void expect() {
    const Module& module = reading_.walker.module();
    if (const Function* reference = module.find("reference")) {
      std::vector<const Node*> nodes;
      find_all(reference->body(), Kind::assignment, nodes);
      for (const Node* node : nodes) gathered(module.source, *node);
      nodes.clear();
      find_all(reference->body(), Kind::pair, nodes);
      for (const Node* node : nodes) {
        const std::string key(module.source.text(*node->child(Field::key)));
        sums_[key.substr(1, key.size() - 2)] =
            without_spaces(module.source.text(*node->child(Field::value)));
      }
    }
    for (int rank = 0; rank < reading_.ranks; ++rank) outputs(rank);
  }

 private:
  std::int32_t tensor_of(std::string_view name) const {
    const auto found = std::ranges::find(plan_.tensors, name, &plan::Tensor::name);
    return found == plan_.tensors.end() ? -1
                                        : static_cast<std::int32_t>(found - plan_.tensors.begin());
  }

  /// `a = torch.cat([of["x"].chunk(RANKS)[rank] for of in held], 1)`: of every rank its part for
  /// this one, beside each other.
  void gathered(const Source& source, const Node& node) {
    const std::int32_t tensor = tensor_of(source.text(*node.child(Field::left)));
    const Node* right = node.child(Field::right);
    if (tensor < 0 || right == nullptr) return;
    const std::string text = without_spaces(source.text(*right));
    const std::optional<Gathered> found = Gathered::of(text, plan_.ranks);
    if (!found) return;
    const std::int32_t from = tensor_of(found->from);
    if (from < 0 || from == tensor) return;  // gathered in its own place
    // Where tiles read copies, these say nothing of their places.
    if (!is_read(0, tensor) && !is_moved_output(tensor)) return;
    const auto& shape = plan_.tensors[index(tensor)].shape;
    const auto& source_shape = plan_.tensors[index(from)].shape;
    if (found->axis >= shape.size() || shape[found->axis] % plan_.ranks != 0 ||
        found->cut >= source_shape.size() || source_shape[found->cut] % found->parts != 0 ||
        (plan_.ranks - 1) / found->sharers >= found->parts)
      return;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      for (int holder = 0; holder < plan_.ranks; ++holder) {
        plan::Expectation one{.region =
                                  part_of_tensor(plan_, tensor, found->axis, holder, plan_.ranks)};
        one.of = part_of_tensor(plan_, from, found->cut, rank / found->sharers, found->parts);
        one.holder = constant(holder);
        if (one.region.elements() != one.of->elements()) return;
        plan_.codes[index(rank)].expected.push_back(std::move(one));
      }
    }
  }

  /// Tensors that tiles of a rank make.
  std::set<std::int32_t> computed(int rank) const {
    std::set<std::int32_t> made;
    for (const LaunchFacts& facts : reading_.launches[index(rank)])
      for (const auto& [tile, touched] : facts.tiles)
        for (const auto& [tensor, rect] : touched.writes) made.insert(tensor);
    return made;
  }

  /// An output that nothing but movements writes.
  bool is_moved_output(std::int32_t tensor) const {
    const auto& outputs = reading_.records.front().outputs;
    return is_moved_to(0, tensor) && !computed(0).contains(tensor) &&
           std::ranges::any_of(outputs,
                               [&](const auto& one) { return one.second.tensor == tensor; });
  }

  bool is_read(int rank, std::int32_t tensor) const {
    for (const LaunchFacts& facts : reading_.launches[index(rank)])
      for (const auto& [tile, touched] : facts.tiles)
        if (touched.reads.contains(tensor)) return true;
    return false;
  }

  /// Whether tiles of a rank read all tensors that a formula names: where they read copies that lie
  /// in another order, their results do, too.
  bool are_read(int rank, std::string_view formula) const {
    constexpr std::string_view kBegin = "of[\"";
    for (std::size_t at = formula.find(kBegin); at != formula.npos;
         at = formula.find(kBegin, at + 1)) {
      const std::size_t begin = at + kBegin.size(), end = formula.find('"', begin);
      if (!is_read(rank, tensor_of(formula.substr(begin, end - begin)))) return false;
    }
    return true;
  }

  /// Whether a movement of any rank writes the tensor of this one.
  bool is_moved_to(int rank, std::int32_t tensor) const {
    for (const RankRecord& record : reading_.records)
      for (const auto& stream : record.streams)
        for (const HostOp& op : stream)
          if (is_transfer(op) && op.regions[0].tensor == tensor && op.regions[0].rank == rank)
            return true;
    return false;
  }

  void outputs(int rank) {
    const std::set<std::int32_t> made = computed(rank);
    std::set<std::int32_t> last = made;  // without what other tiles read
    std::erase_if(last, [&](std::int32_t tensor) { return is_read(rank, tensor); });
    for (const auto& [name, region] : reading_.records[index(rank)].outputs) {
      const Tensor& tensor = reading_.records[index(rank)].tensors[index(region.tensor)];
      const plan::Rect rect = rect_of(tensor, region);
      plan::Expectation one;
      one.region.tensor = region.tensor;
      plan::Box& box = one.region.boxes.emplace_back();
      for (std::size_t i = 0; i < rect.begin.size(); ++i)
        box.push_back({constant(rect.begin[i]), rect.end[i] - rect.begin[i]});
      const auto formula = sums_.find(name);
      const bool is_sum = formula != sums_.end() && formula->second.starts_with("sum(") &&
                          (formula->second.find("forofinheld)") != std::string::npos ||
                           formula->second.find(",ofinzip(") != std::string::npos);
      if (is_sum) {
        if (last.size() != 1 || !are_read(rank, formula->second)) continue;
        const bool is_part = formula->second.find(kChunk) != std::string::npos;
        one.reduced = true;
        one.of =
            part_of_tensor(plan_, *last.begin(), 0, is_part ? rank : 0, is_part ? plan_.ranks : 1);
        if (one.of->elements() != one.region.elements()) continue;
      } else if (!made.contains(region.tensor)) {
        if (!is_moved_to(rank, region.tensor))
          reading_.walker.wrong(
              *reading_.walker.module().find("run")->node,
              "nothing writes the output '" + name + "' of rank " + std::to_string(rank));
        continue;
      } else if (is_moved_to(rank, region.tensor)) {
        continue;  // part of it is made elsewhere, and nothing says where
      }
      plan_.codes[index(rank)].expected.push_back(std::move(one));
    }
  }

  const Reading& reading_;
  plan::Plan& plan_;
  std::map<std::string, std::string, std::less<>> sums_;
};

}  // namespace

void add_expectations(const Reading& reading, plan::Plan& plan) {
  Expecter(reading, plan).expect();
}

}  // namespace hemiola::compile::readback
