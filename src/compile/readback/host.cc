#include "compile/readback/host.h"

#include <fmt/format.h>

#include <algorithm>

#include "compile/readback/blocks.h"

namespace hemiola::compile::readback {
namespace {

using Asks = HostOp::Kind;

constexpr std::int64_t kMostStreams = 1024, kMostWarps = 64;  ///< warps, and stages
// What each of them takes, about, in words of 8 bytes.
constexpr std::int64_t kWordsOfOp = 64, kWordsOfSignal = 8;
constexpr std::int64_t kMostSignals = std::int64_t{1} << 20;  ///< of a rank; steps of one likewise

struct RuntimeObject : Object {};
class HostRecorder : public Surroundings {
 public:
  HostRecorder(Walker& walker, int rank, int ranks) : walker_(walker), rank_(rank), ranks_(ranks) {}

  RankRecord record() {
    walker_.surround(*this);
    const Value rt = object(std::make_shared<RuntimeObject>());
    const Value t = call("setup", {rt});
    inputs_of(call("inputs", {rt, t}), record_.inputs);
    inputs_of(call("run", {rt, t}), record_.outputs);
    if (stage_ != Stage::over)
      walker_.wrong(*walker_.module().find("run")->node,
                    "a call does not end with rt.end(), so nobody knows when its memory is free");
    return std::move(record_);
  }

  std::optional<Value> call(std::string_view name, const Arguments& given) override {
    if (name == "types.SimpleNamespace") return object(std::make_shared<Namespace>());
    if (name == "hemiola_rt.TileAxis") return axis(given);
    if (name == "hemiola_rt.Kernel") return kernel(given);
    if (name == "hemiola_rt.around")
      return around(number_in(given, "first", 0), number_in(given, "count", 1),
                    number_in(given, "size", 2));
    if (name == "hemiola_rt.has_bulk_stores") return number(1);
    if (name == "tl.constexpr" && given.positional.size() == 1) return given.positional[0];
    for (const char* one : {"cdiv", "minimum", "maximum", "where"})
      if (name == std::string("tl.") + one) return block_function(walker_, one, given);
    return std::nullopt;
  }

  std::optional<Value> method(const Value& of, std::string_view name,
                              const Arguments& given) override {
    if (object_of<RuntimeObject>(of)) return runtime(name, given);
    if (const auto stream = object_of<StreamObject>(of)) return stream_call(*stream, name, given);
    if (const auto kernel = object_of<KernelObject>(of)) {
      if (name == "work") return work(kernel, given);
      return std::nullopt;
    }
    if (const auto work = object_of<WorkObject>(of)) return work_call(of, *work, name, given);
    if (const auto view = object_of<View>(of); view && name == "t") {
      const auto turned = std::make_shared<View>(*view);
      std::ranges::reverse(turned->region.axes);
      return object(turned);
    }
    return std::nullopt;
  }

  std::optional<Value> attribute(const Value& of, std::string_view name) override {
    if (object_of<RuntimeObject>(of)) {
      if (name == "rank") return number(rank_);
      if (name == "ranks") return number(ranks_);
      if (name == "main") return stream_value(0);
      return std::nullopt;
    }
    if (const auto names = object_of<Namespace>(of)) {
      const auto found = names->names.find(name);
      return found == names->names.end() ? std::nullopt : std::optional(found->second);
    }
    return std::nullopt;
  }

  bool assign(const Value& of, std::string_view name, const Value& value) override {
    const auto names = object_of<Namespace>(of);
    if (!names) return false;
    names->names.insert_or_assign(std::string(name), value);
    if (const auto signals = object_of<SignalsObject>(value)) {
      std::int64_t count = 1;
      for (const std::int64_t extent : signals->shape) count *= extent;
      for (std::int64_t i = 0; i < count; ++i) {
        std::string text;
        std::int64_t rest = i, block = count;
        for (const std::int64_t extent : signals->shape) {
          block /= extent;
          text += fmt::format("{}{}", text.empty() ? "" : ", ", rest / block);
          rest %= block;
        }
        record_.slots[static_cast<std::size_t>(signals->first + i)] =
            fmt::format("{}[{}]", name, text);
      }
    }
    return true;
  }

  std::optional<Value> subscript(const Value& of, const std::vector<Index>& at,
                                 const Node& node) override {
    if (const auto signals = object_of<SignalsObject>(of))
      return signal_of(walker_, *signals, at, node);
    if (const auto view = object_of<View>(of)) return view_of(walker_, *view, at, node);
    return std::nullopt;
  }

