// Reads plan files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/index.h"
#include "core/json.h"
#include "core/lists.h"
#include "core/text.h"
#include "core/units.h"
#include "plan/budget.h"
#include "plan/collective_shape.h"
#include "plan/plan_json.h"

namespace hemiola::plan {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr std::int64_t kMost = std::int64_t{1} << 50;

/// One of `choices` by the name that `name_of` gives it.
template <typename T>
T one_of(const JsonValue& value, std::initializer_list<T> choices, const char* what) {
  const std::string text = value.text();
  std::vector<std::string> names;
  for (const T choice : choices) {
    if (name_of(choice) == text) return choice;
    names.emplace_back(name_of(choice));
  }
  value.fail(fmt::format("'{}' is not a {}", text, what),
             suggest(text, names, "one of " + joined(names)));
}

class Reader {
 public:
  explicit Reader(const JsonValue& root) : root_(root) {}

  Plan read() {
    root_.allow_keys({"hemiola_plan", "name", "collective", "root", "mesh", "chunks_per_size",
                      "in_place_safe", "lowering", "tensors", "groups", "codes"});
    root_.integer("hemiola_plan", 1, 1);
    if (root_.has("name")) plan_.name = root_.at("name").text();
    read_mesh();
    if (root_.has("collective")) plan_.collective = read_collective(root_.at("collective"));
    if (root_.has("root")) plan_.root = static_cast<int>(root_.integer("root", 0, plan_.ranks - 1));
    if (root_.has("chunks_per_size"))
      plan_.chunks_per_size = root_.integer("chunks_per_size", 1, kMost);
    if (root_.has("in_place_safe")) plan_.in_place_safe = root_.at("in_place_safe").boolean();
    for (const JsonValue& parameter : root_.items("lowering")) {
      parameter.allow_keys({"parameter", "value"});
      plan_.lowering.emplace_back(parameter.at("parameter").text(), parameter.at("value").text());
    }
    root_.at("tensors");
    for (const JsonValue& tensor : root_.items("tensors")) read_tensor(tensor);
    if (!root_.has("chunks_per_size") && !plan_.of_elements())
      plan_.chunks_per_size = std::max<std::int64_t>(1, elements_of_size(plan_));
    for (const JsonValue& group : root_.items("groups")) {
      std::vector<int> ranks;
      for (const JsonValue& rank : group.items())
        ranks.push_back(static_cast<int>(rank.integer(0, plan_.ranks - 1)));
      plan_.groups.push_back(std::move(ranks));
    }
    read_codes();
    return std::move(plan_);
  }

 private:
  static Collective read_collective(const JsonValue& value) {
    const auto collective = parse_collective(value.text());
    if (!collective)
      value.fail(fmt::format("'{}' is not a collective", value.text()),
                 "all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, send-recv "
                 "or custom");
    return *collective;
  }

  void read_mesh() {
    std::int64_t ranks = 1;
    for (const JsonValue& axis : root_.at("mesh").items()) {
      axis.allow_keys({"axis", "size"});
      const std::int64_t size = axis.integer("size", 1, kMostRanks);
      ranks *= size;
      if (ranks > kMostRanks) axis.fail(fmt::format("the mesh has more than {} ranks", kMostRanks));
      plan_.mesh.push_back({axis.at("axis").text(), static_cast<int>(size)});
    }
    if (plan_.mesh.empty()) root_.at("mesh").fail("the mesh has no axes");
    plan_.ranks = static_cast<int>(ranks);
  }

  void read_tensor(const JsonValue& value) {
    value.allow_keys({"name", "role", "shape", "dtype", "strides"});
    Tensor tensor;
    tensor.name = value.at("name").text();
    tensor.role =
        one_of(value.at("role"), {Role::input, Role::output, Role::scratch, Role::transit}, "role");
    tensor.shape.clear();
    for (const JsonValue& extent : value.at("shape").items())
      tensor.shape.push_back(extent.integer(1, kMost));
    const std::string type = value.has("dtype") ? value.at("dtype").text() : "chunk";
    if (type != "chunk") {
      tensor.type = parse_data_type(type);
      if (!tensor.type)
        value.at("dtype").fail(fmt::format("'{}' is not a data type", type),
                               "float, half, bfloat16, int8, ...; or chunk: all chunks are "
                               "equally large, and how large is said at run time");
    }
    for (const JsonValue& stride : value.items("strides"))
      tensor.strides.push_back(stride.integer(1, kMost));
    plan_.tensors.push_back(std::move(tensor));
  }

