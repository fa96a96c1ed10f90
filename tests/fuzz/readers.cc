#include "readers.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "compile/fused/fused_file.h"
#include "compile/readback/readback.h"
#include "compile/rules/rules.h"
#include "core/affine.h"
#include "core/lists.h"
#include "core/text.h"
#include "explore/rules/rules.h"
#include "explore/suite/scenarios.h"
#include "explore/suite/suite_database.h"
#include "explore/trials/measured_times.h"
#include "machine/devices/gpu_model.h"
#include "machine/infragraph/infragraph.h"
#include "machine/infragraph/slices.h"
#include "machine/nccl/topology.h"
#include "machine/simai/topology.h"
#include "machine/testing/gemm_table.h"
#include "plan/plan_json.h"
#include "plan/template.h"
#include "program/program.h"
#include "program/promise.h"
#include "study/laboratory/job_file.h"
#include "study/profiles/profile_file.h"
#include "study/profiles/trace_import.h"
#include "study/profiles/traffic.h"
#include "study/results/result_file.h"
#include "study/sweep/sweep.h"
#include "study/sweep/sweep_database.h"
#include "study/tables/measured.h"
#include "study/tables/suite.h"
#include "tune/database.h"
#include "workload/costs/collective_rules.h"
#include "workload/hlo/lift.h"
#include "workload/iteration/iteration_table.h"
#include "workload/models/model.h"
#include "workload/trace_reader.h"
#include "workload/traces/groups.h"
#include "workload/traces/sizes.h"

