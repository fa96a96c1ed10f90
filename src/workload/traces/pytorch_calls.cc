#include "workload/traces/pytorch_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "core/units.h"
#include "workload/traces/pytorch_shapes.h"

namespace hemiola::workload {
namespace {

std::string letters_of(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') letters += static_cast<char>(c - 'A' + 'a');
    if (c >= 'a' && c <= 'z') letters += c;
  }
  return letters;
}

struct CallName {
  std::string_view part;
  TorchCallKind kind;
};
// The first one that is found counts: "allgather" before "gather".
constexpr std::array<CallName, 13> kCallNames{{
    {"allreduce", TorchCallKind::all_reduce},
    {"allgather", TorchCallKind::all_gather},
    {"reducescatter", TorchCallKind::reduce_scatter},
    {"alltoall", TorchCallKind::all_to_all},
    {"broadcast", TorchCallKind::broadcast},
    {"barrier", TorchCallKind::barrier},
    {"scatter", TorchCallKind::scatter},
    {"gather", TorchCallKind::gather},
    {"sendrecv", TorchCallKind::all_to_all},  // a kernel's name
    {"send", TorchCallKind::send},
    {"recv", TorchCallKind::receive},
    {"reduce", TorchCallKind::reduce},
    {"wait", TorchCallKind::none},
}};

std::optional<std::int64_t> times_if_it_fits(std::int64_t a, std::int64_t b) {
  if (a < 0 || b < 0) return std::nullopt;
  if (b > 0 && a > std::numeric_limits<std::int64_t>::max() / b) return std::nullopt;
  return a * b;
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The numbers of digits in a text; none if the list is cut ("...") or one does not fit.
template <typename Number>
std::vector<Number> numbers_in(std::string_view text) {
  std::vector<Number> numbers;
  if (text.find("...") != std::string_view::npos) return numbers;
  const char* const last = text.data() + text.size();
  for (const char* at = text.data(); at != last;) {
    if (!is_digit(*at)) {
      ++at;
      continue;
    }
    const auto [end, error] = std::from_chars(at, last, numbers.emplace_back());
    if (error != std::errc{}) return {};
    at = end;
  }
  return numbers;
}

}  // namespace

TorchCallKind torch_call_kind(std::string_view name) {
  const std::string letters = letters_of(name.substr(0, name.find('(')));
  for (const CallName& one : kCallNames)
    if (letters.find(one.part) != std::string::npos) return one.kind;
  if (letters == "init" || letters == "end" || letters == "commend") return TorchCallKind::none;
  return TorchCallKind::unknown;
}

Collective collective_of(TorchCallKind kind) {
  switch (kind) {
    case TorchCallKind::all_gather:
    case TorchCallKind::gather:
      return Collective::all_gather;
    case TorchCallKind::reduce_scatter:
      return Collective::reduce_scatter;
    case TorchCallKind::all_to_all:
      return Collective::all_to_all;
    case TorchCallKind::broadcast:
    case TorchCallKind::scatter:
      return Collective::broadcast;
    case TorchCallKind::reduce:
      return Collective::reduce;
    default:
      return Collective::all_reduce;
  }
}

void set_kind(CollectiveCall& call, TorchCallKind kind, std::string_view name, bool lenient,
              Tally& tally, const NodeOfFile& at) {
  call.kind = collective_of(kind);
  if (kind == TorchCallKind::barrier) {
    call.bytes = size_of(DataType::float32);
    call.type = DataType::float32;
  }
  if (kind != TorchCallKind::gather && kind != TorchCallKind::scatter) return;
  const std::string_view like = kind == TorchCallKind::gather ? "an all-gather" : "a broadcast";
  if (!lenient)
    at.fail(fmt::format(" is a {}, which cannot be simulated", name),
            fmt::format("--lenient takes it as {}", like));
  tally.add(fmt::format("converted: a {} to {}", name, like), at.text());
}

bool is_communication_kernel(std::string_view name) {
  for (const std::string_view part :
       {"ncclKernel", "ncclDev", "rcclDev", "rcclGenericKernel", "mscclKernel"})
    if (name.find(part) != std::string_view::npos) return true;
  return false;
}

void TorchCall::take(const CallArguments& said) {
  name = std::string(said.collective);
  sent = said.sent;
  received = said.received;
  says_counts = true;
  type = std::string(said.type);
  group = std::string(said.group);
  size = said.group_size.value_or(0);
  first = said.first.value_or(-1);
  stride = said.stride.value_or(-1);
}

std::vector<int> parse_rank_list(std::string_view text) {
  return numbers_in<int>(text);
}

std::vector<std::int64_t> parse_splits(std::string_view text) {
  const bool is_negative = std::ranges::adjacent_find(text, [](char sign, char next) {
                             return sign == '-' && is_digit(next);
                           }) != text.end();
  return is_negative ? std::vector<std::int64_t>() : numbers_in<std::int64_t>(text);
}

TorchCalls::TorchCalls(TraceAssembly& assembly, ProcessGroups& groups, const CallSizes& sizes,
                       Tally& tally)
    : assembly_(assembly), groups_(groups), sizes_(sizes), tally_(tally) {}

void TorchCalls::define_group(const TorchCall& call, const NodeOfFile& at) {
  if (call.group.empty()) return;
  constexpr std::int64_t kMostRanks = 1 << 24;
  if (call.size < 0 || call.size > kMostRanks)
    at.fail(fmt::format(" is in process group '{}' of {} ranks", call.group, call.size));
  groups_.check(call.group, call.ranks, call.size, at);
  if (groups_.knows(call.group)) return groups_.refine(call.group, call.ranks);
  ProcessGroup group{call.group, call.ranks, static_cast<int>(call.size)};
  if (group.ranks.empty() && call.size > 0 && call.size != groups_.world()) {
    const std::optional<std::int64_t> last = call.first >= 0 && call.stride > 0
                                                 ? times_if_it_fits(call.stride, call.size)
                                                 : std::nullopt;
    if (!last || *last > kMostRanks || call.first > kMostRanks)
      at.fail(fmt::format(" is in process group '{}' of {} ranks, and nothing says which they are",
                          call.group, call.size),
              "give a file of process groups: {\"" + call.group + "\": [0, 1]}");
    for (std::int64_t i = 0; i < call.size; ++i)
      group.ranks.push_back(static_cast<int>(call.first + i * call.stride));
  }
  groups_.define(group, *at.file);
}

std::optional<std::int64_t> TorchCalls::bytes_of(const TorchCall& call, TorchCallKind kind,
                                                 int ranks) const {
  const std::optional<DataType> type = torch_type(call.type);
  if (!type || (!call.sent && !call.received)) return std::nullopt;
  // Of two numbers, the one that nccl-tests calls size, or else what it follows from.
  const auto of_whole = [&](const std::optional<std::int64_t>& whole,
                            const std::optional<std::int64_t>& share) {
    if (whole && *whole > 0) return whole;
    return share ? times_if_it_fits(*share, ranks) : whole;
  };
  std::optional<std::int64_t> elements;
  switch (kind) {
    case TorchCallKind::all_gather:
    case TorchCallKind::gather:
      elements = of_whole(std::nullopt, call.sent);
      if (!elements || *elements == 0) elements = call.received;
      break;
    case TorchCallKind::reduce_scatter:
    case TorchCallKind::scatter:
      elements = of_whole(call.sent, call.received);
      break;
    default:
      elements = call.sent && *call.sent > 0 ? call.sent : call.received;
      if (!elements) elements = call.sent;
  }
  return elements ? times_if_it_fits(*elements, size_of(*type)) : std::nullopt;
}

std::optional<std::int64_t> TorchCalls::size_of_call(Node& node, const TorchCall& call,
                                                     TorchCallKind kind, int ranks,
                                                     const NodeOfFile& at) {
  std::optional<std::int64_t> bytes = bytes_of(call, kind, ranks);
  if (!bytes) bytes = sizes_.find(count_ - 1, call.name);
  if (bytes && *bytes > kMostMemory)
    at.fail(fmt::format(" is a call of {} B, which no GPU has", *bytes));
  if (bytes && *bytes > 0) return bytes;
  if (bytes) {
    if (!assembly_.lenient())
      at.fail(fmt::format(" is a call that moves {} bytes", *bytes),
              "--lenient lets it take the time that was recorded");
    tally_.add("ignored: a call that moves no bytes takes the time that was recorded", at.text());
  } else {
    if (without_size_++ == 0) {
      first_without_size_ = fmt::format("{} at {}", at.text(), to_string(node.recorded_begin));
      file_ = *at.file;
    }
    if (assembly_.lenient())
      tally_.add("ignored: a call without a size takes the time that was recorded", at.text());
  }
  node.kind = NodeKind::recorded_call;
  node.work =
      static_cast<std::int32_t>(assembly_.name(fmt::format("{} without a size", call.name)));
  return std::nullopt;
}

void TorchCalls::set(Node& node, const TorchCall& call, const NodeOfFile& at) {
  const TorchCallKind kind = torch_call_kind(call.name);
  if (kind == TorchCallKind::none) return;
  ++count_;
  define_group(call, at);
  if (kind == TorchCallKind::send || kind == TorchCallKind::receive)
    set_message(node, call, kind == TorchCallKind::send, at);
  else
    set_collective(node, call, kind, at);
}

void TorchCalls::set_message(Node& node, const TorchCall& call, bool is_send,
                             const NodeOfFile& at) {
  const std::optional<std::int64_t> bytes =
      size_of_call(node, call, is_send ? TorchCallKind::send : TorchCallKind::receive, 1, at);
  if (!bytes) return;
  const std::optional<std::int64_t>& said = is_send ? call.destination : call.source;
  std::optional<int> other;
  if (said && (*said < 0 || *said > std::numeric_limits<int>::max()))
    at.fail(fmt::format(" {} a rank whose number cannot be read",
                        is_send ? "sends to" : "receives from"));
  if (said) other = static_cast<int>(*said);
  if (!other) other = groups_.other_of_pair(call.group, at);
  if (!other) at.fail(fmt::format(" does not say {} which rank", is_send ? "to" : "from"));
  const int own = groups_.rank();
  Message message = is_send ? groups_.message(own, *other, call.group, at)
                            : groups_.message(*other, own, call.group, at);
  message.bytes = *bytes;
  node.kind = is_send ? NodeKind::send : NodeKind::receive;
  node.work = assembly_.builder().message(message);
}

/// What all ranks of a group hold together is their number times a share. 0 ranks: not known.
void TorchCalls::check_shares(const TorchCall& call, TorchCallKind kind, std::int64_t ranks,
                              const NodeOfFile& at) {
  const bool gathers = kind == TorchCallKind::all_gather;
  if ((!gathers && kind != TorchCallKind::reduce_scatter) || !call.says_counts || !call.sent ||
      !call.received)
    return;
  const std::int64_t share = gathers ? *call.sent : *call.received;
  const std::int64_t whole = gathers ? *call.received : *call.sent;
  if (share <= 0 || whole <= 0 || ranks <= 0 || times_if_it_fits(share, ranks) == whole) return;
  at.fail(fmt::format(" {} {} elements and {} {}, in a group of {} ranks",
                      gathers ? "gathers" : "scatters", *call.sent, gathers ? "makes" : "keeps",
                      *call.received, ranks),
          gathers ? "all ranks together make as many times what one of them gives"
                  : "a rank keeps one share of as many");
}

void TorchCalls::set_collective(Node& node, const TorchCall& call, TorchCallKind kind,
                                const NodeOfFile& at) {
  if (kind == TorchCallKind::unknown)
    at.fail(fmt::format(" calls '{}', which is no communication that is known", call.name));
  const GroupOfRank group = groups_.group(call.group, at);
  const std::int64_t said = call.size > 0 ? call.size : groups_.said_size(call.group);
  check_shares(call, kind, groups_.replicated() ? said : group.size, at);
  CollectiveCall collective{.family = group.family};
  if (kind != TorchCallKind::barrier) {
    // One of several files: others may send to a rank that sends nothing.
    const bool is_idle = kind == TorchCallKind::all_to_all && !groups_.replicated() &&
                         call.says_counts && call.sent == 0;
    const std::optional<std::int64_t> bytes =
        is_idle ? 1 : size_of_call(node, call, kind, group.size, at);
    if (!bytes) return;
    collective.bytes = *bytes;
    collective.type = torch_type(call.type).value_or(DataType::bfloat16);
    if (kind == TorchCallKind::all_to_all) {
      if (is_idle) {
        collective.splits =
            assembly_.builder().splits(Splits(index(group.size) * index(group.size)));
      } else {
        set_splits(collective, call, group.size, at);
      }
      note_parts(call, group.size, at);
    }
  }
  set_kind(collective, kind, call.name, assembly_.lenient(), tally_, at);
  node.kind = NodeKind::collective;
  node.work = assembly_.builder().collective(collective);
}

/// Splits count rows of a tensor, and the size all of it. What this rank sends is known; of all
/// ranks the reader joins what their files say, and a single file stands for all: each sends as
/// much to the rank that is as far behind it.
void TorchCalls::set_splits(CollectiveCall& collective, const TorchCall& call, int ranks,
                            const NodeOfFile& at) {
  const std::vector<std::int64_t>& rows = call.sent_splits;
  const auto count = index(ranks);
  if (call.splits_are_cut)
    tally_.add(
        "as its receivers say, or else even: an all-to-all of which the trace cuts the list of "
        "split "
        "sizes",
        at.text());
  if (!rows.empty() && rows.size() != count)
    at.fail(fmt::format(" sends {} parts in a group of {} ranks", rows.size(), ranks));
  if (rows.empty() || std::ranges::adjacent_find(rows, std::not_equal_to<>()) == rows.end()) return;
  __int128 sum = 0;
  for (const std::int64_t row : rows) sum += row;
  if (sum > kMostMemory) at.fail(" sends parts of more rows than any GPU has");
  std::vector<std::int64_t> bytes;
  for (const std::int64_t row : rows)
    bytes.push_back(static_cast<std::int64_t>(static_cast<__int128>(row) * collective.bytes / sum));
  const std::size_t own = groups_.own_place(call.group, at);
  Splits splits(count * count);
  for (std::size_t from = 0; from < count; ++from)
    for (std::size_t distance = 0; distance < count; ++distance)
      splits[from * count + (from + distance) % count] = bytes[(own + distance) % count];
  collective.splits = assembly_.builder().splits(std::move(splits));
  if (groups_.replicated())
    tally_.add(
        "an uneven all-to-all: all ranks send as much as this one, each to the ranks that are as "
        "far "
        "from it",
        at.text());
}

/// For the reader, which joins what all ranks say, where each has a file.
void TorchCalls::note_parts(const TorchCall& call, int ranks, const NodeOfFile& at) {
  if (groups_.replicated()) return;
  AllToAllParts parts{.sends_are_cut = call.splits_are_cut};
  if (call.received_splits && call.received) {
    const std::vector<std::int64_t>& rows = *call.received_splits;
    if (!rows.empty() && rows.size() != index(ranks))
      at.fail(fmt::format(" receives {} parts in a group of {} ranks", rows.size(), ranks));
    const std::optional<DataType> type = torch_type(call.type);
    const std::int64_t bytes =
        type ? times_if_it_fits(*call.received, size_of(*type)).value_or(-1) : -1;
    __int128 sum = 0;
    for (const std::int64_t row : rows) sum += row;
    parts.says_received = bytes >= 0 && bytes <= kMostMemory && sum <= kMostMemory;
    for (std::size_t r = 0; parts.says_received && r < rows.size(); ++r)
      parts.received.push_back(
          sum == 0 ? 0 : static_cast<std::int64_t>(static_cast<__int128>(rows[r]) * bytes / sum));
    if (parts.says_received) parts.of_each = bytes / ranks;
  }
  assembly_.says(groups_.rank(), at.id, std::move(parts));
}

void TorchCalls::finish() const {
  if (without_size_ == 0 || assembly_.lenient()) return;
  throw Failure(
      fmt::format("{} call{} say{} no size: {}{}", without_size_, without_size_ == 1 ? "" : "s",
                  without_size_ == 1 ? "s" : "", without_size_ == 1 ? "" : "the first is ",
                  first_without_size_),
      {.file = file_},
      "--call-sizes names a file with the bytes of calls, by name or number; --lenient keeps "
      "the time that was recorded");
}

}  // namespace hemiola::workload
