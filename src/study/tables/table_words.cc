#include "study/tables/table_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <regex>

#include "core/embedded.h"
#include "core/lists.h"
#include "study/support/known_names.h"
#include "study/support/yaml_file.h"
#include "study/tables/table_text.h"

namespace hemiola::study {

std::string lowered(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

namespace {

/// Those that are simulated; a kind of another name says why it is not.
constexpr std::array<std::string_view, 4> kKinds = {"collective", "product", "overlap",
                                                    "iteration"};

std::regex pattern_of(const std::string& text) {
  return std::regex(text, std::regex::ECMAScript | std::regex::icase);
}

struct Word {
  bool always = false;  ///< whatever the row says
  std::regex pattern;
  bool in_head = false;  ///< else in the row's own cells only
  Bytes from{}, to{INT64_MAX};
  RowWords means;
  bool has_program = false;
};

struct KnownKind {
  TableKind kind;
  std::vector<std::string> needs;
};

/// A word of an iteration, or of a model.
struct IterationWord {
  std::regex pattern;
  IterationWords means;
};

struct Columns {
  std::string role;
  std::vector<std::string> names;
};

/// data/tables.yaml, read once.
struct Tables : YamlFile {
  std::vector<Columns> columns;
  std::vector<KnownKind> kinds;
  std::vector<std::pair<std::string, std::string>> machines;
  std::vector<Word> words;
  std::vector<IterationWord> iterations, models;

  Tables() : YamlFile("data/tables.yaml") {
    const YAML::Node root = load(find_embedded(name())->content);
    allow_keys(root, {"columns", "kinds", "machines", "words", "iterations", "models"});
    for (const auto& one : member(root, "columns")) {
      Columns names{one.first.Scalar(), {}};
      for (const YAML::Node& column : one.second) names.names.push_back(column.Scalar());
      columns.push_back(std::move(names));
    }
    for (const YAML::Node& node : list(root, "kinds")) {
      allow_keys(node, {"kind", "needs", "refused"});
      const std::string kind_name = text(node, "kind", "");
      const auto found = std::ranges::find(kKinds, kind_name);
      if (found == kKinds.end() && !node["refused"]) fail(node, "this is no kind of rows");
      KnownKind kind{.kind = {.kind = static_cast<RowKind>(found - kKinds.begin()),
                              .name = kind_name,
                              .refused = text(node, "refused", "")}};
      for (const YAML::Node& need : list(node, "needs")) kind.needs.push_back(need.Scalar());
      kinds.push_back(std::move(kind));
    }
    machines = pairs(root, "machines");
    for (const YAML::Node& node : list(root, "words")) words.push_back(word(node));
    for (const char* key : {"iterations", "models"}) {
      for (const YAML::Node& node : list(root, key)) {
        allow_keys(node, {"word", "framework", "set", "refused", "model"});
        (key == std::string_view("models") ? models : iterations)
            .push_back({pattern_of(text(node, "word", "")),
                        {.model = text(node, "model", ""),
                         .framework = text(node, "framework", ""),
                         .set = pairs(node, "set"),
                         .refused = text(node, "refused", "")}});
      }
    }
  }

  static const Tables& shipped() {
    static const Tables tables;
    return tables;
  }

 private:
  Bytes bytes(const YAML::Node& node, const std::string& key, Bytes otherwise) const {
    const std::string said = text(node, key, "");
    if (said.empty()) return otherwise;
    const auto size = parse_size(said);
    if (!size) fail(node, "'" + key + "' must be a size such as 8MiB");
    return *size;
  }

  Word word(const YAML::Node& node) const {
    allow_keys(node, {"word", "in_head", "from", "to", "program", "library", "parameters", "launch",
                      "host", "refused"});
    const std::string said = text(node, "word", "");
    Word word{.always = said.empty(),
              .pattern = pattern_of(said),
              .in_head = text(node, "in_head", "") == "true",
              .from = bytes(node, "from", {}),
              .to = bytes(node, "to", Bytes{INT64_MAX})};
    word.means = {.program = text(node, "program", ""),
                  .library = text(node, "library", ""),
                  .parameters = pairs(node, "parameters"),
                  .one_host = text(node, "host", "") == "one",
                  .refused = text(node, "refused", "")};
    const std::string launch = text(node, "launch", "");
    if (!launch.empty())
      word.means.launch = launch == "graph" ? sim::Launch::graph : sim::Launch::stream;
    return word;
  }
};

/// What `said` leaves open is taken from `more`.
void complete(RowWords& said, const RowWords& more) {
  if (said.program.empty()) said.program = more.program;
  if (said.library.empty()) said.library = more.library;
  if (said.parameters.empty()) said.parameters = more.parameters;
  if (!said.launch) said.launch = more.launch;
  said.one_host = said.one_host || more.one_host;
  if (said.refused.empty()) said.refused = more.refused;
}

/// As words stand apart: "8xH100_sxm" is "8 x H100 sxm".
std::string spaced(const std::string& text) {
  static const std::regex kTimes("(\\d)x\\s*(?=[A-Za-z])");
  std::string apart = text;
  std::ranges::replace(apart, '_', ' ');
  return std::regex_replace(apart, kTimes, "$1 x ");
}

std::optional<KnownDevice> device_in(const std::string& text) {
  return known_device(spaced(text));
}

/// "8 ranks", "8 x", "8 GPUs".
int ranks_in(const std::string& text) {
  static const std::regex kRanks("\\b(\\d{1,5})( ranks\\b| GPUs\\b| x )",
                                 std::regex::ECMAScript | std::regex::icase);
  std::smatch found;
  return std::regex_search(text, found, kRanks) ? std::stoi(found[1]) : 0;
}

std::optional<Collective> collective_in(const std::string& text) {
  static const std::regex kNames(
      "all[-_ ]?(reduce|gather|to[-_ ]?all)|reduce[-_ ]?scatter|broadcast",
      std::regex::ECMAScript | std::regex::icase);
  std::smatch found;
  if (!std::regex_search(text, found, kNames)) return std::nullopt;
  std::string name = lowered(found.str());
  std::ranges::replace(name, ' ', '-');
  return parse_collective(name);
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

TableKind kind_of(const TableText& table, const std::string& file) {
  for (const KnownKind& kind : Tables::shipped().kinds)
    if (std::ranges::all_of(kind.needs, [&](const std::string& role) {
          return column_of_role(table.columns, role).has_value();
        }))
      return kind.kind;
  throw Failure("this is no table of measured times that is known",
                {.file = file, .line = table.heading_line},
                "its columns are " + joined(table.columns) +
                    "; a collective has size_bytes and time_us (docs/fidelity.md)");
}

std::vector<std::string> table_roles() {
  std::vector<std::string> roles;
  for (const Columns& one : Tables::shipped().columns) roles.push_back(one.role);
  return roles;
}

std::optional<std::size_t> column_of_role(const std::vector<std::string>& columns,
                                          const std::string& role) {
  const auto& known = Tables::shipped().columns;
  const auto found = std::ranges::find(known, role, &Columns::role);
  for (const std::string& name : found == known.end() ? std::vector{role} : found->names)
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (lowered(columns[c]) == lowered(name)) return c;
  return std::nullopt;
}

TableWords::TableWords(const MeasuredTable& table, Laboratory& laboratory)
    : table_(table),
      laboratory_(laboratory),
      head_(joined(table.notes, "\n")),
      name_(file_name(table.file)) {}

std::string TableWords::text_of(const MeasuredRow& row) const {
  std::string text;
  for (const char* column : {"collection", "kernel", "variant", "source", "note"})
    if (const std::string& cell = table_.cell(row, column); !cell.empty()) text += cell + ' ';
  return text;
}

RowWords TableWords::words_of(const MeasuredRow& row) const {
  const std::string own = text_of(row), name = spaced(name_);
  RowWords said;
  const auto take = [&](const std::string& text, bool is_own) {
    for (const Word& word : Tables::shipped().words)
      if (!word.always && (is_own || word.in_head) && row.size >= word.from &&
          row.size <= word.to && std::regex_search(text, word.pattern))
        complete(said, word.means);
  };
  take(own, true);
  take(head_, false);
  take(name, false);
  for (const Word& word : Tables::shipped().words)
    if (word.always) complete(said, word.means);
  const auto collective = collective_of(row);
  if (said.program.starts_with('*')) {
    if (collective) said.program = std::string(name_of(*collective)) + said.program.substr(1);
  }
  return said;
}

IterationWords TableWords::iteration_of(const MeasuredRow& row) const {
  IterationWords said;
  std::string own;
  for (const char* column : {"source", "gpu", "dtype", "note"})
    own += table_.cell(row, column) + ' ';
  const auto names_framework = [](const std::string& text) {
    return std::ranges::any_of(Tables::shipped().iterations, [&](const IterationWord& word) {
      return !word.means.framework.empty() && std::regex_search(text, word.pattern);
    });
  };
  // The head explains all that rows may say: it only names the framework of rows that name none.
  const bool head_names = !names_framework(own);
  for (const bool is_head : {true, false}) {
    const std::string& text = is_head ? head_ : own;
    for (const IterationWord& word : Tables::shipped().iterations) {
      std::smatch found;
      if (is_head && (!head_names || word.means.framework.empty())) continue;
      if (!std::regex_search(text, found, word.pattern)) continue;
      if (!word.means.framework.empty()) said.framework = word.means.framework;
      if (!word.means.refused.empty()) said.refused = word.means.refused;
      for (const auto& [name, value] : word.means.set)
        said.set.emplace_back(name, found.format(value));
    }
  }
  const std::string& name = table_.cell(row, "model");
  for (const IterationWord& word : Tables::shipped().models) {
    std::smatch found;
    if (!std::regex_search(name, found, word.pattern)) continue;
    said.model = found.format(word.means.model);
    break;
  }
  return said;
}

RowPlace TableWords::place_of(const MeasuredRow& row) const {
  RowPlace place;
  std::optional<KnownDevice> device = device_in(table_.cell(row, "gpu"));
  const std::string& said = table_.cell(row, "gpu");
  if (!device && said.empty()) device = device_in(head_);
  if (!device && said.empty()) device = device_in(name_);
  if (!device) {
    place.refused = said.empty() ? "nothing says on which device"
                                 : "there is no device model of '" + said + "'";
    return place;
  }
  if (!said.empty() && device->is_variant) {
    place.refused = "the model " + device->model + " is of another card than '" + said + "'";
    return place;
  }
  place.device = device->model;
  place.ranks = row.ranks;
  for (const std::string& text : {spaced(said), spaced(head_), spaced(name_)})
    if (place.ranks == 0) place.ranks = ranks_in(text);
  const auto& machines = Tables::shipped().machines;
  const auto found =
      std::ranges::find(machines, place.device, &std::pair<std::string, std::string>::first);
  if (found == machines.end()) {
    place.refused = "no machine has " + place.device;
    return place;
  }
  place.machine = found->second;
  const int node = laboratory_.machine({.name = place.machine})->ranks();
  if (place.ranks == 0) place.ranks = node;
  const std::optional<std::int64_t> nodes = parse_count(table_.cell(row, "nodes"));
  place.nodes = nodes ? static_cast<int>(*nodes) : std::max(1, (place.ranks + node - 1) / node);
  if (place.nodes > 1) place.machine += fmt::format(":{}", place.nodes);
  return place;
}

std::optional<Collective> TableWords::collective_of(const MeasuredRow& row) const {
  const std::string& said = table_.cell(row, "op");
  if (!said.empty()) return parse_collective(said);
  const auto in_head = collective_in(head_);
  return in_head ? in_head : collective_in(name_);
}

}  // namespace hemiola::study
