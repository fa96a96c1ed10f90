// Device models as text: the reader of data/devices/*.yaml and the shipped models.

#include "machine/devices/gpu_model.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <mutex>
#include <set>

#include "core/embedded.h"
#include "core/lists.h"
#include "core/text.h"
#include "machine/devices/parameters.h"

namespace hemiola::machine {
namespace {

constexpr std::string_view kDeviceFolder = "data/devices/";
constexpr std::string_view kDeviceExtension = ".yaml";
constexpr std::string_view kAssumed = "assumed";

SourceLocation at(const std::string& file, const YAML::Mark& mark) {
  SourceLocation where{.file = file};
  if (mark.line >= 0) {
    where.line = mark.line + 1;
    where.column = mark.column + 1;
  }
  return where;
}

/// Parameters of a part that this model does not have may be left out.
bool off_by_nature(const GpuModel& model, std::string_view name) {
  if (name == "msc.size") return true;
  if (starts_with_any(name, {"msc."})) return model.msc_size.count == 0;
  if (name != "l1.size" && starts_with_any(name, {"l1."})) return model.l1_size.count == 0;
  if (name == "l2.ways") return model.l2_size.count == 0;
  if (name == "l2.copies") return true;  // none unless a file says so
  if (starts_with_any(name, {"noc.mesh_", "noc.link_", "noc.hop_"}))
    return model.noc_kind == NocKind::crossbar;
  if (name == "noc.partition_latency") return model.noc_partitions == 1;
  if (name == "noc.latency" || name == "noc.partitions") return model.noc_kind == NocKind::mesh;
  // Of ways to wait that a model need not have, and --set brings in.
  constexpr std::array<std::string_view, 10> kWaits{
      "sync.wait",          "sync.uncached",      "sync.flag_spacing",    "sync.line_time",
      "sync.backoff_start", "sync.backoff_limit", "sync.monitor_entries", "sync.wake_latency",
      "sync.handover_time", "sync.thread_state"};
  if (std::ranges::find(kWaits, name) != kWaits.end()) return true;
  return false;
}

/// Reads one document; collects every error before it throws.
class ModelReader {
 public:
  ModelReader(std::string_view text, const std::string& file) : file_(file) {
    try {
      root_ = YAML::Load(std::string(text));
    } catch (const YAML::Exception& problem) {
      throw Failure("not YAML: " + problem.msg, at(file, problem.mark));
    }
    if (!root_.IsMap()) {
      throw Failure("a device model is a map of name, description and parameters",
                    at(file, root_.Mark()));
    }
  }

  GpuModel read() {
    for_each_key(
        root_, {"name", "description", "parameters"},
        [this](const std::string& key, const YAML::Node& value) { read_root(key, value); });
    if (model_.name.empty()) errors_.error("a device model needs a name", at(file_, root_.Mark()));
    check_missing();
    if (!errors_.has_errors()) errors_.append(check_gpu_model(model_, at(file_, root_.Mark())));
    if (errors_.has_errors()) throw Failure(errors_);
    return std::move(model_);
  }

 private:
  /// Calls visit for each known key; an unknown or repeated one is an error.
  template <typename Visit>
  void for_each_key(const YAML::Node& map, const std::vector<std::string>& known, Visit visit) {
    std::set<std::string> seen;
    for (const auto& entry : map) {
      if (!entry.first.IsScalar()) {
        errors_.error("a key must be a word", at(file_, entry.first.Mark()));
        continue;
      }
      const std::string key = entry.first.Scalar();
      if (std::ranges::find(known, key) == known.end()) {
        errors_.error("unknown key '" + key + "'", at(file_, entry.first.Mark()),
                      suggest(key, known));
      } else if (!seen.insert(key).second) {
        errors_.error("'" + key + "' appears twice", at(file_, entry.first.Mark()));
      } else {
        visit(key, entry.second);
      }
    }
  }

  void read_root(const std::string& key, const YAML::Node& value) {
    if (key == "parameters") {
      if (!value.IsMap()) {
        errors_.error("'parameters' is not a map", at(file_, value.Mark()));
        return;
      }
      const std::vector<std::string> known = names_of(gpu_parameters());
      for_each_key(value, known, [this](const std::string& name, const YAML::Node& entry) {
        read_parameter(name, entry);
      });
    } else {
      (key == "name" ? model_.name : model_.description) = scalar(key, value);
    }
  }

