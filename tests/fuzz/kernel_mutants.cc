// Kernels with something wrong in them through `describe` and through fusion with a plan: each ends
// in a message or in a text that parses, and nothing else happens. The same in every run.
//
//     kernel_mutants ROOT COUNT FILE
//
// ROOT: of the project. COUNT: of mutants. FILE: gets all texts that were written, each behind a
// zero byte, for Python's own parser (kernel_mutants.py).
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "compile/fused/fused_file.h"
#include "compile/readback/readback.h"
#include "corpus.h"
#include "guard.h"
#include "kernel_damage.h"
#include "plan/plan_json.h"
#include "plan/template.h"

namespace hemiola::fuzz {
namespace {

/// Files of tests that have kernels between three quotes.
constexpr const char* kTests[] = {"/tests/fused/strangers.py", "/tests/fused/live_test.py"};
constexpr const char* kOutput = "fused.py";

struct Counts {
  int parsed = 0;     ///< mutants that are Python
  int described = 0;  ///< kernels of these
  int fused = 0, refused = 0;
  int moving = 0;                        ///< files whose programs move data, or store to peers
  int read_back = 0, not_read_back = 0;  ///< of those that were fused
};

void add_quoted(const std::string& text, const std::string& quotes,
                std::vector<std::string>& kernels) {
  for (std::size_t at = text.find(quotes); at != text.npos;) {
    const std::size_t end = text.find(quotes, at + 3);
    if (end == text.npos) return;
    const std::string one = text.substr(at + 3, end - at - 3);
    if (one.find("@triton.jit") != one.npos) kernels.push_back(one);
    at = text.find(quotes, end + 3);
  }
}

std::vector<std::string> kernels_of_project(const std::string& root) {
  std::vector<std::string> kernels = seeds_of("kernel", root);
  for (const char* file : kTests)
    for (const char* quotes : {"\"\"\"", "'''"})
      add_quoted(content_of(root + file), quotes, kernels);
  return kernels;
}

/// One for each family of operators, and one whose compute is of one operand.
std::vector<plan::Plan> some_plans(const std::string& root) {
  const plan::Parameters product{{"m", "64"}, {"n", "32"}, {"k", "32"}};
  const plan::Parameters attention{{"heads", "2"}, {"sequence", "64"}, {"head", "16"}};
  std::vector<plan::Plan> made;
  for (const char* name : {"ag-gemm/swizzle", "gemm-rs/direct", "gemm-ar/partitioned",
                           "a2a-gemm/direct", "gemm-rs/ring"})
    made.push_back(plan::make(name, 2, product));
  plan::Parameters pushed = product;
  pushed.emplace_back("transfer", "push");
  made.push_back(plan::make("gemm-rs/direct", 2, pushed));
  made.push_back(plan::make("ring-attention/ring", 2, attention));
  const std::string file = root + "/tests/fuzz/seeds/plan/elementwise.json";
  made.push_back(plan::read_plan(content_of(file), file));
  return made;
}

/// What `hemiola compile KERNEL.py --describe` and `--plan PLAN` do with a text.
class Compiler {
 public:
  Compiler(const std::vector<plan::Plan>& plans, Counts& counts, std::ofstream& output)
      : plans_(plans), counts_(counts), output_(output) {}

  void compile(const std::string& text) {
    attempt([&] {
      compile::Library library;
      const compile::Module& module = library.add("kernel.py", text);
      ++counts_.parsed;
      for (const compile::KernelName& one : compile::kernels_of(module))
        if (!one.is_helper) attempt([&] { compile(library, module, one.name, text); });
    });
  }

 private:
  void compile(compile::Library& library, const compile::Module& module, const std::string& kernel,
               const std::string& text) {
    compile::KernelRequest request{.describe = {.file = "kernel.py", .kernel = kernel},
                                   .text = text};
    const compile::Description described = compile::describe(library, module, request.describe);
    ++counts_.described;
    for (const compile::KernelParameter& parameter : described.parameters)
      if (const std::string value = value_of(parameter.name); !value.empty())
        request.describe.constants[parameter.name] = value;
    for (const plan::Plan& plan : plans_) fuse(request, plan);
  }

