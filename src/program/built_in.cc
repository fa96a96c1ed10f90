#include "program/built_in.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/lists.h"
#include "core/units.h"
#include "machine/machine.h"
#include "plan/in_place.h"
#include "plan/plan_json.h"
#include "program/bind/check.h"
#include "program/kernels/kernel.h"
#include "program/lower/lower.h"

namespace hemiola::program {
namespace {

/// A value of a parameter, read as what it should be. Failure: it is not.
struct Given {
  const std::string& name;
  const std::string& value;
  const std::vector<std::string>& choices;

  [[noreturn]] void refuse(const std::string& hint) const {
    throw Failure(fmt::format("parameter '{}' cannot be '{}'", name, value), kOption, hint);
  }
  int count(std::int64_t most) const {
    return static_cast<int>(plan::number_of(fmt::format("parameter '{}'", name), value, 1, most));
  }
  Bytes bytes() const {
    const auto parsed = parse_size(value);
    if (!parsed || parsed->count < 16) refuse("it is a size such as 512KiB, at least 16B");
    return *parsed;
  }
  /// One of the parameter's choices, which are in the order of the enumeration.
  template <class Choice>
  Choice choice() const {
    const auto found = std::ranges::find(choices, value);
    if (found == choices.end()) refuse(suggest(value, choices, "it is " + joined(choices)));
    return static_cast<Choice>(found - choices.begin());
  }
};

/// Shapes of plans, to be combined.
enum PlanShape : unsigned { chain = 1, exchange = 2, general = 4, any = 7 };

PlanShape shape_of(const plan::Plan& plan) {
  return is_chain(plan) ? chain : is_exchange(plan) ? exchange : general;
}

/// A parameter of the lowering: which shapes of plans have it, and what it does to the options.
struct LowerParameter {
  unsigned shapes;
  plan::ParameterInfo info;
  void (*set)(LowerOptions& options, const Given& given);
};

std::vector<LowerParameter> lower_parameters() {
  const auto set_workgroups = [](LowerOptions& o, const Given& v) { o.workgroups = v.count(4096); };
  return {
      {any,
       {"protocol",
        "simple",
        {"simple", "ll", "ll128"},
        "simple: data, then a flag; ll, ll128: flags inside the data"},
       [](LowerOptions& o, const Given& v) { o.protocol = v.choice<Protocol>(); }},
      {chain,
       {"channels",
        "24, or as few as the size feeds",
        {},
        "workgroups and connections per rank; shared evenly by rings, at least one for each"},
       set_workgroups},
      {exchange, {"workgroups", "36", {}, "workgroups per rank"}, set_workgroups},
      {general,
       {"workgroups",
        "64, or 16 beside a kernel",
        {},
        "workgroups per rank that communicate, shared by its streams; at least one for each"},
       set_workgroups},
      {general,
       {"compute_workgroups",
        "132 less workgroups",
        {},
        "workgroups per rank that compute; 132 with copy-engine and co-located"},
       [](LowerOptions& o, const Given& v) { o.compute_workgroups = v.count(4096); }},
      {general,
       {"stages",
        "the device's gemm.stages",
        {},
        "steps along k whose operands a workgroup holds: in use, or on their way"},
       [](LowerOptions& o, const Given& v) { o.stages = v.count(64); }},
      {any,
       {"realization",
        "load-store",
        {"load-store", "bulk", "copy-engine", "co-located", "multicast"},
        "who moves data: workgroups by loads and stores or in bulk, copy engines, the workgroups "
        "that compute; groups through the switch"},
       [](LowerOptions& o, const Given& v) { o.realization = v.choice<Realization>(); }},
      {any,
       {"command",
        "copy",
        {"copy", "broadcast", "swap"},
        "copy-engine: what engines are told; broadcast: one place to two others; swap (all-to-all "
        "in place): both ways at once"},
       [](LowerOptions& o, const Given& v) { o.copies.command = v.choice<CopyCommand>(); }},
      {any,
       {"queues",
        "stream",
        {"stream", "peer"},
        "copy-engine: copies of a stream one after the other, or those to all peers at once"},
       [](LowerOptions& o, const Given& v) { o.copies.queues = v.choice<CopyQueues>(); }},
      {any,
       {"batch",
        "1",
        {},
        "copy-engine: copies in one submission, on one engine and with one completion; all: as "
        "many as follow each other"},
       [](LowerOptions& o, const Given& v) {
         const auto number = parse_count(v.value);
         if (v.value != "all" && (!number || *number < 1 || *number > 4096))
           v.refuse("it is a number from 1 to 4096, or all");
         o.copies.batch = v.value == "all" ? 0 : static_cast<int>(*number);
       }},
      {any,
       {"prelaunch",
        "0",
        {"0", "1"},
        "copy-engine: commands are in the queues before, behind a poll that ends when it is their "
        "turn"},
       [](LowerOptions& o, const Given& v) { o.copies.prelaunch = v.choice<bool>(); }},
      {any,
       {"sync",
        "own",
        {"own", "channels", "connections"},
        "who waits for whom: as the plan's shape does, in the words of MSCCL++ plans, or of MSCCL "
        "XML (docs/plans.md, export)"},
       [](LowerOptions& o, const Given& v) { o.sync = v.choice<Sync>(); }},
      {any,
       {"threads", "512", {}, "threads per workgroup; 640 with ll128"},
       [](LowerOptions& o, const Given& v) { o.threads = v.count(1024); }},
      {chain,
       {"piece",
        "one slot",
        {},
        "data that a workgroup passes on at a time: a multiple of 16 B; a slot is 512 KiB, 32 KiB "
        "with ll, 576000 B with ll128"},
       [](LowerOptions& o, const Given& v) { o.piece = v.bytes(); }},
      {general,
       {"alignment", "16", {}, "bytes that chunks and slices of workgroups are multiples of"},
       [](LowerOptions& o, const Given& v) { o.alignment = v.count(1 << 20); }},
      {exchange | general,
       {"barrier", "1", {"0", "1"}, "begin with a barrier among all ranks; 0 with ll"},
       [](LowerOptions& o, const Given& v) { o.barrier = v.choice<bool>(); }},
      {any,
       {"in_place", "0", {"0", "1"}, "input and output share memory"},
       [](LowerOptions& o, const Given& v) { o.in_place = v.choice<bool>(); }},
  };
}

/// The lowering's parameters that a plan of this shape takes.
std::vector<LowerParameter> lower_parameters_of(PlanShape shape) {
  std::vector<LowerParameter> taken = lower_parameters();
  std::erase_if(taken, [&](const LowerParameter& p) { return (p.shapes & shape) == 0; });
  return taken;
}

/// A plan of the template, to see what its plans are like; nothing where that takes a machine.
std::optional<plan::Plan> sample_of(const plan::TemplateInfo& info) {
  if (info.needs_machine) return std::nullopt;
  return plan::make(info, info.in_chunks ? 3 : 4, {}, nullptr);
}

/// The lowering's parameters that the template's plans take, with the defaults that these propose.
std::vector<plan::ParameterInfo> lower_parameters_of(const plan::TemplateInfo& info) {
  const std::optional<plan::Plan> sample = sample_of(info);
  const bool is_general = !sample || !info.in_chunks;
  std::vector<plan::ParameterInfo> infos;
  for (LowerParameter& parameter : lower_parameters_of(is_general ? general : shape_of(*sample))) {
    if (sample) {
      for (const auto& [name, value] : sample->lowering)
        if (name == parameter.info.name) parameter.info.default_value = value;
    }
    infos.push_back(std::move(parameter.info));
  }
  return infos;
}

/// Parameters of a general plan for one that took another shape: a synthesised plan may be that of
/// a template. What that does not have changes nothing.
void fit(plan::Parameters& parameters, PlanShape shape) {
  for (auto& [name, value] : parameters)
    if (shape == chain && name == "workgroups") name = "channels";
  const std::vector<LowerParameter> known = lower_parameters_of(shape);
  std::erase_if(parameters, [&](const auto& parameter) {
    return std::ranges::none_of(
        known, [&](const LowerParameter& p) { return p.info.name == parameter.first; });
  });
}

/// What was left open is pushed.
void prefer_push(const plan::TemplateInfo& info, plan::Parameters& parameters) {
  for (const plan::ParameterInfo& parameter : info.parameters) {
    const bool given =
        std::ranges::any_of(parameters, [&](const auto& p) { return p.first == parameter.name; });
    const auto& choices = parameter.choices;
    if (!given && std::ranges::find(choices, "push") != choices.end())
      parameters.emplace_back(parameter.name, "push");
  }
}

/// Whether some ranks reach each other only through a NIC: nothing can be pulled there.
bool goes_through_nics(const machine::Machine* machine, int ranks) {
  for (int rank = 1; machine != nullptr && rank < ranks && rank < machine->ranks(); ++rank)
    if (machine->reach(0, rank) == machine::Reach::network) return true;
  return false;
}

}  // namespace

std::optional<BuiltInPlan> plan_of_built_in(const std::string& name, const LoadOptions& options,
                                            Monitor* monitor) {
  const plan::TemplateInfo* info = plan::find_template(name, options.parts);
  if (info == nullptr) return std::nullopt;
  plan::Parameters for_template, for_lowering;
  bool pushes = goes_through_nics(options.machine.get(), options.ranks);
  for (const auto& parameter : options.parameters) {
    const bool is_of_template = info->parameter(parameter.first) != nullptr;
    (is_of_template ? for_template : for_lowering).push_back(parameter);
    pushes = pushes || parameter == std::pair<std::string, std::string>{"protocol", "ll"};
  }
  // Before the plan is made: what its lowering takes can be told from its template.
  std::vector<plan::ParameterInfo> known;
  if (!for_lowering.empty()) known = parameters_of(name, options.parts);
  for (const auto& [parameter, value] : for_lowering)
    plan::declared_parameter(name, known, parameter);
  if (pushes) prefer_push(*info, for_template);
  BuiltInPlan made{plan::make(*info, options.ranks, for_template, options.machine.get(),
                              judge_of_plans(options, for_lowering), monitor, options.parts),
                   std::move(for_lowering)};
  if (info->needs_machine) fit(made.lowering, shape_of(made.plan));
  return made;
}

plan::Judge judge_of_plans(const LoadOptions& options, const plan::Parameters& lowering) {
  if (!options.judge) return {};
  return [judge = options.judge, machine = options.machine, lowering](
             const plan::Plan& plan, Bytes size) -> std::optional<Time> {
    plan::Parameters fitting = lowering;
    fit(fitting, shape_of(plan));
    try {
      return judge(lower_plan(plan, fitting, machine.get()), size);
    } catch (const Failure& failure) {
      if (failure.code() != ExitCode::bad_input) throw;
      return std::nullopt;  // cannot be lowered like this, or not for this machine or size
    }
  };
}

std::optional<Program> make_built_in(const std::string& name, const LoadOptions& options) {
  const std::optional<BuiltInPlan> made = plan_of_built_in(name, options);
  if (!made) return std::nullopt;
  require_own_size(made->plan, options.exact);
  return lower_plan(made->plan, made->lowering, options.machine.get());
}

namespace {

/// Failure where groups are to go through switches that the machine does not have.
void check_switches(const plan::Plan& plan, const LowerOptions& options) {
  const machine::Machine* machine = options.machine;
  if (options.realization != Realization::multicast || machine == nullptr) return;
  if (plan.ranks > machine->ranks()) return;  // bind() says so
  for (const std::vector<int>& group : plan.groups) {
    if (!machine->multicast_switches(group).empty()) continue;
    throw Failure(
        fmt::format("'{}' lets a switch reduce and multicast (NVLS), and '{}' has none that "
                    "reaches the ranks {}",
                    plan.name, machine->name, plan::ranks_text(group)),
        kOption, "--param realization=load-store does the same by loads and stores of the ranks");
  }
}

/// Makes bind() lower the chain anew, with as many channels as the size feeds.
void follow_size(Program& program, const plan::Plan& plan, LowerOptions options) {
  options.machine = nullptr;  // it may be gone by then, and chains do not look at it
  const auto rings = static_cast<int>(plan.codes.front().streams.size());
  program.follow_size(
      [plan = std::make_shared<const plan::Plan>(plan), options, rings,
       unsized = std::make_shared<const Program>(program)](const BindOptions& bind) {
        const ChainChannels fed = fed_channels(*unsized, rings, bind.size);
        if (fed.channels == unsized->workgroups(0)) return *unsized;
        LowerOptions sized = options;
        sized.workgroups = fed.channels;
        sized.rings = fed.rings;
        return lower(*plan, sized);
      });
}

}  // namespace

Program lower_plan(const plan::Plan& plan, const plan::Parameters& parameters,
                   const machine::Machine* machine) {
  const PlanShape shape = shape_of(plan);
  const std::vector<LowerParameter> known = lower_parameters_of(shape);
  std::vector<plan::ParameterInfo> infos;
  for (const LowerParameter& one : known) infos.push_back(one.info);
  LowerOptions options{.machine = machine};
  // What the plan itself proposes may be for another shape, or way to synchronise, and gives way;
  // but what a switch does is part of the algorithm.
  const bool for_export = std::ranges::any_of(
      parameters, [](const auto& p) { return p.first == "sync" && p.second != "own"; });
  for (const auto& [parameter, value] : plan.lowering) {
    bool exists = false;
    for (const LowerParameter& other : lower_parameters())
      exists = exists || other.info.name == parameter;
    if (!exists) {
      throw Failure(fmt::format("plan '{}' proposes a parameter '{}' that no lowering has",
                                plan.name, parameter));
    }
    const bool by_switch = parameter == "realization" && value == "multicast";
    for (const LowerParameter& own : known)
      if (own.info.name == parameter && (by_switch || !for_export))
        own.set(options, {parameter, value, own.info.choices});
  }
  for (const auto& [parameter, value] : parameters) {
    const plan::ParameterInfo& info = plan::declared_parameter(plan.name, infos, parameter);
    known[index(&info - infos.data())].set(options, {parameter, value, info.choices});
    if (parameter == "in_place" && !options.in_place && plan::is_in_place(plan))
      throw Failure(fmt::format("plan '{}' is one in place", plan.name), kOption,
                    "its transfers know one memory only: leave in_place out");
  }
  check_switches(plan, options);
  if (options.realization == Realization::copy_engine && machine != nullptr)
    for (int rank = 0; rank < plan.ranks; ++rank) require_copy_engines(*machine, rank);
  Program program = lower(plan, options);
  if (shape == chain && options.workgroups == 0 && options.sync == Sync::own &&
      options.realization == Realization::load_store)
    follow_size(program, plan, options);
  return program;
}

std::vector<std::string> built_in_names(const parts::Registry* parts) {
  return names_of(plan::templates(parts));
}

std::vector<std::string> algorithms_of(Collective collective, const parts::Registry* parts) {
  std::vector<std::string> names;
  if (collective == Collective::custom) return names;  // they do not do the same
  for (const plan::TemplateInfo& info : plan::templates(parts))
    if (info.collective == collective && info.in_chunks) names.push_back(info.name);
  // What the library takes, so that the best of all is never slower than that.
  std::string library = fmt::format("{}/nccl", name_of(collective));
  if (find_kernel(library, parts) != nullptr) names.push_back(std::move(library));
  return names;
}

std::vector<plan::ParameterInfo> parameters_of(const std::string& name,
                                               const parts::Registry* parts) {
  if (const KernelInfo* kernel = find_kernel(name, parts)) return kernel->parameters;
  const plan::TemplateInfo* info = plan::find_template(name, parts);
  if (info == nullptr) {
    throw Failure(fmt::format("there is no built-in program '{}'", name), kOption,
                  suggest(name, built_in_names(parts)));
  }
  return parameters_of(*info);
}

std::vector<plan::ParameterInfo> parameters_of(const plan::TemplateInfo& info) {
  std::vector<plan::ParameterInfo> parameters = info.parameters;
  for (plan::ParameterInfo& parameter : lower_parameters_of(info))
    parameters.push_back(std::move(parameter));
  return parameters;
}

}  // namespace hemiola::program
