// The grammar of HLO's text.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "workload/hlo/attributes.h"
#include "workload/hlo/lexer.h"
#include "workload/hlo/module.h"

namespace hemiola::workload::hlo {
namespace {

/// Tuples in tuples that a shape may have.
constexpr int kDeepestShape = 100;
/// Calls in calls.
constexpr int kDeepestCall = 100;

constexpr std::string_view kHowToDump =
    "XLA_FLAGS=\"--xla_dump_to=FOLDER --xla_dump_hlo_as_text\" writes it, as "
    "*after_optimizations.txt (docs/hlo.md)";

class Parser {
 public:
  Parser(std::string file, std::string text) {
    module_.file = std::move(file);
    module_.text = std::make_shared<const std::string>(std::move(text));
    const std::string& whole = *module_.text;
    module_.lines.push_back(0);
    for (std::size_t at = whole.find('\n'); at != std::string::npos; at = whole.find('\n', at + 1))
      module_.lines.push_back(at + 1);
  }

  Module parse() {
    Cursor cursor(module_.file, *module_.text, *module_.text);
    header(cursor);
    bool has_entry = false;
    for (cursor.skip_blanks(); !cursor.at_end(); cursor.skip_blanks()) {
      const std::size_t begin = cursor.offset();
      const std::string_view first = cursor.word();
      if (is_section(first)) {
        section(cursor, first);
        continue;
      }
      const bool is_entry = first == "ENTRY";
      if (!is_entry) cursor.rewind(begin);
      if (is_entry && has_entry) cursor.fail_at(begin, "there is a second ENTRY computation");
      computation(cursor);
      if (!is_entry) continue;
      has_entry = true;
      module_.entry = static_cast<std::uint32_t>(module_.computations.size() - 1);
    }
    if (!has_entry)
      cursor.fail("there is no ENTRY computation up to the end of the text",
                  "the text may be cut short");
    resolve_frames();
    check_calls();
    return std::move(module_);
  }

 private:
  void header(Cursor& cursor) {
    cursor.skip_blanks();
    if (!cursor.take("HloModule"))
      cursor.fail(fmt::format("expected 'HloModule', not {}", cursor.next()),
                  std::string(kHowToDump));
    module_.name = cursor.name("the name of the module");
    for (cursor.skip_blanks_of_line(); cursor.peek() == ','; cursor.skip_blanks_of_line()) {
      cursor.take(',');
      module_.header.push_back(attribute(cursor));
    }
    end_of_line(cursor, "an attribute of the module");
  }

  void end_of_line(Cursor& cursor, std::string_view what) {
    cursor.skip_blanks_of_line();
    if (!cursor.at_end() && cursor.peek() != '\n' && cursor.peek() != '}')
      cursor.fail(fmt::format("expected a ',' and {}, or the end of the line, not {}", what,
                              cursor.next()));
  }

  Attribute attribute(Cursor& cursor) {
    const std::string_view name = cursor.name("the name of an attribute");
    cursor.expect('=', fmt::format("a '=' behind the attribute '{}'", name));
    const std::string_view value = cursor.value();
    if (value.empty())
      cursor.fail(fmt::format("the attribute '{}' has no value", name),
                  "the text may be cut short");
    return {name, value};
  }

  // --- Where instructions come from --------------------------------------------------------------

  static bool is_section(std::string_view word) {
    return word == "FileNames" || word == "FunctionNames" || word == "FileLocations" ||
           word == "StackFrames";
  }

  /// Lines of `1 "name"` or `1 {key=value ...}`.
  void section(Cursor& cursor, std::string_view name) {
    for (cursor.skip_blanks(); cursor.peek() >= '0' && cursor.peek() <= '9'; cursor.skip_blanks()) {
      const std::int64_t id = cursor.integer("a number");
      cursor.skip_blanks();
      const std::string_view value = cursor.value();
      if (value.empty())
        cursor.fail(fmt::format("entry {} of {} is empty", id, name), "the text may be cut short");
      sections_[name][id] = value;
    }
  }

  void resolve_frames() {
    const auto named = [&](std::string_view section, std::string_view id) -> std::string_view {
      const auto& entries = sections_[section];
      const auto at = entries.find(integer_of(id).value_or(-1));
      return at == entries.end() ? std::string_view() : at->second;
    };
    for (const auto& [id, frame] : sections_["StackFrames"]) {
      const std::string_view place = named("FileLocations", field_of(frame, "file_location_id"));
      module_.frames[id] = {unquoted(named("FileNames", field_of(place, "file_name_id"))),
                            unquoted(named("FunctionNames", field_of(place, "function_name_id"))),
                            integer_of(field_of(place, "line")).value_or(0)};
    }
  }

