#include "verify/programs/left_over.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hemiola::verify {
namespace {

using program::ConnectionRef;
using program::Op;
using program::OpKind;

std::string plural(std::int64_t count, const std::string& word) {
  return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
}

bool sends(OpKind kind) {
  switch (kind) {
    case OpKind::send:
    case OpKind::recv_copy_send:
    case OpKind::recv_reduce_send:
    case OpKind::recv_reduce_copy_send:
      return true;
    default:
      return false;
  }
}
bool receives(OpKind kind) {
  switch (kind) {
    case OpKind::recv:
    case OpKind::recv_reduce_copy:
      return true;
    default:
      return kind != OpKind::send && sends(kind);
  }
}

class Look {
 public:
  explicit Look(const Interpreter& interpreter)
      : interpreter_(interpreter), program_(interpreter.program()) {}

  LeftOver run() {
    for (std::int32_t index = 0; index < std::ssize(program_.semaphores()); ++index)
      for (std::int32_t rank = 0; rank < interpreter_.fold().period(); ++rank)
        look_at({rank, index});
    if (program_.program().inbound > 0) compare_fifos();
    return std::move(result_);
  }

 private:
  void disturbs(Finding finding) {
    if (result_.disturbs)
      ++result_.more_disturb;
    else
      result_.disturbs = std::move(finding);
  }

  void look_at(program::SemaphoreId id) {
    const SemaphoreState& state = interpreter_.semaphore(id);
    const std::string name = describe(program_, id);
    if (const std::int64_t missing = state.drained(); missing > 0) {
      Finding finding;
      finding.summary = "a call takes " + plural(missing, "signal") + " more from " + name +
                        " than it brings: once its initial value is used up, a wait cannot end";
      return disturbs(std::move(finding));
    }
    const std::int64_t left = state.left_over();
    if (left == 0) return;
    const Signal& last = state.last_signal();
    const Workgroup& from = interpreter_.workgroups()[index(last.workgroup)];
    Finding finding;
    if (!state.awaited()) {
      finding.summary = name + " keeps " + plural(left, "signal") + ", and nobody waits for it";
      finding.steps.push_back(witness(interpreter_, from, last.image, last.op, "signals " + name));
      if (result_.ignored)
        ++result_.more_ignored;
      else
        result_.ignored = std::move(finding);
      return;
    }
    finding.summary = "a call leaves " + plural(left, "signal") + " in " + name +
                      " that no wait takes: the next call finds " + (left == 1 ? "it" : "them") +
                      " and does not wait long enough";
    finding.steps.push_back(witness(
        interpreter_, from, last.image, last.op,
        "signals " + name + " in call 1; " + plural(left, "signal") + " there no wait takes"));
    disturbs(std::move(finding));
  }

  /// Every slice that goes into a FIFO during a call has to come out during it.
  void compare_fifos() {
    for (const Workgroup& workgroup : interpreter_.workgroups()) count_slices(workgroup);
    for (const auto& [connection, flow] : flows_) {
      if (flow.sent <= flow.received || flow.sender == nullptr) continue;
      const std::string to = "rank " + std::to_string(flow.receiver);
      const std::int64_t left = flow.sent - flow.received;
      Finding finding;
      finding.summary = "a call leaves " + plural(left, "slice") + " in the FIFO to " + to +
                        " that nobody receives: the next call receives " +
                        (left == 1 ? "it" : "them") + " first";
      finding.steps.push_back(witness(interpreter_, *flow.sender, 0, flow.op,
                                      "is the last of a call to send to " + to + ": " +
                                          std::to_string(flow.sent) +
                                          " of its slices go into the FIFO, and " + to +
                                          " receives " + std::to_string(flow.received)));
      disturbs(std::move(finding));
    }
  }

  struct Flow {
    std::int64_t sent = 0;
    std::int64_t received = 0;
    const Workgroup* sender = nullptr;
    std::int32_t op = 0;        ///< of the sender, the last
    std::int32_t receiver = 0;  ///< as the sender names it
  };

  Flow& flow(std::int32_t receiver, const ConnectionRef& connection) {
    return flows_[{interpreter_.fold().seat(receiver).rank, connection.inbound}];
  }

  /// Each end is looked at once: a cursor counts the slices of all operations.
  void count_slices(const Workgroup& self) {
    const std::vector<Op>& ops = program_.bodies()[index(self.body)].ops;
    program::Cursor walk(program_, self.rank, self.body);
    program::Primitive primitive;
    while (walk.next(primitive)) {
    }
    program::Totals totals;
    walk.leave(totals);
    const auto take = [&totals](std::int64_t key) { return std::exchange(totals[key], 0); };
    const Indices here{.rank = self.rank};
    for (std::size_t i = ops.size(); i-- > 0;) {  // the last operation first
      const Op& op = ops[i];
      const auto each = [](bool does, const ConnectionRef& first,
                           const std::vector<ConnectionRef>& more, auto visit) {
        if (!does) return;
        visit(first);
        for (const ConnectionRef& other : more) visit(other);
      };
      each(sends(op.kind), op.send_to, op.more_to, [&](const ConnectionRef& to) {
        const std::int64_t sent = take(walk.sent_key(to));
        if (sent == 0) return;
        const auto peer = static_cast<std::int32_t>(to.peer(here));
        Flow& into = flow(peer, to);
        into.sent += sent;
        into.sender = &self;
        into.op = static_cast<std::int32_t>(i);
        into.receiver = peer;
      });
      each(receives(op.kind), op.recv_from, op.more_from, [&](const ConnectionRef& from) {
        flow(self.rank, from).received += take(walk.received_key(from));
      });
    }
  }

  const Interpreter& interpreter_;
  const program::Bound& program_;
  LeftOver result_;
  std::map<std::pair<std::int32_t, std::int32_t>, Flow> flows_;  ///< by receiver and inbound index
};

}  // namespace

LeftOver left_over(const Interpreter& interpreter) {
  return Look(interpreter).run();
}

}  // namespace hemiola::verify
