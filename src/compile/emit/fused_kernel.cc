#include "compile/emit/fused_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "compile/emit/fused_functions.h"
#include "compile/emit/fused_texts.h"
#include "compile/python/kernel_needs.h"

namespace hemiola::compile {
namespace {

constexpr const char* kPrefix = "hm_";

class KernelEditor {
 public:
  KernelEditor(Library& library, const Function& kernel, Fusions& fusions,
               const CarriedData& carried)
      : library_(library),
        kernel_(kernel),
        source_(kernel.module->source),
        fusions_(fusions),
        fusion_(fusions.front()),
        description_(*fusion_.kernel),
        waits_(fusion_.waits()),
        waits_in_loop_(fusion_.waits_in_loop()),
        signals_(fusion_.signals()),
        carried_(carried) {}

  FusedText text() {
    FusedText made{.imports = {},
                   .functions = {},
                   .coordinates = coordinates_function(fusion_),
                   .kernel = kernel_.name};
    tiles();
    parameters();
    if (waits_) add_wait();
    if (waits_in_loop_) add_loop_wait();
    if (signals_) add_signals();
    if (carries()) add_movements();
    if (!fusion_.stores.empty()) add_stores();
    mark_changes();
    const KernelNeeds needs(library_, kernel_, kPrefix);
    made.imports = needs.imports();
    made.functions = needs.constants();
    if (!made.functions.empty()) made.functions += "\n\n";
    const bool waits = waits_ || waits_in_loop_ || carries();
    if (waits || signals_) made.functions += bulk_constant(description_);
    if (waits) made.functions += wait_function(description_) + "\n\n";
    if (carries()) made.functions += carry_function(carried_) + "\n\n";
    if (signals_) made.functions += done_function(description_) + "\n\n";
    made.functions += needs.helpers();
    made.functions += R"(@triton.jit(do_not_specialize=["hm_call"])  # hemiola)";
    // With the end of its last line, behind which a signal may stand.
    const std::uint32_t end = source_.line_end(kernel_.node->end - 1);
    made.functions += '\n' + edits_.applied(source_.text(), kernel_.node->begin, end);
    if (!made.functions.ends_with('\n')) made.functions += '\n';
    return made;
  }

 private:
  bool carries() const { return !carried_.type.empty(); }
  bool is_persistent() const { return description_.scheduler.is_persistent; }

  [[noreturn]] void refuse(const std::string& what, const Source& source, const Node& node,
                           const std::string& hint = {}) const {
    throw Failure(what, source.where(node.begin), hint);
  }

  std::vector<std::pair<std::string, std::string>> added_parameters() const {
    std::vector<std::pair<std::string, std::string>> added{
        {"hm_rows", "by place in the order: tile, first and last need, part"},
        {"hm_call", "number of the call"}};
    if (waits_in_loop_) {
      added.emplace_back("hm_turns", "by piece: first and last turn, first and last need");
      added.emplace_back("hm_pieces", "how many arrive along the loop");
    }
    if (!fusion_.stores.empty())
      added.emplace_back("hm_stores", "by place: where " + fusion_.stores + " is for its tile");
    if (carries()) {
      added.emplace_back("hm_moves", "what all programs move between their tiles, each its share");
      added.emplace_back("hm_before", "by place: movements that come before it");
      added.emplace_back("hm_all", "movements of a call");
      added.emplace_back("hm_told", "ranks and signals to tell of movements");
      added.emplace_back("hm_shares", "shares moved so far, by movement");
    }
    if (waits_ || waits_in_loop_ || carries()) {
      added.emplace_back("hm_needs", "signals that tiles wait for");
      added.emplace_back("hm_signals", "this rank's signals");
    }
    if (signals_) {
      added.emplace_back("hm_parts", "tiles that are told of together");
      added.emplace_back("hm_tells", "ranks and signals to tell");
      added.emplace_back("hm_counters", "tiles done so far, by part");
    }
    if (signals_ || carries())
      added.emplace_back("hm_peers", "addresses of the signals of all ranks");
    for (int axis = 0; axis < grid_axes() - (asks_for_last_ ? 0 : 1); ++axis)
      added.emplace_back(fmt::format("hm_grid_{}", axis),
                         fmt::format("programs along axis {} of the kernel's own grid", axis));
    return added;
  }

