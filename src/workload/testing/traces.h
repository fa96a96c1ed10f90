// For tests of traces: files that exist for one test, Chakra files from their nodes.
#pragma once

#include <gtest/gtest.h>

#include <unistd.h>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "chakra.pb.h"
#include "core/diagnostics.h"
#include "workload/trace_reader.h"
#include "workload/traces/chakra/messages.h"

namespace hemiola::workload::test {

/// A folder that is removed with its files.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "hemiola_trace_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, std::string_view content) const {
    const std::string file = *this / name;
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }

 private:
  std::string path_;
};

/// What the Failure says that reading ends in, with the folder's name taken out, and its exit code.
inline std::string failure_of(const Folder& folder, const TraceRequest& request,
                              ExitCode code = ExitCode::bad_input) {
  try {
    read_workload(request);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), code);
    std::string text = failure.what();
    for (std::size_t at; (at = text.find(folder.path() + "/")) != std::string::npos;)
      text.erase(at, folder.path().size() + 1);
    return text;
  }
  return "no failure";
}

inline bool has_notice(const Workload& workload, std::string_view text) {
  for (const Diagnostic& notice : workload.notices)
    if (notice.message.find(text) != std::string::npos) return true;
  return false;
}

/// A Chakra file, node by node.
class ChakraText {
 public:
  explicit ChakraText(std::string_view version = "0.0.4") {
    chakra::GlobalMetadata metadata;
    metadata.set_version(std::string(version));
    append(metadata);
  }
  explicit ChakraText(const chakra::GlobalMetadata& metadata) { append(metadata); }

  chakra::Node& add(std::uint64_t id, std::string_view name, chakra::NodeType type) {
    flush();
    node_.Clear();
    node_.set_id(id);
    node_.set_name(std::string(name));
    node_.set_type(type);
    has_node_ = true;
    return node_;
  }
  chakra::AttributeProto& attribute(std::string_view name) {
    chakra::AttributeProto* attribute = node_.add_attr();
    attribute->set_name(std::string(name));
    return *attribute;
  }
  ChakraText& number(std::string_view name, std::int64_t value) {
    attribute(name).set_int64_val(value);
    return *this;
  }
  ChakraText& text(std::string_view name, std::string_view value) {
    attribute(name).set_string_val(std::string(value));
    return *this;
  }
  chakra::Node& collective(std::uint64_t id, chakra::CollectiveCommType type, std::int64_t size,
                           std::string_view group = {}) {
    chakra::Node& node = add(id, "call", chakra::COMM_COLL_NODE);
    number("comm_type", type).number("comm_size", size);
    if (!group.empty()) text("pg_name", group);
    return node;
  }
  std::string str() {
    flush();
    return text_;
  }

 private:
  template <typename Message>
  void append(const Message& message) {
    append_length(text_, message.ByteSizeLong());
    message.AppendToString(&text_);
  }
  void flush() {
    if (has_node_) append(node_);
    has_node_ = false;
  }

  std::string text_;
  chakra::Node node_;
  bool has_node_ = false;
};

inline const Trace& trace_of(const Workload& workload, int rank) {
  for (const RankClass& one : workload.classes) {
    for (const int other : one.ranks)
      if (other == rank) return *one.trace;
  }
  throw std::runtime_error("no such rank");
}

inline const Node& node_with(const Trace& trace, std::uint64_t id) {
  for (const Node& node : trace.nodes)
    if (node.id == id) return node;
  throw std::runtime_error("no such node");
}

/// The ids of a node's dependencies.
inline std::vector<std::uint64_t> waits_of(const Trace& trace, std::uint64_t id) {
  const Node& node = node_with(trace, id);
  std::vector<std::uint64_t> ids;
  for (std::uint32_t d = 0; d < node.dependencies; ++d)
    ids.push_back(trace.nodes[trace.dependencies[node.first_dependency + d]].id);
  return ids;
}

inline const CollectiveCall& call_of(const Workload& workload, int rank, std::uint64_t id) {
  const Node& node = node_with(trace_of(workload, rank), id);
  EXPECT_EQ(node.kind, NodeKind::collective);
  return workload.collectives.at(static_cast<std::size_t>(node.work));
}

/// A file that the project's own inputs have; empty if they are not here.
inline std::string shared_input(const std::string& name) {
  const std::string file = std::string(HEMIOLA_SOURCE_DIR) + "/../shared/inputs/" + name;
  return std::filesystem::exists(file) ? file : std::string();
}

}  // namespace hemiola::workload::test

#define HEMIOLA_SHARED_INPUT(variable, name)                                  \
  const std::string variable = ::hemiola::workload::test::shared_input(name); \
  if (variable.empty()) GTEST_SKIP() << "../shared/inputs/" << (name) << " is not here"
