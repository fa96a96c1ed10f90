#include "study/laboratory/job_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <utility>

#include "core/checked.h"
#include "core/lists.h"
#include "core/text.h"
#include "program/jobs/launch_programs.h"
#include "study/support/yaml_file.h"

namespace hemiola::study {
namespace {

using program::Job;
using program::Launch;
using SharedProgram = std::shared_ptr<const program::Program>;

const std::vector<std::string> kJobKeys{"name", "streams", "launches", "dtype"};
const std::vector<std::string> kStreamKeys{"priority", "units"};
/// What is launched: exactly one of these.
const std::vector<std::string> kKinds{"run", "product", "attention", "compute", "copy"};
const std::vector<std::string> kLaunchKeys{
    "name", "run",   "product", "attention", "compute", "copy", "param",        "size",  "dtype",
    "op",   "ranks", "groups",  "stream",    "after",   "at",   "communicator", "memory"};

class JobReader : YamlFile {
 public:
  JobReader(std::string file, const machine::SharedMachine& machine, Laboratory& laboratory,
            const Watch& watch)
      : YamlFile(std::move(file)), machine_(machine), laboratory_(laboratory), watch_(watch) {}

  std::shared_ptr<const Job> read(std::string_view content) {
    const YAML::Node root = load(content);
    allow_keys(root, kJobKeys);
    job_.source = YamlFile::name();
    job_.name = text(root, "name", std::filesystem::path(job_.source).stem().string());
    type_ = text(root, "dtype", "float");
    read_streams(root["streams"]);
    const YAML::Node launches = member(root, "launches");
    if (!launches.IsSequence() || launches.size() == 0)
      fail(launches, "'launches' is a list of at least one launch");
    for (const YAML::Node& launch : launches) read_launch(launch);
    for (const auto& [number, waits] : waits_) resolve_after(number, waits);
    return std::make_shared<const Job>(std::move(job_));
  }

 private:
  void read_streams(const YAML::Node& streams) {
    if (!streams) return;
    if (!streams.IsMap()) fail(streams, "'streams' is a map of names and what they are given");
    for (const auto& entry : streams) {
      allow_keys(entry.second, kStreamKeys);
      program::StreamOptions options;
      options.priority = static_cast<std::int32_t>(count(entry.second, "priority", 0, -100, 100));
      const std::string units = text(entry.second, "units", "");
      if (!units.empty()) read_units(entry.second["units"], units, options);
      job_.streams[entry.first.Scalar()] = options;
    }
  }

  /// "0-31": compute units 0 to 31.
  void read_units(const YAML::Node& node, const std::string& words,
                  program::StreamOptions& options) {
    const std::vector<int> list = read_list(words, node);
    options.first_unit = list.front();
    options.units = static_cast<std::int32_t>(list.size());
    const std::int64_t present = machine_->model(0).cu_count;
    if (list.back() - list.front() + 1 != options.units || list.back() >= present)
      fail(node, fmt::format("'{}' is no row of compute units", words),
           fmt::format("give a range such as 0-31; the GPU has units 0 to {}", present - 1));
  }

  /// "0-3" or "0,2,4-7". One number is that one here, where --ranks 4 means so many of them.
  std::vector<int> read_list(const std::string& words, const YAML::Node& node) const {
    const bool is_one = words.find_first_not_of("0123456789") == std::string::npos;
    return read_ranks(is_one ? words + "-" + words : words, at(node));
  }

  // --- Launches.