  static std::string value_of(const std::string& name) {
    if (name.starts_with("BLOCK_")) return "16";
    if (name == "SPLIT_K" || name == "GROUP_M") return "2";
    if (name == "CAUSAL") return "False";
    return name == "scale" ? "0.25" : "";
  }

  void fuse(const compile::KernelRequest& request, const plan::Plan& plan) {
    const bool is_fused = write(request, plan, 3'000'000);
    ++(is_fused ? counts_.fused : counts_.refused);
    if (!is_fused) return;
    compile::KernelRequest other = request;
    other.carries = true;
    counts_.moving += write(other, plan, kFewSteps);
    other.carries = false;
    other.stores_to_peers = true;
    counts_.moving += write(other, plan, kFewSteps);
  }

  static constexpr std::int64_t kFewSteps = 300'000;  ///< what is undamaged takes fewer

  /// Whether there is a file.
  bool write(const compile::KernelRequest& request, const plan::Plan& plan, std::int64_t steps) {
    std::string text;
    const bool is_fused = attempt([&] {
      text = compile::FusedFile(request, plan, "plan.json")
                 .write({.file = "plan.json", .command = "hemiola", .version = "0"}, kOutput)
                 .text;
    });
    if (!is_fused) return false;
    output_ << '\0' << text;
    if (!attempt([&] { compile::Library().add(kOutput, text); })) {
      std::fprintf(stderr, "what was written does not parse:\n%s\n", text.c_str());
      std::abort();
    }
    const bool is_read =
        attempt([&] { compile::read_fused(kOutput, text, {.most_steps = steps}); });
    ++(is_read ? counts_.read_back : counts_.not_read_back);
    return true;
  }

  /// Whether it does it. Anything but a Failure with a message ends the process.
  static bool attempt(const std::function<void()>& what) {
    try {
      what();
      return true;
    } catch (const Failure& failure) {
      if (failure.code() != ExitCode::internal && failure.diagnostics().has_errors() &&
          !failure.diagnostics().items().front().message.empty())
        return false;
      std::fprintf(stderr, "not a refusal of a kernel: '%s'\n", failure.what());
      std::abort();
    }
  }

  const std::vector<plan::Plan>& plans_;
  Counts& counts_;
  std::ofstream& output_;
};

int run(const std::string& root, int count, const std::string& file) {
  const std::vector<std::string> kernels = kernels_of_project(root);
  const std::vector<plan::Plan> plans = some_plans(root);
  std::ofstream output(file, std::ios::binary);
  Counts counts;
  Compiler compiler(plans, counts, output);
  Draw draw{1};
  for (int i = 0; i < count; ++i) {
    const std::string& seed = kernels[static_cast<std::size_t>(i) % kernels.size()];
    const std::string text = damaged_kernel(seed, kernels[draw.next(kernels.size())], draw);
    guarded(text, [&] {
      compiler.compile(text);
      return true;
    });
  }
  fmt::print(
      "{} mutants of {} kernels: {} are Python, with {} kernels that are described; of these and "
      "{} plans {} pairs are fused and {} refused; {} more files have programs that move data or "
      "store "
      "to peers; of all files {} are read back and {} refused\n",
      count, kernels.size(), counts.parsed, counts.described, plans.size(), counts.fused,
      counts.refused, counts.moving, counts.read_back, counts.not_read_back);
  const bool has_both = counts.parsed < count && counts.fused > 0 && counts.refused > 0;
  return has_both ? 0 : 1;
}

int main_of(const std::vector<std::string>& arguments) {
  if (arguments.size() != 3) {
    fmt::print(stderr, "usage: kernel_mutants ROOT COUNT FILE\n");
    return 2;
  }
  guard_process();
  return run(arguments[0], std::atoi(arguments[1].c_str()), arguments[2]);
}

}  // namespace
}  // namespace hemiola::fuzz

int main(int count, char** arguments) {
  return hemiola::fuzz::main_of({arguments + 1, arguments + count});
}