  bool wait(std::string_view, const Value&, const Value&, const Node&) override { return false; }

 private:
  Value call(const char* name, std::vector<Value> positional) {
    const Node& root = walker_.module().source.root();
    const Function* function = walker_.module().find(name);
    if (function == nullptr)
      walker_.refuse(root, fmt::format("the file has no function '{}'", name),
                     "it is not one that 'hemiola compile' writes");
    return walker_.run(*function,
                       {.positional = std::move(positional), .named = {}, .node = function->node});
  }

  void inputs_of(const Value& value, std::vector<std::pair<std::string, Region>>& list) {
    if (value.type != Type::dictionary) return;
    for (const auto& [key, held] : value.more->entries)
      if (const auto view = object_of<View>(held)) list.emplace_back(key.text, view->region);
  }

  // What is not given, or of another kind, is refused with the call's place.

  std::int64_t number_in(const Arguments& given, std::string_view name,
                         std::size_t position) const {
    return walker_.whole(need(walker_, given, name, position), *given.node, name);
  }
  Region region(const Arguments& given, std::string_view name, std::size_t position) const {
    const auto view = object_of<View>(need(walker_, given, name, position));
    if (!view) walker_.refuse(*given.node, fmt::format("'{}' is no tensor of the file", name));
    return view->region;
  }
  int rank_in(const Arguments& given, std::string_view name, std::size_t position) const {
    return rank_among(number_in(given, name, position), *given.node);
  }
  int rank_among(std::int64_t rank, const Node& node) const {
    if (rank < 0 || rank >= ranks_)
      walker_.wrong(node, fmt::format("there is no rank {} among {}", rank, ranks_));
    return static_cast<int>(rank);
  }
  /// Of a tensor, or of what else has a shape.
  std::int64_t elements_of(const std::vector<std::int64_t>& shape, const Node& node) const {
    std::int64_t made = 1;
    for (const std::int64_t extent : shape) {
      if (extent < 1)
        walker_.wrong(node, fmt::format("a shape with {} elements along an axis", extent));
      made = times(made, extent);
    }
    if (!fits(made) || shape.size() > kMostAxes) walker_.refuse(node, "a shape of this size");
    return made;
  }

  Value stream_value(std::int32_t stream) {
    const auto made = std::make_shared<StreamObject>();
    made->stream = stream;
    return object(made);
  }

  std::optional<Value> runtime(std::string_view name, const Arguments& given) {
    if (name == "symmetric" || name == "local") return tensor(name == "symmetric", given);
    if (name == "peer") {
      const auto view = object_of<View>(need(walker_, given, "tensor", 0));
      if (!view) walker_.refuse(*given.node, "a peer's instance of what is no tensor");
      const auto made = std::make_shared<View>(*view);
      made->region.rank = rank_in(given, "rank", 1);
      return object(made);
    }
    if (name == "streams") return streams(given);
    if (name == "signals") {
      const auto made = std::make_shared<SignalsObject>();
      made->shape = walker_.wholes(need(walker_, given, "shape", 0), *given.node, "a shape");
      made->steps = std::max<std::int64_t>(number_in(given, "steps", 1), 1);
      made->first = std::ssize(record_.slots);
      const std::int64_t count = elements_of(made->shape, *given.node);
      if (count > kMostSignals - made->first || made->steps > kMostSignals)
        walker_.refuse(*given.node, "too many signals, or steps of one");
      walker_.remember(*given.node, count * kWordsOfSignal);
      record_.slots.resize(record_.slots.size() + static_cast<std::size_t>(count));
      record_.steps.resize(record_.slots.size(), made->steps);
      return object(made);
    }
    if (name == "group") {
      const auto made = std::make_shared<GroupObject>();
      for (const std::int64_t rank :
           walker_.wholes(need(walker_, given, "ranks", 0), *given.node, "a rank"))
        made->ranks.push_back(rank_among(rank, *given.node));
      return object(made);
    }
    if (name == "place") return Value{};  // inputs are there
    if (name == "begin" || name == "end") {
      if (stage_ != (name == "begin" ? Stage::before : Stage::running))
        walker_.wrong(*given.node, "a call begins once and ends once");
      stage_ = name == "begin" ? Stage::running : Stage::over;
      if (name == "begin") {
        barrier(*given.node);
        const std::int32_t begun = mark(0, *given.node);
        for (std::size_t s = 1; s < record_.streams.size(); ++s)
          add(static_cast<std::int32_t>(s),
              {.kind = Asks::wait, .event = begun, .node = given.node});
      } else {
        for (std::size_t s = 1; s < record_.streams.size(); ++s)
          add(0, {.kind = Asks::wait,
                  .event = mark(static_cast<std::int32_t>(s), *given.node),
                  .node = given.node});
        barrier(*given.node);
      }
      return Value{};
    }
    return std::nullopt;
  }