  void read_launch(const YAML::Node& node) {
    allow_keys(node, kLaunchKeys);
    std::vector<std::string> kinds;
    for (const std::string& kind : kKinds)
      if (node[kind]) kinds.push_back(kind);
    if (kinds.size() != 1)
      fail(node, kinds.empty() ? "a launch says what it runs" : "a launch runs one thing",
           "give one of run, product, attention, compute, copy");
    const std::string name =
        text(node, "name", fmt::format("{} {}", kinds.front(), job_.launches.size()));
    const std::vector<std::vector<int>> groups = groups_of(node);
    std::vector<std::int32_t>& named = by_name_[name];
    if (!named.empty()) fail(node, "a launch with the name '" + name + "' is there already");
    for (std::size_t g = 0; g < groups.size(); ++g) {
      Launch launch;
      launch.name = groups.size() == 1 ? name : fmt::format("{}[{}]", name, g);
      launch.where = at(node);
      launch.ranks = groups[g];
      launch.stream = text(node, "stream", "main");
      launch.communicator = text(node, "communicator", "");
      launch.memory = pairs(node, "memory");
      launch.options.type = data_type(node);
      const std::string op = text(node, "op", "sum");
      const auto operation = parse_reduce_op(op);
      if (!operation) fail(node["op"], "'" + op + "' is no reduction");
      launch.options.op = *operation;
      if (node["at"]) launch.at = read_time(text(node, "at", ""), at(node["at"]));
      make_program(node, kinds.front(), launch);
      const auto number = static_cast<std::int32_t>(job_.launches.size());
      named.push_back(number);
      if (node["after"]) waits_.emplace_back(number, node["after"]);
      job_.launches.push_back(std::move(launch));
    }
  }

  DataType data_type(const YAML::Node& node) const {
    const std::string word = text(node, "dtype", type_);
    const auto type = parse_data_type(word);
    if (!type) fail(node["dtype"] ? node["dtype"] : node, "'" + word + "' is no data type");
    return *type;
  }

  /// The ranks of one launch, or of one launch per group.
  std::vector<std::vector<int>> groups_of(const YAML::Node& node) const {
    if (node["ranks"] && node["groups"]) fail(node, "'ranks' and 'groups' exclude each other");
    if (node["groups"]) {
      const YAML::Node& groups = node["groups"];
      if (!groups.IsSequence() || groups.size() == 0)
        fail(groups, "'groups' is a list of lists of ranks", "for example [0-3, 4-7]");
      std::vector<std::vector<int>> result;
      for (const YAML::Node& group : groups) result.push_back(ranks_in(group));
      return result;
    }
    if (node["ranks"]) return {ranks_in(node["ranks"])};
    std::vector<int> all(index(machine_->ranks()));
    std::iota(all.begin(), all.end(), 0);
    return {all};
  }

  /// "0-3", "0,2,4,6", a number, or a list of numbers.
  std::vector<int> ranks_in(const YAML::Node& node) const {
    std::string words;
    if (node.IsScalar()) words = node.Scalar();
    if (node.IsSequence())
      for (const YAML::Node& rank : node)
        words += (words.empty() ? "" : ",") + (rank.IsScalar() ? rank.Scalar() : "?");
    if (words.empty()) fail(node, "ranks are a list", "for example 0-3, or [0, 2, 4, 6]");
    std::vector<int> ranks = read_list(words, node);
    for (const int rank : ranks) {
      if (rank >= machine_->ranks())
        fail(node, fmt::format("there is no rank {}", rank),
             fmt::format("the machine has ranks 0 to {}", machine_->ranks() - 1));
    }
    return ranks;
  }

  void resolve_after(std::int32_t number, const YAML::Node& node) {
    std::vector<YAML::Node> names;
    if (node.IsSequence())
      for (const auto& name : node) names.push_back(name);
    else
      names.push_back(node);
    Launch& launch = job_.launches[index(number)];
    for (const YAML::Node& name : names) {
      if (!name.IsScalar()) fail(name, "'after' is the name of a launch, or a list of names");
      for (const std::int32_t other : named(name)) {
        const Launch& before = job_.launches[index(other)];
        // Of the groups of a name those that have ranks in common.
        const bool meets = std::ranges::any_of(launch.ranks, [&](int rank) {
          return std::ranges::find(before.ranks, rank) != before.ranks.end();
        });
        if (meets || named(name).size() == 1) launch.after.push_back(other);
      }
    }
  }

  std::vector<std::int32_t> named(const YAML::Node& node) const {
    const auto known = by_name_.find(node.Scalar());
    if (known != by_name_.end()) return known->second;
    std::vector<std::string> names;
    for (const auto& [name, numbers] : by_name_) names.push_back(name);
    for (std::size_t l = 0; l < job_.launches.size(); ++l)
      if (job_.launches[l].name == node.Scalar()) return {static_cast<std::int32_t>(l)};
    fail(node, "there is no launch '" + node.Scalar() + "'", suggest(node.Scalar(), names));
  }

  // --- Programs.

