#include "program/formats/msccl/document.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <pugixml.hpp>

#include "core/lists.h"
#include "core/text.h"

namespace hemiola::program::msccl {
namespace {

struct CollectiveName {
  std::string_view name;
  Collective collective;
};
/// The first name of a collective is the one that is written where no dialect is named.
constexpr std::array<CollectiveName, 8> kCollectives{{
    {"allreduce", Collective::all_reduce},
    {"allgather", Collective::all_gather},
    {"reducescatter", Collective::reduce_scatter},   // ROCm/rccl, Azure/msccl-scheduler
    {"reduce_scatter", Collective::reduce_scatter},  // msccl-tools, microsoft/msccl
    {"alltoall", Collective::all_to_all},
    {"broadcast", Collective::broadcast},
    {"reduce", Collective::reduce},
    {"custom", Collective::custom},
}};
/// rccl names these too; their results are not described yet.
constexpr std::array<std::string_view, 5> kCollectivesNotRead{"send", "recv", "gather", "scatter",
                                                              "alltoallv"};

struct ReductionName {
  std::string_view name;
  ReduceOp op;
};
/// "nop" is what tools write for collectives that reduce nothing.
constexpr std::array<ReductionName, 5> kReductions{{{"nop", ReduceOp::none},
                                                    {"sum", ReduceOp::sum},
                                                    {"prod", ReduceOp::prod},
                                                    {"min", ReduceOp::min},
                                                    {"max", ReduceOp::max}}};

struct BufferName {
  std::string_view name;
  BufferKind kind;
};
constexpr std::array<BufferName, 3> kBuffers{
    {{"i", BufferKind::input}, {"o", BufferKind::output}, {"s", BufferKind::scratch}}};

constexpr std::size_t kMaxErrors = 20;
constexpr std::int64_t kMaxInt = INT32_MAX;

template <typename Table>
auto find_named(const Table& table, std::string_view name) -> decltype(table.data()) {
  const auto found =
      std::ranges::find_if(table, [&](const auto& entry) { return entry.name == name; });
  return found == table.end() ? nullptr : &*found;
}

/// Collects errors; gives up when a file is so broken that more of them help nobody.
class Errors {
 public:
  explicit Errors(const Source& source) : source_(source) {}

  void add(std::string message, std::size_t offset, const std::string& path,
           std::string hint = {}) {
    list_.error(std::move(message), source_.at(offset, path), std::move(hint));
    if (list_.items().size() >= kMaxErrors) throw Failure(list_);
  }
  void finish() const {
    if (list_.has_errors()) throw Failure(list_);
  }

 private:
  const Source& source_;
  Diagnostics list_;
};

/// One element: its attributes by name, with every deviation reported.
class Element {
 public:
  Element(Errors& errors, pugi::xml_node node, std::string path, std::vector<std::string> known)
      : errors_(errors), node_(node), path_(std::move(path)) {
    for (const pugi::xml_attribute attribute : node.attributes()) {
      const std::string name = attribute.name();
      if (std::ranges::find(known, name) == known.end())
        add("unknown attribute '" + name + "' of <" + node.name() + ">", suggest(name, known));
      else if (node.attribute(attribute.name()) != attribute)
        add("attribute '" + name + "' stands twice");
    }
  }

  std::size_t offset() const { return index(std::max<std::ptrdiff_t>(0, node_.offset_debug())); }
  const std::string& path() const { return path_; }
  void add(std::string message, std::string hint = {}) const {
    errors_.add(std::move(message), offset(), path_, std::move(hint));
  }

  std::optional<std::string> optional_text(const char* name) const {
    const pugi::xml_attribute attribute = node_.attribute(name);
    if (!attribute) return std::nullopt;
    return attribute.value();
  }
  std::string text(const char* name) const {
    if (auto value = optional_text(name)) return *value;
    add("attribute '" + std::string(name) + "' of <" + node_.name() + "> is missing");
    return {};
  }

