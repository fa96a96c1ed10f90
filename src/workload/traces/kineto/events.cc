#include "workload/traces/kineto/events.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/diagnostics.h"
#include "workload/traces/json.h"

namespace hemiola::workload {
namespace {

enum class KinetoCategory : std::uint8_t { other, kernel, copy, set, runtime, host, annotation };

KinetoCategory category_of(std::string_view name) {
  if (name == "cpu_op" || name == "Operator") return KinetoCategory::host;
  if (name == "user_annotation") return KinetoCategory::annotation;
  if (name == "kernel" || name == "Kernel") return KinetoCategory::kernel;
  if (name == "gpu_memcpy" || name == "Memcpy") return KinetoCategory::copy;
  if (name == "gpu_memset" || name == "Memset") return KinetoCategory::set;
  if (name.ends_with("_runtime") || name.ends_with("_driver") || name == "Runtime")
    return KinetoCategory::runtime;
  return KinetoCategory::other;
}

/// One event, before its category is known.
struct RawKinetoEvent {
  std::string_view phase, category, name, thread;
  std::string_view begin, duration;  ///< numbers as written
  std::optional<std::int64_t> stream, device, correlation, bytes;
  KinetoArguments arguments;
};

class KinetoParser {
 public:
  explicit KinetoParser(const std::string& file) : file_(file) {}

  KinetoEvents read(std::string content) {
    const auto json = std::make_shared<JsonStream>(std::move(content));
    bool found = false;
    json->each_field(file_, [&](std::string_view key, TraceJson value) {
      if (key == "traceEvents") {
        found = true;
        for (auto event : value.get_array()) read_event(event.get_object());
      } else if (key == "distributedInfo") {
        read_job(value.get_object());
      } else if (key == "deviceProperties") {
        read_devices(value);
      }
    });
    if (!found) throw Failure("has no traceEvents", {.file = file_});
    events_.texts = json;
    return std::move(events_);
  }

 private:
  void read_job(simdjson::ondemand::object job) {
    for (auto field : job) {
      const std::string_view key = field.unescaped_key();
      if (key == "rank") events_.rank = json_integer(field.value());
      if (key == "world_size") events_.world = json_integer(field.value());
      if (key == "pg_config") read_groups(field.value());
    }
  }

  void read_groups(TraceJson value) {
    using Type = simdjson::ondemand::json_type;
    const Type type = value.type();
    std::string_view list;
    if (type == Type::array) {
      list = json_list(value);
    } else if (type == Type::string) {
      list = json_text(value);
    } else {
      events_.has_unread_groups = type != Type::null;
      return;
    }
    if (auto found = parse_process_groups(list))
      events_.groups = std::move(*found);
    else
      events_.has_unread_groups = list.find_first_not_of("[] \t\r\n") != std::string_view::npos;
  }

  void read_devices(TraceJson value) {
    simdjson::ondemand::array list;
    if (value.get_array().get(list) != simdjson::SUCCESS) return;
    for (auto one : list) {
      simdjson::ondemand::object device;
      if (one.get_object().get(device) != simdjson::SUCCESS) continue;
      std::int64_t number = -1;
      RecordedDevice found;
      for (auto field : device) {
        const std::string_view key = field.unescaped_key();
        if (key == "name") found.name = json_text(field.value());
        if (key == "id") number = json_integer(field.value()).value_or(-1);
        if (key == "numSms") found.compute_units = json_integer(field.value()).value_or(0);
        if (key == "totalGlobalMem") found.memory = json_integer(field.value()).value_or(0);
      }
      constexpr std::int64_t kMost = 1024;
      if (number < 0 || number >= kMost) continue;
      if (events_.devices.size() <= index(number)) events_.devices.resize(index(number) + 1);
      events_.devices[index(number)] = std::move(found);
    }
  }

  void read_event(simdjson::ondemand::object event) {
    RawKinetoEvent raw;
    for (auto field : event) {
      const std::string_view key = field.unescaped_key();
      if (key == "ph") {
        raw.phase = json_text(field.value());
        if (raw.phase != "X") return;
      } else if (key == "cat") {
        raw.category = json_text(field.value());
        if (category_of(raw.category) == KinetoCategory::other) return;
      } else if (key == "name") {
        raw.name = json_text(field.value());
      } else if (key == "tid") {
        raw.thread = field.value().raw_json_token();
      } else if (key == "ts") {
        raw.begin = field.value().raw_json_token();
      } else if (key == "dur") {
        raw.duration = field.value().raw_json_token();
      } else if (key == "args") {
        simdjson::ondemand::object arguments;
        if (field.value().get_object().get(arguments) == simdjson::SUCCESS)
          read_arguments(arguments, raw);
      }
    }
    if (raw.phase == "X") add(raw);
  }

