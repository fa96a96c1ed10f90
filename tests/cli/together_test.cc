// Verbs that several processes carry out together: the result is that of one, whoever is killed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "database.h"
#include "program.h"

namespace hemiola::test {
namespace {

constexpr const char* kTogetherSweep =
    "machine: dgx-h100\nranks: [4, 8]\nprogram: [all-reduce/ring, all-gather/ring]\n"
    "size: [4KiB, 16KiB, 100B, 256KiB, 1MiB]\nlaunch: [stream, graph]\ncheck: false\n";

std::string dump_of_points(const std::string& file) {
  return dump(file, {"SELECT * FROM meta ORDER BY key", "SELECT * FROM points ORDER BY point"});
}

/// As mpirun starts them: each in a folder of its own, so that what it prints is kept.
class Ranks {
 public:
  Ranks(int size, const std::string& arguments) {
    ::setenv("OMPI_COMM_WORLD_SIZE", std::to_string(size).c_str(), 1);
    for (int rank = 0; rank < size; ++rank) {
      ::setenv("OMPI_COMM_WORLD_RANK", std::to_string(rank).c_str(), 1);
      places_.emplace_back();
      running_.emplace_back(new Running(places_.back().start(arguments)));
    }
    ::unsetenv("OMPI_COMM_WORLD_SIZE");
    ::unsetenv("OMPI_COMM_WORLD_RANK");
  }
  Running& operator[](std::size_t rank) { return *running_[rank]; }