  /// An integer in [low, high]; `low` after an error.
  std::int64_t integer(const char* name, std::int64_t low, std::int64_t high = kMaxInt) const {
    if (!node_.attribute(name)) {
      text(name);
      return low;
    }
    const std::string value = text(name);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (value.empty() || end != value.data() + value.size() ||
        error == std::errc::invalid_argument) {
      add("attribute '" + std::string(name) + "' must be a whole number, not '" + value + "'");
      return low;
    }
    if (error != std::errc() || number < low || number > high) {
      add("attribute '" + std::string(name) + "' is " + value + ", outside " + std::to_string(low) +
          " .. " + std::to_string(high));
      return low;
    }
    return number;
  }
  std::int32_t integer32(const char* name, std::int64_t low, std::int64_t high = kMaxInt) const {
    return static_cast<std::int32_t>(integer(name, low, high));
  }
  std::int64_t integer_or(const char* name, std::int64_t fallback, std::int64_t low,
                          std::int64_t high) const {
    return node_.attribute(name) ? integer(name, low, high) : fallback;
  }

  /// The entry of `table` that the attribute names; null after an error.
  template <typename Table>
  auto choice(const char* name, const Table& table) const -> decltype(table.data()) {
    if (!node_.attribute(name)) {
      text(name);
      return nullptr;
    }
    const std::string value = text(name);
    if (const auto found = find_named(table, value)) return found;
    const std::vector<std::string> names = names_of(table);
    add("unknown " + std::string(name) + " '" + value + "'",
        suggest(value, names, "one of " + joined(names)));
    return nullptr;
  }

  /// The child elements called `name`; no text may stand between them, and no other element but
  /// those called `other`.
  std::vector<pugi::xml_node> children(const char* name, std::string_view other = {}) const {
    std::vector<pugi::xml_node> found;
    for (const pugi::xml_node child : node_.children()) {
      if (child.type() == pugi::node_element && std::string_view(child.name()) == name) {
        found.push_back(child);
      } else if (child.type() == pugi::node_element && child.name() != other) {
        errors_.add(
            "unexpected element <" + std::string(child.name()) + "> in <" + node_.name() + ">",
            index(std::max<std::ptrdiff_t>(0, child.offset_debug())), path_,
            "only <" + std::string(name) + "> may stand here");
      } else if (child.type() != pugi::node_element) {
        add("unexpected text in <" + std::string(node_.name()) + ">");
      }
    }
    return found;
  }
  void expect_empty() const {
    if (node_.first_child()) add("<" + std::string(node_.name()) + "> must be empty");
  }

 private:
  Errors& errors_;
  pugi::xml_node node_;
  std::string path_;
};

/// Puts parsed children in the order of their ids, which must be 0 .. n-1, each once.
template <typename T>
std::vector<T> by_id(std::vector<std::pair<std::int64_t, T>> found, const char* what,
                     const Element& parent, Errors& errors) {
  std::map<std::int64_t, T> sorted;
  for (auto& [id, item] : found) {
    const auto [first, added] = sorted.try_emplace(id, item);
    if (!added) {
      errors.add(std::string(what) + " " + std::to_string(id) + " stands twice", item.offset,
                 item.path, "the first is at " + first->second.path);
    }
  }
  std::vector<T> result;
  for (auto& [id, item] : sorted) {
    if (id != static_cast<std::int64_t>(result.size())) {
      parent.add(std::string(what) + " " + std::to_string(result.size()) + " is missing");
      break;
    }
    result.push_back(std::move(item));
  }
  return result;
}

class Parser {
 public:
  explicit Parser(const Source& source) : source_(source), errors_(source) {}

