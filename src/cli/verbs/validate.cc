// hemiola validate: measured against simulated times.
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/notices.h"
#include "cli/options/inputs.h"
#include "cli/verbs/judge_rows.h"
#include "core/lists.h"
#include "core/text.h"
#include "report/iteration_validation.h"
#include "report/judged_rows.h"
#include "report/page.h"
#include "report/validation.h"
#include "study/tables/micro.h"
#include "study/tables/suite_runner.h"
#include "workload/iteration/iteration_table.h"

namespace hemiola::cli {
namespace {

constexpr const char* kValidateExamples =
    "  hemiola validate times.csv --machine dgx-h100 --program all-reduce/two-shot --launch graph "
    "\\\n"
    "      --where num_gpus=4 --calibrate two_gpus.csv --json errors.json\n"
    "  hemiola validate --only h100-vllm      # the suite that is shipped, or a part of it";

/// The options as they were typed.
struct ValidateOptions {
  std::string table;
  MachineOptions machine;
  std::string program;
  std::vector<std::string> parameters, where, calibrate_where, columns, only;
  DataType dtype = DataType::float32;
  EngineOptions engine{.how = {.warmup = study::kWarmup, .iterations = study::kIterations}};
  std::string size;
  std::string max_size;
  std::string calibrate, json, csv, report;
  bool all = false;
  bool no_check = false;
};

void add_options(CLI::App& verb, ValidateOptions& options, Session& /*session*/) {
  const AddOptions add(verb);
  add("TABLE", options.table,
      "CSV with the columns size_bytes and time_us, or the output of nccl-tests or\n"
      "rccl-tests; none: the shipped suite",
      "");
  add_machine_options(verb, options.machine);
  add("--program", options.program, "a program file or a built-in", "PROGRAM");
  add("--param", options.parameters, "parameter of a built-in: channels=8", "NAME=VALUE");
  add("--where", options.where, "rows whose column has one of the values; repeatable",
      "COLUMN=VALUE[,VALUE]");
  add("--size", options.size, "rows of this size, of a list 64KiB,1MiB or a range 1KiB:1GiB:x2",
      "SIZE,...");
  add("--column", options.columns, "which column is time_us, num_gpus, ...: repeatable",
      "ROLE=COLUMN");
  add("--calibrate", options.calibrate,
      "table that the trivial model is fitted to, with the same --where but for the number of GPUs",
      "FILE");
  add("--calibrate-where", options.calibrate_where,
      "rows of --calibrate, chosen by these in place of --where; repeatable",
      "COLUMN=VALUE[,VALUE]");
  add.data_type(options.dtype, "float", "data type of rows that name none");
  add_engine_options(verb, options.engine, 1, "measured repetitions");
  add("--max-size", options.max_size,
      "rows of larger sizes are listed, not simulated (16MiB; none with --size)", "SIZE");
  add("--only", options.only,
      "entries of the suite whose names begin so (micro-: microbenchmarks); repeatable", "NAME");
  verb.add_flag("--all", options.all,
                "the suite: all sizes up to --max-size, not powers of 4 up to 4 MiB");
  verb.add_flag("--no-check", options.no_check, "do not check the programs first");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--csv", options.csv, "write one line per row", "FILE");
  add("--report", options.report, "write a page with tables and charts, for a browser", "FILE");
}

/// "a=b,c"; `option` is for the message.
study::Filter filter_value(const std::string& option, const std::string& text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0)
    throw Failure("'" + text + "' is not COLUMN=VALUE", SourceLocation{.file = option},
                  "for example " + option + " num_gpus=4,8");
  return {text.substr(0, sign), split(text.substr(sign + 1), ',')};
}

std::vector<study::Filter> filter_values(const std::string& option,
                                         const std::vector<std::string>& texts) {
  std::vector<study::Filter> filters;
  for (const std::string& text : texts) filters.push_back(filter_value(option, text));
  return filters;
}

/// What was compared. `interrupted`: not all of what was asked for.
struct Judged {
  std::vector<study::Judgement> judgements;
  std::vector<study::OrderResult> orders;
  std::vector<study::MicroResult> micro;
  bool interrupted = false;