namespace hemiola::fuzz {
namespace {

const std::string kName = "input";

/// A text as a file, for readers that take a path. One at a time.
class TextFile {
 public:
  explicit TextFile(std::string_view text) {
    std::filesystem::remove(path());  // writing over it waits for the disk
    std::ofstream(path(), std::ios::binary) << text;
  }
  ~TextFile() { std::filesystem::remove(path()); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;

  static const std::string& path() {
    static const Folder folder;
    return folder.file;
  }

 private:
  struct Folder {
    Folder() {
      // In memory where there is such a file system: an execution is a matter of microseconds.
      const std::string memory = "/dev/shm";
      std::string name = (std::filesystem::is_directory(memory)
                              ? memory
                              : std::filesystem::temp_directory_path().string()) +
                         "/hemiola-fuzz-XXXXXX";
      if (mkdtemp(name.data()) == nullptr) std::abort();
      file = name + "/" + kName;
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(std::filesystem::path(file).parent_path(), ignored);
    }
    std::string file;
  };
};

/// Refused only if everyone refuses.
template <typename... Readings>
void any_of(const Readings&... readings) {
  int taken = 0;
  const auto attempt = [&](const auto& reading) {
    try {
      reading();
      ++taken;
    } catch (const Failure&) {
    }
  };
  (attempt(readings), ...);
  if (taken == 0) throw Failure("nothing takes it");
}

/// As the trace of a rank, and as what two ranks do with all that is lenient.
void read_trace(std::string_view text) {
  const TextFile file(text);
  any_of([&] { workload::read_workload({.path = file.path()}); },
         [&] { workload::read_workload({.path = file.path(), .lenient = true, .replicate = 2}); });
}

/// A module as a workload, and the products in it that plans are lifted from.
void read_module(std::string_view text) {
  any_of([&] { read_trace(text); },
         [&] { workload::hlo::find_products(workload::hlo::parse(kName, std::string(text))); });
}

void read_job(std::string_view text) {
  static const machine::SharedMachine machine = machine::share(machine::load("dgx-h100"));
  study::Laboratory laboratory;
  study::parse_job(text, kName, machine, laboratory);
}

/// All that `hemiola compile KERNEL.py --plan` does with a kernel.
void read_kernel(std::string_view text) {
  static const plan::Parameters sizes{{"m", "64"}, {"n", "32"}, {"k", "32"}};
  static const plan::Plan plans[] = {plan::make("ag-gemm/swizzle", 2, sizes),
                                     plan::make("gemm-rs/direct", 2, sizes)};
  const std::string whole(text);
  compile::Library library;
  const compile::Module& module = library.add("kernel.py", whole);
  compile::KernelRequest request{.describe = {.file = "kernel.py"}, .text = whole};
  for (const compile::KernelName& one : compile::kernels_of(module))
    if (!one.is_helper) request.describe.kernel = one.name;
  const compile::Description described = compile::describe(library, module, request.describe);
  for (const compile::KernelParameter& one : described.parameters) {
    if (one.name.starts_with("BLOCK_")) request.describe.constants[one.name] = "16";
    if (one.name == "SPLIT_K") request.describe.constants[one.name] = "2";
  }
  const plan::Plan& plan = plans[text.size() % 2];
  compile::FusedFile(request, plan, "plan.json").write({.file = "plan.json"}, "fused.py");
}

/// What `hemiola check KERNEL.py` says of a kernel that somebody else wrote.
void read_rules(std::string_view text) {
  compile::Library library;
  const compile::Module& module = library.add("kernel.py", std::string(text));
  compile::RuleRequest request;
  std::vector<std::string> names;
  for (const compile::KernelName& one : compile::kernels_of(module))
    if (!one.is_helper) names.push_back(one.name);
  if (names.empty()) names.push_back(compile::choose_kernel(module, "").name);
  for (const std::string& name : names) {
    request.kernel = name;
    compile::check_rules(library, module, request);
  }
}

/// So that a text that asks for much is refused in time: a file of the seeds takes some 10,000.
constexpr std::int64_t kMostSteps = 300'000;
constexpr std::int64_t kMostWords = 16 << 20;

/// What `hemiola check FUSED.py` and `run` read: a program of as many tiles at once as there are,
/// or of three, bound to the size that the file has.
void read_fused_file(std::string_view text) {
  if (!compile::is_fused_text(text)) throw Failure("it is no fused file");
  const std::int64_t processors = text.size() % 2 == 0 ? 0 : 3;
  compile::FusedReading reading = compile::read_fused("fused.py", std::string(text),
                                                      {.processors = processors,
                                                       .traces = true,
                                                       .most_steps = kMostSteps,
                                                       .most_words = kMostWords});
  const Bytes size = reading.program.fixed_size;
  program::bind(std::make_shared<const program::Program>(std::move(reading.program)), nullptr,
                {size, DataType::float32, ReduceOp::sum});
}

constexpr const char* kKernelText = R"(import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptr + m[:, None] * K + (ks[None, :] + k * BLOCK_K))
        b = tl.load(b_ptr + (ks[:, None] + k * BLOCK_K) * N + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty))
)";

/// A trace of Triton's interpreter (`check --trace`), beside a fused file of 2 ranks with 4 tiles.
void read_kernel_trace(std::string_view text) {
  static const std::string fused = [] {
    const plan::Plan plan =
        plan::make("ag-gemm/swizzle", 2, {{"m", "64"}, {"n", "32"}, {"k", "32"}});
    compile::KernelRequest request{.describe = {.file = "kernel.py"}, .text = kKernelText};
    request.describe.constants = {{"BLOCK_M", "16"}, {"BLOCK_N", "16"}, {"BLOCK_K", "16"}};
    return compile::FusedFile(request, plan, "plan.json")
        .write({.file = "plan.json"}, "fused.py")
        .text;
  }();
  compile::compare_trace("fused.py", fused, kName, std::string(text));
}

/// What decides which reader a file is given to.
void read_format(std::string_view text) {
  const bool is_known = study::is_job(text) || plan::is_plan(text) || program::is_readable(text) ||
                        compile::is_fused_text(text);
  const Format format = recognise(text);
  if (describe(format).empty())
    throw Failure("a format without a name", {}, "", ExitCode::internal);
  if (format == Format::unknown && !is_known) throw Failure("it is of no format");
}

/// Lines NAME=VALUE, each as one `--set` of a machine.
void read_settings(std::string_view text) {
  static const machine::Machine shipped = machine::load("dgx-h100");
  machine::Machine machine = shipped;
  int set = 0;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    machine.set(line.substr(0, equals), line.substr(equals + 1));
    ++set;
  }
  if (set == 0) throw Failure("nothing is set");
}

/// What stands behind options: sizes, ranks, times, formulas, paths of a machine.
void read_option(std::string_view text) {
  any_of([&] { read_sizes(text, kOption); }, [&] { read_size(text, kOption); },
         [&] { read_range(text, 1 << 20, kOption); }, [&] { read_ranks(text, kOption); },
         [&] { read_rank_count(text, kOption); }, [&] { read_times(text, kOption); },
         [&] { read_count(text, 1, 1 << 20, kOption); }, [&] { parse_affine(text); },
         [&] { machine::infragraph::parse_path(text, kOption); },
         [&] { explore::parse_family(text, kOption); });
  parse_rate(text);
  parse_frequency(text);
}

void read_recordings(std::string_view text) {
  const study::NamedText file{kName, std::string(text)};
  study::NamedText other = file;  // the same of another rank
  if (const std::size_t at = other.second.find("\"rank\": 0"); at != other.second.npos)
    other.second[at + 8] = '1';
  any_of(
      [&] {
        study::import_kineto({file, other}, true);
      },
      [&] { study::import_rocprof(file, "nccl|vecCopy"); });
}

void read_groups(std::string_view text) {
  if (!workload::parse_group_file(text) && !workload::parse_process_groups(text))
    throw Failure("no groups");
}