  Algorithm parse() {
    pugi::xml_document document;
    const pugi::xml_parse_result status =
        document.load_buffer(source_.text.data(), source_.text.size());
    if (!status) {
      const auto offset = index(std::max<std::ptrdiff_t>(0, status.offset));
      std::string reason = status.description();
      if (!reason.empty() && reason.front() >= 'A' && reason.front() <= 'Z')
        reason.front() = static_cast<char>(reason.front() - 'A' + 'a');
      throw Failure("not well-formed XML: " + reason,
                    source_.at(std::min(offset, source_.text.size()), ""), "is the file complete?");
    }
    const pugi::xml_node root = document.document_element();
    if (std::string_view(root.name()) != "algo") {
      errors_.add("the root element is <" + std::string(root.name()) + ">, not <algo>",
                  index(std::max<std::ptrdiff_t>(0, root.offset_debug())), "/",
                  "MSCCL XML starts with <algo name=...>");
      errors_.finish();
    }
    for (pugi::xml_node other = root.next_sibling(); other; other = other.next_sibling()) {
      if (other.type() == pugi::node_element) {
        errors_.add("a second root element <" + std::string(other.name()) + ">",
                    index(std::max<std::ptrdiff_t>(0, other.offset_debug())), "/");
      }
    }
    Algorithm algorithm = parse_algorithm(root);
    errors_.finish();
    check_blocks(algorithm);
    errors_.finish();
    return algorithm;
  }

 private:
  Algorithm parse_algorithm(pugi::xml_node node) {
    const Element element(
        errors_, node, "/algo",
        {"name", "proto", "nchannels", "nchunksperloop", "ngpus", "coll", "inplace", "outofplace",
         "minBytes", "maxBytes", "maxcount", "nthreadblocks", "redop", "nthreads"});
    Algorithm algorithm;
    algorithm.offset = element.offset();
    algorithm.name = element.text("name");
    if (const auto* protocol = element.choice("proto", protocol_names()))
      algorithm.protocol = protocol->protocol;
    algorithm.channels = element.integer32("nchannels", 1);
    algorithm.chunks = element.integer("nchunksperloop", 1);
    const std::int64_t gpus = element.integer("ngpus", 1);
    parse_collective_name(element, algorithm);
    algorithm.in_place = element.integer("inplace", 0, 1) == 1;
    element.integer_or("outofplace", 0, 0, 1);
    if (element.optional_text("redop")) {
      if (const auto* found = element.choice("redop", kReductions)) algorithm.reduction = found->op;
    }
    algorithm.threads = static_cast<std::int32_t>(element.integer_or("nthreads", 0, 0, 1024));
    if (algorithm.threads % 32 != 0)
      element.add("nthreads is " + std::to_string(algorithm.threads) +
                  ", not a multiple of a warp's 32 threads");
    algorithm.min_size = {element.integer_or("minBytes", 0, 0, INT64_MAX)};
    algorithm.max_size = {element.integer_or("maxBytes", 0, 0, INT64_MAX)};
    if (algorithm.max_size.count == 0) algorithm.max_size = {INT64_MAX};  // rccl: no limit
    if (algorithm.min_size > algorithm.max_size) element.add("minBytes is more than maxBytes");
    parse_gpus(element, gpus, algorithm);
    return algorithm;
  }

  void parse_collective_name(const Element& element, Algorithm& algorithm) {
    const auto name = element.optional_text("coll");
    if (name && std::ranges::find(kCollectivesNotRead, *name) != kCollectivesNotRead.end()) {
      element.add("the collective '" + *name + "' is known but not read yet",
                  "read are " + joined(names_of(kCollectives)));
      return;
    }
    if (const auto* found = element.choice("coll", kCollectives))
      algorithm.collective = found->collective;
  }