  /// Other text for a node; its line says what stood there.
  void change(const Node& node, const std::string& text) {
    if (source_.text(node) == text) return;
    edits_.replace(node.begin, node.end, text);
    std::string& was = changed_[source_.line_begin(node.begin)];
    const std::string old(source_.text(node));
    if (was.find(old) == was.npos) was += (was.empty() ? "" : ", ") + old;
  }

  void mark_changes() {
    for (const auto& [line, was] : changed_) {
      std::uint32_t end = source_.line_end(line);
      while (end > line && (source_.text()[end - 1] == '\n' || source_.text()[end - 1] == '\r'))
        --end;
      if (source_.text()[end - 1] != '\\') edits_.insert(end, "  # hemiola: was " + was);
    }
  }

  /// How many axes the kernel's own grid has.
  int grid_axes() const {
    int axes = 1;
    if (is_persistent()) return axes;
    for (const TileAxis& axis : description_.axes)
      for (const int one : axis.program_axes) axes = std::max(axes, one + 1);
    return axes;
  }

  void parameters() {
    const Node* list = kernel_.node->child(Field::parameters);
    if (list == nullptr || list->children.empty())
      refuse("kernel '" + kernel_.name + "' has no parameters", source_, *kernel_.node);
    const Node& first = *list->children.front();
    const std::uint32_t line = source_.line_begin(first.begin);
    const std::string_view before = source_.text().substr(line, first.begin - line);
    const bool has_lines = before.find_first_not_of(" \t") == std::string_view::npos;
    std::string text;
    for (const auto& [name, meaning] : added_parameters())
      text +=
          has_lines ? fmt::format("{},  # hemiola: {}\n{}", name, meaning, before) : name + ", ";
    edits_.insert(first.begin, text);
  }

  /// Programs, or turns of a persistent loop, stand for places in the order of arrival.
  void tiles() {
    if (is_persistent()) {
      loop_tiles();
      return;
    }
    const Node* first = first_statement(kernel_.body());
    const std::string indent = indent_of(*first);
    edits_.insert(
        source_.line_begin(first->begin),
        indent +
            "hm_row = hm_rows + 4 * tl.program_id(0)  # hemiola: its place in the order of "
            "arrival\n" +
            indent +
            "hm_tile = tl.load(hm_row)  # hemiola: the program of the kernel's own grid there\n");
    std::vector<const Node*> calls;
    find_all(kernel_.body(), Kind::call, calls);
    for (const Node* call : calls) {
      if (!asks_for_program(source_, *call)) continue;
      const std::string_view name = last_name(source_, *call);
      const int axis = axis_of(source_, *call);
      if (axis >= 3) refuse("the axis of the grid is not written out", source_, *call);
      std::string text = name == "program_id" ? program_text(axis) : programs_text(axis);
      // A function of somebody's own for it gives 64 bits.
      const Node* callee = call->child(Field::function);
      const std::string_view object =
          source_.text(*callee).substr(0, source_.text(*callee).rfind('.'));
      const auto import = kernel_.module->imports.find(object);
      const bool is_language = object == "tl" || import == kernel_.module->imports.end() ||
                               import->second.module.starts_with("triton");
      if (!is_language) text = (text[0] == '(' ? text : '(' + text + ')') + ".to(tl.int64)";
      change(*call, text);
    }
  }

  std::string program_text(int axis) const {
    const int axes = grid_axes();
    if (axis >= axes) return "0";
    std::string inner = "hm_grid_0";
    for (int i = 1; i < axis; ++i) inner += fmt::format(" * hm_grid_{}", i);
    std::string text = axis == 0   ? "hm_tile"
                       : axis == 1 ? "hm_tile // " + inner
                                   : "hm_tile // (" + inner + ")";
    if (axis + 1 < axes) text += fmt::format(" % hm_grid_{}", axis);
    return axes == 1 ? text : '(' + text + ')';
  }
  std::string programs_text(int axis) {
    if (axis >= grid_axes()) return "1";
    if (axis == 0 && grid_axes() == 1) return "tl.num_programs(0)";
    asks_for_last_ |= axis + 1 == grid_axes();
    return fmt::format("hm_grid_{}", axis);
  }

  /// The node of a loop of the kernel itself.
  const Node* loop_node(int id) const {
    const LoopDescription* loop = description_.loop(id);
    if (loop == nullptr) return nullptr;
    for (const Kind kind : {Kind::for_statement, Kind::while_statement}) {
      std::vector<const Node*> found;
      find_all(kernel_.body(), kind, found);
      for (const Node* one : found)
        if (one->begin == loop->statement.begin) return one;
    }
    return nullptr;
  }

