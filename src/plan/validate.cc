#include <string>

#include "plan/plan.h"

namespace hemiola::plan {
namespace {

class Validator {
 public:
  explicit Validator(const Plan& plan) : plan_(plan) {}

  void run() {
    check_tables();
    count_all();
    for (rank_ = 0; rank_ < plan_.ranks; ++rank_) {
      const auto& streams = plan_.code(rank_).streams;
      for (stream_ = 0; stream_ < static_cast<std::int32_t>(streams.size()); ++stream_) {
        number_ = 0;
        for_each_transfer(plan_.stream(rank_, stream_), rank_,
                          [this](const Transfer& transfer, const Indices& at) {
                            check(transfer, at);
                            ++number_;
                          });
      }
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Failure("plan '" + plan_.name + "': rank " + std::to_string(rank_) + ", stream " +
                  std::to_string(stream_) + ", transfer " + std::to_string(number_) + ": " + what);
  }

  void check_tables() const {
    const std::string name = "plan '" + plan_.name + "': ";
    if (plan_.ranks < 1) throw Failure(name + "it has no ranks");
    if (plan_.chunks_per_size < 1) throw Failure(name + "its size has no chunks");
    if (plan_.code_of.size() != static_cast<std::size_t>(plan_.ranks)) {
      throw Failure(name + "not every rank has a code");
    }
    for (const std::int32_t code : plan_.code_of) {
      if (code < 0 || static_cast<std::size_t>(code) >= plan_.codes.size()) {
        throw Failure(name + "a rank names code " + std::to_string(code) +
                      ", which does not exist");
      }
    }
    for (const Tensor& tensor : plan_.tensors) {
      if (tensor.chunks < 1) throw Failure(name + "tensor '" + tensor.name + "' has no chunks");
    }
  }

  void count_all() {
    for (const Code& code : plan_.codes) {
      std::vector<std::int64_t> counts;
      for (const Stream& stream : code.streams) counts.push_back(count_transfers(stream));
      counts_.push_back(std::move(counts));
    }
  }

  void check_region(const Region& region, const Indices& at, const char* part) const {
    if (region.tensor < 0 || static_cast<std::size_t>(region.tensor) >= plan_.tensors.size()) {
      fail(std::string(part) + " names tensor " + std::to_string(region.tensor) +
           ", which does not exist");
    }
    const Tensor& tensor = plan_.tensors[static_cast<std::size_t>(region.tensor)];
    const std::int64_t first = region.chunk(at);
    if (first < 0 || region.chunks < 1 || first + region.chunks > tensor.chunks) {
      fail(std::string(part) + " is outside tensor '" + tensor.name + "': chunks " +
           std::to_string(first) + " to " + std::to_string(first + region.chunks - 1) + " of " +
           std::to_string(tensor.chunks));
    }
  }

  void check(const Transfer& transfer, const Indices& at) const {
    const std::int64_t peer = transfer.peer(at);
    if (peer < 0 || peer >= plan_.ranks) fail("its peer is rank " + std::to_string(peer));
    if (transfer.kind == TransferKind::copy && peer != rank_) fail("a copy names another rank");
    if (transfer.kind != TransferKind::copy && peer == rank_) {
      fail("a " + std::string(name_of(transfer.kind)) + " names its own rank");
    }
    check_region(transfer.source, at, "its source");
    check_region(transfer.destination, at, "its destination");
    if (transfer.source.chunks != transfer.destination.chunks)
      fail("source and destination differ in size");
    if (transfer.reduce != ReduceOp::none) {
      check_region(transfer.operand, at, "its operand");
      if (transfer.operand.chunks != transfer.source.chunks)
        fail("source and operand differ in size");
    }
    for (const Dependency& dependency : transfer.after) check_dependency(dependency, at);
  }

  void check_dependency(const Dependency& dependency, const Indices& at) const {
    const std::int64_t rank = dependency.rank(at);
    const std::int64_t transfer = dependency.transfer(at);
    if (rank < 0 || rank >= plan_.ranks) fail("it depends on rank " + std::to_string(rank));
    const auto& counts =
        counts_[static_cast<std::size_t>(plan_.code_of[static_cast<std::size_t>(rank)])];
    if (dependency.stream < 0 || static_cast<std::size_t>(dependency.stream) >= counts.size() ||
        transfer < 0 || transfer >= counts[static_cast<std::size_t>(dependency.stream)]) {
      fail("it depends on transfer " + std::to_string(transfer) + " of stream " +
           std::to_string(dependency.stream) + " of rank " + std::to_string(rank) +
           ", which does not exist");
    }
    if (rank == rank_ && dependency.stream == stream_ && transfer >= number_) {
      fail("it depends on transfer " + std::to_string(transfer) +
           " of its own stream, which comes later");
    }
  }

  const Plan& plan_;
  std::vector<std::vector<std::int64_t>> counts_;  // by code and stream
  int rank_ = 0;
  std::int32_t stream_ = 0;
  std::int64_t number_ = 0;
};

}  // namespace

void validate(const Plan& plan) {
  Validator(plan).run();
}

}  // namespace hemiola::plan