  /// The number of the one that is called so.
  template <class Named>
  static std::int32_t named(const JsonValue& value, const std::vector<Named>& all, const char* what,
                            const std::string& hint) {
    const auto found = std::ranges::find(all, value.text(), &Named::name);
    if (found != all.end()) return static_cast<std::int32_t>(found - all.begin());
    value.fail(fmt::format("there is no {} '{}'", what, value.text()),
               suggest(value.text(), names_of(all), hint));
  }

  std::int32_t tensor_named(const JsonValue& value) const {
    return named(value, plan_.tensors, "tensor", "tensors are " + joined(names_of(plan_.tensors)));
  }

  static Affine expression(const JsonValue& value) {
    if (!value.is_text()) return constant(value.integer(-kMost, kMost));
    try {
      return parse_affine(value.text());
    } catch (const Failure& failure) {
      const Diagnostic& first = failure.diagnostics().items().front();
      value.fail(first.message, first.hint);
    }
  }

  Box read_box(const JsonValue& value, const Tensor& tensor) const {
    const std::vector<JsonValue> begins = value.at("begin").items();
    const std::vector<JsonValue> extents = value.items("extent");
    if (begins.size() != tensor.shape.size())
      value.at("begin").fail(fmt::format("{} begins for the {} axes of tensor '{}'", begins.size(),
                                         tensor.shape.size(), tensor.name));
    if (!extents.empty() && extents.size() != begins.size())
      value.at("extent").fail(
          fmt::format("{} extents for {} begins", extents.size(), begins.size()));
    Box box;
    for (std::size_t axis = 0; axis < begins.size(); ++axis)
      box.push_back(
          {expression(begins[axis]), extents.empty() ? 1 : extents[axis].integer(1, kMost)});
    return box;
  }

  Region read_region(const JsonValue& value) const {
    value.allow_keys({"tensor", "begin", "extent", "boxes"});
    Region region{tensor_named(value.at("tensor")), {}};
    const Tensor& tensor = plan_.tensors[index(region.tensor)];
    if (value.has("boxes")) {
      if (value.has("begin") || value.has("extent"))
        value.fail("a region has either boxes or one begin and extent");
      for (const JsonValue& box : value.at("boxes").items()) {
        box.allow_keys({"begin", "extent"});
        region.boxes.push_back(read_box(box, tensor));
      }
    } else {
      region.boxes.push_back(read_box(value, tensor));
    }
    return region;
  }

  Transfer read_transfer(const JsonValue& value) const {
    value.allow_keys({"op", "collective", "group", "peer", "source", "destination", "reduce",
                      "operand", "after"});
    Transfer transfer;
    transfer.kind = one_of(
        value.at("op"),
        {TransferKind::push, TransferKind::pull, TransferKind::copy, TransferKind::collective},
        "transfer");
    if (value.has("group")) {
      if (plan_.groups.empty()) value.at("group").fail("the plan has no groups");
      transfer.group =
          static_cast<std::int32_t>(value.integer("group", 0, std::ssize(plan_.groups) - 1));
    }
    const bool whole = transfer.kind == TransferKind::collective;
    if (whole) transfer.collective = read_collective(value.at("collective"));
    if (!whole && value.has("collective"))
      value.at("collective").fail(fmt::format("a {} is no collective", name_of(transfer.kind)));
    const bool has_peer = !whole && transfer.group < 0 && transfer.kind != TransferKind::copy;
    if (has_peer) transfer.peer = expression(value.at("peer"));
    if (!has_peer && value.has("peer"))
      value.at("peer").fail(fmt::format("a {} {} has no peer", name_of(transfer.kind),
                                        transfer.group >= 0 ? "of a group" : "on one rank"));
    transfer.source = read_region(value.at("source"));
    transfer.destination = read_region(value.at("destination"));
    if (value.has("reduce")) {
      const auto reduce = parse_reduce_op(value.at("reduce").text());
      if (!reduce || *reduce == ReduceOp::none)
        value.at("reduce").fail(fmt::format("'{}' is not a reduction", value.at("reduce").text()),
                                "sum, max, min or prod");
      transfer.reduce = *reduce;
    }
    const bool operand = transfer.reduce != ReduceOp::none && !whole && transfer.group < 0;
    if (operand)
      transfer.operand =
          value.has("operand") ? read_region(value.at("operand")) : transfer.destination;
    if (!operand && value.has("operand"))
      value.at("operand").fail("only a reduction without a group has an operand");
    for (const JsonValue& dependency : value.items("after"))
      transfer.after.push_back(read_dependency(dependency));
    return transfer;
  }