 private:
  std::deque<Workplace> places_;
  std::vector<std::unique_ptr<Running>> running_;
};

bool has_parts(const std::string& folder) {
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(folder, gone))
    if (entry.path().extension() == ".part") return true;
  return false;
}
/// Until something of it is made, or all is joined.
void wait_for_parts(const std::string& folder) {
  for (int i = 0; i < 3000 && !has_parts(folder); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST(Together, one_two_and_three_processes_one_of_them_killed_make_the_same_sweep) {
  const Workplace place;
  place.write("sweep.yaml", kTogetherSweep);
  const std::string out = place.path("out"), csv = place.path("out.csv");
  const std::string command =
      "sweep " + place.path("sweep.yaml") + " --output " + out + " --csv " + csv;
  const Outcome alone = place.run(command);
  ASSERT_EQ(alone.code, 2) << "100 B are refused; " << alone.err;
  const std::string whole = dump_of_points(out), text = place.read("out.csv");
  for (const int size : {2, 3}) {
    std::filesystem::remove(out);
    std::filesystem::remove(csv);
    Ranks ranks(size, command);
    if (size == 3) {
      wait_for_parts(out + ".parts");
      ranks[1].send(SIGKILL);
      ranks[1].wait();  // else it is still there, for half a minute, to whoever looks
    }
    const Outcome first = ranks[0].wait();
    EXPECT_EQ(first.code, 2) << first.err;
    EXPECT_EQ(first.out, alone.out) << size;
    for (int rank = 1; rank < size; ++rank) {
      if (size == 3 && rank == 1) continue;
      const Outcome other = ranks[static_cast<std::size_t>(rank)].wait();
      EXPECT_EQ(other.code, 0) << other.err;
      EXPECT_EQ(other.out, "") << "one prints";
    }
    EXPECT_EQ(dump_of_points(out), whole) << size;
    EXPECT_EQ(place.read("out.csv"), text) << size;
    EXPECT_EQ(place.files(), "out out.csv sweep.yaml ") << size;
  }
}

TEST(Together, when_all_are_killed_the_next_command_goes_on) {
  const Workplace place;
  place.write("sweep.yaml", kTogetherSweep);
  place.run("sweep sweep.yaml --output whole");
  const std::string out = place.path("out");
  const std::string command = "sweep " + place.path("sweep.yaml") + " --output " + out;
  {
    Ranks ranks(2, command);
    wait_for_parts(out + ".parts");
    for (const std::size_t rank : {0, 1}) ranks[rank].send(SIGKILL);
    for (const std::size_t rank : {0, 1}) ranks[rank].wait();
  }
  const Outcome next = place.run(command);
  EXPECT_EQ(next.code, 2) << next.err;
  EXPECT_EQ(dump_of_points(out), dump_of_points(place.path("whole")));
  EXPECT_EQ(place.files(), "out sweep.yaml whole ");
}

TEST(Together, a_suite_a_tuner_and_a_search_are_the_same_for_two_processes) {
  const Workplace place;
  place.write(
      "suite.yaml",
      "scenarios:\n- {name: a, operator: ag-gemm, gemm: [256, 256, 256], dtype: bf16, ranks: 2}\n"
      "- {name: b, operator: gemm-rs, gemm: [256, 256, 256], dtype: bf16, ranks: 2}\n");
  const std::string parts = place.path("parts");
  const std::string commands[] = {
      "explore --suite " + place.path("suite.yaml") +
          " --machine dgx-h100 --fluid 4 --top 1 --database " + place.path("suite"),
      "tune " HEMIOLA_SOURCE_DIR
      "/examples/kernels/gemm.py --plan ag-gemm/swizzle --ranks 2 --machine dgx-h100 --param m=256 "
      "--param n=256 --param k=256 --budget 4 --parts " +
          parts,
      "workload search gpt2 --machine dgx-h100 --ranks 2 --global-batch 4 --sequence 128 --engine "
      "estimate --parts " +
          parts};
  for (const std::string& command : commands) {
    if (command.starts_with("tune") && HEMIOLA_KERNELS == 0) continue;
    const Outcome alone = place.run(command);
    EXPECT_EQ(alone.code, 0) << command << alone.err;
    std::filesystem::remove_all(parts);
    std::filesystem::remove(place.path("suite"));
    Ranks ranks(2, command);
    const Outcome first = ranks[0].wait(), second = ranks[1].wait();
    EXPECT_EQ(first.code, 0) << command << first.err;
    EXPECT_EQ(first.out, alone.out) << command;
    EXPECT_EQ(second.code, 0) << command << second.err;
    EXPECT_EQ(second.out, "") << command;
    std::filesystem::remove_all(parts);
  }
}

constexpr const char* kTogetherModel =
    "name: small\nlayers: 4\nhidden: 1024\nheads: 16\nactivation: swiglu\nvocabulary: 32000\n"
    "sequence: 512\nnorm: rms\n";

TEST(Together, the_situations_of_a_workload_are_shared_out_and_its_bytes_are_those_of_one) {
  const Workplace place;
  place.write("model.yaml", kTogetherModel);
  const std::string make =
      "workload make " + place.path("model.yaml") + " --tp 2 --dp 2 --zero 1 --global-batch 4 ";
  ASSERT_EQ(place.run(make + "-o " + place.path("trace")).code, 0);
  const std::string parts = place.path("parts"), json = place.path("out.json");
  const std::string run =
      "run " + place.path("trace") +
      " --machine dgx-h100 --ranks 4 --engine estimate --detail reduce-scatter=fluid --json " +
      json;
  const Outcome alone = place.run(run);
  ASSERT_EQ(alone.code, 0) << alone.err;
  const std::string command_of_json = "\"command\"";
  const auto numbers = [&] {  // without the command that made them
    const std::string text = place.read("out.json");
    return text.substr(text.find('\n', text.find(command_of_json)));
  };
  const std::string whole = numbers();
  EXPECT_TRUE(contains(alone.out, " situations of launches")) << alone.out;
  EXPECT_FALSE(contains(alone.out, " 0 situations")) << alone.out;
  for (const int size : {1, 2, 3}) {
    std::filesystem::remove_all(parts);
    std::filesystem::remove(json);
    Ranks ranks(size, run + " --parts " + parts);
    if (size == 3) {
      wait_for_parts(parts);
      ranks[1].send(SIGKILL);
      ranks[1].wait();  // else it is still there, for half a minute, to whoever looks
    }
    const Outcome first = ranks[0].wait();
    EXPECT_EQ(first.code, 0) << first.err;
    EXPECT_EQ(first.out, alone.out) << size;
    EXPECT_EQ(numbers(), whole) << size;
    for (int rank = 1; rank < size; ++rank) {
      if (size == 3 && rank == 1) continue;
      const Outcome other = ranks[static_cast<std::size_t>(rank)].wait();
      EXPECT_EQ(other.code, 0) << other.err;
      EXPECT_EQ(other.out, "") << "one prints";
    }
  }
  // The model's own command finds all of it in the folder, and one whose calls run something else
  // is refused.
  EXPECT_EQ(place.run(make + "--machine dgx-h100 --quiet --parts " + parts).code, 0);
  const Outcome refused = place.run(run + " --launch graph --parts " + parts);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "holds parts of something else")) << refused.err;
}

TEST(Together, a_slurm_array_is_written_and_submitted) {
  const Workplace place;
  place.write("sweep.yaml", kTogetherSweep);
  place.run("sweep sweep.yaml --output whole");
  ::setenv("PATH", (place.path("bin") + ":/usr/bin:/bin").c_str(), 1);
  const std::string command =
      "sweep sweep.yaml --output out --slurm 3 --slurm-option '--time=0:10'";
  const Outcome without = place.run(command);
  EXPECT_EQ(without.code, 2);
  EXPECT_TRUE(contains(without.err,
                       "out.parts.sbatch: error: cannot be submitted: there is no "
                       "sbatch"))
      << without.err;
  EXPECT_TRUE(contains(place.read("out.parts.sbatch"), "#SBATCH --array=0-2\n#SBATCH --time=0:10"));
  const Outcome written = place.run(command + " --slurm-script job.sh");
  EXPECT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(place.read("job.sh"), place.read("out.parts.sbatch"));
  // One that runs the tasks of the array one after the other.
  std::filesystem::create_directory(place.path("bin"));
  place.write("bin/sbatch",
              "#!/bin/sh\nfor i in 2 0 1; do SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_TASK_COUNT=3 "
              "SLURM_ARRAY_TASK_MIN=0 sh $1 >task$i; done\nexit 0\n");
  ::chmod(place.path("bin/sbatch").c_str(), 0755);
  const Outcome submitted = place.run(command);
  EXPECT_EQ(submitted.code, 0) << submitted.err;
  EXPECT_EQ(dump_of_points(place.path("out")), dump_of_points(place.path("whole")));
  EXPECT_EQ(place.read("task2"), "");
  EXPECT_TRUE(contains(place.read("task0"), "40 points")) << place.read("task0");
}

TEST(Together, bad_usage_has_one_message) {
  const Workplace place;
  place.write("sweep.yaml", kTogetherSweep);
  const std::pair<const char*, const char*> cases[] = {
      {"workload search gpt2 --machine dgx-h100 --slurm 2",
       "--slurm: error: the tasks of an array need"},
      {"sweep sweep.yaml --output o --slurm-script x", "goes with --slurm N only"},
      {"sweep sweep.yaml --output o --slurm 0", "--slurm: error: "},
      {"sweep sweep.yaml --output o --parts sweep.yaml", "sweep.yaml: error: is no folder"},
      {"explore ag-gemm --gemm 256,256,256 --machine dgx-h100 --parts x", "goes with --suite only"},
      {"workload make gpt2 --parts x", "goes with --machine only"},
      {"run all-reduce/ring --machine dgx-h100 --size 1KiB --parts x", "is of workloads"}};
  for (const auto& [arguments, expected] : cases) {
    const Outcome outcome = place.run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(contains(outcome.err, expected)) << arguments << '\n' << outcome.err;
  }
  Ranks ranks(2, "workload search gpt2 --machine dgx-h100");
  const Outcome outcome = ranks[0].wait();
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(contains(outcome.err, "2 processes were started (OMPI_COMM_WORLD_SIZE)"))
      << outcome.err;
  ranks[1].wait();
}

}  // namespace
}  // namespace hemiola::test