  std::optional<Value> tensor(bool is_symmetric, const Arguments& given) {
    Tensor made{.name = need(walker_, given, "name", 0).text,
                .shape = walker_.wholes(need(walker_, given, "shape", 1), *given.node, "a shape"),
                .type = DataType::float32,
                .is_symmetric = is_symmetric};
    const Value& type = need(walker_, given, "dtype", 2);
    const auto known = type_of(type.text);
    if (!known) walker_.refuse(*given.node, fmt::format("a tensor of type '{}'", type.text));
    made.type = *known;
    if (!fits(times(elements_of(made.shape, *given.node), size_of(made.type))))
      walker_.refuse(*given.node, "a shape of this size");
    const auto view = std::make_shared<View>();
    view->region = {.tensor = static_cast<std::int32_t>(record_.tensors.size()), .rank = rank_};
    std::int64_t stride = 1;
    for (std::size_t i = made.shape.size(); i-- > 0;) {
      view->region.axes.insert(view->region.axes.begin(), {made.shape[i], stride});
      stride *= made.shape[i];
    }
    record_.tensors.push_back(std::move(made));
    return object(view);
  }

  std::optional<Value> streams(const Arguments& given) {
    const std::int64_t count = number_in(given, "count", 0);
    if (count > kMostStreams - std::ssize(record_.streams))
      walker_.refuse(*given.node, "too many streams");
    const auto option = [&](const char* name, std::size_t at) {
      const Value* value = given.find(name, at);
      return value == nullptr ? 0 : value->base;
    };
    const std::int64_t movers = option("movers", 2);
    if (movers < 0 || movers > 1024)
      walker_.wrong(*given.node, "from 1 to 1024 workgroups move data");
    std::vector<Value> made;
    if (count > 0 && option("main_first", 1) != 0) made.push_back(stream_value(0));
    while (std::ssize(made) < count) {
      const std::int64_t own = movers / count + (std::ssize(made) < movers % count ? 1 : 0);
      record_.movers.push_back(
          {movers > 0 ? std::max<std::int64_t>(own, 1) : own, option("bulk", 3) != 0});
      made.push_back(stream_value(static_cast<std::int32_t>(record_.streams.size())));
      record_.streams.emplace_back();
    }
    return list(std::move(made));
  }

  void add(std::int32_t stream, HostOp op) {
    walker_.remember(*op.node, kWordsOfOp);
    record_.streams[static_cast<std::size_t>(stream)].push_back(std::move(op));
  }
  std::int32_t mark(std::int32_t stream, const Node& node) {
    const std::int32_t event = record_.events++;
    add(stream, {.kind = Asks::record, .event = event, .node = &node});
    return event;
  }
  void barrier(const Node& node) {
    add(0, {.kind = Asks::barrier, .event = record_.barriers++, .node = &node});
  }

  HostOp movement(std::string_view name, const Arguments& given) const {
    HostOp op{.kind = name == "copy" ? Asks::copy : Asks::reduce, .node = given.node};
    op.regions = {region(given, "target", 0), region(given, "source", 1)};
    if (name == "reduce") op.regions.push_back(region(given, "operand", 2));
    if (name == "accumulate") op.regions.push_back(op.regions[0]);
    return op;
  }