  // --- Calls -------------------------------------------------------------------------------------

  static bool names_computations(std::string_view attribute) {
    for (const std::string_view one :
         {"calls", "to_apply", "body", "condition", "branch_computations", "true_computation",
          "false_computation", "called_computations", "select", "scatter"})
      if (one == attribute) return true;
    return false;
  }

  /// So whoever follows calls comes to an end.
  void check_calls() const {
    std::vector<int> depth(module_.computations.size(), 0);
    for (std::size_t c = 0; c < module_.computations.size(); ++c) {
      for (const Instruction& one : module_.computations[c].instructions) {
        for (std::uint32_t i = 0; i < one.attributes; ++i) {
          const std::string_view name = module_.attributes[one.first_attribute + i].name;
          if (!names_computations(name)) continue;
          for (const Computation* called : module_.called_list(one, name)) {
            const auto index = static_cast<std::size_t>(called - module_.computations.data());
            if (index >= c)
              module_.fail(one, fmt::format("'{}' calls '{}', which does not stand before '{}'",
                                            one.name, called->name, module_.computations[c].name));
            depth[c] = std::max(depth[c], depth[index] + 1);
          }
        }
        if (depth[c] > kDeepestCall)
          module_.fail(one, fmt::format("computations call each other {} deep", kDeepestCall + 1));
      }
    }
  }

  // --- Shapes ------------------------------------------------------------------------------------

  Shape shape(Cursor& cursor, int depth = 0) {
    if (depth > kDeepestShape)
      cursor.fail(fmt::format("a shape with more than {} tuples in tuples", kDeepestShape));
    Shape found;
    if (cursor.take('(')) {
      if (cursor.take(')')) return found;
      do {
        found.elements.push_back(shape(cursor, depth + 1));
      } while (cursor.take(','));
      cursor.expect(')', "a ',' or the ')' that ends a tuple");
      return found;
    }
    cursor.skip_blanks();
    const std::size_t begin = cursor.offset();
    found.type = cursor.word();
    if (found.type == "b" && cursor.take('(')) {  // a buffer
      found = shape(cursor, depth + 1);
      cursor.expect(')', "the ')' that ends a buffer");
      return found;
    }
    if (found.type.empty()) cursor.fail(fmt::format("expected a shape, not {}", cursor.next()));
    if (bits_of(found.type) == 0 && found.type != "token" && found.type != "opaque")
      cursor.fail_at(begin, fmt::format("'{}' is no element type", found.type),
                     "such as f32, bf16, s32 or pred");
    cursor.expect('[', fmt::format("the '[' of a shape behind '{}'", found.type));
    if (!cursor.take(']')) {
      do {
        cursor.take("<=");
        cursor.skip_blanks();
        const std::size_t place = cursor.offset();
        if (cursor.peek() == '?') cursor.fail("a dimension whose size is not known");
        const std::int64_t extent = cursor.integer("a dimension");
        if (extent < 0) cursor.fail_at(place, fmt::format("a dimension of {}", extent));
        found.dimensions.push_back(extent);
      } while (cursor.take(','));
      cursor.expect(']', "a ',' or the ']' that ends a shape");
    }
    if (cursor.peek() == '{') {
      const std::string_view layout = cursor.balanced();
      found.layout = layout.substr(1, layout.size() - 2);
    }
    return found;
  }

  // --- Computations ------------------------------------------------------------------------------

  void computation(Cursor& cursor) {
    cursor.skip_blanks();
    Computation found;
    found.offset = cursor.offset();
    found.name = cursor.name("a computation");
    const auto index = static_cast<std::uint32_t>(module_.computations.size());
    if (!module_.by_name.emplace(found.name, index).second)
      cursor.fail_at(found.offset, fmt::format("there is a computation '{}' already", found.name));
    cursor.skip_blanks();
    // Its parameters and result stand in its instructions, too.
    if (cursor.peek() == '(') {
      cursor.balanced();
      if (!cursor.take("->"))
        cursor.fail(
            fmt::format("expected '->' and the result of '{}', not {}", found.name, cursor.next()));
      shape(cursor);
    }
    cursor.expect('{', fmt::format("the '{{' of computation '{}'", found.name));
    names_.emplace();
    has_root_ = false;
    while (!cursor.take('}')) {
      if (cursor.at_end())
        cursor.fail(fmt::format("the text ends in computation '{}'", found.name),
                    "the text may be cut short");
      instruction(cursor, found);
    }
    if (found.instructions.empty())
      cursor.fail_at(found.offset, fmt::format("computation '{}' is empty", found.name));
    if (!has_root_) found.root = static_cast<std::uint32_t>(found.instructions.size() - 1);
    for (cursor.skip_blanks_of_line(); cursor.peek() == ','; cursor.skip_blanks_of_line()) {
      cursor.take(',');
      attribute(cursor);  // the thread that it is for
    }
    module_.computations.push_back(std::move(found));
  }

