// Sweep files: axes of values, their product, what is added to it and left out.
#include "study/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "core/lists.h"
#include "core/text.h"
#include "machine/machine.h"
#include "program/built_in.h"
#include "program/kernels/kernel.h"
#include "program/program.h"
#include "study/support/digest.h"
#include "study/support/yaml_file.h"

namespace hemiola::study {
namespace {

constexpr std::size_t kMostPoints = 1'000'000;
constexpr sim::Engine kEngines[] = {sim::Engine::line, sim::Engine::sampled, sim::Engine::fluid,
                                    sim::Engine::reference};
constexpr sim::Launch kLaunches[] = {sim::Launch::stream, sim::Launch::graph};

/// Values that are combined with each other; empty: the file does not say (`set`, `parameters`:
/// names without values do not occur).
struct Axes {
  std::vector<std::string> machines, gpus, ranks, programs;
  std::vector<std::pair<std::string, std::vector<std::string>>> set, parameters;
  std::vector<DataType> types;
  std::vector<ReduceOp> ops;
  std::vector<Bytes> sizes;
  std::vector<sim::Engine> engines;
  std::vector<sim::Launch> launches;
  std::vector<std::string> skews;
};
const std::vector<std::string> kAxes{"machine", "gpu", "set",  "ranks",  "program", "param",
                                     "dtype",   "op",  "size", "engine", "launch",  "skew"};

template <typename T>
bool among(const std::vector<T>& values, const T& value) {
  return values.empty() || std::ranges::find(values, value) != values.end();
}
bool among(const std::vector<std::pair<std::string, std::vector<std::string>>>& axes,
           const Settings& settings) {
  return std::ranges::all_of(axes, [&](const auto& axis) {
    return std::ranges::any_of(settings, [&](const auto& setting) {
      return setting.first == axis.first && among(axis.second, setting.second);
    });
  });
}

class SweepReader : YamlFile {
 public:
  SweepReader(std::string file, const parts::Registry* parts)
      : YamlFile(std::move(file)), parts_(parts) {
    sweep_.file = name();
  }

  Sweep read() {
    sweep_.text = read_file(name());
    const YAML::Node root = load(sweep_.text);
    std::vector<std::string> known = kAxes;
    known.insert(known.end(),
                 {"warmup", "iterations", "check", "round_size", "include", "exclude"});
    allow_keys(root, known);
    constexpr std::int64_t kMostRepetitions = 1'000'000;
    sweep_.warmup = static_cast<int>(count(root, "warmup", 0, 0, kMostRepetitions));
    sweep_.iterations = static_cast<int>(count(root, "iterations", 0, 0, kMostRepetitions));
    if (sweep_.warmup > 0 && sweep_.iterations == 0)
      fail(root["warmup"], "a warm-up needs measured repetitions after it", "add iterations: N");
    sweep_.check = flag(root, "check", true);
    sweep_.round_size = flag(root, "round_size", false);
    const Axes base = axes(root);
    add_product(root, base);
    for (const YAML::Node& node : list(root, "include")) {
      allow_keys(node, kAxes);
      add_product(node, over(base, axes(node)));
    }
    for (const YAML::Node& node : list(root, "exclude")) {
      allow_keys(node, kAxes);
      leave_out(node, axes(node));
    }
    if (sweep_.points.empty()) fail(root, "the sweep has no point: all of them are excluded");
    check_machines();
    return std::move(sweep_);
  }

 private:
  bool flag(const YAML::Node& root, const std::string& key, bool otherwise) const {
    const std::string word = text(root, key, otherwise ? "true" : "false");
    if (word != "true" && word != "false") fail(root[key], "'" + key + "' must be true or false");
    return word == "true";
  }

