#include "inputs.h"

#include <algorithm>
#include <ostream>

namespace hemiola::test {
namespace {

namespace fs = std::filesystem;

Input plan(const char* file, Bytes timed_up_to = MiB(1), const char* machine = "dgx-h100") {
  return {std::string("mscclpp_json/") + file, machine, "", {}, timed_up_to};
}

Input algorithm(const char* file, const char* machine, Bytes timed_up_to = KiB(1)) {
  return {std::string("msccl_xml/") + file, machine, "", {}, timed_up_to};
}

/// Two nodes of four GPUs.
Input two_nodes(const char* file) {
  Input input = algorithm(file, "dgx-h100:2", MiB(1));
  input.ranks = {0, 1, 2, 3, 8, 9, 10, 11};
  return input;
}

/// One ring of 16 ranks and many channels, in three protocols. With packets a proof takes long at
/// any size; smaller rings and all-pairs with packets are proven in every run.
Input sixteen_on_a_switch(const char* file, bool long_proof) {
  Input input = algorithm(file, "switch:16");
  input.gpu = "mi300x";
  input.long_proof = long_proof;
  return input;
}

}  // namespace

void PrintTo(const Input& input, std::ostream* out) {
  *out << input.file;
}

const std::vector<Input>& right_programs() {
  static const std::vector<Input> all = {
      plan("allreduce.json", MiB(16)),
      plan("allreduce_8g.json"),
      plan("allreduce_nvls_zero_copy_8g.json", MiB(1), "hgx-h200"),
      plan("allreduce_packet.json", MiB(16)),
      plan("allreduce_pkt_8g.json"),
      plan("alltoall_8g.json"),
      plan("alltoall_pipeline_8g.json"),
      plan("reduce.json", MiB(16)),
      plan("reduce_nvls.json", MiB(16), "hgx-h200"),
      plan("reduce_pack.json"),
      plan("transfer_pack.json"),
      algorithm("allreduce_allpairs_8g_LL.xml", "dgx-h100"),
      algorithm("allreduce_ring_8g_1ch_LL128.xml", "dgx-h100", MiB(1)),
      two_nodes("alltoall_two_step_2n_4g.xml"),
      algorithm("custom_ring_allreduce_8npus_1MB.xml", "dgx-h100", MiB(1)),
      two_nodes("hierarchical_allreduce_4g_2n.xml"),
      algorithm("ndv4_ag-16m.xml", "dgx-a100", MiB(1)),
      algorithm("ndv4_ag-1k-512k.xml", "dgx-a100"),
      algorithm("ndv4_ag-1m.xml", "dgx-a100"),
      algorithm("ndv4_ag-2m.xml", "dgx-a100"),
      algorithm("ndv4_ag-32m-1g.xml", "dgx-a100", MiB(1)),
      algorithm("ndv4_ag-4m.xml", "dgx-a100", MiB(1)),
      algorithm("ndv4_ag-8m.xml", "dgx-a100", MiB(1)),
      algorithm("ndv4_ap-1pass.xml", "dgx-a100"),
      algorithm("ndv4_ap2ll.xml", "dgx-a100"),
      algorithm("ndv4_ap4ll.xml", "dgx-a100"),
      algorithm("ndv4_r48ll.xml", "dgx-a100"),
      algorithm("ndv4_r48ll128.xml", "dgx-a100"),
      sixteen_on_a_switch("rccl_all-reduce-ring-ll.xml.gz", true),
      sixteen_on_a_switch("rccl_all-reduce-ring-ll128.xml.gz", true),
      sixteen_on_a_switch("rccl_all-reduce-ring-simple.xml.gz", false),
      algorithm("rccl_allreduce-allpairs-8n-ll-32tb.xml", "mi300x-8"),
      algorithm("rccl_allreduce-allpairs-8n-simple.xml", "mi300x-8", MiB(1)),
  };
  return all;
}

fs::path shared_input(const std::string& name) {
  return fs::path(HEMIOLA_SOURCE_DIR "/../shared/inputs") / name;
}

std::vector<fs::path> files_of(const std::string& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(shared_input(folder)))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool have_inputs() {
  return fs::is_directory(shared_input());
}

machine::Machine machine_of(const Input& input) {
  machine::Machine machine = machine::load(input.machine, {.gpu = input.gpu});
  if (!input.ranks.empty()) machine.place(input.ranks);
  return machine;
}

program::Bound bound_at(const program::Program& program, machine::SharedMachine machine,
                        Bytes size) {
  return program::bind(program, std::move(machine),
                       {.size = program.next_legal_size(size, DataType::float32)});
}

}  // namespace hemiola::test
