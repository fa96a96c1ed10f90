#include "study/tables/suite.h"

#include <algorithm>

#include "core/checked.h"
#include "core/diagnostics.h"
#include "core/embedded.h"
#include "core/lists.h"
#include "study/support/yaml_file.h"

namespace hemiola::study {
namespace {

constexpr std::string_view kFolder = "data/measured/";

class SuiteReader : YamlFile {
 public:
  using YamlFile::YamlFile;

  Suite read(std::string_view yaml) {
    const YAML::Node root = load(yaml);
    allow_keys(root, {"marks", "entries", "comparisons", "micro"});
    Suite suite{.file = name()};
    const YAML::Node marks = member(root, "marks");
    allow_keys(marks, {"graph", "stream"});
    suite.graph_marks = read_marks(member(marks, "graph"));
    suite.stream_marks = read_marks(member(marks, "stream"));
    member(root, "entries");
    for (const YAML::Node& node : list(root, "entries")) {
      SuiteEntry entry = read_entry(node);
      const auto same = [&](const SuiteEntry& other) { return other.name == entry.name; };
      if (std::ranges::any_of(suite.entries, same))
        fail(node, "there are two entries named '" + entry.name + "'");
      suite.entries.push_back(std::move(entry));
    }
    for (const SuiteEntry& entry : suite.entries) check_calibration(suite, entry);
    for (const YAML::Node& node : list(root, "comparisons")) {
      allow_keys(node, {"name", "first", "second"});
      member(node, "name");
      suite.comparisons.push_back({text(node, "name", ""), names_of_entries(suite, node, "first"),
                                   names_of_entries(suite, node, "second")});
    }
    for (const YAML::Node& node : list(root, "micro")) {
      MicroEntry entry = read_micro(node);
      const auto same = [&](const auto& other) { return other.name == entry.name; };
      if (std::ranges::any_of(suite.entries, same) || std::ranges::any_of(suite.micro, same))
        fail(node, "there are two entries named '" + entry.name + "'");
      suite.micro.push_back(std::move(entry));
    }
    return suite;
  }

 private:
  std::vector<Filter> filters(const YAML::Node& node) const {
    std::vector<Filter> read;
    const YAML::Node map = node["where"];
    if (map && !map.IsMap()) fail(map, "'where' must be a map of columns and values");
    for (const auto& item : map) {
      if (!item.first.IsScalar()) fail(item.first, "a key must be one word");
      Filter filter{item.first.Scalar(), {}};
      if (item.second.IsScalar())
        filter.values.push_back(item.second.Scalar());
      else
        for (const YAML::Node& value : list(map, filter.column)) {
          if (!value.IsScalar()) fail(value, "a value of a column must be one word");
          filter.values.push_back(value.Scalar());
        }
      read.push_back(std::move(filter));
    }
    return read;
  }

  Marks read_marks(const YAML::Node& node) const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < kRegimes; ++i) names.emplace_back(name_of(static_cast<Regime>(i)));
    allow_keys(node, names);
    Marks marks;
    for (std::size_t i = 0; i < kRegimes; ++i) {
      const YAML::Node mark = member(node, names[i]);
      allow_keys(mark, {"median", "worst"});
      const auto number = [&](const std::string& key) -> std::optional<double> {
        if (!mark[key]) return std::nullopt;
        const double value =
            mark[key].IsScalar() ? finite_number(mark[key].Scalar()).value_or(-1) : -1;
        if (!(value > 0)) fail(mark[key], "a mark must be greater than zero: 0.1 is 10 %");
        return value;
      };
      marks[i] = {number("median"), number("worst")};
    }
    return marks;
  }

  Bytes bytes(const YAML::Node& node, const std::string& key, Bytes otherwise) const {
    if (!node[key]) return otherwise;
    const auto size = parse_size(text(node, key, ""));
    if (!size) fail(node[key], "'" + key + "' must be a size such as 8MiB");
    return *size;
  }

  SuiteEntry read_entry(const YAML::Node& node) const {
    allow_keys(node,
               {"name", "kind", "table", "where", "columns", "from", "to", "machine", "gpu", "set",
                "program", "parameters", "dtype", "ranks", "launch", "host", "calibrate"});
    SuiteEntry entry{.line = node.Mark().line + 1};
    for (const char* key : {"name", "kind", "table", "machine", "program", "launch"})
      member(node, key);
    entry.name = text(node, "name", "");
    entry.table = text(node, "table", "");
    entry.machine = text(node, "machine", "");
    entry.machine_options = {text(node, "gpu", ""), pairs(node, "set")};
    entry.program = text(node, "program", "");
    const std::string kind = text(node, "kind", "");
    if (kind != "calibrate" && kind != "check")
      fail(node["kind"], "'kind' must be calibrate or check");
    entry.kind = kind == "check" ? Kind::check : Kind::calibrate;
    entry.launch = launch(node);
    const std::string host = text(node, "host", "each");
    if (host != "one" && host != "each") fail(node["host"], "'host' must be one or each");
    entry.one_host = host == "one";
    const auto type = parse_data_type(text(node, "dtype", "float"));
    if (!type) fail(node["dtype"], "'dtype' must be a data type");
    entry.type = *type;
    entry.ranks = static_cast<int>(count(node, "ranks", 0, 0, 1024));
    entry.where = filters(node);
    entry.columns = pairs(node, "columns");
    entry.parameters = pairs(node, "parameters");
    entry.from = bytes(node, "from", entry.from);
    entry.to = bytes(node, "to", entry.to);
    entry.calibrate = text(node, "calibrate", entry.name);
    return entry;
  }