  Dependency read_dependency(const JsonValue& value) const {
    value.allow_keys({"rank", "stream", "transfer", "computed", "compute"});
    Dependency dependency{.rank = value.has("rank") ? expression(value.at("rank")) : own_rank()};
    const bool on_transfer = value.has("stream") || value.has("transfer");
    if ((value.has("computed") && (on_transfer || value.has("compute"))) ||
        (value.has("compute") && on_transfer))
      value.fail("a dependency is on a transfer or on what is computed, not on both");
    if (value.has("computed")) {
      dependency.computed = read_region(value.at("computed"));
      return dependency;
    }
    if (value.has("compute")) {
      dependency.compute = compute_named(value.at("compute"), !value.has("rank"));
      return dependency;
    }
    if (value.has("stream"))
      dependency.stream = static_cast<std::int32_t>(value.integer("stream", 0, INT32_MAX));
    dependency.transfer = expression(value.at("transfer"));
    return dependency;
  }

  /// By its number, or, of the own rank, by its name.
  Affine compute_named(const JsonValue& value, bool own) const {
    std::vector<std::size_t> found;
    for (std::size_t c = 0; c < compute_names_.size() && value.is_text() && own; ++c)
      if (compute_names_[c] == value.text()) found.push_back(c);
    if (found.size() > 1)
      value.fail(fmt::format("{} computes are called '{}'", found.size(), value.text()),
                 "name it by its number, from 0");
    if (!found.empty()) return constant(static_cast<std::int64_t>(found.front()));
    try {
      return value.is_text() ? parse_affine(value.text()) : expression(value);
    } catch (const Failure&) {
      const std::string near = suggest(value.text(), compute_names_);
      value.fail(fmt::format("there is no compute '{}'", value.text()),
                 !own           ? "one of another rank is named by its number, from 0"
                 : near.empty() ? fmt::format("computes are {}", fmt::join(compute_names_, ", "))
                                : near);
    }
  }

  std::vector<Item> read_items(const JsonValue& list, int depth) const {
    std::vector<Item> items;
    for (const JsonValue& value : list.items()) {
      if (!value.has("loop")) {
        items.emplace_back(read_transfer(value));
        continue;
      }
      value.allow_keys({"loop", "items"});
      if (depth == 2) value.fail("loops nest too deeply (at most two)");
      Loop loop{value.integer("loop", 0, kMost), read_items(value.at("items"), depth + 1)};
      items.emplace_back(std::move(loop));
    }
    return items;
  }

  Compute read_compute(const JsonValue& value) const {
    value.allow_keys({"name", "kernel", "axes", "operands", "flop_per_point", "order", "by_arrival",
                      "stream", "after", "waits"});
    Compute compute;
    compute.kernel = value.at("kernel").text();
    compute.name = value.has("name") ? value.at("name").text() : compute.kernel;
    for (const JsonValue& axis : value.at("axes").items()) {
      axis.allow_keys({"name", "extent", "tile", "reduced"});
      ComputeAxis read{axis.at("name").text(), axis.integer("extent", 1, kMost), 0,
                       axis.has("reduced") && axis.at("reduced").boolean()};
      read.tile = axis.has("tile") ? axis.integer("tile", 1, kMost) : read.extent;
      compute.axes.push_back(std::move(read));
    }
    const auto axis_named = [&](const JsonValue& name) {
      return named(name, compute.axes, "axis",
                   fmt::format("axes are {}; * is all of a tensor's axis",
                               fmt::join(names_of(compute.axes), ", ")));
    };
    for (const JsonValue& given : value.at("operands").items()) {
      given.allow_keys({"tensor", "use", "axes", "begin", "wraps"});
      ComputeOperand operand;
      operand.tensor = tensor_named(given.at("tensor"));
      operand.use =
          one_of(given.at("use"), {Use::read, Use::write, Use::accumulate, Use::add}, "use");
      for (const JsonValue& axis : given.at("axes").items())
        operand.axes.push_back(axis.text() == "*" ? -1 : axis_named(axis));
      for (const JsonValue& begin : given.items("begin"))
        operand.begin.push_back(expression(begin));
      operand.wraps = given.has("wraps") && given.at("wraps").boolean();
      compute.operands.push_back(std::move(operand));
    }
    if (value.has("flop_per_point"))
      compute.flop_per_point = value.integer("flop_per_point", 0, kMost);
    for (const JsonValue& axis : value.items("order")) compute.order.push_back(axis_named(axis));
    if (value.has("by_arrival")) compute.by_arrival = value.at("by_arrival").boolean();
    if (value.has("stream")) compute.stream = value.at("stream").text();
    if (value.has("waits"))
      compute.waits = one_of(value.at("waits"), {Waits::tiles, Waits::launch}, "way to wait");
    return compute;
  }