  void loop_tiles() {
    const Node* loop = loop_node(description_.scheduler.loop);
    const std::string& id = description_.dispatch.tile_id;
    const Node* body = loop == nullptr ? nullptr : loop->child(Field::body);
    if (body == nullptr || body->children.empty() || id.empty())
      throw Failure("the loop over tiles is not in the kernel itself",
                    description_.definition.where());
    if (!description_.dispatch.repeated.empty())
      throw Failure(
          "coordinates are computed a second time further down, for a tile that lags behind",
          description_.dispatch.repeated.front().where(),
          "a kernel that stores a tile in the turn that computes it can be fused");
    const Node* first = body->children.front();
    const std::string indent = indent_of(*first);
    edits_.insert(source_.line_begin(first->begin),
                  indent + "hm_row = hm_rows + 4 * " + id +
                      "  # hemiola: the turn's place in the order of arrival\n" + indent +
                      "hm_tile = tl.load(hm_row)  # hemiola: the kernel's own tile there\n");
    if (carries())
      edits_.insert(source_.line_begin(first->begin),
                    indent + "hm_next = tl.load(hm_before + " + id +
                        ")  # hemiola: movements that come before the tile\n" + indent +
                        carry_call("hm_next") + "\n" + indent + "hm_moved = hm_next  # hemiola\n");
    if (waits_)
      edits_.insert(
          source_.line_begin(loop->begin),
          indent_of(*loop) + "hm_known = -1  # hemiola: needs that this program has waited for\n");
    use_tile(*body, id);
    for (const std::string& copy : description_.dispatch.copies) use_tile(*body, copy);
    if (waits_ || signals_ || carries()) keep_turns_apart(*loop);
  }

  /// In front of a tile (`tiles()`) what comes before it, and behind the last one the rest.
  void add_movements() {
    if (!is_persistent())
      throw Failure("kernel '" + kernel_.name +
                        "' has a program for each tile; those that wait fill a GPU, and what they "
                        "wait for is moved by others that are not there yet",
                    description_.definition.where(),
                    "a persistent kernel's programs are all there; --realization load-store or "
                    "copy-engine need no programs of the kernel");
    const Node& loop = *loop_node(description_.scheduler.loop);
    const std::string outer = indent_of(loop);
    edits_.insert(
        source_.line_begin(loop.begin),
        outer + "hm_moved = 0  # hemiola: movements that this program had its share in\n");
    const std::uint32_t end = source_.line_end(loop.end - 1);
    std::string text = outer + carry_call("hm_all") + ": the rest\n";
    if (source_.text()[end - 1] != '\n') text = '\n' + text;
    edits_.insert(end, text);
  }

  /// Another address of the output for each tile: own memory, or a peer's.
  void add_stores() {
    const auto refuse_output = [&](const std::string& why, const Span& span) {
      throw Failure("tiles of '" + fusion_.stores + "' cannot go to peers: " + why, span.where(),
                    "without --store-to-peers transfers push them");
    };
    const Node* loop = is_persistent() ? loop_node(description_.scheduler.loop) : nullptr;
    const Node& body = loop == nullptr ? kernel_.body() : *loop->child(Field::body);
    const auto uses = [&](const Node& node) {
      std::vector<const Node*> all;
      find_all(node, Kind::identifier, all);
      std::erase_if(all, [&](const Node* one) {
        return one->field == Field::attribute || one->field == Field::name ||
               source_.text(*one) != fusion_.stores;
      });
      return all;
    };
    if (const std::string why = why_not_to_peers(fusion_); !why.empty())
      refuse_output(why, description_.definition);
    const std::vector<const Node*> all = uses(body);
    if (all.size() != uses(kernel_.body()).size())
      refuse_output("its address is used outside of the loop over tiles", description_.definition);
    for (const Node* one : all) change(*one, "hm_out");
    const Node* first = loop == nullptr ? first_statement(body) : body.children.front();
    const std::string place = loop == nullptr ? "tl.program_id(0)" : description_.dispatch.tile_id;
    edits_.insert(source_.line_begin(first->begin),
                  fmt::format("{}hm_out = tl.multiple_of(tl.load(hm_stores + {}).to(tl.pointer_type"
                              "({}.dtype.element_ty)), 16)  # hemiola: own memory, or a peer's\n",
                              indent_of(*first), place, fusion_.stores));
  }

