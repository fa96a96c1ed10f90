#include "workload/traces/chakra/reader.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>

#include "core/units.h"
#include "workload/traces/chakra/attributes.h"
#include "workload/traces/chakra/collective.h"
#include "workload/traces/chakra/extension.h"
#include "workload/traces/chakra/messages.h"
#include "workload/traces/pytorch_shapes.h"

namespace hemiola::workload {
namespace {

using Attribute = ChakraAttribute;

class ChakraReader {
 public:
  ChakraReader(const std::string& file, std::string_view content, TraceAssembly& assembly,
               ProcessGroups& groups, Tally& tally)
      : messages_(file, content), assembly_(assembly), groups_(groups), tally_(tally) {
    trace_.file = file;
  }

  Trace read(std::string& class_name) {
    chakra::GlobalMetadata metadata;
    messages_.read(metadata);
    read_metadata(metadata);
    chakra::Node message;
    while (messages_.read(message)) add(message);
    if (!extension_) set_begins();
    if (extension_) class_name = extension_->class_name;
    return assembly_.finish(std::move(trace_), tally_);
  }

 private:
  NodeOfFile at() const { return {&trace_.file, message_->id(), message_->name()}; }

  void read_metadata(const chakra::GlobalMetadata& metadata) {
    // Older files have attributes in the place of the version.
    const std::string& version = metadata.version();
    if (version.size() < 16 && !version.empty() && version != "0.0.4" &&
        !version.starts_with("1.0"))
      tally_.add(fmt::format("taken as version 0.0.4: '{}'", version), "the file's beginning");
    // A converter of PyTorch's traces keeps their schema, "1.0.1" or "1.1.0-chakra.0.0.4". Its
    // control dependencies are callers; it adds data dependencies for the order of execution.
    for (const chakra::AttributeProto& attribute : metadata.attr()) {
      if (attribute.name() != "schema") continue;
      const std::string schema = text_of(attribute).value_or("");
      from_pytorch_ = !schema.empty() && schema[0] >= '0' && schema[0] <= '9';
    }
    extension_ = read_extension(metadata, assembly_, groups_, trace_.file);
  }

  void add(const chakra::Node& message) {
    message_ = &message;
    const ChakraAttributes attributes(message);
    attributes_ = &attributes;
    if (trace_.nodes.size() >= std::numeric_limits<std::int32_t>::max())
      at().fail(" is one too many: a trace has 2,147,483,647 nodes at most");
    Node node{.id = message.id(), .name = assembly_.name(message.name())};
    node.recorded = micros(message.duration_micros(), "duration");
    if (!extension_) {
      // Microseconds for now: they may be since 1970, and only differences fit.
      node.recorded_begin.fs = static_cast<std::int64_t>(message.start_time_micros());
    }
    own_stream_ = written_stream();
    set_work(node);
    if (node.kind == NodeKind::nothing) node.stream = stream(host_, "host");
    if (extension_) extend_node(node, message, attributes, assembly_, at());
    add_dependencies();
    trace_.add(node);
  }

  /// The number of a stream in a workload that we wrote.
  std::optional<std::uint16_t> written_stream() const {
    const std::vector<std::uint16_t>& known = assembly_.written_streams;
    if (!extension_ || known.empty()) return std::nullopt;
    const std::optional<std::int64_t> number = integer(Attribute::stream);
    if (!number) return std::nullopt;
    if (*number < 0 || index(*number) >= known.size())
      at().fail(fmt::format(" is on stream {}, but there are {}", *number, known.size()));
    return known[index(*number)];
  }

  Time micros(std::uint64_t micros, std::string_view what) const {
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() / 1'000'000'000;
    if (micros > kMost)
      at().fail(fmt::format(" has a {} of {} us, which is beyond the 9,223 s that a time can be",
                            what, micros));
    return Time::from_us(static_cast<std::int64_t>(micros));
  }

  void add_dependencies() {
    for (const std::uint64_t id : message_->data_deps()) trace_.waits_for.push_back(id);
    if (from_pytorch_) {
      const auto index = static_cast<std::uint32_t>(trace_.nodes.size());
      for (const std::uint64_t id : message_->ctrl_deps()) trace_.callers.emplace_back(index, id);
      if (message_->ctrl_deps_size() > 0)
        tally_.add("left out: who called a node, which says nothing about when it runs",
                   at().text());
    } else if (!extension_) {  // which has the order of streams there, for others
      for (const std::uint64_t id : message_->ctrl_deps()) trace_.waits_for.push_back(id);
    }
    if (trace_.waits_for.size() > std::numeric_limits<std::uint32_t>::max())
      at().fail(" is beyond the 4,294,967,295 dependencies that a trace can have");
  }

