#include "tune/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/lists.h"
#include "core/units.h"
#include "explore/space/schedule.h"
#include "program/built_in.h"

namespace hemiola::tune {
namespace {

constexpr const char* kConfiguration = "configuration";
const SourceLocation kParam{.file = "--param"};

/// Parameters that are searched where the template or its lowering has them.
const std::vector<std::string>& searched() {
  static const std::vector<std::string> kAll{"split", "waves",  "inner",       "transfer",
                                             "order", "stages", "realization", "workgroups"};
  return kAll;
}
bool is_searched(const std::string& name) {
  return std::find(searched().begin(), searched().end(), name) != searched().end();
}

std::string value_in(const study::Settings& settings, const std::string& name) {
  std::string value;
  for (const auto& [key, of] : settings)
    if (key == name) value = of;  // the last one wins
  return value;
}

std::vector<std::string> texts_of(std::initializer_list<int> numbers) {
  std::vector<std::string> texts;
  for (const int number : numbers) texts.push_back(std::to_string(number));
  return texts;
}

std::vector<std::string> realizations_on(const machine::Machine& machine) {
  std::vector<std::string> all{"load-store", "bulk"};
  if (explore::has_copy_engines(machine)) all.emplace_back("copy-engine");
  all.emplace_back("co-located");
  std::vector<int> ranks(static_cast<std::size_t>(machine.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (!machine.multicast_switches(ranks).empty()) all.emplace_back("multicast");
  return all;
}

/// Whether workgroups of their own move data.
bool has_own_workgroups(const std::string& realization) {
  return realization != "copy-engine" && realization != "co-located";
}

std::string configuration_text(const compile::Configuration& one) {
  std::vector<std::string> words;
  for (const auto& [name, value] : one.constants) words.push_back(name + "=" + value);
  if (!one.warps.empty()) words.push_back("num_warps=" + one.warps);
  if (!one.stages.empty()) words.push_back("num_stages=" + one.stages);
  return words.empty() ? "the kernel's own values" : fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

Space::Space(const plan::TemplateInfo& info, const study::Settings& sizes, const Choices& choices,
             std::vector<compile::Configuration> configurations, const machine::Machine& machine)
    : info_(info), machine_(machine), sizes_(sizes), configurations_(std::move(configurations)) {
  const std::vector<plan::ParameterInfo> known = program::parameters_of(info);
  const auto find_known = [&](const std::string& name) -> const plan::ParameterInfo* {
    const auto at =
        std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.name == name; });
    return at == known.end() ? nullptr : &*at;
  };
  const auto check = [&](const std::string& name) {
    if (name.starts_with("tile_"))
      throw Failure("'" + name + "' is what a configuration of the kernel says", kParam,
                    "--configs has them, or --constexpr");
    if (find_known(name) != nullptr) return;
    std::vector<std::string> names;
    for (const plan::ParameterInfo& one : known) names.push_back(one.name);
    throw Failure(fmt::format("{} has no parameter '{}'", info.name, name), kParam,
                  suggest(name, names));
  };
  for (const auto& [name, value] : sizes_) check(name);
  for (const auto& [name, values] : choices) check(name);

  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < configurations_.size(); ++i) numbers.push_back(std::to_string(i));
  add(kConfiguration, numbers, "0");
  const auto add_known = [&](const std::string& name, std::vector<std::string> values,
                             const std::string& usual) {
    const plan::ParameterInfo* one = find_known(name);
    if (one == nullptr) return;
    const auto chosen = choices.find(name);
    if (chosen != choices.end()) values = chosen->second;
    add(name, std::move(values), usual.empty() ? one->default_value : usual);
  };
  const auto words = [&](const char* name) {
    const plan::ParameterInfo* one = find_known(name);
    return one == nullptr ? std::vector<std::string>{} : one->choices;
  };
  add_known("split", texts_of({1, 2, 3, 4, 8}), "");
  add_known("waves", texts_of({1, 2, 4, 8}), "");
  if (choices.contains("inner")) add_known("inner", {}, "");
  const bool leaves_stages =
      std::any_of(configurations_.begin(), configurations_.end(),
                  [](const compile::Configuration& one) { return one.stages.empty(); });
  const machine::GpuModel& model = machine.model(0);
  if (leaves_stages) add_known("stages", texts_of({2, 3, 4}), std::to_string(model.gemm_stages));
  add_known("realization", realizations_on(machine), "copy-engine");
  std::vector<std::string> workgroups;
  for (const int count : {4, 8, 16, 32, 64})
    if (count * 2 <= model.cu_count) workgroups.push_back(std::to_string(count));
  add_known("workgroups", workgroups, "16");
  add_known("transfer", words("transfer"), "");
  add_known("order", words("order"), "");
  for (const auto& [name, values] : choices)
    if (!is_searched(name)) add_known(name, values, values.front());
}

void Space::add(std::string name, std::vector<std::string> values, const std::string& usual) {
  const auto at = std::find(values.begin(), values.end(), usual);
  const auto index = at == values.end() ? 0 : static_cast<std::size_t>(at - values.begin());
  dimensions_.push_back({std::move(name), std::move(values), index});
}

bool Space::means(const Point& point, std::size_t dimension) const {
  const std::string& name = dimensions_[dimension].name;
  if (name == "stages") return configurations_[point[0]].stages.empty();
  if (name != "workgroups") return true;
  const std::string realization = value(point, "realization");
  return realization.empty() || has_own_workgroups(realization);
}

Point Space::canonical(Point point) const {
  for (std::size_t i = 0; i < point.size(); ++i)
    if (!means(point, i)) point[i] = 0;
  return point;
}

std::vector<Point> Space::points() const {
  std::set<Point> seen;
  std::vector<Point> all;
  Point point(dimensions_.size(), 0);
  for (bool more = true; more;) {
    Point one = canonical(point);
    if (seen.insert(one).second) all.push_back(std::move(one));
    more = false;
    for (std::size_t i = point.size(); i-- > 0 && !more;) {
      more = ++point[i] < dimensions_[i].values.size();
      if (!more) point[i] = 0;
    }
  }
  return all;
}

Point Space::usual() const {
  Point point;
  for (const Dimension& one : dimensions_) point.push_back(one.usual);
  return canonical(std::move(point));
}

Point Space::with(Point point, std::size_t dimension, std::size_t value) const {
  const Point before = point;
  point[dimension] = value;
  // What begins to mean something begins with its usual value.
  for (std::size_t i = 0; i < point.size(); ++i)
    if (i != dimension && !means(before, i) && means(point, i)) point[i] = dimensions_[i].usual;
  return canonical(std::move(point));
}

std::string Space::value(const Point& point, const std::string& dimension) const {
  for (std::size_t i = 0; i < dimensions_.size(); ++i)
    if (dimensions_[i].name == dimension)
      return means(point, i) ? dimensions_[i].values[point[i]] : std::string();
  return value_in(sizes_, dimension);
}

compile::Configuration Space::configuration(const Point& point) const {
  compile::Configuration one = configurations_[point[0]];
  if (one.stages.empty()) one.stages = value(point, "stages");
  return one;
}

study::Settings Space::plan_parameters(const Point& point) const {
  study::Settings all;
  for (const auto& setting : sizes_)
    if (is_of_template(setting.first)) all.push_back(setting);
  for (std::size_t i = 1; i < dimensions_.size(); ++i)
    if (is_of_template(dimensions_[i].name))
      all.emplace_back(dimensions_[i].name, dimensions_[i].values[point[i]]);
  return all;
}

study::Settings Space::lowering(const Point& point) const {
  study::Settings all;
  for (const auto& setting : sizes_)
    if (!is_of_template(setting.first)) all.push_back(setting);
  for (std::size_t i = 1; i < dimensions_.size(); ++i) {
    const std::string& name = dimensions_[i].name;
    if (!is_of_template(name) && name != "stages" && means(point, i))
      all.emplace_back(name, dimensions_[i].values[point[i]]);
  }
  if (const std::string stages = configuration(point).stages; !stages.empty())
    all.emplace_back("stages", stages);
  if (value_in(all, "compute_workgroups").empty()) {
    // A persistent kernel has a workgroup on every compute unit that nobody else needs.
    const std::string own = value(point, "workgroups");
    const std::int64_t beside = parse_count(own).value_or(0);
    all.emplace_back("compute_workgroups", std::to_string(std::max<std::int64_t>(
                                               1, machine_.model(0).cu_count - beside)));
  }
  return all;
}

std::string Space::text(const Point& point) const {
  std::vector<std::string> words{configuration_text(configuration(point))};
  for (std::size_t i = 1; i < dimensions_.size(); ++i) {
    const Dimension& one = dimensions_[i];
    if (!means(point, i) || one.name == "stages") continue;
    const std::string& value = one.values[point[i]];
    const bool is_number = parse_count(value).has_value();
    words.push_back(one.name == "workgroups" ? value + " workgroups"
                    : is_number              ? one.name + " " + value
                                             : value);
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::vector<std::string> tile_parameters(const plan::TemplateInfo& info, int ranks,
                                         const study::Settings& parameters,
                                         const machine::Machine* machine) {
  const auto tiles_of = [&](const study::Settings& settings) {
    std::vector<std::int64_t> tiles;
    const plan::Plan plan = plan::make(info, ranks, settings, machine);
    for (const plan::Code& code : plan.codes) {
      if (!tiles.empty() || code.computes.empty()) continue;
      for (const plan::ComputeAxis& axis : code.computes.front().axes) tiles.push_back(axis.tile);
    }
    return tiles;
  };
  const std::vector<std::int64_t> usual = tiles_of(parameters);
  std::vector<std::string> names(usual.size());
  for (const plan::ParameterInfo& one : info.parameters) {
    if (!one.name.starts_with("tile_")) continue;
    study::Settings changed = parameters;
    // Another number that no tile has by default.
    changed.emplace_back(one.name, "24");
    const std::vector<std::int64_t> tiles = tiles_of(changed);
    for (std::size_t i = 0; i < tiles.size() && i < usual.size(); ++i)
      if (tiles[i] != usual[i]) names[i] = one.name;
  }
  return names;
}

Asked asked_of(const study::Settings& given, const plan::TemplateInfo& info) {
  Asked made;
  made.buckets.emplace_back();
  std::set<std::string> seen;
  for (const auto& [name, text] : given) {
    if (!seen.insert(name).second) throw Failure("'" + name + "' is given twice", kParam);
    std::vector<std::string> values;
    for (const std::string& one : split(text, ',')) {
      if (one.empty()) throw Failure("a value of '" + name + "' is empty", kParam);
      if (std::find(values.begin(), values.end(), one) == values.end()) values.push_back(one);
    }
    const bool is_lowering = info.parameter(name) == nullptr;
    if (is_searched(name) || (is_lowering && values.size() > 1)) {
      made.choices[name] = std::move(values);
      continue;
    }
    std::vector<study::Settings> all;
    for (const study::Settings& bucket : made.buckets) {
      for (const std::string& value : values) {
        all.push_back(bucket);
        all.back().emplace_back(name, value);
      }
    }
    made.buckets = std::move(all);
  }
  return made;
}

std::string bucket_name(const std::vector<study::Settings>& buckets, std::size_t index) {
  study::Settings shown;
  for (std::size_t i = 0; i < buckets[index].size(); ++i) {
    const bool differs = std::any_of(buckets.begin(), buckets.end(), [&](const auto& other) {
      return other[i] != buckets[index][i];
    });
    if (differs || buckets.size() == 1) shown.push_back(buckets[index][i]);
  }
  return study::to_text(shown);
}

}  // namespace hemiola::tune
