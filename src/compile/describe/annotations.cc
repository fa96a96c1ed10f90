// Syncopate's comments (# @sy.*): what they say overrides what was inferred.
#include <algorithm>
#include <set>
#include <utility>

#include "compile/describe/describer.h"
#include "core/lists.h"

namespace hemiola::compile {
namespace {

struct Annotation {
  std::string name;                ///< "pid_map"
  std::vector<std::string> words;  ///< what follows
  Comment comment;
};

const std::vector<std::string> kNames{"axis_count", "tile_id",         "dispatch",
                                      "pid_map",    "persistent_init", "producer_epilogue",
                                      "num_tiles",  "host_entry",      "kernel_launch"};

void assigned_in(const Source& source, const Node& node, std::set<std::string>& names) {
  if (node.kind == Kind::assignment || node.kind == Kind::augmented_assignment ||
      node.kind == Kind::for_statement) {
    if (const Node* left = node.child(Field::left)) {
      if (left->kind == Kind::identifier) names.emplace(source.text(*left));
      for (const Node* child : left->children)
        if (child->kind == Kind::identifier) names.emplace(source.text(*child));
    }
  }
  for (const Node* child : node.children) assigned_in(source, *child, names);
}

/// The assignment that stands on a line, or on the next one that has a statement.
const Node* assignment_near(const Source& source, const Node& node, int line,
                            const Node* best = nullptr) {
  if (node.kind == Kind::assignment && source.line(node.begin) >= line &&
      (best == nullptr || node.begin < best->begin))
    best = &node;
  for (const Node* child : node.children) best = assignment_near(source, *child, line, best);
  return best;
}

class Annotator {
 public:
  Annotator(const Function& kernel, Description& description)
      : kernel_(kernel), source_(kernel.module->source), d_(description) {
    assigned_in(source_, kernel.body(), names_);
    for (const Parameter& parameter : kernel.parameters) names_.insert(parameter.name);
  }

  void apply() {
    std::optional<Comment> dispatch, init;
    for (const Comment& comment : source_.comments()) {
      const std::optional<Annotation> found = read(comment);
      if (!found) continue;
      const bool is_inside =
          comment.begin >= d_.definition.begin && comment.begin < end_of_kernel();
      if (!is_inside) continue;
      if (found->name == "dispatch") region(*found, dispatch, true);
      if (found->name == "persistent_init") region(*found, init, false);
      if (found->name == "pid_map") pid_map(*found);
      if (found->name == "axis_count") axis_count(*found);
      if (found->name == "tile_id") tile_id(*found);
      if (found->name == "producer_epilogue") epilogue(*found);
      if (found->name == "num_tiles") num_tiles(*found);
    }
    if (dispatch)
      fail(*dispatch, "'@sy.dispatch begin' has no end",
           "'# @sy.dispatch end' stands behind the code that computes coordinates");
    if (init) fail(*init, "'@sy.persistent_init begin' has no end", "");
  }

 private:
  [[noreturn]] void fail(const Comment& comment, const std::string& message,
                         const std::string& hint) const {
    throw Failure(message, source_.where(comment.begin), hint);
  }

  /// Comments behind the last statement of the kernel belong to it while they are indented.
  std::uint32_t end_of_kernel() const {
    std::uint32_t end = d_.definition.end;
    for (const Comment& comment : source_.comments()) {
      if (comment.begin < end || source_.column(comment.begin) == 1) continue;
      if (source_.text().substr(end, comment.begin - end).find_first_not_of(" \t\r\n") ==
          std::string_view::npos)
        end = comment.end;
    }
    return end + 1;
  }

  std::optional<Annotation> read(const Comment& comment) const {
    std::string_view text = source_.text().substr(comment.begin, comment.end - comment.begin);
    const std::size_t at = text.find("@sy.");
    if (at == std::string_view::npos ||
        text.substr(1, at - 1).find_first_not_of(" \t#") != std::string_view::npos)
      return std::nullopt;
    text.remove_prefix(at + 4);
    Annotation found{.comment = comment};
    std::vector<std::string> words;
    std::string word;
    for (const char c : std::string(text) + ' ') {
      if (c == ' ' || c == '\t' || c == '\r') {
        if (!word.empty()) words.push_back(std::exchange(word, {}));
      } else {
        word += c;
      }
    }
    if (words.empty())
      fail(comment, "an annotation without a name", "there are: " + joined(kNames));
    found.name = words.front();
    found.words.assign(words.begin() + 1, words.end());
    if (std::ranges::find(kNames, found.name) == kNames.end()) {
      std::string hint = suggest(found.name, kNames);
      fail(comment, "unknown annotation '@sy." + found.name + "'",
           hint.empty() ? "there are: " + joined(kNames) : hint);
    }
    return found;
  }

  void region(const Annotation& found, std::optional<Comment>& open, bool is_dispatch) {
    const std::string word = found.words.empty() ? "" : found.words[0];
    if (word != "begin" && word != "end")
      fail(found.comment, "'@sy." + found.name + "' is followed by begin or end", "");
    if ((word == "begin") == open.has_value())
      fail(found.comment, "'@sy." + found.name + " " + word + "' without its other half", "");
    if (word == "begin") {
      open = found.comment;
      return;
    }
    if (is_dispatch) {
      d_.dispatch.region =
          span_of(source_, source_.line_end(open->end), source_.line_begin(found.comment.begin));
      d_.dispatch.provenance = Provenance::annotated;
      std::erase_if(d_.dispatch.statements, [&](const Span& s) {
        return s.begin < d_.dispatch.region.begin || s.end > d_.dispatch.region.end;
      });
    }
    open.reset();
  }