  void set_work(Node& node) {
    const bool on_host = integer(Attribute::is_cpu_op).value_or(0) != 0;
    const int type = message_->type();
    switch (type) {
      case chakra::INVALID_NODE:
        tally_.add("takes no time: an invalid node", at().text());
        break;
      case chakra::METADATA_NODE:
        read_groups();
        break;
      case chakra::MEM_LOAD_NODE:
      case chakra::MEM_STORE_NODE:
        set_memory(node, type == chakra::MEM_LOAD_NODE);
        break;
      case chakra::COMP_NODE:
        if (on_host)
          set_host(node);
        else
          set_compute(node);
        break;
      case chakra::COMM_SEND_NODE:
      case chakra::COMM_RECV_NODE:
        if (on_host)
          leave_to_host(node);
        else
          set_message(node, type == chakra::COMM_SEND_NODE);
        break;
      case chakra::COMM_COLL_NODE:
        if (on_host)
          leave_to_host(node);
        else
          set_collective(node);
        break;
      default: {
        const std::string problem = fmt::format(" is of type {}, which is not known", type);
        if (!assembly_.lenient()) at().fail(problem, "--lenient takes it as a node of no time");
        tally_.add("ignored: a node of an unknown type", at().text() + problem);
      }
    }
  }

  std::optional<std::int64_t> integer(Attribute name) const {
    const chakra::AttributeProto* attribute = attributes_->find(name);
    if (attribute == nullptr) return std::nullopt;
    const std::optional<std::int64_t> value = integer_of(*attribute);
    if (!value) at().fail(fmt::format(": its {} is no whole number", name_of(name)));
    return value;
  }

  /// Bytes, flop: none is negative.
  std::int64_t amount(Attribute name) const {
    const std::int64_t value = integer(name).value_or(0);
    constexpr std::int64_t kMostFlop = std::int64_t{1} << 60;
    const std::int64_t most = name == Attribute::num_ops ? kMostFlop : kMostMemory;
    if (value < 0 || value > most) at().fail(fmt::format(" has a {} of {}", name_of(name), value));
    return value;
  }

  /// Of a communication.
  std::int64_t size() const {
    const std::optional<std::int64_t> size = integer(Attribute::comm_size);
    if (!size) at().fail(" has no comm_size");
    if (*size < 1 || *size > kMostMemory) at().fail(fmt::format(" has a comm_size of {}", *size));
    return *size;
  }

  std::string group_name() const {
    const chakra::AttributeProto* attribute = attributes_->find(Attribute::pg_name);
    if (attribute == nullptr) return {};
    const std::optional<std::string> text = text_of(*attribute);
    if (!text) at().fail(": its pg_name is no text");
    return *text;
  }

  void read_groups() {
    const auto found = parse_process_groups(message_->inputs().values());
    if (!found) return;
    for (const ProcessGroup& group : *found) groups_.define(group, trace_.file);
  }

  std::uint16_t stream(std::optional<std::uint16_t>& known, std::string_view name) {
    if (own_stream_) return *own_stream_;
    if (!known) known = assembly_.builder().stream(name, false);
    return *known;
  }

  void set_host(Node& node) {
    if (is_product_operator(message_->name()))
      product_operators_.emplace(message_->id(), operator_of(message_->name()));
    node.kind = NodeKind::host;
    node.stream = stream(host_, "host");
  }

  /// As ASTRA-sim takes it: such a node communicates with nobody.
  void leave_to_host(Node& node) {
    set_host(node);
    tally_.add(
        "taken as an operation of the CPU, for the time that was recorded: a communication "
        "that says is_cpu_op",
        at().text());
  }

  void set_memory(Node& node, bool is_load) {
    node.kind = NodeKind::memory;
    node.stream = stream(memory_, "memory");
    if (extension_) {
      if (const std::optional<Compute> compute = extended_compute(*attributes_, at())) {
        node.work = assembly_.compute(*compute);
        return;
      }
    }
    const std::int64_t bytes = amount(Attribute::tensor_size);
    if (bytes > 0)
      node.work = assembly_.compute({.read = is_load ? bytes : 0, .written = is_load ? 0 : bytes});
  }

  void set_compute(Node& node) {
    node.kind = NodeKind::compute;
    node.stream = stream(compute_, "compute");
    if (extension_) {
      if (const std::optional<Compute> compute = extended_compute(*attributes_, at())) {
        node.work = assembly_.compute(*compute);
        return;
      }
    }
    if (const std::optional<Compute> product = find_product_of_node()) {
      node.work = assembly_.compute(*product);
      return;
    }
    const std::int64_t flop = amount(Attribute::num_ops);
    const std::int64_t bytes = amount(Attribute::tensor_size);
    if (flop > 0 || bytes > 0) node.work = assembly_.compute({.flop = flop, .read = bytes});
  }

  /// The product that a node is, or that the operator which launched it is: a kernel has the shapes
  /// of its operator.
  std::optional<Compute> find_product_of_node() const {
    if (!message_->has_inputs() || message_->inputs().shapes().empty()) return std::nullopt;
    std::string_view name = message_->name();
    if (!is_product_operator(name)) {
      if (!is_product_kernel(name)) return std::nullopt;
      name = {};
      for (const std::uint64_t id : message_->ctrl_deps()) {
        const auto caller = product_operators_.find(id);
        if (caller != product_operators_.end()) name = caller->second;
      }
      if (name.empty()) return std::nullopt;
    }
    const auto shapes = parse_shapes(message_->inputs().shapes());
    if (!shapes) return std::nullopt;
    return product_of(name, *shapes, parse_types(message_->inputs().types()));
  }