  /// Turns that a compiler runs into each other (`flatten`), or whose loads have warps of their own
  /// (`warp_specialize`), could load before a wait; with one between them Triton overlaps no loads.
  void keep_turns_apart(const Node& loop) {
    std::vector<const Node*> named;
    if (const Node* range = loop.child(Field::right))
      find_all(*range, Kind::keyword_argument, named);
    for (const Node* argument : named) {
      const std::string_view name = source_.text(*argument->child(Field::name));
      if (name == "flatten" || name == "warp_specialize")
        change(*argument->child(Field::value), "False");
    }
  }

  /// The tile's own number wherever the loop's variable is used, but where it goes on.
  void use_tile(const Node& node, const std::string& id) {
    const Node* left = node.child(Field::left);
    const bool gives = (node.kind == Kind::assignment || node.kind == Kind::augmented_assignment) &&
                       left != nullptr && source_.text(*left) == id;
    if (gives) return;
    if (node.kind == Kind::identifier && node.field != Field::attribute &&
        node.field != Field::name && source_.text(node) == id) {
      change(node, "hm_tile");
      return;
    }
    for (const Node* child : node.children) use_tile(*child, id);
  }

  const Node* first_statement(const Node& body) const {
    const Node* first = body.children.front();
    const bool is_docstring = first->kind == Kind::expression_statement &&
                              first->children.size() == 1 &&
                              first->children.front()->kind == Kind::string;
    if (is_docstring && body.children.size() > 1) first = body.children[1];
    indent_of(*first);
    return first;
  }

  /// Blanks before a statement. Failure where something else stands before it.
  std::string indent_of(const Node& statement) const {
    const std::uint32_t line = source_.line_begin(statement.begin);
    const std::string_view before = source_.text().substr(line, statement.begin - line);
    if (before.find_first_not_of(" \t") != std::string_view::npos)
      refuse("a line has to go in front of this statement, which shares its own", source_,
             statement, "one statement per line");
    return std::string(before);
  }

  std::string indent_at(std::uint32_t begin) const {
    const std::uint32_t line = source_.line_begin(begin);
    return std::string(source_.text().substr(line, begin - line));
  }

  /// Before the first load of what arrives.
  void add_wait() {
    const Site* earliest = nullptr;
    for (const Site& site : description_.waits) {
      const bool arrives = std::ranges::any_of(fusion_.operands, [&](const FusedOperand& one) {
        return one.parameter == site.operand && one.arrives;
      });
      if (arrives && !site.is_inside_loop &&
          (earliest == nullptr || site.offset < earliest->offset))
        earliest = &site;
    }
    if (earliest == nullptr || !earliest->is_own_line)
      throw Failure("there is no place for a wait in front of the loads of what arrives",
                    (earliest == nullptr ? description_.definition : earliest->statement).where());
    const std::string indent = indent_at(earliest->statement.begin);
    std::string text;
    if (is_persistent()) {
      text = indent + "hm_need = tl.load(hm_row + 1)  # hemiola\n" + indent +
             "if hm_need != hm_known:  # hemiola: once per wave\n" + indent +
             "    hm_wait(hm_needs, hm_need, tl.load(hm_row + 2), hm_signals, hm_call)  # hemiola: "
             "until its chunks are "
             "there\n" +
             indent + "hm_known = hm_need  # hemiola\n";
    } else {
      text = indent +
             "hm_wait(hm_needs, tl.load(hm_row + 1), tl.load(hm_row + 2), hm_signals, hm_call)  # "
             "hemiola: until its "
             "chunks are there\n";
    }
    edits_.insert(earliest->offset, text);
  }

