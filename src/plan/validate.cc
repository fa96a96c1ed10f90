#include <algorithm>
#include <set>
#include <string>

#include "core/index.h"
#include "plan/area.h"
#include "plan/collective_shape.h"
#include "plan/in_place.h"
#include "plan/launches.h"
#include "plan/plan.h"

namespace hemiola::plan {
namespace {

std::string number(std::int64_t value) {
  return std::to_string(value);
}

class Validator {
 public:
  Validator(const Plan& plan, const std::string& source) : plan_(plan), source_(source) {}

  void run() {
    check_tables();
    check_tensors();
    if (const auto fault = wrong_collective_shape(plan_))
      fail_at(fault->pointer, fault->text, fault->hint);
    check_groups();
    count_all();
    for (std::size_t c = 0; c < plan_.codes.size(); ++c) {
      pointer_ = "/codes/" + number(static_cast<std::int64_t>(c));
      for (std::size_t i = 0; i < plan_.codes[c].computes.size(); ++i)
        check_compute(plan_.codes[c].computes[i], "/computes/" + std::to_string(i));
    }
    for (rank_ = 0; rank_ < plan_.ranks; ++rank_) {
      const std::int32_t code = plan_.code_of[index(rank_)];
      check_residents(plan_.code(rank_), "/codes/" + number(code));
      validate_launches(plan_, rank_, source_, "/codes/" + number(code), counts_);
      const auto& streams = plan_.code(rank_).streams;
      for (stream_ = 0; stream_ < static_cast<std::int32_t>(streams.size()); ++stream_) {
        number_ = 0;
        Indices at{.rank = rank_};
        check_items(streams[index(stream_)].items, at, 0,
                    "/codes/" + number(code) + "/streams/" + number(stream_));
      }
    }
  }

 private:
  [[noreturn]] void fail_at(const std::string& pointer, const std::string& what,
                            const std::string& hint = {}) const {
    throw Failure("plan '" + plan_.name + "': " + what,
                  {.file = source_, .line = 0, .column = 0, .pointer = pointer}, hint);
  }
  /// Inside the present transfer, at `part` of it.
  [[noreturn]] void fail(const std::string& part, const std::string& what,
                         const std::string& hint = {}) const {
    fail_at(pointer_ + part,
            "rank " + number(rank_) + ", stream " + number(stream_) + ", transfer " +
                number(number_) + ": " + what,
            hint);
  }

  void check_tables() const {
    if (plan_.ranks < 1) fail_at("/mesh", "it has no ranks");
    if (!plan_.mesh.empty()) {
      std::int64_t product = 1;
      for (const MeshAxis& axis : plan_.mesh) {
        if (axis.size < 1) fail_at("/mesh", "mesh axis '" + axis.name + "' has no ranks");
        product *= axis.size;
      }
      if (product != plan_.ranks)
        fail_at("/mesh", "its mesh has " + number(product) + " places for " + number(plan_.ranks) +
                             " ranks");
    }
    if (plan_.root < 0 || plan_.root >= plan_.ranks)
      fail_at("/root", "its root is rank " + number(plan_.root) + " of " + number(plan_.ranks),
              "ranks are numbered from 0");
    if (plan_.chunks_per_size < 1) fail_at("/chunks_per_size", "its size has no chunks");
    if (plan_.code_of.size() != index(plan_.ranks)) fail_at("/codes", "not every rank has a code");
    for (const std::int32_t code : plan_.code_of)
      if (code < 0 || index(code) >= plan_.codes.size())
        fail_at("/codes", "a rank names code " + number(code) + ", which does not exist");
  }

  void check_tensors() const {
    std::set<std::string> names;
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      const Tensor& tensor = plan_.tensors[t];
      const std::string at = "/tensors/" + std::to_string(t);
      const std::string it = "tensor '" + tensor.name + "'";
      if (!names.insert(tensor.name).second)
        fail_at(at + "/name", "two tensors are called '" + tensor.name + "'");
      if (tensor.shape.empty()) fail_at(at + "/shape", it + " has no axes");
      std::int64_t elements = 1;
      for (const std::int64_t extent : tensor.shape) {
        if (extent < 1)
          fail_at(at + "/shape", it + " has no " + (tensor.type ? "elements" : "chunks"));
        if (elements > kMostElements / extent)
          fail_at(at + "/shape", it + " has more than 2^50 elements");
        elements *= extent;
      }
      if (tensor.type.has_value() != plan_.of_elements())
        fail_at(at + "/dtype",
                it + (tensor.type ? " has a data type" : " has no data type") + ", unlike '" +
                    plan_.tensors.front().name + "'",
                "a plan is of chunks or of elements throughout");
      check_strides(tensor, at, it);
    }
  }

