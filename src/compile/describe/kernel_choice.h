// Which kernel of a file is meant, and places of files.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compile/python/modules.h"

namespace hemiola::compile {

/// Bytes [begin, end) of a file.
struct Span {
  std::string file;
  std::uint32_t begin = 0, end = 0;
  int line = 0, column = 0;  ///< of `begin`, 1-based, in bytes
  int last_line = 0;         ///< of the last byte

  SourceLocation where() const { return {.file = file, .line = line, .column = column}; }
};
Span span_of(const Source& source, const Node& node);
Span span_of(const Source& source, std::uint32_t begin, std::uint32_t end);

/// Values that stand for parameters, as text: "128", "True", "\"relu\"", "None".
using ParameterValues = std::map<std::string, std::string>;

/// A kernel of a file, without following it.
struct KernelName {
  std::string name;
  int line = 0;
  bool is_helper = false;  ///< other jit functions of the file call it
};
/// All @triton.jit functions, in the order of the file.
std::vector<KernelName> kernels_of(const Module& module);

/// Failure at --constexpr for a name that the kernel does not have, or for what is no value.
void check_constants(const Function& kernel, const ParameterValues& constants);

/// The kernel of that name; "": the only one of the file. Failure: there is none, or several where
/// none is named.
const Function& choose_kernel(const Module& module, const std::string& name);

}  // namespace hemiola::compile
