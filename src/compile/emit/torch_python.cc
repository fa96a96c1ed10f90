// Statements as Python: names of counters, slices, and a name for what turns with the rank.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compile/emit/torch_statements.h"

namespace hemiola::compile {
namespace {

/// A loop counts ranks from the own one on, or steps.
constexpr std::array kDistances{"d", "e", "f"};
constexpr std::array kSteps{"step", "part", "piece"};
constexpr std::array kStreams{"stream", "other_stream", "third_stream"};
constexpr std::array kPeers{"peer", "other", "third"};

using Lines = std::vector<std::string>;

/// What a loop, whose counter is the `level`-th around them, does to the numbers in it.
void collect(const std::vector<Emitted>& body, std::vector<const Number*>& numbers) {
  for (const Emitted& node : body) {
    for (const Number& number : node.numbers) numbers.push_back(&number);
    collect(node.body, numbers);
  }
}

std::string free_name(const std::vector<LoopCounter>& counters,
                      const std::array<const char*, 3>& names) {
  for (const char* name : names) {
    const bool taken = std::ranges::any_of(
        counters, [&](const LoopCounter& counter) { return counter.name == name; });
    if (!taken) return name;
  }
  return fmt::format("{}{}", names.back(), counters.size());
}

/// Whether it does the same on one stream after the other, the first of them first.
bool counts_streams(const Emitted& loop, std::size_t level) {
  for (const Emitted& node : loop.body) {
    std::size_t at = 0;
    for (const Number& number : node.numbers) {
      at = node.text.find('{', at);
      const std::string before = node.text.substr(0, at);
      if (number.table.empty() && number.outer_strides[level] == 1)
        return number.outer == 0 && (before.ends_with("copies[") || before.ends_with("compute["));
      ++at;
    }
  }
  return false;
}

/// So that most expressions have no constant.
LoopCounter counter_of(const Emitted& loop, const std::vector<LoopCounter>& counters) {
  const std::size_t level = counters.size();
  std::vector<const Number*> numbers;
  collect(loop.body, numbers);
  for (const Number* number : numbers) {
    if (number->modulus < 2 || !number->table.empty()) continue;
    const std::int64_t stride = Number::nearest(number->inner_strides[level], number->modulus);
    if (stride != 1 && stride != -1) continue;
    const std::int64_t first = Number::nearest(number->inner, number->modulus) * stride;
    if (first >= 0) return {free_name(counters, kDistances), first};
  }
  if (counts_streams(loop, level)) return {free_name(counters, kStreams), 0};
  for (const Number* number : numbers) {
    if (!number->table.empty()) continue;
    const std::int64_t stride = number->outer_strides[level];
    if (stride > 0 && number->outer % stride == 0 && number->outer / stride <= 1 &&
        number->outer >= 0)
      return {free_name(counters, kSteps), number->outer / stride};
  }
  return {free_name(counters, kSteps), 0};
}

/// In brackets unless it is one name or number.
std::string factor_text(const std::string& text) {
  return text.find(' ') == text.npos ? text : '(' + text + ')';
}

std::string slice_text(const Number& begin, std::int64_t extent,
                       const std::vector<LoopCounter>& counters) {
  const bool is_plain =
      begin.modulus == 0 && begin.slope == 0 && begin.table.empty() &&
      std::ranges::all_of(begin.outer_strides, [](std::int64_t stride) { return stride == 0; });
  if (is_plain) return fmt::format("{}:{}", begin.outer, begin.outer + extent);
  if (!begin.divides(extent) || extent == 1) {
    const std::string text = begin.text(counters);
    return fmt::format("{}:{} + {}", text, text, extent);
  }
  Number end = begin;
  end.outer += extent;
  return fmt::format("{} * {}:{} * {}", extent, factor_text(begin.text(counters, extent)), extent,
                     factor_text(end.text(counters, extent)));
}

std::string line_of(const Emitted& node, const std::vector<LoopCounter>& counters) {
  std::string line;
  std::size_t next = 0;
  for (std::size_t i = 0; i < node.text.size(); ++i) {
    const bool is_doubled = i + 1 < node.text.size() && node.text[i + 1] == node.text[i];
    if (node.text[i] == '}' || (node.text[i] == '{' && is_doubled)) {
      line += node.text[i++];
      continue;
    }
    if (node.text[i] != '{') {
      line += node.text[i];
      continue;
    }
    const std::size_t end = node.text.find('}', i);
    const std::string inside = node.text.substr(i + 1, end - i - 1);
    const Number& number = node.numbers[next++];
    line += inside.empty() ? number.text(counters)
                           : slice_text(number, std::stoll(inside.substr(1)), counters);
    i = end;
  }
  return line;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

std::size_t count_in(const std::string& text, const std::string& word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + word.size()))
    ++count;
  return count;
}

/// Lines of a body; a loop's inner lines begin with spaces.
Lines lines_of(const std::vector<Emitted>& nodes, std::vector<LoopCounter>& counters);

/// A name that neither these lines nor loops in them give to anything; empty: there is none.
std::string free_peer(const Lines& names, const Lines& lines) {
  for (const char* name : kPeers) {
    const std::string given = std::string(name) + " = ";
    const auto gives = [&](const std::string& line) { return line.find(given) != line.npos; };
    if (std::ranges::none_of(names, gives) && std::ranges::none_of(lines, gives)) return name;
  }
  return {};
}

/// Whether a number turns with the innermost of so many loops and with none in it. Around it is
/// another loop that names what does not.
bool turns_here(const Number& number, std::size_t loops) {
  if (number.modulus == 0 || !number.table.empty()) return false;
  for (std::size_t i = loops; i < number.inner_strides.size(); ++i)
    if (Number::nearest(number.inner_strides[i], number.modulus) != 0) return false;
  return loops == 1 || Number::nearest(number.inner_strides[loops - 1], number.modulus) != 0;
}

/// Gives names to ranks that stand in the lines of a loop several times.
void name_peers(const Emitted& loop, const std::vector<LoopCounter>& counters, Lines& lines) {
  Lines turning;
  std::vector<const Number*> numbers;
  collect(loop.body, numbers);
  for (const Number* number : numbers) {
    const std::string text = number->turning_text(counters);
    if (text.size() > 4 && turns_here(*number, counters.size()) &&
        std::ranges::find(turning, text) == turning.end())
      turning.push_back(text);
  }
  Lines names;
  for (const std::string& text : turning) {
    std::size_t uses = 0;
    for (const std::string& line : lines) uses += count_in(line, text);
    const std::string name = uses < 2 ? "" : free_peer(names, lines);
    if (name.empty()) continue;
    for (std::string& line : lines) {
      replace_all(line, " (" + text + ")", " " + name);
      replace_all(line, text, name);
    }
    names.push_back(fmt::format("{} = {}", name, text));
  }
  lines.insert(lines.begin(), names.begin(), names.end());
}

Lines lines_of(const std::vector<Emitted>& nodes, std::vector<LoopCounter>& counters) {
  Lines lines;
  for (const Emitted& node : nodes) {
    if (!node.is_loop()) {
      const std::string text = line_of(node, counters);
      for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        lines.push_back(text.substr(begin, end - begin));
        begin = end + 1;
      }
      continue;
    }
    counters.push_back(counter_of(node, counters));
    const LoopCounter counter = counters.back();
    Lines body = lines_of(node.body, counters);
    name_peers(node, counters, body);
    counters.pop_back();
    const std::int64_t end = counter.first + node.turns;
    lines.push_back(counter.first == 0 ? fmt::format("for {} in range({}):", counter.name, end)
                                       : fmt::format("for {} in range({}, {}):", counter.name,
                                                     counter.first, end));
    for (const std::string& line : body) lines.push_back("    " + line);
  }
  return lines;
}

constexpr std::size_t kWidth = 120;

/// A call that is too long has each argument on a line of its own.
std::string folded_line(const std::string& line) {
  const std::size_t open = line.find('(', line.find('.'));
  if (line.size() <= kWidth || open == line.npos || !line.ends_with(')')) return line;
  const std::string indent(line.find_first_not_of(' ') + 4, ' ');
  std::string text = line.substr(0, open + 1) + '\n' + indent;
  int depth = 0;
  for (std::size_t i = open + 1; i + 1 < line.size(); ++i) {
    const char c = line[i];
    depth += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    if (depth == 0 && c == ',') {
      text += ",\n" + indent;
      ++i;  // its blank
    } else {
      text += c;
    }
  }
  return text + ')';
}

}  // namespace

std::string python_of(const std::vector<Emitted>& nodes, std::size_t indent) {
  std::vector<LoopCounter> counters;
  std::string text;
  for (const std::string& line : lines_of(nodes, counters))
    text += folded_line(std::string(indent, ' ') + line) + '\n';
  return text;
}

}  // namespace hemiola::compile
