// AICB's rows as what ranks do (aliyun/aicb: log_analyzer/log.py LogItem, utils/utils.py CommType
// and CommGroup; workload_applyer.py for what a row does and how ranks are numbered:
// 'tp-cp-ep-dp-pp').
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "core/checked.h"
#include "core/lists.h"
#include "core/units.h"
#include "workload/simai/call_trace.h"
#include "workload/simai/reader.h"
#include "workload/traces/assembly.h"

namespace hemiola::workload {
namespace {

using simai::read_number;

constexpr std::array<std::pair<std::string_view, Collective>, 9> kAicbCollectives{
    {{"all_reduce", Collective::all_reduce},
     {"all_gather", Collective::all_gather},
     {"all_gather_into_tensor", Collective::all_gather},
     {"reduce_scatter", Collective::reduce_scatter},
     {"reduce_scatter_tensor", Collective::reduce_scatter},
     {"all_to_all", Collective::all_to_all},
     {"broadcast", Collective::broadcast},
     {"reduce", Collective::reduce},
     {"barrier", Collective::all_reduce}}};
constexpr std::array<std::string_view, 9> kAicbGroups{
    "tp_group",    "dp_group",        "pp_group", "ep_group", "ep_dp_group",
    "ep_tp_group", "embedding_group", "all",      "all_nodes"};
enum Column { kType, kGroup, kGroupSize, kBytes, kStage, kAdditional, kElapsed, kCount, kColumns };
constexpr std::array<std::string_view, kColumns + 4> kColumnNames{
    "comm_type", "comm_group", "comm_group_size", "msg_size",
    "stage",     "additional", "_elapsed_time",   "count",
    "dst",       "src",        "algbw",           "busbw"};

struct AicbRow {
  int line = 0;
  std::string type, group, stage;
  std::optional<Collective> collective{};
  int group_size = 0;               ///< 0: the row does not say
  std::int64_t bytes = 0;           ///< what nccl-tests calls size
  bool is_next = false;             ///< of a message: to or from the next stage, not the one before
  std::optional<double> elapsed{};  ///< ms in a log; ns in a workload, of computations
  std::optional<machine::GemmShape> product{};

  bool is_message() const { return type == "isend" || type == "irecv"; }
};

/// Rows of some ranks; of all if it lists none.
struct AicbSection {
  std::vector<int> ranks{};
  std::vector<AicbRow> rows{};
};

/// "((2048 4096) (4096 11008))": two matrices. Nothing for any other text.
std::optional<machine::GemmShape> product_in(std::string_view text) {
  std::string words(text);
  std::replace_if(
      words.begin(), words.end(), [](char c) { return c == '(' || c == ')'; }, ' ');
  std::vector<std::int64_t> sides;
  for (const std::string_view word : words_of(words)) {
    constexpr std::int64_t kMostSide = 1 << 24;
    sides.push_back(parse_count(word).value_or(0));
    if (sides.back() < 1 || sides.back() > kMostSide) return std::nullopt;
  }
  if (sides.size() == 4) sides = {1, sides[0], sides[1], 1, sides[2], sides[3]};
  if (sides.size() != 6 || sides[0] != sides[3] || sides[2] != sides[4]) return std::nullopt;
  return machine::GemmShape{.m = sides[1], .n = sides[5], .k = sides[2], .batch = sides[0]};
}

class AicbParser {
 public:
  AicbParser(const std::string& file, std::string_view text) : at_{.file = file}, text_(text) {}

  std::vector<AicbSection> parse() {
    if (text_.starts_with("\xef\xbb\xbf")) text_.remove_prefix(3);
    while (!text_.empty()) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      std::string_view line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      ++at_.line;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!words_of(line).empty()) read_line(line);
    }
    for (const AicbSection& section : sections_)
      if (section.rows.empty()) fail("a table has no row", "the file is cut short");
    return std::move(sections_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem, const std::string& hint = {}) const {
    throw Failure(problem, at_, hint);
  }

