#include "compile/emit/torch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "compile/emit/fused_kernel.h"
#include "compile/emit/torch_calls.h"
#include "compile/emit/torch_kernel.h"
#include "compile/emit/torch_reference.h"
#include "compile/emit/torch_statements.h"
#include "compile/emit/torch_views.h"
#include "plan/area.h"
#include "plan/launches.h"
#include "plan/plan_json.h"
#include "study/support/digest.h"

namespace hemiola::compile {
namespace {

/// Empty: PyTorch has none.
std::string torch_type(DataType type) {
  switch (type) {
    case DataType::uint32:
      return {};
    case DataType::fp8_e4m3:
      return "torch.float8_e4m3fn";
    case DataType::fp8_e5m2:
      return "torch.float8_e5m2";
    default:
      return fmt::format("torch.{}", name_of(type));
  }
}

template <class Numbers>
std::string tuple_text(const Numbers& numbers) {
  return fmt::format("({}{})", fmt::join(numbers, ", "), numbers.size() == 1 ? "," : "");
}

class Writer {
 public:
  Writer(const plan::Plan& plan, const TorchOptions& options)
      : plan_(plan), options_(options), names_(python_names(plan)) {
    check_tensors();
    check_groups();
    calls_ = calls_of(plan, names_, options.file, options.kernel.fusions, options.movers.carried,
                      options.kernel.stores);
    for (std::size_t i = 0; i < plan.tensors.size(); ++i)
      if (is_shared(i) && has_longer_rows(plan.tensors[i])) refuse_strides(plan.tensors[i]);
  }

  TorchFile file() const {
    TorchFile made{
        .text = text(), .streams_of_copies = calls_.copies, .streams_of_products = calls_.launches};
    std::vector<Statement> all = calls_.by_rank.front();
    if (options_.movers.carried)
      all.insert(all.end(), calls_.work[0][0].begin(), calls_.work[0][0].end());
    for (const Statement& statement : all) {
      const auto calls = [&](const char* what) {
        return statement.text.find(what) != statement.text.npos;
      };
      if (calls(".wait"))
        ++made.waits;
      else if (calls(".signal("))
        ++made.signals;
      else if (calls("mm(") || calls(".launch("))
        ++made.products;
      else if (!calls(".record("))
        ++made.copies;
    }
    return made;
  }

 private:
  std::string text() const {
    const std::vector<std::string>& epilogue = options_.kernel.epilogue;
    const std::string reference = reference_of(plan_, names_, softmax(), !epilogue.empty());
    std::string ends;
    for (const std::string& line : epilogue) ends += line + '\n';
    if (!ends.empty()) ends += "\n\n";
    return header() + "\n\n" + kernel() + setup() + "\n\n" + inputs() + "\n\n" + run() + "\n\n" +
           ends +
           (reference.empty() ? "reference = None  # of this plan none is known\n" : reference) +
           "\n\nif __name__ == \"__main__\":\n    hemiola_rt.main(sys.modules[__name__])\n";
  }

  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw Failure(what, {.file = options_.file}, hint);
  }

  [[noreturn]] void refuse_strides(const plan::Tensor& tensor) const {
    refuse(fmt::format("tensor '{}' has strides", tensor.name),
           "dense tensors compile, and tensors of one rank in longer rows");
  }

  /// What groups do is by the switch.
  void check_groups() const {
    bool any = false;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      for (const plan::Stream& stream : plan_.code(rank).streams)
        plan::for_each_transfer(stream, rank, [&](const plan::Transfer& one, const Indices&) {
          if (one.group < 0 || one.kind == plan::TransferKind::collective) return;
          any = true;
          check_group(one, rank, stream.name);
        });
    }
    if (options_.movers.by_switch && !any)
      refuse("has no groups that a switch could serve",
             "--realization load-store, bulk or copy-engine");
  }
  void check_group(const plan::Transfer& one, int rank, const std::string& stream) const {
    const char* what = one.kind == plan::TransferKind::push ? "multicast" : "reduction";
    if (!options_.movers.by_switch)
      refuse(fmt::format("rank {}, stream '{}': {} by the switch has no counterpart in PyTorch",
                         rank, stream, what),
             "--realization multicast writes it; a plan that moves data between pairs of ranks "
             "needs no switch");
    if (one.reduce != ReduceOp::none && one.reduce != ReduceOp::sum)
      refuse(fmt::format("rank {}, stream '{}': a {} by the switch is not written", rank, stream,
                         name_of(one.reduce)),
             "sums are");
  }

