#include "compile/fused/fused_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "compile/emit/torch.h"
#include "compile/fuse/carry.h"
#include "compile/fuse/tasks.h"
#include "compile/readback/epilogue.h"
#include "compile/readback/readback.h"
#include "compile/rules/rules.h"
#include "core/json.h"
#include "plan/launches.h"
#include "plan/plan_json.h"
#include "study/support/digest.h"
#include "verify/verify.h"

namespace hemiola::compile {
namespace {

const Module& module_of(Library& library, const KernelRequest& request) {
  return request.text ? library.add(request.describe.file, *request.text)
                      : library.load(request.describe.file);
}

/// Numbers are values that the file passes on; only where they decide what the kernel does, they
/// are followed.
Description description_of(Library& library, const Module& module, const DescribeRequest& request) {
  DescribeRequest open = request;
  check_constants(choose_kernel(module, request.kernel), request.constants);
  std::erase_if(open.constants, [](const auto& one) {
    return number_in(one.second) && one.second != "True" && one.second != "False";
  });
  Description description = describe(library, module, open);
  return description.is_understood ? std::move(description) : describe(library, module, request);
}

/// The operand of the kernel that goes to peers.
Fusions with_stores(Fusions fusions, const std::vector<TileStore>& stores) {
  for (Fusion& fusion : fusions)
    for (const FusedOperand& one : fusion.operands)
      if (!stores.empty() && one.tensor == stores.front().tensor) fusion.stores = one.parameter;
  return fusions;
}

/// Whether a plan adds up what ranks have of a tensor.
bool adds_up(const std::vector<plan::Item>& items, const plan::Plan& plan,
             const plan::Tensor& tensor) {
  const auto is_it = [&](const plan::Region& region) {
    return &plan.tensors[static_cast<std::size_t>(region.tensor)] == &tensor;
  };
  return std::ranges::any_of(items, [&](const plan::Item& item) {
    if (const auto* loop = std::get_if<plan::Loop>(&item))
      return adds_up(loop->items, plan, tensor);
    const auto& one = std::get<plan::Transfer>(item);
    return one.reduce != ReduceOp::none &&
           (is_it(one.source) || is_it(one.destination) || (one.group < 0 && is_it(one.operand)));
  });
}

bool is_summand(const plan::Plan& plan, const plan::Tensor& tensor) {
  for (const plan::Code& code : plan.codes)
    for (const plan::Stream& stream : code.streams)
      if (adds_up(stream.items, plan, tensor)) return true;
  return false;
}

bool only_copy(const std::vector<plan::Item>& items) {
  return std::ranges::all_of(items, [](const plan::Item& item) {
    if (const auto* loop = std::get_if<plan::Loop>(&item)) return only_copy(loop->items);
    const auto& transfer = std::get<plan::Transfer>(item);
    return transfer.kind != plan::TransferKind::collective && transfer.reduce == ReduceOp::none;
  });
}

/// 128, "fp16", true, null: as Python writes it.
std::string python_value(const JsonValue& value) {
  const nlohmann::json& raw = value.json();
  if (raw.is_boolean()) return raw.get<bool>() ? "True" : "False";
  if (raw.is_null()) return "None";
  if (raw.is_string()) return raw.dump();
  if (!raw.is_number()) value.fail("is no value of a parameter", "a number, a text, true or null");
  return raw.dump();
}

FuseRequest fuse_request(const KernelRequest& request, const std::string& plan_file) {
  return {.plan_file = plan_file,
          .constants = request.describe.constants,
          .configurations = request.configurations};
}

}  // namespace

FusedFile::FusedFile(const KernelRequest& request, const plan::Plan& plan,
                     const std::string& plan_file)
    : file_(request.describe.file),
      library_(request.describe.helpers),
      module_(module_of(library_, request)),
      description_(description_of(library_, module_, request.describe)),
      plan_file_(plan_file),
      digest_(study::digest(plan::write_plan(plan))),
      grids_(with_room(grids_of(plan, plan_file), description_, fuse_request(request, plan_file))),
      stores_(request.stores_to_peers ? take_pushes(grids_, plan_file) : std::vector<TileStore>{}),
      fusions_(with_stores(fuse(description_, grids_, fuse_request(request, plan_file)), stores_)),
      carries_(request.carries),
      text_(fused_text(library_, choose_kernel(module_, request.describe.kernel), fusions_,
                       carries_ ? carried_data(grids_.plan, plan_file) : CarriedData{})) {}

bool FusedFile::takes_movers() const {
  const bool waits = std::ranges::any_of(
      fusions_, [](const Fusion& one) { return one.waits() || one.waits_in_loop(); });
  return !waits || description_.scheduler.loop >= 0;
}

bool FusedFile::can_carry() const {
  try {
    carried_data(grids_.plan, file_);
    carried_of(grids_.plan, fusions_, tasks_of(grids_.plan, file_, &fusions_), file_);
    return description_.scheduler.is_persistent;
  } catch (const Failure&) {
    return false;
  }
}

TorchFile FusedFile::write(TorchOptions options, const std::string& output) const {
  Fusions fusions = fusions_;
  if (!carries_) wait_in_front(grids_.plan, fusions, options.movers.workgroups > 0, plan_file_);
  options.kernel = {&fusions, &text_, file_, stores_.empty() ? nullptr : &stores_};
  options.digest = digest_;
  options.movers.carried = carries_;
  TorchFile made = torch_of(grids_.plan, options);
  if (const auto epilogue = epilogue_of(output, made.text)) {
    add(*epilogue, fusions, options.kernel.epilogue);
    made = torch_of(grids_.plan, options);
  }
  return made;
}

/// What is not followed, or wrong, has no epilogue that anybody knows; the proof says so.
std::optional<Epilogue> FusedFile::epilogue_of(const std::string& output,
                                               const std::string& text) const {
  if (description_.family == Family::attention) return std::nullopt;
  try {
    return read_epilogue(output, text, made_by(fusion()).name);
  } catch (const Failure& failure) {
    if (failure.code() == ExitCode::internal) throw;
    return std::nullopt;
  }
}

const plan::Tensor& FusedFile::made_by(const Fusion& fusion) const {
  const plan::Plan& plan = grids_.plan;
  const plan::Compute& compute =
      plan.codes.front().computes[static_cast<std::size_t>(fusion.compute)];
  const auto made = std::ranges::find_if(
      compute.operands, [](const plan::ComputeOperand& one) { return plan::makes(one.use); });
  return plan.tensors[static_cast<std::size_t>(made->tensor)];
}

/// Where a line of what was written stands in the kernel's file, whatever it is indented by.
SourceLocation FusedFile::place_of(std::string_view line) const {
  const std::string_view words = line.substr(std::min(line.size(), line.find_first_not_of(' ')));
  const std::size_t at =
      words.empty() ? words.npos : module_.source.text().find(words, description_.definition.begin);
  return at == words.npos ? description_.definition.where()
                          : module_.source.where(static_cast<std::uint32_t>(at));
}

/// Before a sum over ranks stands only what is the same for the sum, whoever adds it: what is
/// linear, and a bias once.
void FusedFile::add(const Epilogue& epilogue, Fusions& fusions,
                    std::vector<std::string>& lines) const {
  for (Fusion& fusion : fusions) {
    if (!is_summand(grids_.plan, made_by(fusion))) continue;
    if (!epilogue.is_linear)
      throw Failure(
          fmt::format(
              "kernel '{}' {} what plan '{}' adds up over ranks: of a sum it is not the sum",
              fusion.kernel->kernel,
              epilogue.function.empty() ? "adds a constant to"
                                        : "applies '" + epilogue.function + "' to",
              grids_.plan.name),
          place_of(epilogue.line),
          "leave it out and apply it to the result, or take a plan whose sums are whole, as "
          "ag-gemm and a2a-gemm");
    for (FusedExtra& extra : fusion.extras)
      extra.is_added_once = std::ranges::find(epilogue.added, extra.name) != epilogue.added.end();
  }
  lines.emplace_back("def epilogue(product, of):");
  lines.emplace_back(
      "    \"\"\"What the kernel makes of a product before it stores it; `of`: what its rank was "
      "given.\"\"\"");
  const auto given = [&](std::string one) {
    // Of a bias that is added once only the first rank has one.
    for (const FusedExtra& extra : fusions.front().extras) {
      const std::string word = "of[\"" + extra.name + "\"].to(WIDE)";
      for (std::size_t at = one.find(word); extra.is_added_once && at != one.npos;
           at = one.find(word, at)) {
        one.replace(at, word.size(), "of.get(\"" + extra.name + "\", 0)");
        const std::size_t behind = one.find(", 0)", at) + 4;
        if (behind < one.size() && one[behind] == '[')
          throw Failure(fmt::format("'{}' is added to what plan '{}' adds up over ranks, and does "
                                    "not lie along its last axis alone",
                                    extra.parameter, grids_.plan.name),
                        description_.definition.where(),
                        "add it to the result, or take a plan whose sums are whole, as ag-gemm");
      }
    }
    return one;
  };
  for (const std::string& one : epilogue.statements) lines.push_back("    " + given(one));
  lines.push_back("    return " + given(epilogue.result));
}

namespace {

/// NotReadBack, unlike prove_fused().
verify::Proof proof_of(const std::string& file, const std::string& text, const Monitor* monitor) {
  Library library;
  const Module& module = library.add(file, text);
  const RuleReport report = check_rules(library, module, {});
  if (!report.violations.empty())
    throw Failure(report.violations.front().what, report.violations.front().span.where(), "",
                  ExitCode::wrong_program);
  FusedReading reading = read_fused(file, text);
  const Bytes size = reading.program.fixed_size;
  return verify::check(
      program::bind(std::make_shared<const program::Program>(std::move(reading.program)), nullptr,
                    {size, DataType::float32, ReduceOp::sum}),
      {.monitor = monitor});
}

verify::Proof not_proven(std::string reason) {
  verify::Proof proof;
  proof.reasons = {std::move(reason)};
  proof.conclude();
  return proof;
}

const Diagnostic& first_of(const Failure& failure) {
  return failure.diagnostics().items().front();
}

std::string text_of(const SourceLocation& where) {
  return fmt::format("{}:{}", where.file, where.line);
}

std::string_view line_of(std::string_view text, int number) {
  for (; number > 1; --number) text.remove_prefix(std::min(text.size(), text.find('\n') + 1));
  return text.substr(0, text.find('\n'));
}

}  // namespace

verify::Proof prove_fused(const std::string& file, const std::string& text,
                          const Monitor* monitor) {
  try {
    return proof_of(file, text, monitor);
  } catch (const NotReadBack& failure) {
    return not_proven(
        fmt::format("line {}: {}", first_of(failure).where.line, first_of(failure).message));
  }
}

verify::Proof FusedFile::prove(const std::string& output, const std::string& text,
                               const Monitor* monitor) const {
  for (const Fusion& fusion : fusions_)
    for (const FusedExtra& extra : fusion.extras)
      if (extra.shape.empty())
        return not_proven(fmt::format(
            "{}: kernel '{}' does not say how large '{}' is, which its caller gives",
            text_of(description_.definition.where()), fusion.kernel->kernel, extra.parameter));
  const auto unusual = [&] {
    std::optional<Diagnostic> made;
    if (description_.family == Family::attention) return made;
    const Unusual found = what_is_unusual(output, text, made_by(fusion()).name);
    if (!found.what.empty())
      made.emplace(Diagnostic{Severity::error,
                              fmt::format("kernel '{}' {}", fusion().kernel->kernel, found.what),
                              place_of(found.line),
                              {}});
    return made;
  };
  const auto in_kernel = [&](const Failure& failure) {
    return place_of(line_of(text, first_of(failure).where.line));
  };
  try {
    verify::Proof proof = proof_of(output, text, monitor);
    if (proof.verdict == verify::Verdict::partial)
      if (const auto found = unusual())
        proof.reasons.push_back(text_of(found->where) + ": " + found->message);
    return proof;
  } catch (const NotReadBack& failure) {
    return not_proven(
        fmt::format("{}: {}", text_of(in_kernel(failure)), first_of(failure).message));
  } catch (const OtherValues& failure) {
    if (const auto found = unusual())
      throw Failure(found->message + ", and nothing says what that has to be", found->where,
                    "functions of one product of the plan's operands, at its element, are known; "
                    "do the rest in a kernel behind it");
    throw Failure(first_of(failure).message, in_kernel(failure), first_of(failure).hint,
                  ExitCode::wrong_program);
  } catch (const Failure& failure) {
    const Diagnostic& first = first_of(failure);
    const SourceLocation place = in_kernel(failure);
    if (first.where.file != output || place.line == description_.definition.where().line) throw;
    throw Failure(first.message, place, first.hint, failure.code());
  }
}

std::string emitted_realization(const plan::Plan& plan) {
  for (const plan::Code& code : plan.codes) {
    for (const plan::Stream& stream : code.streams)
      if (!only_copy(stream.items)) return "load-store";
  }
  return "copy-engine";
}

std::vector<Configuration> read_configurations(const std::string& text, const std::string& file) {
  const JsonText source(text, file);
  const JsonValue root = source.root();
  std::vector<Configuration> all;
  for (const JsonValue& one : root.items()) {
    Configuration made;
    made.span.file = file;
    made.span.line = one.where().line;
    for (const std::string& name : one.keys()) {
      const JsonValue value = one.at(name);
      const std::string python = python_value(value);
      if (name == "num_warps" || name == "num_stages")
        (name == "num_warps" ? made.warps : made.stages) = std::to_string(value.integer(1, 1024));
      else
        made.constants[name] = python;
    }
    all.push_back(std::move(made));
  }
  if (all.empty())
    root.fail("has no configuration", R"(for example [{"BLOCK_M": 128, "num_stages": 3}])");
  return all;
}

std::vector<Configuration> configurations_of(const KernelRequest& request) {
  std::vector<Configuration> all = request.configurations;
  if (all.empty()) {
    Library library(request.describe.helpers);
    const Module& module = module_of(library, request);
    all = read_tuning(library, choose_kernel(module, request.describe.kernel)).configurations;
  }
  if (all.empty()) all.emplace_back();
  return all;
}

}  // namespace hemiola::compile