  void read_line(std::string_view line) {
    if (line.starts_with('[')) {
      sections_.push_back({.ranks = ranks_in(line)});
      fields_ = 0;
    } else if (line.starts_with("comm_type,") && fields_ == 0) {
      if (sections_.empty()) sections_.emplace_back();
      read_head(split(line, ','));
    } else {
      if (fields_ == 0) fail("a row stands before the names of the columns", "'comm_type,...'");
      sections_.back().rows.push_back(read_row(split(line, ',')));
    }
  }

  /// "[rank0 ~ rank127]", "[ pp_stage0: [rank0, rank1] ]".
  std::vector<int> ranks_in(std::string_view line) const {
    std::vector<int> ranks;
    for (std::size_t at = line.find("rank"); at != std::string_view::npos;
         at = line.find("rank", at)) {
      at += 4;
      const std::size_t end = std::min(line.find_first_not_of("0123456789", at), line.size());
      ranks.push_back(
          static_cast<int>(read_number(line.substr(at, end - at), 0, simai::kMostRanks - 1, at_)));
    }
    const bool is_range = line.find('~') != std::string_view::npos;
    if (ranks.empty() || !line.ends_with(']') ||
        (is_range && (ranks.size() != 2 || ranks[0] > ranks[1])))
      fail("is no list of ranks", "'[rank0 ~ rank7]' or '[ pp_stage0: [rank0, rank1] ]'");
    if (is_range) return ranks_from(ranks[0], ranks[1] - ranks[0] + 1);
    return ranks;
  }

  void read_head(const std::vector<std::string>& names) {
    fields_ = names.size();
    columns_.fill(-1);
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto known = std::ranges::find(kColumnNames, names[i]);
      if (known == kColumnNames.end()) fail(fmt::format("'{}' is no column of AICB", names[i]));
      columns_[index(known - kColumnNames.begin())] = static_cast<int>(i);
    }
    for (const Column needed : {kGroup, kBytes})
      if (columns_[needed] < 0) fail(fmt::format("there is no column '{}'", kColumnNames[needed]));
  }

  AicbRow read_row(const std::vector<std::string>& fields) const {
    if (fields.size() != fields_)
      fail(fmt::format("a row has {} fields, and here are {}", fields_, fields.size()));
    /// Empty for a column that the table does not have, and for Python's None.
    const auto field = [&](Column column, std::string_view prefix = {}) {
      if (columns_[column] < 0) return std::string_view();
      std::string_view text = fields[index(columns_[column])];
      if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
      return text == "None" ? std::string_view() : text;
    };
    AicbRow row{.line = at_.line,
                .type = std::string(field(kType, "CommType.")),
                .group = std::string(field(kGroup, "CommGroup.")),
                .stage = std::string(field(kStage))};
    if (!field(kCount).empty()) read_number(field(kCount), 1, 1, at_);
    if (row.type == "epoch_end") return row;
    if (!field(kElapsed).empty()) row.elapsed = time_in(field(kElapsed));
    if (row.type == "computation") {
      row.product = product_in(field(kBytes));
      if (!row.product && !row.elapsed) fail("a computation has neither two matrices nor a time");
      return row;
    }
    for (const auto& [name, kind] : kAicbCollectives)
      if (name == row.type) row.collective = kind;
    if (!row.collective && !row.is_message())
      fail(fmt::format("'{}' is no kind of call", row.type));
    if (std::ranges::find(kAicbGroups, row.group) == kAicbGroups.end())
      fail(fmt::format("'{}' is no group of AICB", row.group));
    if (!field(kGroupSize).empty())
      row.group_size = static_cast<int>(read_number(field(kGroupSize), 1, simai::kMostRanks, at_));
    row.bytes = read_number(field(kBytes), 0, kMostMemory, at_);
    if (row.is_message()) row.is_next = is_next(row.type, field(kAdditional));
    return row;
  }