  void parse_gpus(const Element& element, std::int64_t expected, Algorithm& algorithm) {
    const std::vector<pugi::xml_node> nodes = element.children("gpu");
    if (static_cast<std::int64_t>(nodes.size()) != expected) {
      element.add("ngpus is " + std::to_string(expected) + ", but the file has " +
                  std::to_string(nodes.size()) + " <gpu> elements");
    }
    ranks_ = static_cast<std::int64_t>(nodes.size());
    channels_ = algorithm.channels;
    std::vector<std::pair<std::int64_t, Gpu>> gpus;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      gpus.push_back(parse_gpu(nodes[i], "/algo/gpu[" + std::to_string(i) + "]"));
    algorithm.gpus = by_id(std::move(gpus), "gpu", element, errors_);
  }

  std::pair<std::int64_t, Gpu> parse_gpu(pugi::xml_node node, const std::string& path) {
    const Element element(errors_, node, path, {"id", "i_chunks", "o_chunks", "s_chunks"});
    Gpu gpu;
    gpu.path = path;
    gpu.offset = element.offset();
    const std::int64_t id = element.integer("id", 0, std::max<std::int64_t>(0, ranks_ - 1));
    gpu.input_chunks = element.integer("i_chunks", 0);
    gpu.output_chunks = element.integer("o_chunks", 0);
    gpu.scratch_chunks = element.integer("s_chunks", 0);
    for (const pugi::xml_node copy : node.children("copy")) parse_copy(copy, gpu);
    const std::vector<pugi::xml_node> nodes = element.children("tb", "copy");
    std::vector<std::pair<std::int64_t, ThreadBlock>> blocks;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      blocks.push_back(parse_block(nodes[i], path + "/tb[" + std::to_string(i) + "]", id));
    gpu.blocks = by_id(std::move(blocks), "thread block", element, errors_);
    return {id, std::move(gpu)};
  }

  void parse_copy(pugi::xml_node node, Gpu& gpu) {
    const std::string path = gpu.path + "/copy[" + std::to_string(gpu.copies.size()) + "]";
    const Element element(errors_, node, path, {"i_off", "o_off"});
    element.expect_empty();
    const std::int64_t last_input = std::max<std::int64_t>(0, gpu.input_chunks - 1);
    const std::int64_t last_output = std::max<std::int64_t>(0, gpu.output_chunks - 1);
    gpu.copies.push_back({.input = element.integer("i_off", 0, last_input),
                          .output = element.integer("o_off", 0, last_output),
                          .path = path,
                          .offset = element.offset()});
  }

  std::pair<std::int64_t, ThreadBlock> parse_block(pugi::xml_node node, const std::string& path,
                                                   std::int64_t gpu) {
    const Element element(errors_, node, path, {"id", "send", "recv", "chan"});
    ThreadBlock block;
    block.path = path;
    block.offset = element.offset();
    const std::int64_t id = element.integer("id", 0);
    block.send = element.integer32("send", -1, ranks_ - 1);
    block.receive = element.integer32("recv", -1, ranks_ - 1);
    block.channel = element.integer32("chan", 0, channels_ - 1);
    if (block.send == gpu) element.add("gpu " + std::to_string(gpu) + " sends to itself");
    if (block.receive == gpu) element.add("gpu " + std::to_string(gpu) + " receives from itself");
    const std::vector<pugi::xml_node> nodes = element.children("step");
    block.steps.reserve(nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i)
      block.steps.push_back(parse_step(nodes[i], block, i));
    return {id, std::move(block)};
  }

