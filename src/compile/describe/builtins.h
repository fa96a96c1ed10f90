// What Triton and Python provide, by name. Only sources of the evaluator include this.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "compile/describe/values.h"

namespace hemiola::compile {

class Builtins {
 public:
  explicit Builtins(Here& here) : here_(here), trace_(here.trace), algebra_(here.algebra) {}

  Ref call(std::string_view name, const Arguments& given, const Node& node);
  Ref method(const Ref& object, std::string_view name, const Arguments& given, const Node& node);
  /// Whether a load is in a loop.
  bool is_in(int load, int loop) const;

 private:
  /// Null: not with these arguments.
  using Maker = Ref (Builtins::*)(std::string_view name, const Arguments& given, const Node& node);
  static Maker maker_of(std::string_view name);  ///< null: any other function

  Ref program(std::string_view name, const Arguments& given, const Node& node);
  Ref arange(std::string_view name, const Arguments& given, const Node& node);
  Ref cdiv(std::string_view name, const Arguments& given, const Node& node);
  Ref divmod(std::string_view name, const Arguments& given, const Node& node);
  Ref minimum_of(std::string_view name, const Arguments& given, const Node& node);
  Ref reduction(std::string_view name, const Arguments& given, const Node& node);
  Ref dot(std::string_view name, const Arguments& given, const Node& node);
  Ref shape_change(std::string_view name, const Arguments& given, const Node& node);
  Ref transpose(const Ref& input, const Arguments& given, const Node& node);
  Ref expand(const Ref& input, const Arguments& given, const Node& node);
  Ref reshape(std::string_view name, const Ref& input, const Arguments& given, const Node& node);
  Ref filled(std::string_view name, const Arguments& given, const Node& node);
  Ref silent(std::string_view name, const Arguments& given, const Node& node);
  Ref where(std::string_view name, const Arguments& given, const Node& node);
  Ref swizzle(std::string_view name, const Arguments& given, const Node& node);
  Ref length(std::string_view name, const Arguments& given, const Node& node);
  Ref same(std::string_view name, const Arguments& given, const Node& node);
  Ref list(std::string_view name, const Arguments& given, const Node& node);
  Ref rearranged(std::string_view name, const Arguments& given, const Node& node);
  Ref pure(std::string_view name, const Arguments& given, const Node& node);

  // builtins_memory.cc
  Ref memory(std::string_view name, const Arguments& given, const Node& node);
  Ref make_block_pointer(std::string_view name, const Arguments& given, const Node& node);
  Ref make_descriptor(std::string_view name, const Arguments& given, const Node& node);
  Ref advance(std::string_view name, const Arguments& given, const Node& node);
  Ref descriptor_access(const Ref& descriptor, std::string_view name, const Arguments& given,
                        const Node& node);
  Ref record(RawAccess access, const Ref& value, const Node& node);

  Here& here_;
  Trace& trace_;
  Algebra& algebra_;
  Here::Ids access_ids_;
  std::map<int, std::size_t> recorded_;
  std::map<int, std::vector<int>> load_loops_;  ///< loops that a load is in
};

}  // namespace hemiola::compile