  void read_parameter(const std::string& name, const YAML::Node& entry) {
    std::string source(kAssumed);
    std::optional<YAML::Node> value;  // assigning to a YAML::Node would write into the document
    if (!entry.IsMap()) {
      value.emplace(entry);
    } else {
      for_each_key(entry, {"value", "source"}, [&](const std::string& key, const YAML::Node& node) {
        if (key == "source")
          source = scalar(key, node);
        else
          value.emplace(node);
      });
    }
    model_.sources[name] = source;  // present, even if its value is bad: one error is enough
    if (!value || !value->IsScalar()) {
      errors_.error(name + " has no value", at(file_, entry.Mark()),
                    "write " + name + ": {value: ..., source: \"...\"}");
      return;
    }
    const auto parameters = gpu_parameters();
    const auto parameter = std::ranges::find(parameters, name, &Parameter::name);
    if (!parameter->set(model_, value->Scalar())) {
      errors_.error("'" + value->Scalar() + "' is not a value of " + name, at(file_, value->Mark()),
                    "expected " + std::string(parameter->hint));
    }
  }

  void check_missing() {
    for (const Parameter& parameter : gpu_parameters()) {
      const std::string name(parameter.name);
      if (model_.sources.count(name) > 0) continue;
      if (name == "noc.io_link") {
        model_.noc_io_link = model_.noc_io_rate;
        model_.sources[name] = "assumed: as noc.io_rate";
        continue;
      }
      if (off_by_nature(model_, parameter.name)) {
        model_.sources[name] = "not used by this model";
      } else {
        errors_.error("parameter " + name + " is missing", at(file_, root_.Mark()),
                      name + ": " + std::string(parameter.description) + "; expected " +
                          std::string(parameter.hint));
      }
    }
  }

  std::string scalar(const std::string& key, const YAML::Node& node) {
    if (node.IsScalar() && !node.Scalar().empty()) return node.Scalar();
    errors_.error("'" + key + "' is not text", at(file_, node.Mark()));
    return {};
  }

  std::string file_;
  YAML::Node root_;
  GpuModel model_;
  Diagnostics errors_;
};

/// A shipped model, whose name is that of its file: read when it is first asked for (reading takes
/// longer than a small run), and never changed.
class Shipped {
 public:
  explicit Shipped(const EmbeddedFile& file)
      : file_(file), name_(std::filesystem::path(file.path).stem().string()) {}

  const std::string& name() const { return name_; }
  const GpuModel& model() {
    std::call_once(read_,
                   [&] { model_ = parse_gpu_model(file_.content, std::string(file_.path)); });
    return model_;
  }

 private:
  const EmbeddedFile& file_;
  std::string name_;
  std::once_flag read_;
  GpuModel model_;
};

/// In order of name.
std::deque<Shipped>& shipped_models() {
  static std::deque<Shipped> models = [] {
    std::deque<Shipped> all;
    for (const EmbeddedFile& file : embedded_files())
      if (file.path.substr(0, kDeviceFolder.size()) == kDeviceFolder) all.emplace_back(file);
    return all;
  }();
  return models;
}

const GpuModel* find_shipped(std::string_view name) {
  for (Shipped& shipped : shipped_models())
    if (shipped.name() == name) return &shipped.model();
  return nullptr;
}

[[noreturn]] void unknown_model(std::string_view name) {
  const std::string near = suggest(name, gpu_model_names());
  throw Failure("unknown device model '" + std::string(name) + "'", {},
                (near.empty() ? "" : near + " ") + "the models are " + joined(gpu_model_names()) +
                    "; a file with a device model is named with its extension .yaml");
}

}  // namespace

Rate GpuModel::port_rate(Rate link) const {
  if (noc_io_rate.is_ideal() || noc_io_link.is_ideal()) return noc_io_rate;
  if (link.is_ideal()) return link;
  const std::int64_t ports = std::max<std::int64_t>(
      1, (link.bytes_per_second + noc_io_link.bytes_per_second - 1) / noc_io_link.bytes_per_second);
  return {noc_io_rate.bytes_per_second * ports};
}

GpuModel parse_gpu_model(std::string_view yaml, const std::string& file) {
  try {
    return ModelReader(yaml, file).read();
  } catch (const YAML::Exception& problem) {  // damaged in a way that Load() let pass
    throw Failure("not a device model: " + problem.msg, at(file, problem.mark));
  }
}

std::vector<std::string> gpu_model_names() {
  return names_of(shipped_models(), &Shipped::name);
}

const GpuModel& gpu_model(std::string_view name) {
  const GpuModel* model = find_shipped(name);
  if (!model) unknown_model(name);
  return *model;
}

GpuModel load_gpu_model(const std::string& name_or_file) {
  if (const GpuModel* model = find_shipped(name_or_file)) return *model;
  const std::string extension = std::filesystem::path(name_or_file).extension().string();
  if (extension != kDeviceExtension && extension != ".yml") unknown_model(name_or_file);
  return parse_gpu_model(read_file(name_or_file), name_or_file);
}

}  // namespace hemiola::machine
