// hemiola validate: measured against simulated times.
#include <algorithm>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/cli.h"
#include "cli/inputs.h"
#include "cli/notices.h"
#include "core/lists.h"
#include "core/text.h"
#include "report/validation.h"
#include "study/judge.h"
#include "study/micro.h"

namespace hemiola::cli {
namespace {

constexpr const char* kExamples =
    "  hemiola validate times.csv --machine dgx-h100 --program all-reduce/two-shot --launch graph "
    "\\\n"
    "      --where num_gpus=4 --calibrate two_gpus.csv --json errors.json\n"
    "  hemiola validate --only h100-vllm      # the suite that is shipped, or a part of it";

/// The options as they were typed.
struct ValidateOptions {
  std::string table;
  MachineOptions machine;
  std::string program;
  std::vector<std::string> parameters, where, columns, only;
  std::string dtype = "float";
  EngineOptions engine{.warmup = std::to_string(study::kWarmup),
                       .iterations = std::to_string(study::kIterations)};
  std::string max_size = "16MiB";
  std::string calibrate, json, csv;
  bool all = false;
  bool no_check = false;
};

void add_options(CLI::App& verb, ValidateOptions& options, Session& session) {
  verb.add_option("TABLE", options.table,
                  "CSV with the columns size_bytes and time_us, or the output of nccl-tests or\n"
                  "rccl-tests; none: the shipped suite")
      ->type_name("");
  add_machine_options(verb, options.machine);
  const auto add = [&verb](const char* name, std::string& value, const char* description,
                           const char* type) {
    verb.add_option(name, value, description)->type_name(type)->capture_default_str();
  };
  const auto add_list = [&verb](const char* name, std::vector<std::string>& value,
                                const char* description, const char* type) {
    verb.add_option(name, value, description)->type_name(type)->allow_extra_args(false);
  };
  add("--program", options.program, "a program file or a built-in", "PROGRAM");
  add_list("--param", options.parameters, "parameter of a built-in: channels=8", "NAME=VALUE");
  add_list("--where", options.where, "rows whose column has one of the values; repeatable",
           "COLUMN=VALUE[,VALUE]");
  add_list("--column", options.columns, "which column is time_us, num_gpus, ...: repeatable",
           "ROLE=COLUMN");
  add("--calibrate", options.calibrate,
      "table that the trivial model is fitted to, with the same --where but for the number of GPUs",
      "FILE");
  add("--dtype", options.dtype, "data type of rows that name none", "TYPE");
  add_engine_options(verb, options.engine, "measured repetitions");
  add("--max-size", options.max_size, "rows of larger sizes are listed, not simulated", "SIZE");
  add_list("--only", options.only,
           "entries of the suite whose names begin so (micro-: microbenchmarks); repeatable",
           "NAME");
  verb.add_flag("--all", options.all,
                "the suite: all sizes up to --max-size, not powers of 4 up to 4 MiB");
  verb.add_flag("--no-check", options.no_check, "do not check the programs first");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--csv", options.csv, "write one line per row", "FILE");
  verb.add_flag("--quiet", session.quiet, "results only: no warnings, notes and progress");
}

/// "a=b,c"
study::Filter filter_value(const std::string& text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos || sign == 0)
    throw Failure("'" + text + "' is not COLUMN=VALUE", SourceLocation{.file = "--where"},
                  "for example --where num_gpus=4,8");
  study::Filter filter{text.substr(0, sign), {}};
  for (std::size_t at = sign + 1; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    filter.values.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return filter;
}

class ValidateRunner {
 public:
  ValidateRunner(const ValidateOptions& options, Session& session)
      : options_(options), session_(session), notices_(session) {}

  ExitCode run() {
    understand();
    std::vector<study::Judgement> judgements;
    std::vector<study::OrderResult> orders;
    std::vector<study::MicroResult> micro;
    {
      Progress progress(session_);
      const auto doing = [&](const std::string& what) { progress.doing(what); };
      if (options_.table.empty()) {
        const study::Suite suite = study::shipped_suite();
        if (!options_.all) configuration_.in_sample = study::in_default_sample;
        const Settings settings = one_setting(options_.machine.set);
        const Chosen chosen = chosen_entries(suite);
        judgements = study::SuiteRunner(suite, configuration_, settings, doing)
                         .judge(chosen.entries, parts(progress, "entries"));
        orders = study::compare_orders(suite, judgements);
        micro = study::MicroRunner(configuration_.check, settings, doing).run(suite, chosen.micro);
      } else {
        configuration_.on_row = parts(progress, "rows");
        judgements.push_back(judge_table(doing));
      }
    }
    for (const study::Judgement& judgement : judgements)
      notices_.show(judgement.validation.warnings);
    if (options_.table.empty())
      report::print_suite(std::cout, judgements, orders, micro);
    else
      report::print_validation(std::cout, judgements.front());
    if (!options_.json.empty())
      write_file(options_.json,
                 report::validation_json(session_.command, judgements, orders, micro));
    if (!options_.csv.empty()) write_file(options_.csv, report::validation_csv(judgements));
    return ExitCode::done;
  }

