#include "compile/emit/torch_views.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

namespace hemiola::compile {

std::vector<std::string> python_names(const plan::Plan& plan) {
  // Keywords that a short name could be, and what emitted files call by these names.
  static constexpr std::array kTaken{"and",  "as",      "def",    "del",   "for",    "from",
                                     "if",   "import",  "in",     "is",    "lambda", "not",
                                     "or",   "pass",    "return", "try",   "with",   "while",
                                     "rt",   "t",       "rank",   "torch", "copies", "compute",
                                     "made", "arrived", "groups", "given", "None",   "True"};
  std::set<std::string> used(kTaken.begin(), kTaken.end());
  std::vector<std::string> names;
  for (const plan::Tensor& tensor : plan.tensors) {
    std::string name;
    for (const char c : tensor.name) {
      const bool is_part = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
      name += is_part ? c : '_';
    }
    if (name.empty() || std::isdigit(static_cast<unsigned char>(name.front())) != 0)
      name = "t_" + name;
    while (!used.insert(name).second || !used.insert(name + "_at").second) name += '_';
    names.push_back(name);
  }
  return names;
}

Statement view_of(const std::string& name, const plan::Tensor& tensor, const plan::Rect& rect,
                  const std::vector<bool>& kept) {
  std::vector<Statement> axes;
  std::size_t needed = 0;  // axes behind it are whole
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const std::int64_t extent = rect.end[i] - rect.begin[i];
    Statement axis;
    if (extent == 1 && (kept.empty() || !kept[i]))
      axis.add("{}", {rect.begin[i]});
    else if (extent == tensor.shape[i])
      axis.add(":");
    else
      axis.add(fmt::format("{{:{}}}", extent), {rect.begin[i]});
    if (axis.text != ":") needed = i + 1;
    axes.push_back(std::move(axis));
  }
  Statement view{name};
  for (std::size_t i = 0; i < needed; ++i) view.add(i == 0 ? "[" : ", ").add(axes[i]);
  if (needed > 0) view.add("]");
  return view;
}

namespace {

/// Axes of the compute by what they are in C[rows, columns] = A[rows, depth] B[depth, columns].
enum class Part : std::uint8_t { rows, columns, depth, nothing };

class ProductMaker {
 public:
  ProductMaker(const plan::Plan& plan, const std::vector<std::string>& names,
               const plan::Compute& compute, int rank, const std::string& file)
      : plan_(plan), names_(names), compute_(compute), rank_(rank), file_(file) {}

  Statement make(std::int64_t stream) {
    find_operands();
    find_parts();
    Statement call{"compute[{}]", {stream}};
    call.add(result_->use == plan::Use::add ? ".addmm(" : ".mm(");
    call.add(operand(*left_, Part::rows, Part::depth)).add(", ");
    call.add(operand(*right_, Part::depth, Part::columns)).add(", out=");
    call.add(operand(*result_, Part::rows, Part::columns)).add(")");
    if (!wraps_) return call;
    Statement loop{fmt::format("for first, count in hemiola_rt.around({{}}, {}, {}):\n    ",
                               wrapped_extent_, wrapped_size_),
                   {wrapped_first_}};
    return loop.add(call);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Failure(fmt::format("compute '{}' {}", compute_.name, what), {.file = file_},
                  "products C[rows, columns] = A[rows, depth] B[depth, columns] compile, with rows "
                  "of several blocks at most");
  }

  void find_operands() {
    for (const plan::ComputeOperand& operand : compute_.operands) {
      const plan::ComputeOperand*& place = operand.use != plan::Use::read ? result_
                                           : left_ == nullptr             ? left_
                                                                          : right_;
      if (place != nullptr) refuse("has more than three operands");
      place = &operand;
    }
    if (left_ == nullptr || right_ == nullptr || result_ == nullptr)
      refuse("does not read two tensors and write one");
  }

  static bool follows(const plan::ComputeOperand& operand, std::size_t axis) {
    return std::ranges::find(operand.axes, static_cast<std::int32_t>(axis)) != operand.axes.end();
  }

  void find_parts() {
    for (std::size_t i = 0; i < compute_.axes.size(); ++i) {
      const bool a = follows(*left_, i), b = follows(*right_, i), c = follows(*result_, i);
      const bool is_single = compute_.axes[i].extent == 1;
      Part part = Part::nothing;
      if (a && b && !c)
        part = Part::depth;
      else if (a && c && !b)
        part = Part::rows;
      else if (b && c && !a)
        part = Part::columns;
      else if (!is_single)
        refuse(fmt::format("has an axis '{}' that is no row, column or depth of a product",
                           compute_.axes[i].name));
      parts_.push_back(part);
    }
    drop_single_rows();
  }

