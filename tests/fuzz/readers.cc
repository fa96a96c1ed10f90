#include "readers.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "compile/fused_file.h"
#include "core/affine.h"
#include "core/lists.h"
#include "core/text.h"
#include "explore/own_times.h"
#include "explore/rules.h"
#include "explore/scenarios.h"
#include "machine/gemm_table.h"
#include "machine/gpu_model.h"
#include "machine/infragraph.h"
#include "machine/infragraph_slices.h"
#include "machine/nccl_topology.h"
#include "plan/plan_json.h"
#include "plan/template.h"
#include "program/program.h"
#include "study/job_file.h"
#include "study/measured.h"
#include "study/profile_file.h"
#include "study/result_file.h"
#include "study/suite.h"
#include "study/sweep.h"
#include "study/trace_import.h"
#include "study/traffic.h"
#include "workload/astra_configuration.h"
#include "workload/collective_rules.h"
#include "workload/groups.h"
#include "workload/hlo_lift.h"
#include "workload/iteration_table.h"
#include "workload/model.h"
#include "workload/trace_reader.h"
#include "workload/trace_sizes.h"

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
  compile::FusedFile(request, plan, "plan.json").write(plan, {.file = "plan.json"}, "fused.py");
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
  any_of([&] { study::import_kineto({file}, true); },
         [&] { study::import_rocprof(file, "nccl|vecCopy"); });
}

void read_groups(std::string_view text) {
  if (!workload::parse_group_file(text) && !workload::parse_process_groups(text))
    throw Failure("no groups");
}

constexpr Reader kReaders[] = {
    {"option", read_option},
    {"infragraph", [](std::string_view text) { machine::from_infragraph(text, kName); }},
    {"nccl-topology", [](std::string_view text) { machine::from_nccl_topology(text, kName); }},
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
       explore::read_own_times(std::string(text), kName, DataType::bfloat16);
     }},
    {"kernel", read_kernel},
    {"configurations",
     [](std::string_view text) { compile::read_configurations(std::string(text), kName); }},
    // Four formats of traces and the archives of them; read_workload() tells them by content.
    {"chakra", read_trace},
    {"pytorch", read_trace},
    {"kineto", read_trace},
    {"archive", read_trace},
    {"hlo", read_module},
    {"groups", read_groups},
    {"sizes", [](std::string_view text) { workload::CallSizes(TextFile(text).path()); }},
    {"collectives", [](std::string_view text) { workload::parse_collective_rules(text, kName); }},
    {"model", [](std::string_view text) { workload::parse_model(text, kName); }},
    {"iterations", [](std::string_view text) { workload::read_iterations(text, kName); }},
    {"astra-system",
     [](std::string_view text) {
       Diagnostics notices;
       workload::read_astra_system(text, kName, notices);
     }},
    {"astra-network", [](std::string_view text) { workload::read_astra_network(text, kName); }},
    {"astra-memory",
     [](std::string_view text) {
       Diagnostics notices;
       workload::read_astra_memory(text, kName, notices);
     }},
    {"astra-groups", [](std::string_view text) { workload::read_astra_groups(text, kName); }},
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