  Bytes size_of_launch(const YAML::Node& node) const {
    const YAML::Node size = member(node, "size");
    if (!size.IsScalar()) fail(size, "'size' is one size", "for example 64MiB");
    return read_size(size.Scalar(), at(size));
  }

  void make_program(const YAML::Node& node, const std::string& kind, Launch& launch) {
    if (kind != "run" && node["param"]) fail(node["param"], "parameters are those of a program");
    if (kind == "run") {
      launch.options.size = size_of_launch(node);
      launch.program = load_named(node, launch);
      return;
    }
    if (node["size"]) fail(node["size"], "'size' is that of a program that is run");
    launch.alone = true;
    try {
      if (kind == "product")
        launch.program = product(node["product"], launch);
      else if (kind == "attention")
        launch.program = attention(node["attention"], launch);
      else if (kind == "compute")
        launch.program = compute(node["compute"]);
      else
        copy(node["copy"], node, launch);
    } catch (const Failure& failure) {
      const Diagnostic& first = failure.diagnostics().items().front();
      if (!first.where.file.empty()) throw;
      fail(node[kind], first.message, first.hint);
    }
    launch.options.size = launch.program->fixed_size;
    if (launch.program->fixed_type) launch.options.type = *launch.program->fixed_type;
  }

  /// One that is there already for the same key, or what `make` makes.
  template <class Make>
  SharedProgram once(const std::string& key, Make make) {
    SharedProgram& known = programs_[key];
    if (known == nullptr) known = std::make_shared<const program::Program>(make());
    return known;
  }

  SharedProgram load_named(const YAML::Node& node, const Launch& launch) {
    std::string name = member(node, "run").Scalar();
    const auto beside = std::filesystem::path(job_.source).parent_path() / name;
    if (!program::is_built_in(name, laboratory_.parts()) && is_file(beside.string()))
      name = beside.string();
    const Settings parameters = pairs(node, "param");
    const machine::SharedMachine ranks = machine_of(launch.ranks);
    const auto count = static_cast<int>(launch.ranks.size());
    const std::string key = fmt::format(
        "{} {} {} {} {} {}", name, to_text(parameters), count, launch.options.size.count,
        static_cast<int>(launch.options.type), static_cast<const void*>(ranks.get()));
    return once(key, [&] {
      return *laboratory_.program({.machine = {.given = ranks},
                                   .subject = name,
                                   .parameters = parameters,
                                   .size = launch.options.size,
                                   .type = launch.options.type,
                                   .op = launch.options.op},
                                  ranks, watch_);
    });
  }

  /// The machine as these ranks alone see it. Groups whose GPUs are alike, and whose ways are the
  /// same but for the numbers of their links, share one, so that their programs are made once.
  machine::SharedMachine machine_of(const std::vector<int>& ranks) {
    machine::SharedMachine& known = machines_[machine_->ways_between(ranks)];
    if (known == nullptr) known = machine::select_ranks(machine_, ranks);
    return known;
  }

  std::int64_t number(const YAML::Node& node, const char* key, std::int64_t least) const {
    return count(node, key, least, least, std::int64_t{1} << 46);
  }

  SharedProgram product(const YAML::Node& node, const Launch& launch) {
    allow_keys(node, {"m", "n", "k"});
    for (const char* key : {"m", "n", "k"}) member(node, key);
    const program::MatrixProduct shape{number(node, "m", 1), number(node, "n", 1),
                                       number(node, "k", 1)};
    const machine::GpuModel& model = machine_->model(launch.ranks.front());
    return once(fmt::format("product {} {} {} {} {}", shape.m, shape.n, shape.k,
                            static_cast<int>(launch.options.type), model.name),
                [&] { return program::product_program(shape, launch.options.type, model); });
  }