  /// One block of rows: its axis is indexed. One axis of each part stays.
  void drop_single_rows() {
    for (const Part part : {Part::rows, Part::columns, Part::depth}) {
      std::int64_t left = std::ranges::count(parts_, part);
      for (std::size_t i = 0; i < parts_.size() && left > 1; ++i) {
        if (parts_[i] != part || compute_.axes[i].extent > 1) continue;
        parts_[i] = Part::nothing;
        --left;
      }
      if (left < 1 || left > (part == Part::rows ? 2 : 1))
        refuse(fmt::format("has {} axes that are {} of its product", left,
                           part == Part::rows      ? "rows"
                           : part == Part::columns ? "columns"
                                                   : "the depth"));
    }
  }

  Statement operand(const plan::ComputeOperand& operand, Part first, Part second) {
    const plan::Tensor& tensor = plan_.tensors[static_cast<std::size_t>(operand.tensor)];
    plan::Rect rect;
    std::vector<bool> kept;
    bool beyond = false;                // the last block
    std::optional<std::size_t> around;  // an axis beyond whose end it goes
    std::vector<Part> order;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      const std::int32_t axis = operand.axes[i];
      const std::int64_t extent =
          axis < 0 ? tensor.shape[i] : compute_.axes[static_cast<std::size_t>(axis)].extent;
      const Part part = axis < 0 ? Part::nothing : parts_[static_cast<std::size_t>(axis)];
      if (part == Part::nothing && extent > 1)
        refuse(fmt::format("takes all of axis {} of '{}' at once", i, tensor.name));
      const std::int64_t begin =
          axis < 0 ? 0 : operand.wrapped(operand.first(i, rank_), tensor.shape[i]);
      rect.begin.push_back(begin);
      rect.end.push_back(begin + extent);
      kept.push_back(part != Part::nothing);
      if (part != Part::nothing) order.push_back(part);
      if (operand.wraps && i == 0 && has_blocks(part))
        beyond = true;
      else if (begin + extent > tensor.shape[i])
        around = i;
    }
    check_order(order, first, second, tensor.name);
    if (around) refuse(fmt::format("goes around the end of axis {} of '{}'", *around, tensor.name));
    const std::string& name = names_[static_cast<std::size_t>(operand.tensor)];
    if (!beyond) return view_of("t." + name, tensor, rect, kept);
    return wrapped(name, tensor, rect, kept);
  }

  /// Blocks of rows may go around; rows of a block do not.
  bool has_blocks(Part part) const {
    return part == Part::rows && std::ranges::count(parts_, Part::rows) == 2;
  }

  void check_order(const std::vector<Part>& order, Part first, Part second,
                   const std::string& name) const {
    std::vector<Part> wanted;
    for (const Part part : {first, second})
      for (std::int64_t i = std::ranges::count(parts_, part); i > 0; --i) wanted.push_back(part);
    if (order != wanted)
      refuse(fmt::format("has '{}' in another order than rows, depth and columns", name));
  }

  /// "t.a[first:first + count, ...]", first and count from a loop.
  Statement wrapped(const std::string& name, const plan::Tensor& tensor, plan::Rect rect,
                    const std::vector<bool>& kept) {
    const std::int64_t first = rect.begin[0], extent = rect.end[0] - first;
    if (wraps_ &&
        (first != wrapped_first_ || extent != wrapped_extent_ || tensor.shape[0] != wrapped_size_))
      refuse(fmt::format("goes around the end of '{}' elsewhere than in its other operands",
                         tensor.name));
    wraps_ = true;
    wrapped_first_ = first;
    wrapped_extent_ = extent;
    wrapped_size_ = tensor.shape[0];
    plan::Tensor rest = tensor;
    rest.shape.erase(rest.shape.begin());
    rect.begin.erase(rect.begin.begin());
    rect.end.erase(rect.end.begin());
    Statement inside = view_of("", rest, rect, {kept.begin() + 1, kept.end()});
    if (!inside.text.empty()) {
      inside.text.erase(0, 1);  // its bracket
      inside.text.insert(0, ", ");
    } else {
      inside.text = "]";
    }
    return Statement{"t." + name + "[first:first + count"}.add(inside);
  }

  const plan::Plan& plan_;
  const std::vector<std::string>& names_;
  const plan::Compute& compute_;
  int rank_;
  const std::string& file_;
  const plan::ComputeOperand *left_ = nullptr, *right_ = nullptr, *result_ = nullptr;
  std::vector<Part> parts_;  // by axis of the compute
  bool wraps_ = false;
  std::int64_t wrapped_first_ = 0, wrapped_extent_ = 0, wrapped_size_ = 0;
};

}  // namespace

Statement product_of(const plan::Plan& plan, const std::vector<std::string>& names,
                     const plan::Compute& compute, int rank, std::int64_t stream,
                     const std::string& file) {
  return ProductMaker(plan, names, compute, rank, file).make(stream);
}

}  // namespace hemiola::compile
