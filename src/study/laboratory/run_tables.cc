#include "study/laboratory/run_tables.h"

#include <algorithm>
#include <set>
#include <utility>

#include "study/laboratory/preparation.h"
#include "study/laboratory/progress_weight.h"

namespace hemiola::study {
namespace {

class TableRunner {
 public:
  TableRunner(Laboratory& laboratory, const RunRequest& request, const RunWatch& watch)
      : laboratory_(laboratory), request_(request), watch_(watch) {}

  void run(const Settings& settings, RunTable& table) {
    choice_ = request_.machine;
    choice_.settings = settings;
    const machine::SharedMachine machine = machine_ = laboratory_.machine(choice_);
    tell(notices_of(machine->warnings));
    table.machine = machine->name + (settings.empty() ? "" : " " + to_text(settings));
    const std::vector<Bytes> sizes = sizes_on(machine);
    std::set<Bytes> done;
    for (const Bytes asked : sizes) {
      begin_part(sizes, asked);
      const Bytes size = rounded(machine, asked, table);
      if (!done.insert(size).second) continue;
      run_size(machine, size, false, table);
      if (request_.in_place_too) run_size(machine, size, true, table);
    }
  }

 private:
  Experiment experiment_of(const std::string& name, Bytes size) const {
    return {.machine = choice_,
            .subject = request_.subject ? request_.subject(name, machine_) : name,
            .parameters = request_.parameters,
            .size = size,
            .type = request_.type,
            .op = request_.op,
            .promise = request_.promise,
            .check = request_.check,
            .options = request_.options};
  }

  /// For a look at it: the size is not the last word.
  SharedProgram load(const std::string& name, const machine::SharedMachine& machine, Bytes size) {
    Experiment experiment = experiment_of(name, size);
    experiment.round_size = true;
    SharedProgram program = laboratory_.program(experiment, machine, watch_.experiments);
    tell(notices_of(program->warnings));
    check_skew(request_.options.skew, program->ranks, {.file = "--skew"});
    check_recorded(program->ranks);
    return program;
  }
  void check_recorded(int ranks) const {
    for (const int rank : request_.recorded) {
      if (rank >= ranks)
        throw Failure("there is no rank " + std::to_string(rank) + " of " + std::to_string(ranks),
                      SourceLocation{.file = "--record-rank"});
    }
  }

  Bytes rounded(const machine::SharedMachine& machine, Bytes asked, RunTable& table) {
    const CommonSize found = rounded_for_all(
        request_.programs, request_.rounding, {asked, request_.type, request_.op},
        [&](const std::string& name, Bytes size) { return load(name, machine, size); });
    if (found.size != asked)
      table.remarks.push_back(found.size > asked
                                  ? rounding_note(asked, found.size, found.by)
                                  : to_string(asked) + " is run as " + to_string(found.size));
    return found.size;
  }

  std::vector<Bytes> sizes_on(const machine::SharedMachine& machine) {
    if (!request_.sizes.empty()) return request_.sizes;
    const Bytes size = default_size_of_all(
        request_.programs, request_.type,
        [&](const std::string& name, Bytes guess) { return load(name, machine, guess); });
    tell({{Severity::note, "no --size is given: " + to_string(size), {}, {}}});
    return {size};
  }

  /// A size takes time in proportion to its weight, and each of several programs as long as
  /// another.
  void begin_part(const std::vector<Bytes>& sizes, Bytes size) {
    double all = 0;
    for (const Bytes other : sizes) all += progress_weight(other);
    share_begin_ = share_end_;
    share_end_ += progress_weight(size) / all / static_cast<double>(request_.combinations.size());
    if (watch_.on_runs)
      watch_.on_runs(runs_done_, std::ssize(sizes) * std::ssize(request_.combinations));
    ++runs_done_;
  }
  void begin_turn(std::size_t turn) const {
    const double each = (share_end_ - share_begin_) / static_cast<double>(request_.programs.size());
    const double begin = share_begin_ + each * static_cast<double>(turn);
    if (watch_.on_part) watch_.on_part(begin, begin + each);
  }

  void run_size(const machine::SharedMachine& machine, Bytes size, bool in_place, RunTable& table) {
    std::vector<Experiment> candidates;
    for (const std::string& name : request_.programs) {
      candidates.push_back(experiment_of(name, size));
      if (in_place) candidates.back().parameters.emplace_back("in_place", "1");
    }
    begin_turn(0);
    if (!request_.recorded.empty())  // built-ins have as many ranks as the machine
      check_recorded(candidates.size() > 1 ? machine->ranks()
                                           : load(request_.programs.front(), machine, size)->ranks);
    Fastest found = find_fastest(laboratory_, candidates, watch_.experiments,
                                 [this](std::size_t turn) { begin_turn(turn); });
    sim::Result& result = found.fastest.result;
    const std::string& name = found.fastest.bound.name();
    result.settings = {choice_.settings.begin(), choice_.settings.end()};
    if (in_place) result.settings["in_place"] = "1";
    if (request_.programs.size() > 1) {
      result.settings["program"] = name;
      table.remarks.push_back(found.remark(request_.programs.size()));
    }
    table.winners.push_back(name);
    table.results.push_back(std::move(result));
    table.last = std::move(found.fastest.bound);
    if (watch_.on_result) watch_.on_result(table);
  }

  void tell(const Notices& notices) const {
    if (watch_.experiments.on_notices && !notices.empty()) watch_.experiments.on_notices(notices);
  }

  Laboratory& laboratory_;
  const RunRequest& request_;
  const RunWatch& watch_;
  MachineChoice choice_;
  machine::SharedMachine machine_;          ///< of this table
  double share_begin_ = 0, share_end_ = 0;  ///< of all runs: the present size
  std::int64_t runs_done_ = 0;
};

}  // namespace

void run_tables(Laboratory& laboratory, const RunRequest& request, const RunWatch& watch,
                std::vector<RunTable>& tables) {
  TableRunner runner(laboratory, request, watch);
  for (const Settings& settings : request.combinations) runner.run(settings, tables.emplace_back());
}

RunTable joined_tables(const RunRequest& request, const std::vector<RunTable>& tables) {
  RunTable all = tables.front();
  if (tables.size() == 1) return all;
  all.machine = request.machine.name;
  for (std::size_t i = 1; i < tables.size(); ++i) {
    const RunTable& table = tables[i];
    all.results.insert(all.results.end(), table.results.begin(), table.results.end());
    all.winners.insert(all.winners.end(), table.winners.begin(), table.winners.end());
  }
  all.last = tables.back().last;
  return all;
}

std::string program_name(const RunRequest& request, const RunTable& table) {
  const std::vector<std::string>& winners = table.winners;
  const bool same = std::ranges::all_of(
      winners, [&](const std::string& name) { return name == winners.front(); });
  return same ? winners.front() : request.asked_for + " (the fastest built-in of each size)";
}

}  // namespace hemiola::study