  void read_codes() {
    plan_.code_of.assign(index(plan_.ranks), -1);
    for (const JsonValue& value : root_.at("codes").items()) {
      value.allow_keys({"ranks", "resident", "computes", "streams", "expected"});
      Code code;
      if (value.has("resident")) {
        code.resident.emplace();
        for (const JsonValue& region : value.items("resident"))
          code.resident->push_back(read_region(region));
      }
      compute_names_.clear();
      for (const JsonValue& compute : value.items("computes")) {
        code.computes.push_back(read_compute(compute));
        compute_names_.push_back(code.computes.back().name);
      }
      std::size_t next = 0;  // they may name later ones
      for (const JsonValue& compute : value.items("computes")) {
        for (const JsonValue& dependency : compute.items("after"))
          code.computes[next].after.push_back(read_dependency(dependency));
        ++next;
      }
      for (const JsonValue& given : value.items("streams")) {
        given.allow_keys({"name", "channel", "items"});
        Stream stream;
        stream.name = given.has("name") ? given.at("name").text()
                                        : "stream " + std::to_string(code.streams.size());
        if (given.has("channel")) stream.channel = given.at("channel").text();
        stream.items = read_items(given.at("items"), 0);
        code.streams.push_back(std::move(stream));
      }
      for (const JsonValue& given : value.items("expected")) {
        given.allow_keys({"region", "value", "of", "rank"});
        const std::string kind = given.at("value").text();
        if (kind != "reduced" && kind != "gathered")
          given.at("value").fail(fmt::format("'{}' is not a value", kind),
                                 "gathered: what one rank had; reduced: of all ranks");
        Expectation& expected = code.expected.emplace_back();
        expected.region = read_region(given.at("region"));
        expected.reduced = kind == "reduced";
        if (given.has("of")) expected.of = read_region(given.at("of"));
        if (given.has("rank")) expected.holder = expression(given.at("rank"));
      }
      for (const int rank : ranks_of(value.at("ranks"), plan_.ranks)) {
        std::int32_t& mine = plan_.code_of[index(rank)];
        if (mine >= 0)
          value.at("ranks").fail(fmt::format("rank {} has code {} already", rank, mine));
        mine = static_cast<std::int32_t>(plan_.codes.size());
      }
      plan_.codes.push_back(std::move(code));
    }
    const auto without = std::ranges::find(plan_.code_of, -1);
    if (without != plan_.code_of.end())
      root_.at("codes").fail(
          fmt::format("rank {} has no code", without - plan_.code_of.begin()),
          "a rank that does nothing still stands in the ranks of a code without streams");
  }

  JsonValue root_;
  Plan plan_;
  std::vector<std::string> compute_names_;  // of the code that is being read
};

/// Adds lines to diagnostics that only have pointers.
Failure located(const Failure& failure, std::string_view json) {
  Diagnostics diagnostics;
  for (const Diagnostic& diagnostic : failure.diagnostics().items()) {
    SourceLocation where = diagnostic.where;
    std::string pointer = where.pointer;
    std::size_t at = find_pointer(json, pointer);
    while (at == std::string_view::npos && !pointer.empty()) {  // a part that was left out
      pointer.resize(pointer.rfind('/'));
      at = find_pointer(json, pointer);
    }
    if (at != std::string_view::npos) {
      where = locate(where.file, json, at);
      where.pointer = pointer;
    }
    diagnostics.error(diagnostic.message, where, diagnostic.hint);
  }
  return Failure(diagnostics, failure.code());
}

}  // namespace

std::vector<int> ranks_of(const JsonValue& value, int ranks) {
  const std::string text = value.text();
  std::vector<bool> named(index(ranks), text == "all");
  for (const std::string& part : text == "all" ? std::vector<std::string>{} : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const auto first = parse_count(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_count(part.substr(dash + 1));
    if (!first || !last || *first > *last)
      value.fail(fmt::format("'{}' is not a list of ranks", text), "all, or such as 0-3,8");
    if (*last >= ranks) value.fail(fmt::format("rank {} is not one of {}", *last, ranks));
    for (std::int64_t rank = *first; rank <= *last; ++rank) {
      if (named[index(rank)]) value.fail(fmt::format("'{}' names a rank twice", text));
      named[index(rank)] = true;
    }
  }
  std::vector<int> all;
  for (int rank = 0; rank < ranks; ++rank)
    if (named[index(rank)]) all.push_back(rank);
  return all;
}

Plan read_plan(std::string_view json, const std::string& file) {
  const JsonText source(json, file);
  Plan plan = Reader(source.root()).read();
  if (plan.name.empty()) plan.name = file;
  try {
    check_budget(plan, file);
    validate(plan, file);
  } catch (const Failure& failure) {
    throw located(failure, json);
  }
  return plan;
}

bool is_plan(std::string_view content) {
  return recognise(content) == Format::hemiola_plan;
}

}  // namespace hemiola::plan