  Step parse_step(pugi::xml_node node, const ThreadBlock& block, std::size_t position) {
    const Element element(
        errors_, node, block.step_path(position),
        {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"});
    element.expect_empty();
    Step step;
    step.offset = element.offset();
    if (element.integer("s", 0) != static_cast<std::int64_t>(position)) {
      element.add("step " + element.text("s") + " stands at position " + std::to_string(position),
                  "steps are numbered 0, 1, ... in the order in which they run");
    }
    const StepType* type = element.choice("type", step_types());
    step.type = type ? type : &nop_type();
    step.source = parse_place(element, "srcbuf", "srcoff");
    step.destination = parse_place(element, "dstbuf", "dstoff");
    step.count = element.integer("cnt", step.type->kind == OpKind::sync ? 0 : 1);
    step.awaited_block = element.integer32("depid", -1);
    step.awaited_step = element.integer32("deps", -1);
    if (step.awaited_block >= 0 && step.awaited_step < 0) {
      element.add("depid names thread block " + std::to_string(step.awaited_block) +
                  ", but deps is -1");
    }
    step.has_dependents = element.integer("hasdep", 0, 1) == 1;
    if (step.type->sends && block.send < 0) {
      element.add("a step of type '" + std::string(step.type->name) +
                  "' sends, but its thread block has no send peer");
    }
    if (step.type->receives && block.receive < 0) {
      element.add("a step of type '" + std::string(step.type->name) +
                  "' receives, but its thread block has no recv peer");
    }
    return step;
  }

  Place parse_place(const Element& element, const char* buffer, const char* offset) {
    Place place;
    if (const auto* found = element.choice(buffer, kBuffers)) place.buffer = found->kind;
    place.offset = element.integer(offset, -1);
    return place;
  }

  void check_blocks(const Algorithm& algorithm) {
    for (const Gpu& gpu : algorithm.gpus) {
      for (const ThreadBlock& block : gpu.blocks)
        for (std::size_t i = 0; i < block.steps.size(); ++i) check_step(gpu, block, i);
    }
  }

  void check_step(const Gpu& gpu, const ThreadBlock& block, std::size_t index) {
    const Step& step = block.steps[index];
    if (step.type->reads_source) check_range(gpu, block, index, step.source, "srcoff");
    if (step.type->writes_destination) check_range(gpu, block, index, step.destination, "dstoff");
    if (step.awaited_block < 0) return;
    if (step.awaited_block >= static_cast<std::int64_t>(gpu.blocks.size())) {
      errors_.add("waits for thread block " + std::to_string(step.awaited_block) +
                      ", but the gpu has only " + std::to_string(gpu.blocks.size()),
                  step.offset, block.step_path(index));
      return;
    }
    const ThreadBlock& awaited = gpu.blocks[static_cast<std::size_t>(step.awaited_block)];
    if (step.awaited_step >= static_cast<std::int64_t>(awaited.steps.size())) {
      errors_.add("waits for step " + std::to_string(step.awaited_step) + " of thread block " +
                      std::to_string(step.awaited_block) + ", which has only " +
                      std::to_string(awaited.steps.size()) + " steps",
                  step.offset, block.step_path(index), "its steps are at " + awaited.path);
    }
  }

  void check_range(const Gpu& gpu, const ThreadBlock& block, std::size_t index, Place place,
                   const char* attribute) {
    const Step& step = block.steps[index];
    const std::int64_t chunks = place.buffer == BufferKind::input    ? gpu.input_chunks
                                : place.buffer == BufferKind::output ? gpu.output_chunks
                                                                     : gpu.scratch_chunks;
    if (place.offset >= 0 && place.offset + step.count <= chunks) return;
    const auto name = std::ranges::find(kBuffers, place.buffer, &BufferName::kind);
    errors_.add(std::string(attribute) + " " + std::to_string(place.offset) + " and cnt " +
                    std::to_string(step.count) + " reach beyond the " + std::to_string(chunks) +
                    " chunks of buffer '" + std::string(name->name) + "'",
                step.offset, block.step_path(index));
  }

  const Source& source_;
  Errors errors_;
  std::int64_t ranks_ = 0;
  std::int64_t channels_ = 0;
};

}  // namespace

std::string_view collective_name(Collective collective) {
  for (const CollectiveName& entry : kCollectives)
    if (entry.collective == collective) return entry.name;
  return {};
}

SourceLocation Source::at(std::size_t offset, std::string path) const {
  SourceLocation location = locate(file, text, offset);
  location.pointer = std::move(path);
  return location;
}

Algorithm parse(const Source& source) {
  return Parser(source).parse();
}

}  // namespace hemiola::program::msccl