  void read_arguments(simdjson::ondemand::object object, RawKinetoEvent& raw) {
    KinetoArguments& to = raw.arguments;
    const std::array<std::pair<std::string_view, std::optional<std::int64_t>*>, 11> numbers{{
        {"stream", &raw.stream},
        {"device", &raw.device},
        {"correlation", &raw.correlation},
        {"bytes", &raw.bytes},
        {"In msg nelems", &to.sent},
        {"Out msg nelems", &to.received},
        {"Group size", &to.group_size},
        {"Global rank start", &to.first},
        {"Global rank stride", &to.stride},
        {"Src Rank", &to.source},
        {"Dst Rank", &to.destination},
    }};
    const std::array<std::pair<std::string_view, std::string_view*>, 6> texts{{
        {"Collective name", &to.collective},
        {"dtype", &to.type},
        {"Process Group Name", &to.group},
        {"Process Group Ranks", &to.group_ranks},
        {"In split size", &to.sent_splits},
        {"Out split size", &to.received_splits},
    }};
    for (auto field : object) {
      const std::string_view key = field.unescaped_key();
      for (const auto& [name, number] : numbers)
        if (name == key) *number = json_integer(field.value());
      for (const auto& [name, value] : texts)
        if (name == key) *value = json_text(field.value());
      if (key == "Input Dims") to.dims = json_list(field.value());
      if (key == "Input type") to.types = json_list(field.value());
    }
  }

  std::int64_t time(std::string_view written, const RawKinetoEvent& raw) const {
    const std::optional<std::int64_t> nanoseconds = nanoseconds_of(written);
    if (!nanoseconds)
      throw Failure(
          fmt::format("event '{}' has no time and duration in microseconds", shorten(raw.name)),
          {.file = file_});
    return *nanoseconds;
  }

  std::int32_t add_arguments(const KinetoArguments& arguments) {
    if (arguments.empty()) return -1;
    events_.arguments.push_back(arguments);
    return static_cast<std::int32_t>(events_.arguments.size() - 1);
  }

  std::int32_t thread(std::string_view token) {
    const auto [at, is_new] =
        threads_.try_emplace(std::string(token), static_cast<std::int32_t>(events_.threads.size()));
    if (is_new) events_.threads.emplace_back(token);
    return at->second;
  }

  /// Whether the arguments of an annotation are of use; those of operators are.
  static bool wants_arguments(std::string_view name) {
    return name == "record_param_comms" || name.starts_with("nccl:") || name.starts_with("c10d::");
  }

  void add(const RawKinetoEvent& raw) {
    const KinetoCategory category = category_of(raw.category);
    if (category == KinetoCategory::other) return;
    const std::int64_t begin = time(raw.begin, raw);
    const std::int64_t duration = raw.duration.empty() ? 0 : time(raw.duration, raw);
    switch (category) {
      case KinetoCategory::host:
      case KinetoCategory::annotation: {
        const bool wants = category == KinetoCategory::host || wants_arguments(raw.name);
        events_.host.push_back({raw.name, begin, duration, thread(raw.thread),
                                wants ? add_arguments(raw.arguments) : -1,
                                category == KinetoCategory::host});
        return;
      }
      case KinetoCategory::runtime:
        events_.runtime.push_back(
            {raw.name, begin, duration, thread(raw.thread), raw.correlation.value_or(-1)});
        return;
      default:
        break;
    }
    GpuEvent event{.name = raw.name, .begin = begin, .duration = duration};
    if (category == KinetoCategory::copy) event.kind = GpuEvent::Kind::copy;
    if (category == KinetoCategory::set) event.kind = GpuEvent::Kind::set;
    event.stream = raw.stream ? *raw.stream : integer_of_token(raw.thread).value_or(0);
    event.device = raw.device.value_or(0);
    event.correlation = raw.correlation.value_or(-1);
    event.bytes = std::max(std::int64_t{0}, raw.bytes.value_or(0));
    event.arguments = add_arguments(raw.arguments);
    events_.gpu.push_back(event);
  }

  const std::string& file_;
  KinetoEvents events_;
  std::map<std::string, std::int32_t, std::less<>> threads_;
};

}  // namespace

KinetoEvents parse_kineto(const std::string& file, std::string content) {
  return KinetoParser(file).read(std::move(content));
}

std::map<std::int64_t, std::vector<std::int32_t>> events_of_streams(
    const std::vector<GpuEvent>& events) {
  std::map<std::int64_t, std::vector<std::int32_t>> streams;
  for (std::size_t e = 0; e < events.size(); ++e)
    streams[events[e].stream].push_back(static_cast<std::int32_t>(e));
  for (auto& [stream, list] : streams)
    std::ranges::stable_sort(list, {}, [&](std::int32_t e) { return events[index(e)].begin; });
  return streams;
}

std::optional<std::int64_t> kineto_rank(std::string_view start) {
  const std::size_t job = start.find("\"distributedInfo\"");
  if (job == std::string_view::npos) return std::nullopt;
  const std::size_t key = start.find("\"rank\"", job);
  const std::size_t events = start.find("\"traceEvents\"", job);
  if (key == std::string_view::npos || key > events) return std::nullopt;
  const std::size_t value = start.find_first_not_of(": \t\r\n", key + 6);
  return value == std::string_view::npos ? std::nullopt : integer_of_token(start.substr(value));
}

}  // namespace hemiola::workload