  std::optional<Value> stream_call(const StreamObject& stream, std::string_view name,
                                   const Arguments& given) {
    HostOp op{.node = given.node};
    if (name == "copy" || name == "reduce" || name == "accumulate") {
      op = movement(name, given);
    } else if (name == "zero") {
      op.kind = Asks::zero;
      op.regions = {region(given, "target", 0)};
    } else if (name == "collective" || name == "to_all" || name == "sum_of_all") {
      const std::size_t first = name == "collective" ? 1 : 0;
      op.kind = first == 1 ? Asks::collective : name == "to_all" ? Asks::to_all : Asks::sum_of_all;
      if (first == 1) op.name = need(walker_, given, "name", 0).text;
      op.regions = {region(given, "target", first), region(given, "source", first + 1)};
      if (const auto group = object_of<GroupObject>(need(walker_, given, "group", first + 2)))
        op.group = group->ranks;
    } else if (name == "signal" || name == "wait_signal") {
      op.kind = name == "signal" ? Asks::signal : Asks::wait_signal;
      const Need step = step_of_signal(name, given);
      op.slot = step.slot;
      op.step = step.step;
      if (name == "signal") op.to = rank_in(given, "to", 1);
    } else if (name == "launch") {
      op.kind = Asks::launch;
      op.work = object_of<WorkObject>(need(walker_, given, "work", 0));
      if (!op.work) walker_.refuse(*given.node, "what is launched here is no kernel of the file");
      if (op.work->tiles == 0)
        walker_.refuse(*given.node, "a kernel is launched whose work is not ready()");
      op.tensors = given.named;
    } else if (name == "record") {
      const auto made = std::make_shared<EventObject>();
      made->event = mark(stream.stream, *given.node);
      return object(made);
    } else if (name == "wait") {
      op.kind = Asks::wait;
      const Value& what = need(walker_, given, "what", 0);
      if (const auto other = object_of<StreamObject>(what)) {
        if (other->stream == stream.stream) return Value{};
        op.event = mark(other->stream, *given.node);
      } else if (const auto event = object_of<EventObject>(what)) {
        op.event = event->event;
      } else {
        walker_.refuse(*given.node, "a wait for something else than a stream or an event");
      }
    } else {
      return std::nullopt;
    }
    if (stage_ != Stage::running)
      walker_.wrong(*given.node,
                    "a stream is given something before rt.begin(), or after rt.end()");
    add(stream.stream, std::move(op));
    return Value{};
  }

  Need step_of_signal(std::string_view name, const Arguments& given) const {
    const auto signal = object_of<SignalObject>(need(walker_, given, "signal", 0));
    if (!signal) walker_.refuse(*given.node, "what is told or awaited here is no signal");
    const std::int64_t step = number_in(given, "step", name == "signal" ? 2 : 1);
    if (step < 0 || step >= signal->steps)
      walker_.wrong(*given.node,
                    fmt::format("step {} of a signal that has {} in a call", step, signal->steps));
    return {signal->slot, signal->steps, step};
  }

  Value axis(const Arguments& given) {
    const auto made = std::make_shared<AxisObject>();
    made->block = need(walker_, given, "block", 0);
    if (const Value* size = given.find("size", 1)) made->size = size->text;
    if (given.find("grid", 2) != nullptr) made->grid = number_in(given, "grid", 2);
    if (made->grid < 0 || made->grid > 2)
      walker_.wrong(*given.node, "a grid has the axes 0, 1 and 2");
    return object(made);
  }

  Value kernel(const Arguments& given) {
    const auto made = std::make_shared<KernelObject>();
    const Value& function = need(walker_, given, "function", 0);
    if (function.type != Type::function || function.more->function == nullptr)
      walker_.refuse(*given.node, "the kernel is no function of the file");
    made->function = function.more->function;
    made->coordinates = need(walker_, given, "coordinates", 1);
    const Value& tiles = need(walker_, given, "tiles", 2);
    if (tiles.type != Type::dictionary) walker_.refuse(*given.node, "tiles are no dictionary");
    for (const auto& [key, value] : tiles.more->entries) {
      const auto axis = object_of<AxisObject>(value);
      if (!axis) walker_.refuse(*given.node, "an axis of tiles is no TileAxis");
      made->tiles.emplace_back(key.text, axis);
    }
    if (const Value* workers = given.find("workers", 3)) made->workers = workers->text;
    if (const Value* tile = given.find("tile", 4)) made->tile = tile->text;
    if (const Value* stores = given.find("stores", kByName)) made->stores = stores->text;
    if (const Value* descriptors = given.find("descriptors", kByName))
      made->descriptors = *descriptors;
    if (const Value* turned = given.find("turned", kByName); turned != nullptr)
      for (const Value& one : turned->more->items) made->turned.push_back(one.text);
    return object(made);
  }