  bool any() const {
    return !micro.empty() || std::ranges::any_of(judgements, [](const study::Judgement& one) {
      return study::any_simulated(one.validation.rows);
    });
  }
};

/// A table of iterations of training has rows that say their model and parallelism.
ExitCode validate_iterations(const ValidateOptions& options, const std::string& text,
                             Session& session) {
  refuse_typed(session, {"--program", "--param", "--ranks", "--size"}, "does not fit here",
               "the rows of a table of iterations say what they ran");
  Notices notices(session);
  workload::IterationValidationRequest request{.table =
                                                   workload::read_iterations(text, options.table)};
  if (options.calibrate.empty()) {
    notices.note("no --calibrate is given: the regression is fitted to the table itself");
    request.calibrate = request.table;
  } else {
    request.calibrate = workload::read_iterations(read_file(options.calibrate), options.calibrate);
  }
  request.machine = machine_choice(options.machine, one_setting(options.machine.set));
  request.costs.monitor = &session.monitor;
  workload::IterationValidation found;
  {
    Progress progress(session);
    progress.doing("simulating iterations");
    found = workload::validate_iterations(
        session.laboratory, request, [&](std::size_t done, std::size_t all) {
          progress.show("simulating iterations",
                        static_cast<double>(done) / static_cast<double>(all));
        });
  }
  report::print_iteration_validation(std::cout, found);
  if (!options.json.empty())
    write_file(options.json, report::iteration_validation_json(session.command, found));
  if (!options.csv.empty()) write_file(options.csv, report::iteration_validation_csv(found));
  if (!options.report.empty())
    write_file(options.report,
               report::page::render(report::iteration_validation_page(session.command, found)));
  return ExitCode::done;
}

class ValidateRunner {
 public:
  ValidateRunner(const ValidateOptions& options, Session& session)
      : options_(options), session_(session), notices_(session) {}

  ExitCode run() {
    understand();
    catch_termination();
    const Judged judged = judge();
    for (const study::Judgement& judgement : judged.judgements)
      notices_.show(judgement.validation.warnings);
    if (judged.interrupted && !judged.any()) throw Interrupted();
    print(judged);
    write_files(judged);
    if (judged.interrupted) throw Interrupted();
    return ExitCode::done;
  }

 private:
  void understand();
  Judged judge();
  Judged judge_suite(Progress& progress, const std::function<void(const std::string&)>& doing);
  study::Judgement judge_table(const std::function<void(const std::string&)>& doing);
  study::MeasuredTable chosen_rows(const study::MeasuredTable& table);
  void print(const Judged& judged) const;
  void write_files(const Judged& judged);
  struct Chosen {
    std::vector<std::string> entries, micro;
  };
  Chosen chosen_entries(const study::Suite& suite) const;
  /// For the progress line: parts of one kind that take about as long as each other.
  static std::function<void(std::size_t, std::size_t)> parts(Progress& progress, const char* kind) {
    return [&progress, kind](std::size_t done, std::size_t all) {
      const double share = static_cast<double>(done) / static_cast<double>(all);
      progress.part(share, share);
      progress.parts(static_cast<std::int64_t>(done), static_cast<std::int64_t>(all), kind);
    };
  }