 private:
  void understand();
  void refuse(bool given, const char* option, const char* hint) const {
    if (given) throw Failure("does not fit here", SourceLocation{.file = option}, hint);
  }
  study::Judgement judge_table(const std::function<void(const std::string&)>& doing);
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
};

void ValidateRunner::understand() {
  check_output("--json", options_.json);
  check_output("--csv", options_.csv);
  configuration_.type = data_type_value(options_.dtype);
  configuration_.parameters = parameter_values(options_.parameters);
  configuration_.check = !options_.no_check;
  configuration_.options = engine_options(options_.engine, 1);
  configuration_.options.monitor = &session_.monitor;
  configuration_.max_size = read_size(options_.max_size, {.file = "--max-size"});
  if (options_.table.empty()) {
    const char* hint = "it goes with a table: the suite says it for each of its entries";
    refuse(!options_.machine.machine.empty(), "--machine", hint);
    refuse(!options_.machine.gpu.empty(), "--gpu", hint);
    refuse(!options_.machine.ranks.empty(), "--ranks", hint);
    refuse(!options_.program.empty(), "--program", hint);
    refuse(!options_.parameters.empty(), "--param", hint);
    refuse(!options_.where.empty(), "--where", hint);
    refuse(!options_.columns.empty(), "--column", hint);
    refuse(!options_.calibrate.empty(), "--calibrate", hint);
  } else {
    const char* hint =
        "it goes with the suite: a table's rows are chosen by --where and --max-size";
    refuse(options_.all, "--all", hint);
    refuse(!options_.only.empty(), "--only", hint);
  }
}

study::Judgement ValidateRunner::judge_table(const std::function<void(const std::string&)>& doing) {
  if (options_.program.empty())
    throw Failure("no program is given", SourceLocation{.file = "--program"},
                  "for example --program all-reduce/ring; docs/plans.md lists the built-ins");
  const Settings settings = one_setting(options_.machine.set);
  const machine::Machine machine = load_machine_with_gpus(options_.machine, settings);
  notices_.show(machine.warnings);
  std::vector<study::Filter> filters;
  for (const std::string& text : options_.where) filters.push_back(filter_value(text));
  study::ColumnNames columns;
  for (const auto& [role, column] : parameter_values(options_.columns))
    columns.emplace_back(role, column);
  const auto read = [&](const std::string& file, const std::vector<study::Filter>& where) {
    return study::select(study::read_measured(read_file(file), file, columns), where);
  };
  const study::MeasuredTable table = read(options_.table, filters);
  study::TrivialModel trivial;
  if (options_.calibrate.empty()) {
    trivial = study::fit(table.rows, "the same table");
    notices_.note("no --calibrate is given: the trivial model is fitted to the table itself");
  } else {
    std::vector<study::Filter> where = filters;
    std::erase_if(where, [&](const study::Filter& filter) {
      return table.same_column(filter.column, "num_gpus");
    });
    trivial = study::fit(read(options_.calibrate, where).rows, options_.calibrate);
  }
  configuration_.machine = &machine;
  configuration_.program = options_.program;
  study::Judgement judgement{
      .name = options_.table,
      .table = options_.table,
      .where = study::to_text(filters),
      .machine = machine.name + (settings.empty() ? "" : " " + to_text(settings)),
      .program = options_.program,
      .options = configuration_.options};
  judgement.validation =
      study::Validator(doing).validate(table, configuration_, std::move(trivial));
  judgement.summaries = study::summarise_regimes(judgement.validation.rows);
  return judgement;
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
    if (std::none_of(names.begin(), names.end(), begins))
      throw Failure("no entry of the suite begins with '" + beginning + "'",
                    SourceLocation{.file = "--only"}, suggest(beginning, names));
  }
  const auto unwanted = [&](const std::string& name) {
    return std::none_of(options_.only.begin(), options_.only.end(),
                        [&](const std::string& beginning) { return name.starts_with(beginning); });
  };
  std::erase_if(all.entries, unwanted);
  std::erase_if(all.micro, unwanted);
  return all;
}

}  // namespace

void add_validate(CLI::App& app, Session& session) {
  CLI::App* verb = add_verb(app, "validate", "simulated times against measured ones", kExamples);
  const auto options = std::make_shared<ValidateOptions>();
  add_options(*verb, *options, session);
  verb->callback([options, &session] {
    session.action = [options, &session] { return ValidateRunner(*options, session).run(); };
  });
}

}  // namespace hemiola::cli
