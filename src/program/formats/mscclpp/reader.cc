// Reader of MSCCL++ execution plans.
//
// Source of the format: microsoft/mscclpp, src/core/executor/execution_plan.cc. What that reader
// takes is taken here; what it silently skips (unknown keys, unpaired counts) is an error here.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/finding.h"
#include "core/index.h"
#include "core/json.h"
#include "core/text.h"
#include "program/formats/format_reader.h"
#include "program/formats/mscclpp/declarations.h"
#include "program/formats/mscclpp/older_schema.h"
#include "program/formats/mscclpp/op_reader.h"
#include "program/program.h"
#include "program/promise.h"
#include "program/semantics/executor.h"

namespace hemiola::program {
namespace {

constexpr std::int64_t kReusedScratch = 1
                                        << 26;  ///< the executor's fixed scratch of reuse_resources

class Reader {
 public:
  explicit Reader(const JsonFile& file) : file_(file), json_(parse_json(file)) {
    nlohmann::json converted = convert_older_schema(json_, file, program_.warnings);
    if (!converted.is_null()) json_ = std::move(converted);
  }

  Program read() {
    const JsonValue root(json_, file_);
    read_head(root);
    const std::vector<JsonValue> gpus = root.at("gpus").items();
    if (gpus.empty()) root.at("gpus").fail("the plan has no GPUs");
    program_.ranks = static_cast<int>(gpus.size());
    declarations_ = read_declarations(gpus);
    for (const MscclppGpu& gpu : declarations_.gpus)
      program_.channels.push_back({gpu.memory_peers, gpu.port_peers});
    make_buffers(root);
    make_semaphores();
    for (int rank = 0; rank < program_.ranks; ++rank) read_code(gpus[index(rank)], rank);
    if (root.has("hemiola_promise")) read_own_promise(root.at("hemiola_promise"));
    warn_packets();
    rank_keys_.warn(program_.warnings, Leniency::ignored);
    program_.finish();
    return std::move(program_);
  }

 private:
  // --- head --------------------------------------------------------------------------------------

  void read_head(const JsonValue& root) {
    root.allow_keys({"name", "collective", "protocol", "inplace", "reuse_resources", "gpus",
                     "num_threads_per_block", "use_double_scratch_buffer", "buffer_alignment",
                     "min_message_size", "max_message_size", "hemiola_promise"});
    program_.name = root.at("name").text();
    program_.source = file_.name;
    program_.format = "mscclpp";
    read_collective(root.at("collective"));
    const std::string protocol = root.at("protocol").text();
    if (protocol != "Simple" && protocol != "LL")
      root.at("protocol")
          .fail(fmt::format("unknown protocol '{}'", protocol), "MSCCL++ plans are Simple or LL");
    program_.protocol = protocol == "LL" ? Protocol::ll : Protocol::simple;
    program_.in_place = root.at("inplace").boolean();
    reuse_ = root.has("reuse_resources") && root.at("reuse_resources").boolean();
    doubled_ =
        root.has("use_double_scratch_buffer") && root.at("use_double_scratch_buffer").boolean();
    if (root.has("buffer_alignment"))
      program_.alignment = {root.integer("buffer_alignment", 1, 1 << 20)};
    if (root.has("num_threads_per_block"))
      threads_ = static_cast<std::int32_t>(root.integer("num_threads_per_block", 1, 1024));
    if (root.has("min_message_size")) program_.min_size = message_size(root.at("min_message_size"));
    if (root.has("max_message_size")) program_.max_size = message_size(root.at("max_message_size"));
  }

  static Bytes message_size(const JsonValue& value) {
    return {
        static_cast<std::int64_t>(std::min<std::uint64_t>(value.unsigned_integer(), INT64_MAX))};
  }

  void read_collective(const JsonValue& value) {
    const std::string name = value.text();
    if (const auto known = parse_collective(name)) {
      program_.collective = *known;
      return;
    }
    program_.warnings.warning(
        fmt::format(
            "collective '{}' is not known: only a promise says what it leaves in the output", name),
        {.file = file_.name, .pointer = value.pointer()}, "--promise FILE states it");
  }

  void read_own_promise(const JsonValue& value) {
    if (program_.collective != Collective::custom)
      value.fail("what the plan's collective leaves is known", "leave this out");
    auto promise = std::make_shared<Promise>(read_promise(value, program_.ranks));
    promise->text = json_.at("hemiola_promise").dump();
    program_.promise = std::move(promise);
  }

  void make_semaphores() {
    for (std::int32_t i = 0; i < declarations_.memory.semaphores; ++i)
      program_.semaphores.push_back({.name = fmt::format("memory channel {}", i)});
    for (std::int32_t i = 0; i < declarations_.port.semaphores; ++i)
      program_.semaphores.push_back({.name = fmt::format("port channel {}", i)});
    for (const auto& [id, initial] : declarations_.local_semaphores)
      program_.semaphores.push_back(
          {.name = fmt::format("semaphore {}", id), .initial = initial, .local = true});
  }

  std::int64_t most_chunks(std::int32_t buffer) const { return declarations_.most_chunks(buffer); }