  const ValidateOptions& options_;
  Session& session_;
  Notices notices_;
  study::Configuration configuration_;
  std::vector<Bytes> sizes_;  ///< that were asked for; empty: all
};

Judged ValidateRunner::judge() {
  Progress progress(session_);
  const auto doing = [&](const std::string& what) { progress.doing(what); };
  if (options_.table.empty()) return judge_suite(progress, doing);
  configuration_.on_row = parts(progress, "rows");
  Judged judged;
  judged.judgements.push_back(judge_table(doing));
  judged.interrupted = judged.judgements.front().validation.interrupted;
  return judged;
}

Judged ValidateRunner::judge_suite(Progress& progress,
                                   const std::function<void(const std::string&)>& doing) {
  const study::Suite suite = study::shipped_suite();
  if (!options_.all) configuration_.in_sample = study::in_default_sample;
  const Settings settings = one_setting(options_.machine.set);
  const Chosen chosen = chosen_entries(suite);
  Judged judged;
  judged.judgements =
      study::SuiteRunner(session_.laboratory, suite, configuration_, settings, doing)
          .judge(chosen.entries, parts(progress, "entries"));
  judged.interrupted =
      judged.judgements.size() < chosen.entries.size() ||
      (!judged.judgements.empty() && judged.judgements.back().validation.interrupted);
  judged.orders = study::compare_orders(suite, judged.judgements);
  if (judged.interrupted) return judged;
  judged.micro = study::MicroRunner(session_.laboratory, configuration_.check, settings, doing)
                     .run(suite, chosen.micro);
  judged.interrupted = judged.micro.size() < chosen.micro.size();
  return judged;
}

void ValidateRunner::print(const Judged& judged) const {
  if (options_.table.empty())
    report::print_suite(std::cout, judged.judgements, judged.orders, judged.micro);
  else
    report::print_validation(std::cout, judged.judgements.front());
  if (judged.interrupted) std::cout << "# interrupted: this is not all that was asked for\n";
}

void ValidateRunner::write_files(const Judged& judged) {
  std::vector<std::string> files;
  const auto write = [&](const std::string& file, const auto& text) {
    if (file.empty()) return;
    write_file(file, text());
    files.push_back(file);
  };
  session_.kept_safe = "what was done is printed";
  write(options_.json, [&] {
    return report::validation_json(session_.command, judged.judgements, judged.orders, judged.micro,
                                   judged.interrupted);
  });
  write(options_.csv, [&] { return report::validation_csv(judged.judgements); });
  write(options_.report, [&] {
    return report::page::render(
        report::validation_page(session_.command, judged.judgements, judged.orders, judged.micro));
  });
  if (!files.empty()) session_.kept_safe += " and written to " + joined(files, " and ");
}

void ValidateRunner::understand() {
  configuration_.type = options_.dtype;
  configuration_.parameters = parameter_values(options_.parameters);
  configuration_.check = !options_.no_check;
  configuration_.options = engine_options(options_.engine);
  configuration_.options.monitor = &session_.monitor;
  if (!options_.size.empty()) sizes_ = size_values(options_.size);
  if (!options_.max_size.empty())
    configuration_.max_size = read_size(options_.max_size, {.file = "--max-size"});
  else if (!sizes_.empty())
    configuration_.max_size = *std::ranges::max_element(sizes_);
  if (!options_.calibrate_where.empty() && options_.calibrate.empty())
    throw Failure("there is no table to choose rows of",
                  SourceLocation{.file = "--calibrate-where"}, "add --calibrate FILE");
  if (options_.table.empty()) {
    const char* hint = "it goes with a table: the suite says it for each of its entries";
    refuse_typed(session_,
                 {"--machine", "--gpu", "--ranks", "--program", "--param", "--where", "--column",
                  "--calibrate"},
                 "does not fit here", hint);
    refuse_typed(session_, {"--size"}, "does not fit here",
                 "it chooses rows of a table; those of the suite: --only, --all, --max-size");
  } else {
    refuse_typed(session_, {"--all", "--only"}, "does not fit here",
                 "it goes with the suite: a table's rows are chosen by --where and --size");
  }
}

study::Judgement ValidateRunner::judge_table(const std::function<void(const std::string&)>& doing) {
  if (options_.program.empty())
    throw Failure("no program is given", SourceLocation{.file = "--program"},
                  "for example --program all-reduce/ring; docs/plans.md lists the built-ins");
  const Settings settings = one_setting(options_.machine.set);
  const machine::SharedMachine machine =
      session_.laboratory.machine(machine_choice(options_.machine, settings));
  notices_.show(machine->warnings);
  const std::vector<study::Filter> filters = filter_values("--where", options_.where);
  study::ColumnNames columns;
  for (const auto& [role, column] : parameter_values(options_.columns))
    columns.emplace_back(role, column);
  const auto read = [&](const std::string& file, const std::vector<study::Filter>& where) {
    return study::select(study::read_measured(read_file(file), file, columns), where);
  };
  const study::MeasuredTable table = read(options_.table, filters);
  configuration_.machine = machine;
  configuration_.program = options_.program;
  study::Validator validator(session_.laboratory, doing);
  study::TrivialModel trivial;
  if (options_.calibrate.empty()) {
    trivial = validator.fit_trivial(table, configuration_, "the same table");
    notices_.note("no --calibrate is given: the trivial model is fitted to the table itself");
  } else {
    std::vector<study::Filter> where = filters;
    std::erase_if(where, [&](const study::Filter& filter) {
      return table.same_column(filter.column, "num_gpus");
    });
    if (!options_.calibrate_where.empty())
      where = filter_values("--calibrate-where", options_.calibrate_where);
    trivial =
        validator.fit_trivial(read(options_.calibrate, where), configuration_, options_.calibrate);
  }
  study::Judgement judgement{
      .name = options_.table,
      .table = options_.table,
      .where = study::to_text(filters),
      .machine = machine->name + (settings.empty() ? "" : " " + to_text(settings)),
      .program = options_.program,
      .options = configuration_.options};
  judgement.validation = validator.validate(chosen_rows(table), configuration_, std::move(trivial));
  judgement.summaries = study::summarise_regimes(judgement.validation.rows);
  return judgement;
}

/// Those of --size; of a range some sizes may have no row.
study::MeasuredTable ValidateRunner::chosen_rows(const study::MeasuredTable& table) {
  if (sizes_.empty()) return table;
  std::vector<Bytes> absent;
  study::MeasuredTable chosen = study::select_sizes(table, sizes_, absent);
  if (!absent.empty())
    notices_.note("no row has the size " +
                  joined(absent, [](Bytes size) { return to_string(size); }));
  return chosen;
}

/// The names of entries that begin with one of --only; all of them without it.
ValidateRunner::Chosen ValidateRunner::chosen_entries(const study::Suite& suite) const {
  Chosen all;
  for (const study::SuiteEntry& entry : suite.entries) all.entries.push_back(entry.name);
  for (const study::MicroEntry& entry : suite.micro) all.micro.push_back(entry.name);
  if (options_.only.empty()) return all;
  std::vector<std::string> names = all.entries;
  names.insert(names.end(), all.micro.begin(), all.micro.end());
  for (const std::string& beginning : options_.only) {
    const auto begins = [&](const std::string& name) { return name.starts_with(beginning); };
    if (std::ranges::none_of(names, begins))
      throw Failure("no entry of the suite begins with '" + beginning + "'",
                    SourceLocation{.file = "--only"}, suggest(beginning, names));
  }
  const auto unwanted = [&](const std::string& name) {
    return std::ranges::none_of(
        options_.only, [&](const std::string& beginning) { return name.starts_with(beginning); });
  };
  std::erase_if(all.entries, unwanted);
  std::erase_if(all.micro, unwanted);
  return all;
}

/// A table without --program or --machine: its columns and words say what its rows are of.
ExitCode validate_rows(const ValidateOptions& options, const std::string& text, Session& session) {
  refuse_typed(session,
               {"--gpu", "--ranks", "--set", "--param", "--size", "--column", "--calibrate",
                "--calibrate-where", "--dtype", "--launch", "--one-host"},
               "does not fit here",
               "without --machine and --program the table's own columns and words say it "
               "(docs/fidelity.md)");
  Progress progress(session);
  study::JudgeOptions how{.options = engine_options(options.engine), .check = !options.no_check};
  how.options.monitor = &session.monitor;
  how.where = filter_values("--where", options.where);
  if (!options.max_size.empty()) how.max_size = read_size(options.max_size, {.file = "--max-size"});
  how.on_row = [&](std::size_t done, std::size_t all) {
    session.monitor.leave_if_stopping();
    const double share = static_cast<double>(done) / static_cast<double>(all);
    progress.part(share, share);
    progress.parts(static_cast<std::int64_t>(done), static_cast<std::int64_t>(all), "rows");
  };
  catch_termination();
  const study::JudgedTable judged = judge_table_rows(
      session.laboratory, study::read_table(text, options.table), options.table, how);
  report::print_judged(std::cout, judged);
  if (!options.json.empty()) write_file(options.json, report::judged_json(session.command, judged));
  if (!options.csv.empty()) write_file(options.csv, report::judged_csv(judged));
  if (!options.report.empty())
    write_file(options.report, report::page::render(report::judged_page(session.command, judged)));
  if (judged.interrupted) throw Interrupted();
  return ExitCode::done;
}

ExitCode validate(const ValidateOptions& options, Session& session) {
  if (!options.table.empty()) {
    const std::string text = read_file(options.table);
    const bool says_what = !options.program.empty() || !options.machine.machine.empty();
    if (!says_what) return validate_rows(options, text, session);
    if (workload::is_iteration_table(text)) return validate_iterations(options, text, session);
  }
  return ValidateRunner(options, session).run();
}

}  // namespace

void add_validate(CLI::App& app, Session& session) {
  add_verb<ValidateOptions>(app, session, "validate", "simulated times against measured ones",
                            kValidateExamples, add_options, validate);
}

}  // namespace hemiola::cli
