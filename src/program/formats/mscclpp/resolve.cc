#include "program/formats/mscclpp/resolve.h"

#include <set>
#include <utility>

#include "machine/machine.h"
#include "program/formats/mscclpp/channel_ids.h"

namespace hemiola::program {
namespace {

bool crosses_network(const machine::Machine& machine, int from, int to) {
  return machine.reach(from, to) == machine::Reach::network;
}

Program through_memory(Program program) {
  for (Body& body : program.bodies) {
    std::erase_if(body.ops, [](const Op& op) {
      return op.kind == OpKind::flush && op.channel == Channel::any;
    });
    for (Op& op : body.ops)
      if (op.channel == Channel::any) op.channel = Channel::memory;
  }
  return program;
}

/// Gives every rank bodies of its own, operation by operation.
class Resolver {
 public:
  Resolver(const Program& program, const machine::Machine& machine)
      : program_(program), machine_(machine) {}

  Program resolve() {
    find_far_signals();
    Program made = program_;
    made.bodies.clear();
    made.kernels.clear();
    made.codes.clear();
    made.code_of.clear();
    for (rank_ = 0; rank_ < program_.ranks; ++rank_) {
      Kernel kernel = only_kernel(program_, rank_);
      for (std::int32_t& body : kernel.bodies) {
        Body resolved = resolve(program_.bodies[index(body)]);
        body = static_cast<std::int32_t>(made.bodies.size());
        made.bodies.push_back(std::move(resolved));
      }
      made.codes.push_back({{{{.kind = StreamItem::Kind::kernel, .index = rank_}}}});
      made.kernels.push_back(std::move(kernel));
      made.code_of.push_back(rank_);
    }
    return made;
  }

 private:
  bool is_far(const Affine& peer) const {
    return crosses_network(machine_, rank_, static_cast<int>(peer({.rank = rank_})));
  }

  /// Semaphores that are signalled through a NIC: whoever waits for them does so on a port.
  void find_far_signals() {
    for (rank_ = 0; rank_ < program_.ranks; ++rank_) {
      for (const std::int32_t body : only_kernel(program_, rank_).bodies) {
        for_each_op(rank_, program_.bodies[index(body)], [&](const Op& op, const Indices& at) {
          if (op.channel != Channel::any || !is_channel_signal(op.kind)) return;
          for (const SemaphoreRef& ref : op.semaphores) {
            const auto owner = static_cast<int>(ref.rank(at));
            if (crosses_network(machine_, rank_, owner)) far_signals_.emplace(owner, ref.index);
          }
        });
      }
    }
  }

  Body resolve(const Body& body) {
    body_ = {};
    posted_ = false;
    for_each_op(rank_, body, [&](const Op& op, const Indices& at) { add(evaluated(op, at)); });
    if (posted_) body_.ops.push_back({.kind = OpKind::flush, .channel = Channel::port});
    return std::move(body_);
  }

  static Op evaluated(Op op, const Indices& at) {
    for (std::vector<Operand>* side : {&op.src, &op.dst}) {
      for (Operand& operand : *side) {
        operand.rank = constant(operand.rank(at));
        operand.chunk = constant(operand.chunk(at));
      }
    }
    for (SemaphoreRef& ref : op.semaphores) ref.rank = constant(ref.rank(at));
    return op;
  }

  void add(Op op) {
    if (op.channel != Channel::any) {
      body_.ops.push_back(std::move(op));
    } else if (op.kind == OpKind::flush) {
      if (!std::exchange(posted_, false)) return;
      op.channel = Channel::port;
      body_.ops.push_back(std::move(op));
    } else if (is_channel_signal(op.kind) || is_channel_wait(op.kind)) {
      split_semaphores(op);
    } else {
      split_data(std::move(op));
    }
  }

  void add_through(Channel channel, Op op) {
    op.channel = channel;
    posted_ = posted_ || (channel == Channel::port && !is_channel_wait(op.kind));
    body_.ops.push_back(std::move(op));
  }

  void split_semaphores(const Op& op) {
    Op near = op, far = op;
    near.semaphores.clear();
    far.semaphores.clear();
    for (const SemaphoreRef& ref : op.semaphores) {
      const bool port =
          is_channel_wait(op.kind) ? far_signals_.contains({rank_, ref.index}) : is_far(ref.rank);
      (port ? far : near).semaphores.push_back(ref);
    }
    if (!near.semaphores.empty()) add_through(Channel::memory, std::move(near));
    if (!far.semaphores.empty()) add_through(Channel::port, std::move(far));
  }

  void split_data(Op op) {
    for (const Operand& source : op.src)
      if (is_far(source.rank))
        refuse(program_, op, rank_, "it loads through a NIC, which only stores can cross");
    Op far = op;
    far.kind = OpKind::put;
    far.reduce = ReduceOp::none;
    far.src.clear();
    far.dst.clear();
    const bool pairs = op.kind == OpKind::put;
    Op near = op;
    near.dst.clear();
    if (pairs) near.src.clear();
    for (std::size_t d = 0; d < op.dst.size(); ++d) {
      Op& to = is_far(op.dst[d].rank) ? far : near;
      // Behind a NIC goes a copy of the first destination, which is own memory.
      if (pairs || &to == &far) to.src.push_back(pairs ? op.src[d] : op.dst.front());
      to.dst.push_back(op.dst[d]);
    }
    if (!near.dst.empty()) add_near(std::move(near), !far.dst.empty());
    if (far.dst.empty()) return;
    if (!pairs) body_.ops.push_back({.kind = OpKind::sync});
    add_through(Channel::port, std::move(far));
  }

  /// A reduction whose last remote destination is gone is one of the rank's own.
  void add_near(Op op, bool rest_is_far) {
    if (rest_is_far && op.dst.size() == 1) {
      if (op.kind == OpKind::read_reduce_send) op.kind = OpKind::read_reduce;
      if (op.kind == OpKind::reduce_send) {
        op.kind = OpKind::reduce;
        return add_through(Channel::none, std::move(op));
      }
    }
    add_through(Channel::memory, std::move(op));
  }

  const Program& program_;
  const machine::Machine& machine_;
  std::set<std::pair<int, std::int32_t>> far_signals_;  ///< owner, semaphore
  int rank_ = 0;
  Body body_;
  bool posted_ = false;
};

}  // namespace

Program with_channel_types(const Program& program, const machine::Machine* machine) {
  for (int to = 1; machine != nullptr && to < program.ranks; ++to)
    if (crosses_network(*machine, 0, to)) return Resolver(program, *machine).resolve();
  return through_memory(program);
}

}  // namespace hemiola::program