void read_sweep_rows(std::string_view text) {
  const TextFile file(text);
  const study::SweepDatabase database(file.path());
  database.known();
  database.read([](const study::SweepRow&) {});
}

/// What a database belongs to that stands among the seeds.
const study::DatabaseHead kHead{.version = "fuzz", .machine = "fuzz", .machine_digest = "fuzz"};

void read_suite_rows(std::string_view text) {
  const TextFile file(text);
  const explore::SuiteDatabase database(file.path(), {kHead, "fuzz", 2});
  database.known();
  database.read();
}

/// What a tuner knows of one plan.
void read_tuned(std::string_view text) {
  const TextFile file(text);
  tune::Database database(file.path(), kHead);
  Time bound;
  explore::Measured fluid;
  explore::Confirmed sampled;
  database.find("fuzz", bound);
  database.find("fuzz", fluid);
  database.find("fuzz", sampled);
}

constexpr Reader kReaders[] = {
    {"option", read_option},
    {"settings", read_settings},
    {"format", read_format},
    {"infragraph", [](std::string_view text) { machine::from_infragraph(text, kName); }},
    {"nccl-topology", [](std::string_view text) { machine::from_nccl_topology(text, kName); }},
    {"simai-topology", [](std::string_view text) { machine::from_simai_topology(text, kName); }},
    {"gpu-model", [](std::string_view text) { machine::parse_gpu_model(text, kName); }},
    {"gemm-table",
     [](std::string_view text) {
       machine::parse_gemm_table(text, kName, {DataType::bfloat16, DataType::float16});
     }},
    {"plan", [](std::string_view text) { plan::read_plan(text, kName); }},
    {"mscclpp", [](std::string_view text) { program::read_mscclpp(text, kName); }},
    {"msccl", [](std::string_view text) { program::read_msccl(text, kName); }},
    {"job", read_job},
    {"sweep", [](std::string_view text) { study::read_sweep(TextFile(text).path()); }},
    {"profile", [](std::string_view text) { study::read_profile(text, kName); }},
    {"recordings", read_recordings},
    {"traffic", [](std::string_view text) { study::read_traffic(text, kName, 8); }},
    {"results", [](std::string_view text) { study::read_results(text, kName); }},
    {"measured", [](std::string_view text) { study::read_measured(text, kName); }},
    {"validate-suite", [](std::string_view text) { study::parse_suite(text, kName); }},
    {"scenarios", [](std::string_view text) { explore::parse_scenarios(text, kName); }},
    {"rule", [](std::string_view text) { explore::Rule::parse(text, kName); }},
    {"own-times",
     [](std::string_view text) {
       explore::read_measured_times(std::string(text), kName, DataType::bfloat16);
     }},
    {"sweep-rows", read_sweep_rows},
    {"suite-rows", read_suite_rows},
    {"tuned", read_tuned},
    {"promise", [](std::string_view text) { program::read_promise(text, kName, 4); }},
    {"kernel", read_kernel},
    {"kernel-rules", read_rules},
    {"fused", read_fused_file},
    {"kernel-trace", read_kernel_trace},
    {"configurations",
     [](std::string_view text) { compile::read_configurations(std::string(text), kName); }},
    // Formats of traces and the archives of them; read_workload() tells them by content.
    {"chakra", read_trace},
    {"pytorch", read_trace},
    {"kineto", read_trace},
    {"archive", read_trace},
    {"hlo", read_module},
    {"astra-text", read_trace},
    {"aicb", read_trace},
    {"groups", read_groups},
    {"sizes", [](std::string_view text) { workload::CallSizes(TextFile(text).path()); }},
    {"collectives", [](std::string_view text) { workload::parse_collective_rules(text, kName); }},
    {"model", [](std::string_view text) { workload::parse_model(text, kName); }},
    {"iterations", [](std::string_view text) { workload::read_iterations(text, kName); }},
};

}  // namespace

std::span<const Reader> readers() {
  return kReaders;
}

const Reader* find_reader(std::string_view name) {
  const auto* found = std::find_if(std::begin(kReaders), std::end(kReaders),
                                   [&](const Reader& one) { return one.name == name; });
  return found == std::end(kReaders) ? nullptr : found;
}

bool takes(const Reader& reader, std::string_view text) {
  try {
    reader.read(text);
    return true;
  } catch (const Failure& failure) {
    if (failure.code() != ExitCode::internal && failure.diagnostics().has_errors() &&
        !failure.diagnostics().items().front().message.empty())
      return false;
    std::fprintf(stderr, "%s: not a refusal of bad input: '%s'\n", std::string(reader.name).c_str(),
                 failure.what());
    std::abort();
  }
}

}  // namespace hemiola::fuzz