  /// Both products of attention at the rate of the matrix units, and each operand once.
  SharedProgram attention(const YAML::Node& node, const Launch& launch) {
    allow_keys(node, {"queries", "keys", "heads", "kv_heads", "dim", "batch", "causal"});
    const std::int64_t queries = number(node, "queries", 1), keys = number(node, "keys", 1);
    const std::int64_t heads = number(node, "heads", 1), dim = number(node, "dim", 1);
    const std::int64_t kv_heads = node["kv_heads"] ? number(node, "kv_heads", 1) : heads;
    const std::int64_t batch = number(node, "batch", 1);
    const std::string causal = text(node, "causal", "false");
    if (causal != "true" && causal != "false") fail(node["causal"], "'causal' is true or false");
    const std::int64_t element = size_of(launch.options.type);
    program::Work work;
    work.flop = 4 * batch * heads * queries * keys * dim / (causal == "true" ? 2 : 1);
    work.read = {batch * dim * element * (heads * queries + 2 * kv_heads * keys)};
    work.written = {batch * dim * element * heads * queries};
    return work_of(work, launch);
  }

  SharedProgram compute(const YAML::Node& node) {
    allow_keys(node, {"read", "write", "flop", "time", "workgroups", "pieces"});
    program::Work work;
    if (node["read"]) work.read = read_size(node["read"].Scalar(), at(node["read"]));
    if (node["write"]) work.written = read_size(node["write"].Scalar(), at(node["write"]));
    if (node["flop"]) work.flop = flop_of(node["flop"]);
    if (node["time"]) work.duration = read_time(node["time"].Scalar(), at(node["time"]));
    work.workgroups = static_cast<std::int32_t>(count(node, "workgroups", 0, 1, 1 << 20));
    work.most_steps = count(node, "pieces", 0, 1, 1 << 20);
    return work_of(work, {.ranks = {0}});
  }

  /// "2e12" as well as a whole number.
  std::int64_t flop_of(const YAML::Node& node) const {
    const double flop = finite_number(node.Scalar()).value_or(0);
    if (flop >= 1 && flop < 9e18) return static_cast<std::int64_t>(flop);
    fail(node, "'" + node.Scalar() + "' is no number of floating-point operations",
         "for example 2e12");
  }

  SharedProgram work_of(const program::Work& work, const Launch& launch) {
    const machine::GpuModel& model = machine_->model(launch.ranks.front());
    return once(
        fmt::format("work {} {} {} {} {} {} {}", work.read.count, work.written.count, work.flop,
                    work.duration.fs, work.workgroups, work.most_steps, model.name),
        [&] { return program::work_program(work, model); });
  }

  void copy(const YAML::Node& node, const YAML::Node& whole, Launch& launch) {
    allow_keys(node, {"from", "to", "size"});
    if (whole["ranks"] || whole["groups"])
      fail(whole, "a copy says its ranks itself, as 'from' and 'to'");
    const auto last = static_cast<std::int64_t>(machine_->ranks()) - 1;
    for (const char* key : {"from", "to"}) member(node, key);
    const auto from = static_cast<int>(count(node, "from", 0, 0, last));
    const auto to = static_cast<int>(count(node, "to", 0, 0, last));
    const Bytes size = size_of_launch(node);
    launch.alone = from == to;
    launch.ranks = from == to ? std::vector<int>{from} : std::vector<int>{from, to};
    const int ranks = static_cast<int>(launch.ranks.size());
    launch.program = once(fmt::format("copy {} {}", size.count, ranks),
                          [&] { return program::copy_program(size, ranks); });
  }

  machine::SharedMachine machine_;
  Laboratory& laboratory_;
  const Watch& watch_;
  Job job_;
  std::string type_;
  std::map<std::string, std::vector<std::int32_t>> by_name_;
  std::vector<std::pair<std::int32_t, YAML::Node>> waits_;
  std::map<std::string, SharedProgram> programs_;
  std::map<std::uint64_t, machine::SharedMachine> machines_;  ///< by ways
};

}  // namespace

bool is_job(std::string_view text) {
  const std::size_t key = text.find("launches");
  if (key == std::string_view::npos) return false;
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    return root.IsMap() && root["launches"];
  } catch (const YAML::Exception&) {
    return false;
  }
}

std::shared_ptr<const Job> parse_job(std::string_view text, const std::string& file,
                                     const machine::SharedMachine& machine, Laboratory& laboratory,
                                     const Watch& watch) {
  return JobReader(file, machine, laboratory, watch).read(text);
}

std::shared_ptr<const Job> read_job(const std::string& file, const machine::SharedMachine& machine,
                                    Laboratory& laboratory, const Watch& watch) {
  return parse_job(read_file(file), file, machine, laboratory, watch);
}

}  // namespace hemiola::study