  Value work(const std::shared_ptr<KernelObject>& kernel, const Arguments& given) {
    const auto made = std::make_shared<WorkObject>();
    made->kernel = kernel;
    const Value& extents = need(walker_, given, "extents", 1);
    const Value &values = need(walker_, given, "values", 2),
                &config = need(walker_, given, "config", 3);
    for (const Value* one : {&extents, &values, &config})
      if (one->type != Type::dictionary)
        walker_.refuse(*given.node, "what a kernel is told is no dictionary");
    for (const auto& [name, axis] : kernel->tiles) {
      for (const auto& [key, value] : extents.more->entries)
        if (key.text == name)
          made->extents.emplace_back(name, walker_.whole(value, *given.node, name));
      if (made->extents.empty() || made->extents.back().first != name)
        walker_.refuse(*given.node, fmt::format("nothing says how long axis '{}' is", name));
    }
    for (const auto& [key, value] : values.more->entries)
      made->values.emplace_back(key.text, value);
    for (const auto& [key, value] : config.more->entries) {
      if (key.text == "num_warps" || key.text == "num_stages") {
        const std::int64_t number = walker_.whole(value, *given.node, key.text);
        if (number < (key.text == "num_warps" ? 1 : 0) || number > kMostWarps)
          walker_.wrong(*given.node, fmt::format("a kernel with {}={}", key.text, number));
        made->options[key.text] = number;
      }
      made->values.emplace_back(key.text, value);  // kernels may have a parameter num_stages, too
    }
    return object(made);
  }

  std::optional<Value> work_call(const Value& of, WorkObject& work, std::string_view name,
                                 const Arguments& given) {
    if (work.tiles > 0) walker_.wrong(*given.node, "a kernel is told more after ready()");
    if (name == "wave") {
      WorkObject::Wave wave{.box = {}, .after = {}, .part = -1, .node = given.node};
      const Value& box = need(walker_, given, "box", 0);
      if (box.type != Type::dictionary) walker_.refuse(*given.node, "a wave is no dictionary");
      for (const auto& [key, value] : box.more->entries) {
        const std::vector<std::int64_t> range = walker_.wholes(value, *given.node, "a wave");
        if (range.size() != 2) walker_.refuse(*given.node, "a wave is no (first, count)");
        wave.box[key.text] = {range[0], range[1]};
      }
      wave.after = needs_in(walker_, given.find("after", 1), *given.node);
      if (given.find("part", 2) != nullptr) wave.part = number_in(given, "part", 2);
      if (const Value* to = given.find("to", 3); to != nullptr && to->type != Type::none)
        wave.store = store_of(walker_, work, *to, rank_, *given.node);
      walker_.remember(*given.node, kWordsOfOp);
      work.waves.push_back(std::move(wave));
    } else if (name == "loop") {
      const Value block =
          walker_.apply(need(walker_, given, "block", 1),
                        {.positional = {}, .named = work.values, .node = given.node});
      work.loop = {number_in(given, "extent", 0), walker_.whole(block, *given.node, "a turn")};
    } else if (name == "turns") {
      work.turns.push_back({.first = number_in(given, "first", 0),
                            .count = number_in(given, "count", 1),
                            .after = needs_in(walker_, given.find("after", 2), *given.node),
                            .node = given.node});
    } else if (name == "copy" || name == "reduce" || name == "accumulate") {
      WorkObject::Move move{.op = movement(name, given),
                            .after = std::exchange(work.awaited, {}),
                            .told = {},
                            .before = std::ssize(work.waves)};
      walker_.remember(*given.node, kWordsOfOp);
      work.moves.push_back(std::move(move));
    } else if (name == "wait_signal" || name == "signal") {
      const Need step = step_of_signal(name, given);
      if (name == "wait_signal") {
        work.awaited.push_back(step);
        return Value{};
      }
      if (work.moves.empty())
        walker_.wrong(*given.node, "a rank is told of a movement, and none stands before");
      auto& told = work.moves.back().told;
      told.insert(told.end(), {rank_in(given, "to", 1), step.slot, step.steps, step.step + 1});
    } else if (name == "part") {
      work.parts[number_in(given, "number", 0)] =
          walker_.wholes(need(walker_, given, "to", 1), *given.node, "a rank");
    } else if (name == "ready") {
      const Value* done = given.find("done", 0);
      const auto signals = done == nullptr ? nullptr : object_of<SignalsObject>(*done);
      make_tables(walker_, *this, work, rank_, signals.get(), *given.node);
      walker_.surround(*this);
      return of;
    } else {
      return std::nullopt;
    }
    return Value{};
  }

  Walker& walker_;
  int rank_, ranks_;
  RankRecord record_;
  enum class Stage : std::uint8_t { before, running, over } stage_ = Stage::before;
};

}  // namespace

RankRecord record_rank(Walker& walker, int rank, int ranks) {
  return HostRecorder(walker, rank, ranks).record();
}

}  // namespace hemiola::compile::readback