  void set_message(Node& node, bool is_send) {
    node.kind = is_send ? NodeKind::send : NodeKind::receive;
    node.stream = is_send ? stream(send_, "send") : stream(receive_, "receive");
    const std::string group = group_name();
    const int own = groups_.rank();
    const int from = peer(Attribute::comm_src, is_send, group);
    const int to = peer(Attribute::comm_dst, !is_send, group);
    if ((is_send ? from : to) != own)
      at().fail(
          fmt::format(" is a message from rank {} to {} in the trace of rank {}", from, to, own));
    Message message = groups_.message(from, to, group, at());
    message.bytes = size();
    const std::int64_t tag = integer(Attribute::comm_tag).value_or(0);
    if (tag < 0 || tag > std::numeric_limits<std::int32_t>::max())
      at().fail(fmt::format(" has a comm_tag of {}", tag));
    message.tag = static_cast<std::int32_t>(tag);
    node.work = assembly_.builder().message(message);
  }

  int peer(Attribute name, bool is_own, const std::string& group) {
    const std::optional<std::int64_t> rank = integer(name);
    if (rank && *rank >= std::numeric_limits<int>::min() &&
        *rank <= std::numeric_limits<int>::max())
      return static_cast<int>(*rank);
    if (rank) at().fail(fmt::format(" has a {} of {}", name_of(name), *rank));
    if (is_own) return groups_.rank();
    // PyTorch's converter says which group it is, not who in it.
    const std::optional<int> other =
        group.empty() ? std::nullopt : groups_.other_of_pair(group, at());
    if (!other) at().fail(fmt::format(" has no {}", name_of(name)));
    return *other;
  }

  void set_collective(Node& node) {
    node.kind = NodeKind::collective;
    const std::string name = group_name();
    if (name.empty()) check_dimensions();
    const GroupOfRank group = groups_.group(name, at());
    node.stream = own_stream_ ? *own_stream_ : groups_.stream(group.family);
    CollectiveCall call{.family = group.family};
    const std::optional<std::int64_t> type = integer(Attribute::comm_type);
    if (!type) at().fail(" has no comm_type");
    if (needs_size(*type)) call.bytes = size();
    set_kind(call, *type, group.size, assembly_.lenient(), tally_, at());
    if (extension_) extend_call(call, *attributes_, at());
    node.work = assembly_.builder().collective(call);
  }

  /// Without a group: the dimensions of the network that take part.
  void check_dimensions() const {
    const chakra::AttributeProto* attribute = attributes_->find(Attribute::involved_dim);
    if (attribute == nullptr) return;
    const auto dimensions = integers_of(*attribute);
    if (!dimensions) at().fail(": its involved_dim is no list of true and false");
    for (const std::int64_t one : *dimensions) {
      if (one == 0)
        at().fail(
            " is in some dimensions of the network only (involved_dim): which ranks these "
            "are, nothing says",
            "name process groups (pg_name) instead");
    }
  }

  /// From microseconds since whenever (0: not known) to times since the first one.
  void set_begins() {
    const auto micros_of = [](const Node& node) {
      return static_cast<std::uint64_t>(node.recorded_begin.fs);
    };
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    for (const Node& node : trace_.nodes)
      if (micros_of(node) > 0) first = std::min(first, micros_of(node));
    constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() / 1'000'000'000;
    for (Node& node : trace_.nodes) {
      const std::uint64_t since = micros_of(node) == 0 ? 0 : micros_of(node) - first;
      if (since > kMost) {
        NodeOfFile{&trace_.file, node.id, assembly_.builder().workload().names[node.name]}.fail(
            fmt::format(
                " begins {} us after the first one, which is beyond the 9,223 s that a time "
                "can be",
                since));
      }
      node.recorded_begin = Time::from_us(static_cast<std::int64_t>(since));
    }
  }

  ChakraMessages messages_;
  TraceAssembly& assembly_;
  ProcessGroups& groups_;
  FileTrace trace_;
  Tally& tally_;
  bool from_pytorch_ = false;
  std::optional<ChakraExtension> extension_;  ///< of a workload that we wrote
  std::optional<std::uint16_t> own_stream_;   ///< of the node, if the file says so
  std::optional<std::uint16_t> host_, compute_, memory_, send_, receive_;
  std::map<std::uint64_t, std::string> product_operators_;  ///< of the host, by id
  const chakra::Node* message_ = nullptr;                   ///< that is being read
  const ChakraAttributes* attributes_ = nullptr;
};

}  // namespace

Trace read_chakra(const std::string& file, std::string_view content, TraceAssembly& assembly,
                  ProcessGroups& groups, Tally& tally, std::string& class_name) {
  return ChakraReader(file, content, assembly, groups, tally).read(class_name);
}

}  // namespace hemiola::workload