  void check_tensors() const {
    if (!plan_.of_elements())
      refuse("is a plan of chunks, whose size is not said",
             "'hemiola plan make NAME --shape ... --dtype ... -o plan.json' puts it on a tensor");
    for (const plan::Tensor& one : plan_.tensors) {
      if (torch_type(*one.type).empty())
        refuse(fmt::format("tensor '{}' is of {}, which PyTorch has no arithmetic for", one.name,
                           name_of(*one.type)),
               "int32 has the same size");
      if (!room_of(one)) refuse_strides(one);
    }
  }
  std::string header() const {
    std::string text = fmt::format(
        "\"\"\"{} on {} ranks{}: copies between peers{}{}.\n\n"
        "Written by Hemiola {} from {} (plan {}):\n\n    {}\n\n"
        "    torchrun --nproc-per-node {} FILE  # GPUs of a node: checks itself, prints its times\n"
        "    python -m hemiola_rt FILE {}     # processes of this machine, without GPUs: checks "
        "it\n\n"
        "Of each rank:\n\n",
        plan_.name, plan_.ranks,
        has_kernel()
            ? fmt::format(", fused into the kernel {} of {}", fused().text->kernel, fused().file)
            : " as PyTorch",
        options_.movers.carried ? "" : " on streams",
        options_.movers.carried ? ", moved by its own programs between their tiles"
        : has_kernel()          ? ", which the kernel waits for and signals, tile by tile"
        : calls_.launches > 0   ? ", products by torch.mm"
                                : "",
        options_.version, options_.file, digest(), options_.command, plan_.ranks,
        std::string(std::to_string(plan_.ranks).size(), ' '));
    std::size_t width = 0;
    for (const std::string& name : names_) width = std::max(width, name.size());
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i) {
      const plan::Tensor& one = plan_.tensors[i];
      text += fmt::format("    {:<{}}  [{}] {}, {}{}\n", names_[i], width,
                          fmt::join(one.shape, ", "), name_of(*one.type), name_of(one.role),
                          is_shared(i) ? ", peers reach it" : "");
    }
    for (const FusedExtra* one : extras())
      text += fmt::format("    {:<{}}  [{}] {}, the kernel's own\n", one->name, width,
                          fmt::join(one->shape, ", "), name_of(type_of(*one)));
    return text +
           (has_kernel()
                ? "\nLines of the kernel that were added or changed end with '# hemiola'; the "
                  "others are as they were.\n"
                : "") +
           "\nA wait below is one that the plan states. hemiola_rt says what its words "
           "mean.\n\"\"\"\n\n"
           "import sys\nimport types\n\nimport torch\n" +
           (has_kernel() ? "import triton\nimport triton.language as tl\n" + fused().text->imports
                         : "") +
           "\nimport hemiola_rt\n\n" +
           fmt::format("RANKS = {}\nPLAN = \"{}\"\n", plan_.ranks, digest()) +
           fmt::format("WIDE = {}  # of the reference\n",
                       is_wide() ? "torch.float64" : "torch.float32");
  }

  std::string digest() const {
    return options_.digest.empty() ? study::digest(plan::write_plan(plan_)) : options_.digest;
  }

  Softmax softmax() const {
    if (!has_kernel() || fusion().kernel->family != Family::attention) return {};
    const bool is_causal = fusion().configs.front().is_causal().value_or(false);
    for (const FusedArgument& one : fusion().arguments)
      if (one.parameter.find("scale") != one.parameter.npos)
        return {"VALUES[\"" + one.parameter + "\"]", is_causal};
    return {};
  }

  bool has_kernel() const { return options_.kernel.fusions != nullptr; }
  const TorchKernel& fused() const { return options_.kernel; }
  const Fusions& fusions() const { return *fused().fusions; }
  const Fusion& fusion() const { return fusions().front(); }
  /// Tensors that the plan does not have, and of which the kernel says the shape.
  std::vector<const FusedExtra*> extras() const {
    std::vector<const FusedExtra*> made;
    if (!has_kernel()) return made;
    for (const Fusion& one : fusions())
      for (const FusedExtra& extra : one.extras)
        if (!extra.shape.empty()) made.push_back(&extra);
    return made;
  }
  /// Nothing in a kernel's text says it: that of what the kernel makes.
  DataType type_of(const FusedExtra&) const {
    const auto& computes = plan_.codes.front().computes;
    for (const plan::ComputeOperand& operand : computes.front().operands)
      if (plan::makes(operand.use))
        return *plan_.tensors[static_cast<std::size_t>(operand.tensor)].type;
    return *plan_.tensors.front().type;
  }
  /// What a grid has beside those before it: AXES, AXES_2, ...
  static std::string of_grid(const char* name, std::int32_t grid) {
    return grid == 0 ? name : fmt::format("{}_{}", name, grid + 1);
  }

  /// The kernel, the order of its tiles, and what it is called with.
  std::string kernel() const {
    if (!has_kernel()) return {};
    std::string text = fused().text->functions + "\n\n" + fused().text->coordinates + "\n\n";
    for (const Fusion& one : fusions()) text += numbers_of(one);
    text += "CONFIGS = [\n";
    for (const FusedConfig& config : fusion().configs) {
      text += "    {";
      for (const auto& [name, value] : config.values)
        text += fmt::format("\"{}\": {}, ", name, value);
      if (!config.warps.empty()) text += fmt::format("\"num_warps\": {}, ", config.warps);
      if (!config.stages.empty()) text += fmt::format("\"num_stages\": {}, ", config.stages);
      if (text.ends_with(", ")) text.resize(text.size() - 2);
      text += "},\n";
    }
    text += "]  # any of them: setup(rt, CONFIGS[1])\n";
    for (const std::string& one : fusion().dropped) text += "# not among them: " + one + '\n';
    for (const Fusion& one : fusions())
      text += kernel_object(plan_, one, fused().text->kernel, of_grid("KERNEL", one.compute));
    return text + "\n\n";
  }

  /// Extents and parameters of a grid.
  static std::string numbers_of(const Fusion& fusion) {
    std::string text = of_grid("AXES", fusion.compute) + " = {";
    for (const FusedAxis& axis : fusion.axes) {
      if (axis.is_derived) continue;
      text += fmt::format("{}\"{}\": {}", text.ends_with('{') ? "" : ", ", axis.name, axis.extent);
    }
    text += "}  # elements along the axes of tiles\n" + of_grid("VALUES", fusion.compute) + " = {";
    for (const FusedArgument& one : fusion.arguments)
      text += fmt::format("{}\"{}\": {}", &one == &fusion.arguments.front() ? "" : ", ",
                          one.parameter, one.value);
    text += "}\n";
    if (fusion.compute == 0 || fusion.config_sizes.empty()) return text;
    text += of_grid("SIZES", fusion.compute) + " = {";
    for (const std::string& name : fusion.config_sizes)
      text += fmt::format("{}\"{}\": {}", text.ends_with('{') ? "" : ", ", name,
                          fusion.configs.front().values.at(name));
    return text + "}  # in the place of those of a configuration\n";
  }

  /// "t.work": what the kernel is told of the plan, launch by launch.
  std::string work() const {
    std::string text;
    for (const Fusion& one : fusions()) {
      const std::string name = work_name(static_cast<std::size_t>(one.compute));
      text +=
          fmt::format("    {} = {}.work(rt, {}, {}, {})\n", name, of_grid("KERNEL", one.compute),
                      of_grid("AXES", one.compute), of_grid("VALUES", one.compute),
                      one.config_sizes.empty() || one.compute == 0
                          ? std::string("config")
                          : "{**config, **" + of_grid("SIZES", one.compute) + "}");
      if (one.waits_in_loop())
        text += fmt::format("    {}.loop({}, block={})\n", name, one.loop.extent,
                            lambda_of(one.loop.step));
      text += body(calls_.work[static_cast<std::size_t>(one.compute)]);
      text += fmt::format("    {}.ready({})\n", name, one.signals() ? "t.done" : "");
    }
    return text;
  }

  bool is_wide() const {
    return std::ranges::any_of(plan_.tensors, [](const auto& one) {
      return *one.type != DataType::float16 && *one.type != DataType::bfloat16;
    });
  }
  bool is_transposed(std::size_t index) const {
    if (!has_kernel()) return false;
    return std::ranges::any_of(fusions(), [&](const Fusion& fusion) {
      return std::ranges::any_of(fusion.operands, [&](const FusedOperand& one) {
        return one.tensor == static_cast<std::int32_t>(index) && one.is_transposed;
      });
    });
  }
  bool is_shared(std::size_t index) const {
    return calls_.shared.count(static_cast<std::int32_t>(index)) > 0;
  }

  /// "[:, :128]": of a tensor in longer rows.
  static std::string first_of_rows(const plan::Tensor& tensor) {
    const std::vector<std::int64_t> room = *room_of(tensor);
    if (room == tensor.shape) return {};
    std::vector<std::string> cuts;
    for (std::size_t i = 0; i < room.size(); ++i)
      cuts.push_back(room[i] == tensor.shape[i] ? ":" : fmt::format(":{}", tensor.shape[i]));
    while (cuts.back() == ":") cuts.pop_back();
    return fmt::format("[{}]  # in rows as long as the kernel takes them for",
                       fmt::join(cuts, ", "));
  }

  std::string setup() const {
    std::string text =
        std::string(has_kernel() ? "def setup(rt, config=CONFIGS[0]):\n" : "def setup(rt):\n") +
        "    \"\"\"What a rank holds, and its streams. Once, on all ranks.\"\"\"\n"
        "    t = types.SimpleNamespace()\n";
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i) {
      const plan::Tensor& one = plan_.tensors[i];
      const bool turns = is_transposed(i);
      text += fmt::format(
          "    t.{} = rt.{}(\"{}\", {}, {}){}\n", names_[i], is_shared(i) ? "symmetric" : "local",
          names_[i],
          turns ? tuple_text(std::vector{one.shape[1], one.shape[0]}) : tuple_text(*room_of(one)),
          torch_type(*one.type), turns ? ".t()  # as the kernel reads it" : first_of_rows(one));
    }
    for (const FusedExtra* one : extras())
      text += fmt::format("    t.{} = rt.local(\"{}\", {}, {})\n", one->name, one->name,
                          tuple_text(one->shape), torch_type(type_of(*one)));
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i)
      if (is_shared(i))
        text += fmt::format("    t.{}_at = [rt.peer(t.{}, r) for r in range(RANKS)]\n", names_[i],
                            names_[i]);
    text += streams();
    if (has_kernel()) {
      const std::string more = work();
      text += (more.find("rank") != more.npos ? "    rank = rt.rank\n" : "") + more;
    }
    return text + "    return t\n";
  }

  std::string movers() const {
    if (options_.movers.workgroups == 0) return {};
    return fmt::format(", movers={}{}", options_.movers.workgroups,
                       options_.movers.bulk ? ", bulk=True" : "");
  }

  std::string streams() const {
    std::vector<std::string> of_copies;
    for (const plan::Stream& stream : plan_.codes.front().streams) of_copies.push_back(stream.name);
    std::string text;
    if (calls_.copies > 0 && !options_.movers.carried)
      text += fmt::format("    t.copies = rt.streams({}{})  # {}\n", calls_.copies, movers(),
                          fmt::join(of_copies, ", "));
    if (calls_.launches > 0)
      text += fmt::format("    t.compute = rt.streams({}, main_first=True)\n", calls_.launches);
    if (calls_.steps_of_copies > 0)
      text += fmt::format("    t.arrived = rt.signals((RANKS, {}), steps={})\n", calls_.copies,
                          calls_.steps_of_copies);
    if (calls_.steps_of_launches > 0)
      text += fmt::format("    t.made = rt.signals((RANKS, {}), steps={})\n", calls_.launches,
                          calls_.steps_of_launches);
    if (has_kernel()) {
      std::size_t parts = 0;  // of all grids: those of the last come behind all others
      for (const FusedRank& rank : fusions().back().ranks)
        parts = std::max(parts, static_cast<std::size_t>(rank.first_part) + rank.parts.size());
      if (parts > 0) text += fmt::format("    t.done = rt.signals((RANKS, {}), steps=1)\n", parts);
    }
    if (!plan_.groups.empty()) {
      std::vector<std::string> groups;
      for (const std::vector<int>& group : plan_.groups)
        groups.push_back(fmt::format("rt.group({})", tuple_text(group)));
      text += fmt::format("    t.groups = [{}]\n", fmt::join(groups, ", "));
    }
    return text;
  }

  /// Statements of all ranks; of ranks that do the same once, behind `if` where there are several
  /// kinds.
  std::string body(const std::vector<std::vector<Statement>>& by_rank) const {
    const std::vector<std::vector<int>> groups = alike_ranks(by_rank);
    std::string text;
    for (const std::vector<int>& group : groups) {
      const std::size_t indent = groups.size() > 1 ? 8 : 4;
      if (groups.size() > 1)
        text += fmt::format("    {} rank in {}:\n", &group == &groups.front() ? "if" : "elif",
                            tuple_text(group));
      const std::string lines = python_of(with_loops(joined_ranks(by_rank, group)), indent);
      text += lines.empty() ? std::string(indent, ' ') + "pass\n" : lines;
    }
    return text;
  }

  std::string inputs() const {
    std::vector<std::vector<Statement>> by_rank;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      Statement all{"return {{"};
      const std::vector<plan::Area> residents = plan::residents(plan_, rank);
      for (const plan::Area& area : residents) {
        const auto index = static_cast<std::size_t>(area.tensor);
        std::vector<bool> kept;  // an axis that has one element is no place among several
        for (const std::int64_t extent : plan_.tensors[index].shape) kept.push_back(extent == 1);
        for (std::size_t i = 0; i < area.rects.size(); ++i) {
          const bool is_one = area.rects.size() == 1 &&
                              std::ranges::count(residents, area.tensor, &plan::Area::tensor) == 1;
          if (all.text.back() != '{') all.add(", ");
          all.add(is_one ? fmt::format("\"{}\": ", names_[index])
                         : fmt::format("\"{} at {}\": ", names_[index],
                                       fmt::join(area.rects[i].begin, ",")));
          all.add(view_of("t." + names_[index], plan_.tensors[index], area.rects[i], kept));
        }
      }
      for (const FusedExtra* one : extras())
        if (one->is_read && (rank == 0 || !one->is_added_once))
          all.add(fmt::format(", \"{}\": t.{}", one->name, one->name));
      by_rank.push_back({all.add("}}")});
    }
    return "def inputs(rt, t):\n"
           "    \"\"\"By name, what the caller has to fill before a call.\"\"\"\n" +
           rank_line(by_rank) + body(by_rank);
  }

  std::string rank_line(const std::vector<std::vector<Statement>>& by_rank) const {
    const bool needs =
        alike_ranks(by_rank).size() > 1 || body(by_rank).find("rank") != std::string::npos;
    return needs ? "    rank = rt.rank\n" : "";
  }

  std::string run() const {
    std::string text =
        "def run(rt, t, **given):\n"
        "    \"\"\"One call. `given`: inputs by name, copied to their places; what is not given is "
        "there. Returns the outputs.\"\"\"\n";
    const std::string steps = body(calls_.by_rank);
    if (steps.find("rank") != std::string::npos) text += "    rank = rt.rank\n";
    if (steps.find("copies[") != std::string::npos)
      text += steps.find("compute[") != std::string::npos
                  ? "    copies, compute = t.copies, t.compute\n"
                  : "    copies = t.copies\n";
    else
      text += "    compute = t.compute\n";
    if (calls_.uses_events) text += "    events = {}\n";
    if (has_kernel()) {
      for (const FusedExtra& extra : fusion().extras)
        if (extra.shape.empty())
          text += fmt::format("    {} = given.pop(\"{}\")  # the kernel's own: the plan has none\n",
                              extra.name, extra.name);
    }
    text += "    rt.place(inputs(rt, t), given)\n    rt.begin()\n" + steps + "    rt.end()\n";
    std::vector<std::string> outputs;
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i)
      if (plan_.tensors[i].role == plan::Role::output)
        outputs.push_back(fmt::format("\"{}\": t.{}", names_[i], names_[i]));
    return text + fmt::format("    return {{{}}}\n", fmt::join(outputs, ", "));
  }

  const plan::Plan& plan_;
  const TorchOptions& options_;
  std::vector<std::string> names_;
  TorchCalls calls_;
};

}  // namespace

TorchFile torch_of(const plan::Plan& plan, const TorchOptions& options) {
  return Writer(plan, options).file();
}

}  // namespace hemiola::compile