  // Elements must not share memory: sorted by stride, each axis steps over all that is below it.
  void check_strides(const Tensor& tensor, const std::string& at, const std::string& it) const {
    if (tensor.strides.empty()) return;
    if (tensor.strides.size() != tensor.shape.size())
      fail_at(at + "/strides", it + " has " + number(std::ssize(tensor.strides)) + " strides for " +
                                   number(std::ssize(tensor.shape)) + " axes");
    std::vector<std::pair<std::int64_t, std::int64_t>> axes;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      if (tensor.strides[i] < 1 || tensor.strides[i] > kMostElements)
        fail_at(at + "/strides", it + " has stride " + number(tensor.strides[i]),
                "strides count elements, from 1");
      axes.emplace_back(tensor.strides[i], tensor.shape[i]);
    }
    std::ranges::sort(axes);
    std::int64_t below = 1;
    for (const auto& [stride, extent] : axes) {
      if (extent > 1 && stride < below)
        fail_at(at + "/strides", it + " has elements that share memory: stride " + number(stride) +
                                     " is less than the " + number(below) + " elements below it");
      below = std::max(below, (extent - 1) * stride + below);
    }
  }

  void check_groups() const {
    for (std::size_t g = 0; g < plan_.groups.size(); ++g) {
      const std::string at = "/groups/" + std::to_string(g);
      std::set<int> members;
      for (const int rank : plan_.groups[g]) {
        if (rank < 0 || rank >= plan_.ranks)
          fail_at(at, "group " + std::to_string(g) + " names rank " + number(rank) + " of " +
                          number(plan_.ranks));
        if (!members.insert(rank).second)
          fail_at(at, "group " + std::to_string(g) + " names rank " + number(rank) + " twice");
      }
      if (members.empty()) fail_at(at, "group " + std::to_string(g) + " is empty");
    }
  }

  void check_compute(const Compute& compute, const std::string& part) const {
    const std::string at = pointer_ + part;
    const std::string it = "compute '" + compute.name + "'";
    if (compute.axes.empty()) fail_at(at + "/axes", it + " has no axes");
    for (const ComputeAxis& axis : compute.axes) {
      if (axis.extent < 1 || axis.tile < 1)
        fail_at(at + "/axes", it + ": axis '" + axis.name + "' has extent " + number(axis.extent) +
                                  " and tile " + number(axis.tile));
    }
    const auto axes = static_cast<std::int32_t>(compute.axes.size());
    for (std::size_t o = 0; o < compute.operands.size(); ++o) {
      const ComputeOperand& operand = compute.operands[o];
      const std::string here = at + "/operands/" + std::to_string(o);
      if (operand.tensor < 0 || index(operand.tensor) >= plan_.tensors.size())
        fail_at(here, it + " names tensor " + number(operand.tensor) + ", which does not exist");
      const Tensor& tensor = plan_.tensors[index(operand.tensor)];
      if (operand.axes.size() != tensor.shape.size() ||
          (!operand.begin.empty() && operand.begin.size() != tensor.shape.size()))
        fail_at(here, it + " gives " + number(std::ssize(operand.axes)) + " axes for tensor '" +
                          tensor.name + "' of " + number(std::ssize(tensor.shape)));
      for (const std::int32_t axis : operand.axes)
        if (axis < -1 || axis >= axes)
          fail_at(here, it + " names its axis " + number(axis) + " of " + number(axes));
    }
    std::set<std::int32_t> order(compute.order.begin(), compute.order.end());
    if (!compute.order.empty() &&
        (order.size() != compute.order.size() || std::ssize(order) != axes || *order.begin() != 0 ||
         *order.rbegin() != axes - 1))
      fail_at(at + "/order", it + " has an order that does not name each axis once");
  }

