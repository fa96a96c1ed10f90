#include "study/network/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/diagnostics.h"

namespace hemiola::study {
namespace {

std::size_t at(std::int32_t number) {
  return static_cast<std::size_t>(number);
}

class MessageMaker {
 public:
  MessageMaker(const plan::Plan& plan, Bytes size) : plan_(plan), where_{.file = plan.name} {
    graph_.name = plan.name;
    graph_.ranks = plan.ranks;
    if (!plan.of_elements()) {
      if (plan.chunks_per_size <= 0 || size.count % plan.chunks_per_size != 0 || size.count <= 0)
        throw Failure(
            fmt::format("{} is not {} equal chunks", to_string(size), plan.chunks_per_size), where_,
            fmt::format("sizes are multiples of {} B", plan.chunks_per_size));
      chunk_ = size.count / plan.chunks_per_size;
    }
  }

  MessageGraph make() {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      if (!plan_.code(rank).computes.empty())
        throw Failure("computes are no messages", where_, "a plan of transfers only");
      for (std::size_t s = 0; s < plan_.code(rank).streams.size(); ++s)
        add_stream(rank, static_cast<std::int32_t>(s));
    }
    for (auto& [message, dependency] : waiting_) {
      const auto found = numbers_.find(dependency);
      if (found == numbers_.end())
        throw Failure(
            fmt::format("a transfer waits for number {} of stream {} of rank {}, which "
                        "there is not",
                        std::get<2>(dependency), std::get<1>(dependency), std::get<0>(dependency)),
            where_);
      graph_.messages[at(message)].after.push_back(found->second);
    }
    return std::move(graph_);
  }

 private:
  using Place = std::tuple<std::int64_t, std::int32_t, std::int64_t>;  ///< rank, stream, transfer

  std::int64_t bytes_of(const plan::Region& region) const {
    const plan::Tensor& tensor = plan_.tensors[at(region.tensor)];
    return region.elements() * (tensor.type ? size_of(*tensor.type) : chunk_);
  }

  std::int32_t add(Message message) {
    graph_.messages.push_back(std::move(message));
    return static_cast<std::int32_t>(graph_.messages.size() - 1);
  }

  void add_stream(int rank, std::int32_t stream) {
    std::int64_t number = 0;
    std::int32_t before = -1;
    bool before_is_push = false;
    plan::for_each_transfer(
        plan_.stream(rank, stream), rank,
        [&](const plan::Transfer& transfer, const Indices& indices) {
          if (transfer.group >= 0 || transfer.kind == plan::TransferKind::collective)
            throw Failure("multicast and whole collectives are no messages", where_,
                          "a plan whose transfers are between two ranks: ring, direct, tree");
          const int peer = transfer.kind == plan::TransferKind::copy
                               ? rank
                               : static_cast<int>(transfer.peer(indices));
          const bool is_pull = transfer.kind == plan::TransferKind::pull;
          Message data{.from = is_pull ? peer : rank,
                       .to = transfer.kind == plan::TransferKind::push ? peer : rank,
                       .bytes = bytes_of(transfer.source)};
          std::int32_t first = -1;  // what waits: of a pull the request
          if (is_pull) {
            first = add({.from = rank, .to = peer, .bytes = 0});
            data.after.push_back(first);
          }
          const std::int32_t message = add(std::move(data));
          if (!is_pull) first = message;
          if (before >= 0 && before_is_push) graph_.messages[at(first)].behind = before;
          if (before >= 0 && !before_is_push) graph_.messages[at(first)].after.push_back(before);
          for (const plan::Dependency& dependency : transfer.after)
            waiting_.push_back(
                {first,
                 {dependency.rank(indices), dependency.stream, dependency.transfer(indices)}});
          numbers_[{rank, stream, number++}] = message;
          before = message;
          before_is_push = transfer.kind == plan::TransferKind::push;
        });
  }

  const plan::Plan& plan_;
  SourceLocation where_;
  std::int64_t chunk_ = 0;
  MessageGraph graph_;
  std::map<Place, std::int32_t> numbers_;
  std::vector<std::pair<std::int32_t, Place>> waiting_;
};

class MessageRunner {
 public:
  MessageRunner(const MessageGraph& graph, MessageNetwork& network)
      : messages_(graph.messages), network_(network) {
    const std::size_t count = messages_.size();
    run_.messages.resize(count);
    waits_.assign(count, 0);
    has_begun_.assign(count, false);
    after_arrival_.resize(count);
    after_begin_.resize(count);
    for (std::size_t m = 0; m < count; ++m) {
      for (const std::int32_t other : messages_[m].after)
        after_arrival_[at(other)].push_back(static_cast<std::int32_t>(m));
      if (messages_[m].behind >= 0)
        after_begin_[at(messages_[m].behind)].push_back(static_cast<std::int32_t>(m));
      waits_[m] =
          static_cast<std::int32_t>(messages_[m].after.size()) + (messages_[m].behind >= 0 ? 1 : 0);
    }
  }

  MessageRun run(const std::string& name) {
    for (std::size_t m = 0; m < waits_.size(); ++m)
      if (waits_[m] == 0) ready_.push_back(static_cast<std::int32_t>(m));
    begin_ready(Time{});
    std::size_t arrived = copies_;
    while (const auto arrival = network_.next()) {
      ++arrived;
      end(arrival->number, arrival->time);
      const std::size_t before = copies_;
      begin_ready(arrival->time);
      arrived += copies_ - before;
    }
    if (arrived < messages_.size()) {
      const auto stuck = std::ranges::find(has_begun_, false);
      const Message& message = messages_[static_cast<std::size_t>(stuck - has_begun_.begin())];
      throw Failure(
          fmt::format("{} of {} messages never begin, the first from rank {} to rank {}",
                      messages_.size() - arrived, messages_.size(), message.from, message.to),
          {.file = name}, "'hemiola check' says who waits for whom", ExitCode::deadlock);
    }
    return std::move(run_);
  }

 private:
  void satisfy(const std::vector<std::int32_t>& list) {
    for (const std::int32_t other : list)
      if (--waits_[at(other)] == 0) ready_.push_back(other);
  }

  void end(std::int32_t number, Time time) {
    run_.messages[at(number)].end = time;
    run_.time = std::max(run_.time, time);
    satisfy(after_arrival_[at(number)]);
  }

  void begin_ready(Time now) {
    for (std::size_t next = 0; next < ready_.size(); ++next) {
      const std::int32_t number = ready_[next];
      const Message& message = messages_[at(number)];
      run_.messages[at(number)].begin = now;
      has_begun_[at(number)] = true;
      if (message.from == message.to) {
        ++copies_;
        end(number, now);
      } else {
        network_.send(number, now, message);
      }
      satisfy(after_begin_[at(number)]);
    }
    ready_.clear();
  }

  const std::vector<Message>& messages_;
  MessageNetwork& network_;
  MessageRun run_;
  std::vector<std::int32_t> waits_, ready_;
  std::vector<bool> has_begun_;
  std::vector<std::vector<std::int32_t>> after_arrival_, after_begin_;
  std::size_t copies_ = 0;
};

}  // namespace

MessageGraph messages_of(const plan::Plan& plan, Bytes size) {
  return MessageMaker(plan, size).make();
}

MessageRun run_messages(const MessageGraph& graph, MessageNetwork& network) {
  return MessageRunner(graph, network).run(graph.name);
}

}  // namespace hemiola::study