  /// Calls `take` for the value, or each value of the list, of a member that may be absent.
  void each(const YAML::Node& node, const std::string& key,
            const std::function<void(const YAML::Node&)>& take) const {
    const YAML::Node values = node[key];
    if (!values) return;
    if (values.IsScalar()) return take(values);
    if (!values.IsSequence() || values.size() == 0)
      fail(values, "'" + key + "' must be a value or a list of values");
    for (const auto& value : values) {
      if (!value.IsScalar()) fail(value, "'" + key + "' must be a value or a list of values");
      take(value);
    }
  }
  template <typename T>
  void add(std::vector<T>& values, T value, const YAML::Node& node) const {
    if (std::ranges::find(values, value) != values.end())
      fail(node, "'" + node.Scalar() + "' stands here twice");
    values.push_back(std::move(value));
  }
  std::vector<std::string> texts(const YAML::Node& node, const std::string& key) const {
    std::vector<std::string> values;
    each(node, key, [&](const YAML::Node& value) { add(values, value.Scalar(), value); });
    return values;
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> names_and_values(
      const YAML::Node& node, const std::string& key) {
    std::vector<std::pair<std::string, std::vector<std::string>>> read;
    const YAML::Node map = node[key];
    if (!map) return read;
    if (!map.IsMap()) fail(map, "'" + key + "' must be a map of names and values");
    std::vector<std::string> names;
    for (const auto& item : map) {
      if (!item.first.IsScalar()) fail(item.first, "a name must be one word");
      add(names, item.first.Scalar(), item.first);
      if (key == "set") places_.try_emplace(item.first.Scalar(), at(item.first));
      read.emplace_back(item.first.Scalar(), texts(map, item.first.Scalar()));
    }
    return read;
  }
  /// One of `choices` by its name.
  template <typename T, std::size_t N>
  T choice(const YAML::Node& node, const T (&choices)[N]) const {
    std::vector<std::string> names;
    for (const T& value : choices) {
      if (node.Scalar() == name_of(value)) return value;
      names.emplace_back(name_of(value));
    }
    fail(node, "'" + node.Scalar() + "' is not among them",
         suggest(node.Scalar(), names, "there are: " + joined(names)));
  }

  Axes axes(const YAML::Node& node) {
    Axes axes{.gpus = texts(node, "gpu"), .ranks = texts(node, "ranks")};
    axes.skews = texts(node, "skew");
    each(node, "skew", [&](const YAML::Node& value) { read_times(value.Scalar(), at(value)); });
    each(node, "machine", [&](const YAML::Node& value) {
      add(axes.machines, value.Scalar(), value);
      places_.try_emplace(value.Scalar(), at(value));
    });
    each(node, "ranks", [&](const YAML::Node& value) { read_ranks(value.Scalar(), at(value)); });
    each(node, "program", [&](const YAML::Node& value) {
      for (const std::string& program : programs(value)) add(axes.programs, program, value);
    });
    axes.set = names_and_values(node, "set");
    axes.parameters = names_and_values(node, "param");
    each(node, "dtype", [&](const YAML::Node& value) {
      const auto type = parse_data_type(value.Scalar());
      if (!type)
        fail(value, "'" + value.Scalar() + "' is not an element type",
             "for example float, half, bfloat16");
      add(axes.types, *type, value);
    });
    each(node, "op", [&](const YAML::Node& value) {
      const auto op = parse_reduce_op(value.Scalar());
      if (!op)
        fail(value, "'" + value.Scalar() + "' is not a reduction", "for example sum, max, min");
      add(axes.ops, *op, value);
    });
    each(node, "size", [&](const YAML::Node& value) {
      for (const Bytes size : read_sizes(value.Scalar(), at(value))) add(axes.sizes, size, value);
    });
    each(node, "engine",
         [&](const YAML::Node& value) { add(axes.engines, choice(value, kEngines), value); });
    each(node, "launch",
         [&](const YAML::Node& value) { add(axes.launches, choice(value, kLaunches), value); });
    return axes;
  }

  /// A program, or all built-ins of a collective.
  std::vector<std::string> programs(const YAML::Node& node) const {
    const std::string& program = node.Scalar();
    if (program::is_built_in(program, parts_) || is_file(sweep_.path_of(program))) return {program};
    if (const auto collective = parse_collective(program)) {
      std::vector<std::string> names = program::algorithms_of(*collective, parts_);
      if (!names.empty()) return names;
    }
    std::vector<std::string> known = program::built_in_names(parts_);
    for (const program::KernelInfo& kernel : program::kernels(parts_)) known.push_back(kernel.name);
    fail(node, "there is no program and no file '" + program + "'", suggest(program, known));
  }

  /// What `axes` does not say is as in `base`.
  static Axes over(const Axes& base, Axes axes) {
    const auto fill = [](auto& values, const auto& otherwise) {
      if (values.empty()) values = otherwise;
    };
    fill(axes.machines, base.machines);
    fill(axes.gpus, base.gpus);
    fill(axes.ranks, base.ranks);
    fill(axes.programs, base.programs);
    fill(axes.set, base.set);
    fill(axes.parameters, base.parameters);
    fill(axes.types, base.types);
    fill(axes.ops, base.ops);
    fill(axes.sizes, base.sizes);
    fill(axes.engines, base.engines);
    fill(axes.launches, base.launches);
    fill(axes.skews, base.skews);
    return axes;
  }

  /// All combinations of one value of each name, the first name varying slowest.
  std::vector<Settings> combinations(
      const YAML::Node& node,
      const std::vector<std::pair<std::string, std::vector<std::string>>>& axes) const {
    std::vector<Settings> all{{}};
    for (const auto& [name, values] : axes) {
      if (all.size() * values.size() > kMostPoints) too_many(node);
      std::vector<Settings> longer;
      for (const Settings& settings : all)
        for (const std::string& value : values)
          longer.emplace_back(settings).emplace_back(name, value);
      all = std::move(longer);
    }
    return all;
  }
  [[noreturn]] void too_many(const YAML::Node& node) const {
    fail(node, fmt::format("the sweep has more than {} points", kMostPoints));
  }

  void add_product(const YAML::Node& node, Axes axes) {
    if (axes.machines.empty()) fail(node, "the key 'machine' is missing");
    if (axes.programs.empty()) fail(node, "the key 'program' is missing");
    if (axes.sizes.empty()) fail(node, "the key 'size' is missing");
    const SweepPoint usual;
    axes = over({.gpus = {usual.gpu},
                 .ranks = {usual.ranks},
                 .types = {usual.type},
                 .ops = {usual.op},
                 .engines = {usual.engine},
                 .launches = {usual.launch},
                 .skews = {usual.skew}},
                std::move(axes));
    std::vector<SweepPoint> points{usual};
    // Every point becomes as many as there are values; the first axis varies slowest.
    const auto multiply = [&](const auto& values, auto SweepPoint::*member) {
      if (points.size() * values.size() + sweep_.points.size() > kMostPoints) too_many(node);
      std::vector<SweepPoint> more;
      for (const SweepPoint& point : points)
        for (const auto& value : values) more.emplace_back(point).*member = value;
      points = std::move(more);
    };
    multiply(axes.machines, &SweepPoint::machine);
    multiply(axes.gpus, &SweepPoint::gpu);
    multiply(combinations(node, axes.set), &SweepPoint::set);
    multiply(axes.ranks, &SweepPoint::ranks);
    multiply(axes.programs, &SweepPoint::program);
    multiply(combinations(node, axes.parameters), &SweepPoint::parameters);
    multiply(axes.types, &SweepPoint::type);
    multiply(axes.ops, &SweepPoint::op);
    multiply(axes.sizes, &SweepPoint::size);
    multiply(axes.engines, &SweepPoint::engine);
    multiply(axes.launches, &SweepPoint::launch);
    multiply(axes.skews, &SweepPoint::skew);
    for (SweepPoint& point : points)
      if (known_.insert(key(point)).second) sweep_.points.push_back(std::move(point));
  }

  static std::string key(const SweepPoint& p) {
    return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}\n{}", p.machine, p.gpu,
                       to_text(p.set), p.ranks, p.program, to_text(p.parameters), name_of(p.type),
                       name_of(p.op), p.size.count, name_of(p.engine), name_of(p.launch), p.skew);
  }