  /// The tile space of every operand lies in its tensor on this rank.
  void check_compute_on_rank(const Compute& compute, const std::string& at) const {
    for (std::size_t o = 0; o < compute.operands.size(); ++o) {
      const ComputeOperand& operand = compute.operands[o];
      const Tensor& tensor = plan_.tensors[index(operand.tensor)];
      for (std::size_t i = 0; i < operand.axes.size(); ++i) {
        if (operand.axes[i] < 0) continue;
        const ComputeAxis& axis = compute.axes[index(operand.axes[i])];
        const std::int64_t begin = operand.first(i, rank_);
        const std::int64_t end = begin + axis.extent, shape = tensor.shape[i];
        const std::string here = at + "/operands/" + std::to_string(o);
        if (operand.wraps && end > shape && begin >= 0 && begin < shape && axis.extent <= shape) {
          if ((shape - begin) % axis.tile != 0)
            fail_at(here, "a tile of compute '" + compute.name + "' on rank " + number(rank_) +
                              " reaches over the end of axis " + std::to_string(i) +
                              " of tensor '" + tensor.name + "', where its operand wraps");
          continue;
        }
        if (begin < 0 || end > shape)
          fail_at(here, "compute '" + compute.name + "' on rank " + number(rank_) + " touches [" +
                            number(begin) + ", " + number(end) + ") of axis " + std::to_string(i) +
                            " of tensor '" + tensor.name + "', which has " + number(shape));
      }
    }
  }

  void check_residents(const Code& code, const std::string& at) {
    const Indices here{.rank = rank_};
    pointer_ = at;
    const auto check = [&](const Region& region, const std::string& part) {
      if (const std::string wrong = wrong_with(region, here); !wrong.empty())
        fail_at(at + part, "rank " + number(rank_) + ": " + part.substr(1) + " " + wrong);
    };
    if (code.resident)
      for (std::size_t i = 0; i < code.resident->size(); ++i)
        check((*code.resident)[i], "/resident/" + std::to_string(i));
    for (std::size_t i = 0; i < code.expected.size(); ++i)
      check_expectation(code.expected[i], at, "/expected/" + std::to_string(i), check);
    for (std::size_t i = 0; i < code.computes.size(); ++i)
      check_compute_on_rank(code.computes[i], at + "/computes/" + std::to_string(i));
  }

  template <typename Check>
  void check_expectation(const Expectation& expectation, const std::string& at,
                         const std::string& part, const Check& check) const {
    check(expectation.region, part + "/region");
    const std::string who = "rank " + number(rank_) + ": " + part.substr(1);
    if (expectation.of) {
      check(*expectation.of, part + "/of");
      if (expectation.of->elements() != expectation.region.elements())
        fail_at(at + part + "/of", who + " has " + number(expectation.region.elements()) +
                                       " elements of " + number(expectation.of->elements()));
    }
    if (!expectation.holder) return;
    if (expectation.reduced)
      fail_at(at + part + "/rank", who + " is reduced over ranks, and names one");
    const std::int64_t holder = (*expectation.holder)(Indices{.rank = rank_});
    if (holder < 0 || holder >= plan_.ranks)
      fail_at(at + part + "/rank", who + " names rank " + number(holder),
              "ranks are 0 to " + number(plan_.ranks - 1));
  }

  void count_all() {
    for (const Code& code : plan_.codes) {
      std::vector<std::int64_t> counts;
      for (const Stream& stream : code.streams) counts.push_back(count_transfers(stream));
      counts_.push_back(std::move(counts));
    }
  }

