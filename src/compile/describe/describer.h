// Makes a Description of a Trace. Only sources of the description include this.
#pragma once

#include <set>

#include "compile/describe/axes.h"
#include "compile/describe/describe.h"

namespace hemiola::compile {

struct SplitDescription {
  const RawAccess* raw = nullptr;
  SplitAccess split;
};

class Describer {
 public:
  Describer(const DescribeRequest& request, Library& library, const Function& kernel, Trace& trace)
      : request_(request),
        library_(library),
        kernel_(kernel),
        source_(kernel.module->source),
        trace_(trace),
        algebra_(trace.algebra) {}

  Description run();

 private:
  // describer.cc
  void parameters();
  void loops();
  void name_loops();
  void split_accesses();
  void accesses();
  AxisIndex index_of(const RawAccess& raw, const SplitAxis& axis);
  std::string why_unknown(const Expr& e, int* puzzle = nullptr) const;
  std::string operand_name(const SplitAccess& split, bool& is_loaded) const;
  // describer_axes.cc
  void find_tile_loops();
  void find_problem_loops();
  void take_begins_of_loops();
  void take_begin(SplitAxis& axis, const RawLoop& loop, const std::vector<Expr>& stored);
  void tile_axes();
  bool is_strided(const SplitAxis& axis, const Expr& block) const;
  bool coordinate_of(const Expr& tiles, Expr& coordinate, Expr& block) const;
  int register_axis(const Expr& coordinate, const Expr& block, const std::optional<Expr>& size);
  void finish_axes();
  void name_axis(TileAxis& axis, std::set<std::string>& used) const;
  std::string tiles_of(const TileAxis& axis, const std::optional<Expr>& size,
                       const Expr& block) const;
  void scheduler();
  void family();
  const SplitAxis* inner_of(const SplitAxis& axis, SplitAxis& inner);
  // describer_places.cc
  void dispatch();
  bool is_beside_tiles(const LoopDescription& loop) const;
  void operands();
  void reductions();
  void sites();
  void unknowns();
  void check_outputs();
  const Node* suite_statement(const std::vector<const Node*>& chain) const;
  const Node* tile_suite() const;
  Site site_before(const std::string& operand, const Node& statement) const;
  Site site_after(const std::string& operand, const Node& statement) const;
  int indentation_of(const Node& statement) const;
  void say_unknown(std::string what, const Span& span, std::string hint);

  /// As Python that can stand where the expression is needed: with the variables of loops, not with
  /// their counters.
  std::string text(const Expr& e) const {
    return algebra_.text(algebra_.with_variables(e, counters_));
  }
  static bool is_identifier(const std::string& text);

  const DescribeRequest& request_;
  Library& library_;
  const Function& kernel_;
  const Source& source_;
  Trace& trace_;
  Algebra& algebra_;
  Description d_;
  std::map<int, Algebra::Counter> counters_;
  std::set<int> tile_loops_;
  std::vector<SplitDescription> splits_;
  struct AxisFacts {
    Expr block;
    std::optional<Expr> size;
    bool is_strided = false;
  };
  std::vector<AxisFacts> facts_;
};

/// What `# @sy.*` comments in the kernel say overrides what was inferred (annotations.cc).
void apply_annotations(const Function& kernel, Description& description);

}  // namespace hemiola::compile