  void instruction(Cursor& cursor, Computation& computation) {
    Instruction found;
    const std::size_t begin = cursor.offset();
    bool is_root = false;
    if (cursor.word() == "ROOT") {
      cursor.skip_blanks();
      is_root = cursor.peek() != '=';
    }
    if (!is_root) cursor.rewind(begin);
    cursor.skip_blanks();
    found.offset = cursor.offset();
    found.name = cursor.name("an instruction");
    cursor.expect('=', fmt::format("a '=' behind '{}'", found.name));
    found.shape = shape(cursor);
    found.opcode = cursor.word();
    if (found.opcode.empty())
      cursor.fail(fmt::format("expected the opcode of '{}', not {}", found.name, cursor.next()));
    cursor.skip_blanks();
    if (cursor.peek() != '(')
      cursor.fail(fmt::format("expected the '(' of '{}', not {}", found.opcode, cursor.next()));
    if (found.opcode == "parameter" || found.opcode == "constant") {
      const std::string_view inside = cursor.balanced();
      found.literal = inside.substr(1, inside.size() - 2);
    } else {
      operands(cursor, found);
    }
    found.first_attribute = static_cast<std::uint32_t>(module_.attributes.size());
    for (cursor.skip_blanks_of_line(); cursor.peek() == ','; cursor.skip_blanks_of_line()) {
      cursor.take(',');
      module_.attributes.push_back(attribute(cursor));
    }
    found.attributes =
        static_cast<std::uint32_t>(module_.attributes.size()) - found.first_attribute;
    end_of_line(cursor, fmt::format("an attribute of '{}'", found.name));
    const auto index = static_cast<std::uint32_t>(computation.instructions.size());
    if (!names_->emplace(found.name, index).second)
      cursor.fail_at(found.offset, fmt::format("there is an instruction '{}' in '{}' already",
                                               found.name, computation.name));
    if (is_root && has_root_)
      cursor.fail_at(found.offset,
                     fmt::format("computation '{}' has a second ROOT", computation.name));
    if (is_root) {
      has_root_ = true;
      computation.root = index;
    }
    computation.instructions.push_back(std::move(found));
  }

  /// Names, each with or without its shape before it.
  void operands(Cursor& cursor, Instruction& instruction) {
    cursor.take('(');
    if (cursor.take(')')) return;
    do {
      cursor.skip_blanks();
      if (cursor.peek() == '(') {
        shape(cursor);
      } else if (cursor.peek() != '%') {
        const std::size_t begin = cursor.offset();
        cursor.word();
        const bool has_shape = cursor.peek() == '[';
        cursor.rewind(begin);
        if (has_shape) shape(cursor);
      }
      cursor.skip_blanks();
      const std::size_t place = cursor.offset();
      const std::string_view name =
          cursor.name(fmt::format("an operand of '{}'", instruction.name));
      const auto found = names_->find(name);
      if (found == names_->end())
        cursor.fail_at(place, fmt::format("'{}' uses '{}', which is not there before it",
                                          instruction.name, name));
      instruction.operands.push_back(found->second);
    } while (cursor.take(','));
    cursor.expect(')',
                  fmt::format("a ',' or the ')' that ends the operands of '{}'", instruction.name));
  }

  Module module_;
  std::unordered_map<std::string_view, std::unordered_map<std::int64_t, std::string_view>>
      sections_;
  /// Instructions of the computation that is read; made anew for each, as clearing takes as long as
  /// the largest one had.
  std::optional<std::unordered_map<std::string_view, std::uint32_t>> names_;
  bool has_root_ = false;
};

}  // namespace

Module parse(std::string file, std::string text) {
  return Parser(std::move(file), std::move(text)).parse();
}

}  // namespace hemiola::workload::hlo