  /// "send_next", "recv_prev", ...
  bool is_next(std::string_view type, std::string_view text) const {
    const std::string verb = type == "isend" ? "send_" : "recv_";
    if (text != verb + "next" && text != verb + "prev")
      fail(fmt::format("'{}' does not say which stage the message is of", text),
           fmt::format("'{0}next' or '{0}prev'", verb));
    return text == verb + "next";
  }

  double time_in(std::string_view text) const {
    const std::optional<double> value = finite_number(text);
    if (!value || *value < 0 || *value > simai::kMostNs) fail(fmt::format("'{}' is no time", text));
    return *value;
  }

  SourceLocation at_;
  std::string_view text_;
  std::size_t fields_ = 0;  ///< of a row; 0: the columns have no names yet
  std::array<int, kColumnNames.size()> columns_{};
  std::vector<AicbSection> sections_;
};

/// Who calls with whom, by the sizes of groups.
class AicbGroups {
 public:
  AicbGroups(const std::string& file, const std::vector<AicbSection>& sections,
             const TraceRequest& request, std::vector<Diagnostic>& notices)
      : file_(file) {
    for (const AicbSection& section : sections)
      for (const AicbRow& row : section.rows) see(row);
    stages = sections.size() > 1 ? static_cast<int>(sections.size()) : size_of("pp_group");
    count_ranks(sections, request, notices);
    if (ranks % stages != 0)
      fail(1, fmt::format("{} ranks are no multiple of {} stages", ranks, stages));
    per_stage = ranks / stages;
    if (sections.size() > 1)
      for (const AicbSection& section : sections)
        if (static_cast<int>(section.ranks.size()) != per_stage)
          fail(1, fmt::format("{} lists of ranks are not of as many ranks each", stages));
    if (first_message_ > 0 && stages == 1)
      fail(first_message_, "a message between stages of a pipeline, and there is only one",
           "a group pp_group, or a list of ranks for each stage, says how many there are");
  }

  int ranks = 0, stages = 1, per_stage = 0;

  int size_of(const std::string& group) const {
    const auto known = sizes_.find(group);
    return known == sizes_.end() ? 1 : known->second.first;
  }
  /// Of the row's group.
  int size(const AicbRow& row) const {
    const bool is_all = row.group_size == 0 || row.group.starts_with("all");
    return is_all ? ranks : size_of(row.group);
  }

  std::vector<std::vector<int>> members(const AicbRow& row) const {
    const int size = this->size(row);
    if (row.group == "embedding_group") {
      if (size != 2 || stages < 2)
        fail(row.line, "an embedding group is the first and the last of the stages, two ranks");
      return pairs_of_blocks(per_stage, 0, stages - 1);
    }
    const int stride = stride_of(row.group, size);
    if (ranks % (std::int64_t{size} * stride) != 0)
      fail(row.line, fmt::format("{} ranks cannot be divided into groups '{}' of {}", ranks,
                                 row.group, size));
    return strided_groups(ranks, size, stride);
  }

 private:
  [[noreturn]] void fail(int line, const std::string& problem, const std::string& hint = {}) const {
    throw Failure(problem, {.file = file_, .line = line}, hint);
  }

  void see(const AicbRow& row) {
    if (row.is_message() && first_message_ == 0) first_message_ = row.line;
    if (!row.collective || row.group.starts_with("all")) return;
    if (row.group_size == 0) {  // tables of before AICB had the column
      if (row.group == "dp_group") return;
      fail(row.line, fmt::format("nothing says how large the groups '{}' are", row.group),
           "a column 'comm_group_size'");
    }
    const auto& [size, line] =
        sizes_.emplace(row.group, std::pair(row.group_size, row.line)).first->second;
    if (size != row.group_size)
      fail(row.line, fmt::format("the groups '{}' have {} ranks, and {} in line {}", row.group,
                                 row.group_size, size, line));
  }