  MicroEntry read_micro(const YAML::Node& node) const {
    constexpr std::int64_t kMost = 1'000'000'000;
    allow_keys(node,
               {"name", "hardware", "metric", "machine", "set", "ranks", "program", "parameters",
                "size", "base", "operations", "bytes", "launch", "warmup", "iterations"});
    for (const char* key : {"name", "hardware", "metric", "machine", "program"}) member(node, key);
    MicroEntry entry{.name = text(node, "name", ""),
                     .hardware = text(node, "hardware", ""),
                     .metric = text(node, "metric", ""),
                     .machine = text(node, "machine", ""),
                     .program = text(node, "program", "")};
    entry.where = at(node);
    entry.ranks = static_cast<int>(count(node, "ranks", 2, 1, 1024));
    entry.machine_options.set = pairs(node, "set");
    entry.parameters = pairs(node, "parameters");
    entry.base = pairs(node, "base");
    if (node["size"]) entry.size = bytes(node, "size", {});
    if (node["base"] && node["base"]["size"]) entry.base_size = bytes(node["base"], "size", {});
    std::erase_if(entry.base, [](const auto& parameter) { return parameter.first == "size"; });
    entry.operations = count(node, "operations", 1, 1, kMost);
    entry.bytes = bytes(node, "bytes", {});
    entry.options.launch = node["launch"] ? launch(node) : sim::Launch::stream;
    entry.options.iterations = static_cast<int>(count(node, "iterations", 0, 0, kMost));
    entry.options.warmup = static_cast<int>(count(node, "warmup", 0, 0, kMost));
    return entry;
  }

  sim::Launch launch(const YAML::Node& node) const {
    const std::string launch = text(node, "launch", "");
    if (launch != "graph" && launch != "stream")
      fail(node["launch"], "'launch' must be graph or stream");
    return launch == "graph" ? sim::Launch::graph : sim::Launch::stream;
  }

  std::vector<std::string> names_of_entries(const Suite& suite, const YAML::Node& node,
                                            const std::string& key) const {
    std::vector<std::string> names, known;
    for (const SuiteEntry& entry : suite.entries) known.push_back(entry.name);
    for (const YAML::Node& item : list(node, key)) {
      if (!item.IsScalar()) fail(item, "the name of an entry must be one word");
      names.push_back(item.Scalar());
      if (std::ranges::find(known, names.back()) == known.end())
        fail(item, "there is no entry '" + names.back() + "'", suggest(names.back(), known));
    }
    if (names.empty()) fail(node, "'" + key + "' must be a list of entries");
    return names;
  }

  /// What is only looked at must not be fitted to, not even by the trivial model.
  void check_calibration(const Suite& suite, const SuiteEntry& entry) const {
    const SourceLocation here{.file = name(), .line = entry.line};
    const auto found = std::ranges::find(suite.entries, entry.calibrate, &SuiteEntry::name);
    if (found == suite.entries.end())
      throw Failure("there is no entry '" + entry.calibrate + "' to fit to", here);
    if (found->kind != Kind::calibrate)
      throw Failure("'" + entry.name + "' would be fitted to '" + entry.calibrate +
                        "', whose rows are only for looking at",
                    here, "'calibrate' names an entry of kind calibrate");
  }
};

}  // namespace

std::string_view name_of(Kind kind) {
  return kind == Kind::calibrate ? "calibrate" : "check";
}

bool Mark::met_by(const Summary& summary) const {
  return !(median && summary.median > *median) && !(worst && summary.worst > *worst);
}

const SuiteEntry& Suite::entry(std::string_view name) const {
  return *std::ranges::find(entries, name, &SuiteEntry::name);
}

Suite parse_suite(std::string_view yaml, const std::string& file) {
  return SuiteReader(file).read(yaml);
}

std::string_view shipped_table(const std::string& name) {
  const std::string path = std::string(kFolder) + name;
  if (const EmbeddedFile* file = find_embedded(path)) return file->content;
  throw Failure("there is no table " + path);
}

Suite shipped_suite() {
  return parse_suite(shipped_table("suite.yaml"), std::string(kFolder) + "suite.yaml");
}

MeasuredTable rows_of(const SuiteEntry& entry) {
  MeasuredTable table = select(
      read_measured(shipped_table(entry.table), std::string(kFolder) + entry.table, entry.columns),
      entry.where);
  std::erase_if(table.rows, [&](const MeasuredRow& row) {
    return row.size < entry.from || row.size > entry.to;
  });
  for (MeasuredRow& row : table.rows)
    if (row.ranks == 0) row.ranks = entry.ranks;
  return table;
}

std::string name_of_machine(const std::string& machine, const machine::LoadOptions& options) {
  std::string name = machine;
  if (!options.gpu.empty()) name += " gpu=" + options.gpu;
  for (const auto& [parameter, value] : options.set) name += ' ' + parameter + '=' + value;
  return name;
}

MachineChoice choice_of(const std::string& machine, const machine::LoadOptions& options,
                        const Settings& more) {
  MachineChoice choice{.name = machine, .gpu = options.gpu, .settings = options.set};
  choice.settings.insert(choice.settings.end(), more.begin(), more.end());
  return choice;
}

bool in_default_sample(Bytes size) {
  for (Bytes power = KiB(1); power <= MiB(4); power = power * 4)
    if (power == size) return true;
  return false;
}

}  // namespace hemiola::study