  Buffer make_buffer(std::string name, BufferKind kind, std::int32_t buffer) const {
    Buffer out{.name = std::move(name), .kind = kind};
    for (const MscclppGpu& each : declarations_.gpus)
      out.chunks.push_back(each.chunks[index(buffer)]);
    if (std::ranges::all_of(out.chunks, [&](auto n) { return n == out.chunks.front(); }))
      out.chunks.resize(1);
    return out;
  }

  void make_buffers(const JsonValue& root) {
    Buffer input = make_buffer("input", BufferKind::input, kInput);
    Buffer output = make_buffer("output", BufferKind::output, kOutput);
    Buffer scratch = make_buffer("scratch", BufferKind::scratch, kScratch);
    scratch.packets = program_.protocol == Protocol::ll;
    scratch.rotation = doubled_ ? 2 : 1;
    if (reuse_ && most_chunks(kScratch) > 0) scratch.chunk_limit = reused_chunk(scratch);
    const std::int64_t in = most_chunks(kInput), out = most_chunks(kOutput);
    if (in == 0 && out == 0) root.at("gpus").fail("no GPU has input or output chunks");
    // What nccl-tests calls size: the total output of an all-gather, else a rank's input.
    const bool by_output = program_.collective == Collective::all_gather || in == 0;
    program_.chunks_per_size = by_output && out > 0 ? out : in;
    if (program_.in_place) alias(input, output);
    program_.buffers = {std::move(input), std::move(output), std::move(scratch)};
  }

  /// In place: the smaller of input and output lies inside the other.
  void alias(Buffer& input, Buffer& output) const {
    const std::int64_t in = most_chunks(kInput), out = most_chunks(kOutput);
    if (program_.collective == Collective::all_gather && in < out) {
      input.alias = kOutput;
      input.alias_chunk = {.rank = 1, .scale = in};
    } else if (program_.collective == Collective::reduce_scatter && out < in) {
      output.alias = kInput;
      output.alias_chunk = {.rank = 1, .scale = out};
    } else if (in < out) {
      input.alias = kOutput;
    } else {
      output.alias = kInput;
    }
  }

  Bytes reused_chunk(const Buffer& scratch) const {
    std::int64_t size = kReusedScratch / scratch.rotation / (scratch.packets ? 2 : 1);
    size = (size + most_chunks(kScratch) - 1) / most_chunks(kScratch);
    const std::int64_t unit = program_.alignment.count;
    return {(size + unit - 1) / unit * unit};
  }

  bool uses_packets() const {
    const auto packet = [](const Operand& operand) {
      return operand.access == Access::packet || operand.access == Access::multicast_packet;
    };
    for (const Body& body : program_.bodies) {
      for (const Op& op : body.ops)
        if (std::ranges::any_of(op.src, packet) || std::ranges::any_of(op.dst, packet)) return true;
    }
    return false;
  }

  void warn_packets() {
    Buffer& scratch = program_.buffers[index(kScratch)];
    if (scratch.packets || !uses_packets()) return;
    scratch.packets = true;
    program_.warnings.warning(
        "the plan stores packets but its protocol is Simple: its scratch is taken to be twice as "
        "large, as for LL",
        {.file = file_.name, .pointer = "/protocol"},
        "the executor itself would write past its scratch buffer");
  }

  // --- code --------------------------------------------------------------------------------------

  void read_code(const JsonValue& value, int rank) {
    Kernel kernel{.name = program_.name, .threads = threads_};
    const std::vector<JsonValue> blocks = value.at("threadblocks").items();
    const auto count = static_cast<std::int64_t>(blocks.size());
    for (const JsonValue& block : blocks) {
      block.allow_keys({"id", "ops", "channels", "remote_buffer_refs"});
      const std::int64_t id = block.integer("id", 0, INT32_MAX);
      const auto position = static_cast<std::int64_t>(kernel.bodies.size());
      if (id != position)
        block.at("id").fail(
            fmt::format("thread block {} stands where thread block {} is needed", id, position),
            "thread blocks are numbered 0, 1, ... in order");
      Body body = read_thread_block(block, declarations_, rank, count, program_, rank_keys_);
      kernel.bodies.push_back(static_cast<std::int32_t>(program_.bodies.size()));
      program_.bodies.push_back(std::move(body));
    }
    const auto which = static_cast<std::int32_t>(program_.kernels.size());
    program_.kernels.push_back(std::move(kernel));
    program_.codes.push_back({{{StreamItem{.index = which}}}});
    program_.code_of.push_back(which);
  }

  const JsonFile& file_;
  nlohmann::json json_;
  Program program_;
  MscclppDeclarations declarations_;
  Finding rank_keys_;
  bool reuse_ = false;
  bool doubled_ = false;
  std::int32_t threads_ = 1024;
};

}  // namespace

Program read_mscclpp(std::string_view json, const std::string& file, std::string_view executor) {
  const JsonFile source{json, file};
  Program program = Reader(source).read();
  const Executor& runs = find_executor(executor.empty() ? "mscclpp" : executor, program.format);
  program.executed_by.name = runs.name;
  program.executed_by.threads_post = runs.threads_post;
  return program;
}

FormatReader mscclpp_reader() {
  return {"mscclpp", "MSCCL++ execution plans (JSON)",
          [](std::string_view content) { return recognise(content) == Format::mscclpp_json; },
          read_mscclpp, "microsoft/mscclpp, the executor of execution plans"};
}

}  // namespace hemiola::program
