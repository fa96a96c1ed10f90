#include "compile/emit/fused_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "compile/fuse/carry.h"
#include "compile/fuse/tasks.h"
#include "core/json.h"
#include "plan/plan_json.h"
#include "study/support/digest.h"

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

bool only_copy(const std::vector<plan::Item>& items) {
  return std::all_of(items.begin(), items.end(), [](const plan::Item& item) {
    if (const auto* loop = std::get_if<plan::Loop>(&item)) return only_copy(loop->items);
    const auto& transfer = std::get<plan::Transfer>(item);
    return transfer.kind != plan::TransferKind::collective && transfer.reduce == ReduceOp::none;
  });
}

/// 128, "fp16", true, null: as Python writes it.
std::string python_value(const JsonValue& value, const nlohmann::json& raw) {
  if (raw.is_boolean()) return raw.get<bool>() ? "True" : "False";
  if (raw.is_null()) return "None";
  if (raw.is_string()) return raw.dump();
  if (!raw.is_number()) value.fail("is no value of a parameter", "a number, a text, true or null");
  return raw.dump();
}

}  // namespace

FusedFile::FusedFile(const KernelRequest& request, const plan::Plan& plan,
                     const std::string& plan_file)
    : file_(request.describe.file),
      library_(request.describe.helpers),
      module_(module_of(library_, request)),
      description_(description_of(library_, module_, request.describe)),
      digest_(study::digest(plan::write_plan(plan))),
      grids_(grids_of(plan, plan_file)),
      stores_(request.stores_to_peers ? take_pushes(grids_, plan_file) : std::vector<TileStore>{}),
      fusions_(with_stores(fuse(description_, grids_,
                                {.plan_file = plan_file,
                                 .constants = request.describe.constants,
                                 .configurations = request.configurations}),
                           stores_)),
      carries_(request.carries),
      text_(fused_text(library_, choose_kernel(module_, request.describe.kernel), fusions_,
                       carries_ ? carried_type(grids_.plan, plan_file) : std::string{})) {}

bool FusedFile::takes_movers() const {
  const bool waits = std::any_of(fusions_.begin(), fusions_.end(), [](const Fusion& one) {
    return one.waits() || one.waits_in_loop();
  });
  return !waits || description_.scheduler.loop >= 0;
}

bool FusedFile::can_carry() const {
  try {
    carried_type(grids_.plan, file_);
    carried_of(grids_.plan, fusions_, tasks_of(grids_.plan, file_, &fusions_), file_);
    return description_.scheduler.is_persistent;
  } catch (const Failure&) {
    return false;
  }
}

TorchFile FusedFile::write(TorchOptions options, const std::string& output) const {
  options.kernel = {&fusions_, &text_, file_, stores_.empty() ? nullptr : &stores_};
  options.digest = digest_;
  options.movers.carried = carries_;
  TorchFile made = torch_of(grids_.plan, options);
  check_fused_text(output, made.text, text_, fusions_);
  return made;
}

std::string emitted_realization(const plan::Plan& plan) {
  for (const plan::Code& code : plan.codes) {
    for (const plan::Stream& stream : code.streams)
      if (!only_copy(stream.items)) return "load-store";
  }
  return "copy-engine";
}

std::vector<Configuration> read_configurations(const std::string& text, const std::string& file) {
  const JsonFile source{text, file};
  const nlohmann::json parsed = parse_json(source);
  const JsonValue root(parsed, source);
  std::vector<Configuration> all;
  const std::vector<JsonValue> items = root.items();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const JsonValue& one = items[i];
    Configuration made;
    made.span.file = file;
    made.span.line = one.where().line;
    for (const std::string& name : one.keys()) {
      const JsonValue value = one.at(name);
      const std::string python = python_value(value, parsed.at(i).at(name));
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