  /// A loop over the pieces that arrive, in their order, around the loop along which they do: its
  /// header goes between the two depths, so that the body stays as it is. A wait inside of the
  /// kernel's own loop would keep a compiler from overlapping its loads with its products.
  void add_loop_wait() {
    const LoopDescription& description = *description_.loop(fusion_.loop.loop);
    const Node* loop = loop_node(fusion_.loop.loop);
    const Node* body = loop == nullptr ? nullptr : loop->child(Field::body);
    if (body == nullptr || loop->kind != Kind::for_statement)
      throw Failure("chunks arrive along this loop, which is no for loop of the kernel itself",
                    description.statement.where());
    if (fusion_.loop.reorders && carries_addresses(source_, *body)) keep_order();
    keep_turns_apart(*loop);
    const std::string outer = indent_of(*loop);
    const std::string inner = indent_of(*body->children.front());
    if (!inner.starts_with(outer + "  "))
      throw Failure("there is no room for a loop between this one and its body",
                    description.statement.where(), "indent the body by two spaces or more");
    const std::string depth((inner.size() - outer.size()) / 2, ' ');
    const std::string times = description.step == "1" ? "" : " * " + description.step;
    const std::string end = give_piece(*loop);
    std::string text = outer + "for hm_piece in range(0, hm_pieces):  # hemiola: as they arrive\n";
    for (const std::string& line :
         {std::string("hm_chunk = hm_turns + 4 * hm_piece"), "hm_first = tl.load(hm_chunk)" + times,
          "hm_last = tl.minimum(tl.load(hm_chunk + 1)" + times + ", " + end + ")",
          std::string("if hm_first < hm_last:"),
          std::string(" hm_wait(hm_needs, tl.load(hm_chunk + 2), tl.load(hm_chunk + 3), "
                      "hm_signals, hm_call)")})
      text += outer + depth + line + "  # hemiola\n";
    edits_.insert(source_.line_begin(loop->begin), text + depth);
  }

  /// The loop goes over a piece only. Returns where it ended.
  std::string give_piece(const Node& loop) {
    const Node* range = loop.child(Field::right);
    const Node* callee = range == nullptr ? nullptr : range->child(Field::function);
    const Node* arguments = range == nullptr ? nullptr : range->child(Field::arguments);
    std::vector<const Node*> given;
    if (callee != nullptr && arguments != nullptr) {
      for (const Node* argument : arguments->children)
        if (argument->kind != Kind::keyword_argument) given.push_back(argument);
    }
    if (given.empty() || given.size() > 3)
      refuse("chunks arrive along this loop, whose range is not written out", source_, loop);
    std::string end(source_.text(*given[given.size() == 1 ? 0 : 1]));
    if (last_name(source_, *range) == "static_range") change(*callee, "range");
    change(*given[0], given.size() == 1 ? "hm_first, hm_last" : "hm_first");
    if (given.size() > 1) change(*given[1], "hm_last");
    return end;
  }

  void keep_order() {
    for (Fusion& fusion : fusions_) {
      fusion.loop.reorders = false;
      for (FusedRank& rank : fusion.ranks) std::ranges::sort(rank.pieces, {}, &FusedPiece::begin);
    }
  }

  /// Behind the last store of what others wait for.
  void add_signals() {
    const Site* last = nullptr;
    for (const Site& site : description_.signals) {
      const bool leaves = std::ranges::any_of(fusion_.operands, [&](const FusedOperand& one) {
        return one.parameter == site.operand && one.leaves;
      });
      if (leaves && (last == nullptr || site.offset > last->offset)) last = &site;
    }
    if (last == nullptr || !last->is_own_line)
      throw Failure("there is no place for a signal behind the stores of what leaves",
                    (last == nullptr ? description_.definition : last->statement).where());
    check_returns(last->offset);
    std::string text = indent_at(last->statement.begin) +
                       "hm_done(tl.load(hm_row + 3), hm_parts, hm_tells, hm_counters, hm_peers, "
                       "hm_call)  # hemiola: the tile is stored\n";
    // The last line of a file may have no end.
    if (last->offset > 0 && source_.text()[last->offset - 1] != '\n') text = '\n' + text;
    edits_.insert(last->offset, text);
  }

  /// A program that ends before it signals would let others wait for ever.
  void check_returns(std::uint32_t signal) const {
    std::vector<const Node*> returns;
    find_all(kernel_.body(), Kind::return_statement, returns);
    for (const Node* one : returns) {
      if (one->begin < signal)
        refuse("the kernel can end here before it has stored its tile, which others wait for",
               source_, *one, "put what follows under a condition instead");
    }
  }

  Library& library_;
  const Function& kernel_;
  const Source& source_;
  Fusions& fusions_;  ///< of one text, which is that of the first
  const Fusion& fusion_;
  const Description& description_;
  bool waits_, waits_in_loop_, signals_;
  const CarriedData& carried_;
  bool asks_for_last_ = false;  ///< how many programs lie along the last axis of the grid
  Edits edits_;
  std::map<std::uint32_t, std::string> changed_;  ///< by the line's begin: what stood there
};

}  // namespace

FusedText fused_text(Library& library, const Function& kernel, Fusions& fusions,
                     const CarriedData& carried) {
  return KernelEditor(library, kernel, fusions, carried).text();
}

}  // namespace hemiola::compile