  void leave_out(const YAML::Node& node, const Axes& axes) {
    const std::size_t left_out = std::erase_if(sweep_.points, [&](const SweepPoint& point) {
      return among(axes.machines, point.machine) && among(axes.gpus, point.gpu) &&
             among(axes.ranks, point.ranks) && among(axes.programs, point.program) &&
             among(axes.set, point.set) && among(axes.parameters, point.parameters) &&
             among(axes.types, point.type) && among(axes.ops, point.op) &&
             among(axes.sizes, point.size) && among(axes.engines, point.engine) &&
             among(axes.launches, point.launch) && among(axes.skews, point.skew);
    });
    if (left_out == 0) fail(node, "no point is like this: nothing would be excluded");
  }

  /// Loads every machine once, so that a mistake in one is found before anything is run; notes
  /// which files the points read.
  void check_machines() {
    std::map<std::string, std::string> inputs;
    std::set<std::string> known;
    for (const SweepPoint& point : sweep_.points) {
      for (const std::string& name : {point.machine, point.gpu, point.program}) {
        const std::string path = sweep_.path_of(name);
        if (is_file(path) && !inputs.contains(name)) inputs[name] = digest(read_file(path));
      }
      const std::string machine = point.machine + '\n' + point.gpu;
      if (known.insert(machine).second) check_machine(point, {}, point.machine);
      if (!point.set.empty() && known.insert(machine + '\n' + to_text(point.set)).second)
        check_machine(point, point.set, point.set.front().first);
    }
    sweep_.inputs.assign(inputs.begin(), inputs.end());
  }
  void check_machine(const SweepPoint& point, const Settings& set, const std::string& place) const {
    const SourceLocation where = places_.at(place);
    try {
      const machine::Machine machine = machine::load(
          sweep_.path_of(point.machine), {.gpu = sweep_.path_of(point.gpu), .set = set});
      if (machine.ranks() > 0) return;
    } catch (const Failure& failure) {
      const bool elsewhere = is_file(failure.diagnostics().items().front().where.file);
      if (elsewhere) throw;
      const Diagnostic& first = failure.diagnostics().items().front();
      throw Failure(set.empty() ? first.message : to_text(set) + ": " + first.message, where,
                    first.hint);
    }
    throw Failure("machine '" + point.machine + "' has no GPU, so nothing can run on it", where);
  }

  Sweep sweep_;
  const parts::Registry* parts_;
  std::set<std::string> known_;                   ///< keys of all points so far
  std::map<std::string, SourceLocation> places_;  ///< of machines and of names of `set`
};

}  // namespace

std::string Sweep::path_of(const std::string& name) const {
  const std::filesystem::path beside = std::filesystem::path(file).parent_path() / name;
  return is_file(beside.string()) ? beside.string() : name;
}

Sweep read_sweep(const std::string& file, const parts::Registry* parts) {
  return SweepReader(file, parts).read();
}

}  // namespace hemiola::study