  void count_ranks(const std::vector<AicbSection>& sections, const TraceRequest& request,
                   std::vector<Diagnostic>& notices) {
    for (const AicbSection& section : sections)
      for (const int rank : section.ranks)
        if (rank != ranks++)
          fail(1, fmt::format("rank {} is listed where rank {} follows", rank, ranks - 1));
    if (ranks > 0) {
      if (request.replicate && *request.replicate != ranks)
        throw Failure(fmt::format("the table is of {} ranks", ranks), {.file = "--replicate"},
                      "leave it out: its groups have sizes of their own");
      return;
    }
    const std::int64_t product = std::int64_t{size_of("tp_group")} * size_of("dp_group") * stages;
    if (!request.replicate && (sizes_.empty() || product > simai::kMostRanks))
      fail(1, "nothing says how many ranks there are", "--replicate N runs it on N ranks");
    ranks = request.replicate.value_or(static_cast<int>(product));
    if (!request.replicate)
      notices.push_back({Severity::note,
                         fmt::format("{} ranks: groups of {} tp x {} dp x {} pp", ranks,
                                     size_of("tp_group"), size_of("dp_group"), stages),
                         {.file = file_},
                         "--replicate N takes another number"});
  }

  /// How far apart the ranks of a group are.
  int stride_of(const std::string& group, int size) const {
    if (group == "dp_group") return std::max(per_stage / size, 1);
    if (group == "pp_group") return per_stage;
    if (group == "ep_group") return size_of("tp_group");
    if (group == "ep_dp_group") return size_of("tp_group") * size_of("ep_group");
    return 1;
  }

  const std::string& file_;
  std::map<std::string, std::pair<int, int>> sizes_;  ///< and the first line that says it
  int first_message_ = 0;                             ///< line; 0: there is none
};

class AicbWriter {
 public:
  AicbWriter(const std::string& file, const AicbGroups& groups, bool is_log, bool lenient,
             WorkloadBuilder& builder, Tally& tally)
      : file_(file),
        groups_(groups),
        is_log_(is_log),
        lenient_(lenient),
        builder_(builder),
        tally_(tally) {}

  /// What a rank of this stage does. Messages beyond the ends of the pipeline are none.
  std::shared_ptr<const Trace> write(const AicbSection& section, int stage) {
    simai::CallTrace trace(builder_, file_);
    receives_.clear();
    for (const AicbRow& row : section.rows) {
      if (row.type == "epoch_end") continue;
      if (!row.is_message()) {
        for (const std::uint32_t receive : receives_) trace.wait(receive);
        receives_.clear();
      }
      if (row.type == "computation")
        compute(row, trace);
      else if (row.bytes == 0 && row.type != "barrier")
        leave_out("of 0 bytes", row);
      else if (row.is_message())
        message(row, stage, trace);
      else
        call(row, trace);
    }
    return trace.take();
  }

 private:
  void leave_out(std::string_view what, const AicbRow& row) {
    tally_.add(fmt::format("ignored: calls {}", what), fmt::format("in line {}", row.line));
  }

  void compute(const AicbRow& row, simai::CallTrace& trace) {
    constexpr double kMostFs = 1e18;
    const double fs = std::min(row.elapsed.value_or(0) * (is_log_ ? 1e12 : 1e6), kMostFs);
    std::int32_t work = -1;
    if (row.product) {
      Compute compute;
      compute.kind = Compute::Kind::product;
      compute.product = *row.product;
      work = builder_.compute(compute);
    }
    trace.compute(row.stage, Time{static_cast<std::int64_t>(fs)}, work);
  }

  template <typename Members>
  std::int32_t family_of(const std::string& name, const Members& members) {
    const auto [at, is_new] = families_.try_emplace(name, 0);
    if (is_new) at->second = builder_.family(name, members());
    return at->second;
  }

  void call(const AicbRow& row, simai::CallTrace& trace) {
    if (groups_.size(row) == 1) return leave_out("in groups of one rank", row);
    if (lenient_ && row.group == "embedding_group") return leave_out("in the embedding group", row);
    const std::int32_t family = family_of(row.group.substr(0, row.group.rfind("_group")),
                                          [&] { return groups_.members(row); });
    constexpr std::int64_t kBarrierBytes = 4;
    trace.wait(trace.call(row.stage, {.kind = *row.collective,
                                      .family = family,
                                      .bytes = row.type == "barrier" ? kBarrierBytes : row.bytes}));
  }