  /// "M=pid_m"
  std::pair<std::string, std::string> assignment(const Annotation& found,
                                                 const std::string& word) const {
    const std::size_t at = word.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == word.size())
      fail(found.comment, "'" + word + "' is not NAME=VALUE",
           "for example '# @sy.pid_map M=pid_m N=pid_n'");
    return {word.substr(0, at), word.substr(at + 1)};
  }

  void check_variable(const Annotation& found, const std::string& name) const {
    if (names_.contains(name)) return;
    std::string hint = suggest(name, {names_.begin(), names_.end()});
    fail(found.comment, "kernel '" + kernel_.name + "' has no variable '" + name + "'", hint);
  }

  TileAxis& axis_named(const std::string& name) {
    for (TileAxis& axis : d_.axes)
      if (axis.name == name) return axis;
    d_.axes.push_back({.name = name});
    return d_.axes.back();
  }

  void pid_map(const Annotation& found) {
    if (found.words.empty())
      fail(found.comment, "'@sy.pid_map' names no axis",
           "for example '# @sy.pid_map M=pid_m N=pid_n'");
    for (const std::string& word : found.words) {
      const auto [name, variables] = assignment(found, word);
      const std::size_t dots = variables.find("..");
      if (dots != std::string::npos) {  // an axis along which a tile takes a range
        check_variable(found, variables.substr(0, dots));
        check_variable(found, variables.substr(dots + 2));
        for (LoopDescription& loop : d_.loops)
          if (loop.begin == variables.substr(0, dots)) loop.axis = name;
        continue;
      }
      check_variable(found, variables);
      TileAxis* axis = nullptr;
      for (TileAxis& known : d_.axes) {
        const bool is_it = known.coordinate == variables ||
                           std::ranges::find(known.aliases, variables) != known.aliases.end();
        if (is_it && axis == nullptr) axis = &known;
      }
      if (axis == nullptr) axis = &axis_named(name);
      rename(axis->name, name);
      axis->name = name;
      axis->coordinate = variables;
      axis->is_variable = true;
      axis->can_be_cut = true;
      axis->why_not.clear();
      axis->provenance = Provenance::annotated;
      if (d_.scheduler.order == Scheduler::Order::none)
        d_.scheduler.order = Scheduler::Order::other;
    }
  }

  void rename(const std::string& from, const std::string& to) {
    if (from == to) return;
    for (OperandDescription& operand : d_.operands) std::ranges::replace(operand.axes, from, to);
  }

  void axis_count(const Annotation& found) {
    if (found.words.empty())
      fail(found.comment, "'@sy.axis_count' names no axis",
           "for example '# @sy.axis_count M block=BLOCK_SIZE_M'");
    const std::string& name = found.words[0];
    for (std::size_t i = 1; i < found.words.size(); ++i)
      if (assignment(found, found.words[i]).first != "block")
        fail(found.comment, "'" + found.words[i] + "' is not known", "'block=NAME' is");
    if (name.find('=') != std::string::npos) {  // KV=range
      if (assignment(found, name).second != "range")
        fail(found.comment, "'" + name + "' is not known", "'NAME' or 'NAME=range' is");
      return;
    }
    TileAxis& axis = axis_named(name);
    axis.provenance = Provenance::annotated;
    if (found.words.size() > 1) axis.block = assignment(found, found.words[1]).second;
    const Node* made = assignment_near(source_, kernel_.body(), source_.line(found.comment.begin));
    if (made != nullptr && made->child(Field::left) != nullptr)
      axis.tiles = source_.text(*made->child(Field::left));
  }

  void tile_id(const Annotation& found) {
    for (const std::string& word : found.words)
      if (word != "persistent")
        fail(found.comment, "'" + word + "' is not known", "'persistent' is");
    const Node* made = assignment_near(source_, kernel_.body(), source_.line(found.comment.begin));
    if (made == nullptr || made->child(Field::left) == nullptr)
      fail(found.comment, "'@sy.tile_id' stands at no assignment",
           "it stands at the statement that gives the tile id its value");
    d_.dispatch.tile_id = source_.text(*made->child(Field::left));
    d_.dispatch.tile_id_assigned = span_of(source_, *made);
    d_.dispatch.provenance = Provenance::annotated;
    if (!found.words.empty()) d_.scheduler.is_persistent = true;
  }

  void num_tiles(const Annotation& found) {
    const Node* made = assignment_near(source_, kernel_.body(), source_.line(found.comment.begin));
    if (made != nullptr && made->child(Field::left) != nullptr)
      d_.scheduler.tiles = source_.text(*made->child(Field::left));
  }

  void epilogue(const Annotation& found) {
    std::vector<Site> signals;
    for (const OperandDescription& operand : d_.operands) {
      if (!operand.is_written && !operand.is_added_to) continue;
      Site site{.operand = operand.name,
                .statement = span_of(source_, found.comment.begin, found.comment.end),
                .offset = source_.line_end(found.comment.end > 0 ? found.comment.end - 1 : 0),
                .indentation = source_.column(found.comment.begin) - 1};
      signals.push_back(std::move(site));
    }
    d_.signals = std::move(signals);
  }

  const Function& kernel_;
  const Source& source_;
  Description& d_;
  std::set<std::string> names_;
};

}  // namespace

void apply_annotations(const Function& kernel, Description& description) {
  Annotator(kernel, description).apply();
}

}  // namespace hemiola::compile