  void check_items(const std::vector<Item>& items, Indices& at, std::size_t depth,
                   const std::string& place) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      const std::string here = place + "/items/" + std::to_string(i);
      pointer_ = here;
      if (const auto* transfer = std::get_if<Transfer>(&items[i])) {
        check(*transfer, at);
        ++number_;
        continue;
      }
      const Loop& loop = std::get<Loop>(items[i]);
      if (depth >= at.loop.size()) fail_at(here, "loops of a plan nest too deeply (at most two)");
      if (loop.count < 0) fail_at(here + "/loop", "a loop of " + number(loop.count) + " rounds");
      for (std::int64_t round = 0; round < loop.count; ++round) {
        at.loop[depth] = round;
        check_items(loop.items, at, depth + 1, here);
      }
      at.loop[depth] = 0;
    }
  }

  /// What is wrong with a region, as the rest of a sentence; empty when nothing is.
  std::string wrong_with(const Region& region, const Indices& at) const {
    if (region.tensor < 0 || index(region.tensor) >= plan_.tensors.size())
      return "names tensor " + number(region.tensor) + ", which does not exist";
    const Tensor& tensor = plan_.tensors[index(region.tensor)];
    if (region.boxes.empty()) return "is empty";
    for (const Box& box : region.boxes) {
      if (box.size() != tensor.shape.size())
        return "has " + number(std::ssize(box)) + " axes, tensor '" + tensor.name + "' has " +
               number(std::ssize(tensor.shape));
      for (std::size_t axis = 0; axis < box.size(); ++axis) {
        const std::int64_t first = box[axis].begin(at);
        if (first >= 0 && box[axis].extent >= 1 && box[axis].extent <= tensor.shape[axis] &&
            first + box[axis].extent <= tensor.shape[axis])
          continue;
        return "is outside tensor '" + tensor.name +
               "': " + (tensor.type ? "elements " : "chunks ") + number(first) + " to " +
               number(first + box[axis].extent - 1) + " of " + number(tensor.shape[axis]) +
               (tensor.shape.size() > 1 ? " along axis " + std::to_string(axis) : "");
      }
    }
    if (region.boxes.size() > 1) {
      const Area area = evaluate(region, at);
      for (std::size_t i = 0; i < area.rects.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j)
          if (!intersection(area.rects[i], area.rects[j]).empty())
            return "has boxes " + std::to_string(j) + " and " + std::to_string(i) + " that overlap";
      }
    }
    return {};
  }

  void check_region(const Region& region, const Indices& at, const char* part) const {
    if (const std::string wrong = wrong_with(region, at); !wrong.empty())
      fail(std::string("/") + part, std::string("its ") + part + " " + wrong);
  }

  void check_types(const Region& a, const char* a_part, const Region& b, const char* b_part) const {
    const Tensor& x = plan_.tensors[index(a.tensor)];
    const Tensor& y = plan_.tensors[index(b.tensor)];
    if (x.type != y.type)
      fail(std::string("/") + b_part,
           std::string(a_part) + " is " + std::string(name_of(*x.type)) + ", " + b_part + " is " +
               std::string(name_of(*y.type)),
           "a transfer does not convert");
    if (a.elements() != b.elements())
      fail(std::string("/") + b_part, std::string(a_part) + " and " + b_part + " differ in size: " +
                                          number(a.elements()) + " and " + number(b.elements()));
  }

  void check_peer(const Transfer& transfer, const Indices& at) const {
    if (transfer.group >= 0 || transfer.kind == TransferKind::collective) {
      if (transfer.group < 0 || index(transfer.group) >= plan_.groups.size())
        fail("/group", "it names group " + number(transfer.group) + ", which does not exist");
      const std::vector<int>& group = plan_.groups[index(transfer.group)];
      if (transfer.kind == TransferKind::copy) fail("/group", "a copy has no group");
      if (std::ranges::find(group, rank_) == group.end())
        fail("/group", "its rank is not in group " + number(transfer.group));
      if (transfer.kind == TransferKind::pull && transfer.reduce == ReduceOp::none)
        fail("/reduce", "a pull from a group reduces", "say which way: \"reduce\": \"sum\"");
      if (transfer.kind == TransferKind::push && transfer.reduce != ReduceOp::none)
        fail("/reduce", "a push to a group does not reduce");
      return;
    }
    const std::int64_t peer = transfer.peer(at);
    if (peer < 0 || peer >= plan_.ranks)
      fail("/peer", "its peer is rank " + number(peer),
           "ranks are 0 to " + number(plan_.ranks - 1));
    if (transfer.kind == TransferKind::copy && peer != rank_)
      fail("/peer", "a copy names another rank");
    if (transfer.kind != TransferKind::copy && peer == rank_)
      fail("/peer", "a " + std::string(name_of(transfer.kind)) + " names its own rank");
  }

  void check(const Transfer& transfer, const Indices& at) const {
    check_peer(transfer, at);
    check_region(transfer.source, at, "source");
    check_region(transfer.destination, at, "destination");
    if (transfer.kind == TransferKind::collective)
      check_collective(transfer);
    else
      check_types(transfer.source, "source", transfer.destination, "destination");
    if (transfer.reduce != ReduceOp::none && transfer.group < 0) {
      check_region(transfer.operand, at, "operand");
      check_types(transfer.source, "source", transfer.operand, "operand");
    }
    for (std::size_t d = 0; d < transfer.after.size(); ++d)
      check_dependency(transfer.after[d], at, "/after/" + std::to_string(d));
  }

  void check_collective(const Transfer& transfer) const {
    const std::int64_t members = std::ssize(plan_.groups[index(transfer.group)]);
    const std::int64_t from = transfer.source.elements(), to = transfer.destination.elements();
    const bool reduces = transfer.collective == Collective::all_reduce ||
                         transfer.collective == Collective::reduce_scatter;
    if (reduces != (transfer.reduce != ReduceOp::none))
      fail("/reduce", "a " + std::string(name_of(transfer.collective)) +
                          (reduces ? " reduces" : " does not reduce"));
    std::int64_t wanted = from;
    switch (transfer.collective) {
      case Collective::all_reduce:
      case Collective::all_to_all:
      case Collective::broadcast:
        break;
      case Collective::all_gather:
        wanted = from * members;
        break;
      case Collective::reduce_scatter:
        wanted = from / members;
        break;
      default:
        fail("/collective",
             "'" + std::string(name_of(transfer.collective)) + "' is not a collective of a plan",
             "all-reduce, all-gather, reduce-scatter, all-to-all or broadcast");
    }
    const bool divides = (transfer.collective != Collective::reduce_scatter &&
                          transfer.collective != Collective::all_to_all) ||
                         from % members == 0;
    if (to != wanted || !divides)
      fail("/destination", "source and destination of a " +
                               std::string(name_of(transfer.collective)) + " among " +
                               number(members) + " ranks have " + number(from) + " and " +
                               number(to) + " elements");
  }

  void check_dependency(const Dependency& dependency, const Indices& at,
                        const std::string& part) const {
    const std::int64_t rank = dependency.rank(at);
    if (rank < 0 || rank >= plan_.ranks)
      fail(part + "/rank", "it depends on rank " + number(rank),
           "ranks are 0 to " + number(plan_.ranks - 1));
    if (dependency.computed) {
      check_computed(*dependency.computed, at, static_cast<int>(rank), part);
      return;
    }
    if (dependency.compute) {
      const std::int64_t compute = (*dependency.compute)(at);
      const std::int64_t computes = std::ssize(plan_.code(static_cast<int>(rank)).computes);
      if (compute < 0 || compute >= computes)
        fail(part + "/compute",
             "it depends on compute " + number(compute) + " of rank " + number(rank) +
                 ", which does not exist",
             "that rank has " + number(computes) + ", numbered from 0");
      const Compute& named = plan_.code(static_cast<int>(rank)).computes[index(compute)];
      if (!named.is_launch())
        fail(part + "/compute",
             "it depends on compute '" + named.name + "', which is no launch of its own",
             "name what it makes as `computed`, or give it a stream");
      return;
    }
    const std::int64_t transfer = dependency.transfer(at);
    const auto& counts = counts_[index(plan_.code_of[index(rank)])];
    if (dependency.stream < 0 || index(dependency.stream) >= counts.size() || transfer < 0 ||
        transfer >= counts[index(dependency.stream)]) {
      fail(part,
           "it depends on transfer " + number(transfer) + " of stream " +
               number(dependency.stream) + " of rank " + number(rank) + ", which does not exist",
           "streams and transfers are numbered from 0, loops unrolled");
    }
    if (rank == rank_ && dependency.stream == stream_ && transfer >= number_) {
      fail(part,
           "it depends on transfer " + number(transfer) + " of its own stream, which comes later");
    }
  }

  void check_computed(const Region& region, const Indices& at, int rank,
                      const std::string& part) const {
    if (const std::string wrong = wrong_with(region, at); !wrong.empty())
      fail(part + "/computed", "what it waits for " + wrong);
    const std::vector<Compute>& computes = plan_.code(rank).computes;
    const bool written = std::ranges::any_of(computes, [&](const Compute& compute) {
      return std::ranges::any_of(compute.operands, [&](const ComputeOperand& operand) {
        return operand.tensor == region.tensor && operand.use != Use::read;
      });
    });
    if (!written)
      fail(part + "/computed", "nothing that rank " + number(rank) + " computes writes tensor '" +
                                   plan_.tensors[index(region.tensor)].name + "'");
  }

  static constexpr std::int64_t kMostElements = std::int64_t{1} << 50;

  const Plan& plan_;
  const std::string& source_;
  std::vector<std::vector<std::int64_t>> counts_;  // by code and stream
  std::string pointer_;
  int rank_ = 0;
  std::int32_t stream_ = 0;
  std::int64_t number_ = 0;
};

}  // namespace

void validate(const Plan& plan, const std::string& source) {
  Validator(plan, source).run();
  check_in_place(plan, source);
}

}  // namespace hemiola::plan