  /// Sends go on beside what follows. Messages next to each other are one batch, as Megatron-LM has
  /// them: what follows it waits for its receives, and its sends do not.
  void message(const AicbRow& row, int stage, simai::CallTrace& trace) {
    if (row.is_next ? stage + 1 == groups_.stages : stage == 0)
      return leave_out("of stages that are not there, at the ends of the pipeline", row);
    const bool is_send = row.type == "isend";
    const int first = row.is_next ? stage : stage - 1;
    const std::int32_t family = family_of(fmt::format("stages {}-{}", first, first + 1), [&] {
      return pairs_of_blocks(groups_.per_stage, first, first + 1);
    });
    const std::uint32_t node =
        trace.message(row.stage, is_send ? NodeKind::send : NodeKind::receive,
                      {.family = family, .from_first = is_send == row.is_next, .bytes = row.bytes});
    if (!is_send) receives_.push_back(node);
  }

  const std::string& file_;
  const AicbGroups& groups_;
  bool is_log_, lenient_;
  WorkloadBuilder& builder_;
  Tally& tally_;
  std::map<std::string, std::int32_t> families_;
  std::vector<std::uint32_t> receives_;  ///< of the batch
};

/// AICB's own tables have calls of the last stage in the embedding group that the first does not
/// make, and its workload_applyer.py has no such group.
void check_embedding(const std::string& file, const std::vector<AicbSection>& sections) {
  const auto is_embedding = [](const AicbRow& row) { return row.group == "embedding_group"; };
  const auto& last = sections.back().rows;
  const auto& first = sections.front().rows;
  const auto calls = std::ranges::count_if(last, is_embedding);
  if (calls == std::ranges::count_if(first, is_embedding)) return;
  const auto at = std::ranges::find_if(last, is_embedding);
  throw Failure(fmt::format("the last stage makes {} calls in the embedding group, and the first "
                            "does not make as many",
                            calls),
                {.file = file, .line = at == last.end() ? 1 : at->line},
                "--lenient leaves calls in this group out");
}

/// Whether the calls have times of their own.
bool is_log(const std::vector<AicbSection>& sections) {
  return std::ranges::any_of(sections, [](const AicbSection& section) {
    return std::ranges::any_of(
        section.rows, [](const AicbRow& row) { return row.elapsed && row.type != "computation"; });
  });
}

}  // namespace

Workload read_aicb(const TraceRequest& request, const std::string& file, std::string_view text) {
  simai::refuse_trace_options(request);
  const std::vector<AicbSection> sections = AicbParser(file, text).parse();
  if (!request.lenient) check_embedding(file, sections);
  std::vector<Diagnostic> notices;
  const AicbGroups groups(file, sections, request, notices);
  if (is_log(sections))
    notices.push_back({Severity::note,
                       "the times that the log has of its calls are not used",
                       {.file = file},
                       {}});
  WorkloadBuilder builder(request.name, groups.ranks);
  Workload& workload = builder.workload();
  workload.source = file;
  Tally tally;
  tally.begin_file(file);
  AicbWriter writer(file, groups, is_log(sections), request.lenient, builder, tally);
  for (int stage = 0; stage < groups.stages; ++stage) {
    const AicbSection& section = sections[sections.size() > 1 ? index(stage) : 0];
    workload.classes.push_back(
        simai::class_of(groups.stages > 1 ? fmt::format("stage {}", stage) : "all",
                        writer.write(section, stage), stage * groups.per_stage, groups.per_stage));
  }
  simai::refuse_nothing(workload);
  workload.notices = std::move(notices);
  tally.report(workload.notices);
  return builder.take();
}

}  // namespace hemiola::workload
