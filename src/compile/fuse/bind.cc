#include "compile/fuse/bind.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>

#include "plan/launches.h"

namespace hemiola::compile {
namespace {

/// "a" of "a_ptr", "A", "desc_a".
std::string plain_name(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view end : {"_ptr", "_desc", "_descriptor", "_pointer", "ptr"})
    if (name.size() > end.size() && name.ends_with(end)) name.resize(name.size() - end.size());
  for (const std::string_view begin : {"ptr_", "desc_", "descriptor_", "pointer_", "p_"})
    if (name.size() > begin.size() && name.starts_with(begin)) name.erase(0, begin.size());
  return name;
}

}  // namespace

void Pairer::refuse(const std::string& what, const std::string& hint) const {
  throw Failure(fmt::format("kernel '{}' and plan '{}': {}", kernel_.kernel, plan_.name, what),
                kernel_.definition.where(), hint);
}

const plan::Tensor& Pairer::tensor_of(std::int32_t operand) const {
  return plan_.tensors[static_cast<std::size_t>(
      compute_.operands[static_cast<std::size_t>(operand)].tensor)];
}

bool Pairer::is_parameter(const std::string& text) const {
  return kernel_.parameter(text) != nullptr;
}

bool Pairer::is_paired(const OperandDescription& operand) const {
  return std::ranges::any_of(made_.pairs,
                             [&](const OperandPair& pair) { return pair.kernel == &operand; });
}
bool Pairer::is_paired(std::int32_t operand) const {
  return std::ranges::any_of(made_.pairs,
                             [&](const OperandPair& pair) { return pair.operand == operand; });
}

void Pairer::pair_with(std::int32_t operand, const OperandDescription& found) {
  made_.pairs.push_back({.kernel = &found, .operand = operand, .kernel_axis = {}});
}

/// Operands of the kernel that are written, or only read, and have no tensor yet.
std::vector<const OperandDescription*> Pairer::open_operands(bool made) const {
  std::vector<const OperandDescription*> open;
  for (const OperandDescription& operand : kernel_.operands) {
    const bool is_made = operand.is_written || operand.is_added_to;
    if (is_made == made && !is_paired(operand) && is_parameter(operand.name))
      open.push_back(&operand);
  }
  return open;
}

void Pairer::pair_by_names() {
  for (const bool by_plain_name : {false, true}) {
    for (std::int32_t i = 0; i < std::ssize(compute_.operands); ++i) {
      if (is_paired(i)) continue;
      const std::string& tensor = tensor_of(i).name;
      const bool made = plan::makes(compute_.operands[static_cast<std::size_t>(i)].use);
      for (const OperandDescription* one : open_operands(made)) {
        const bool is_it =
            by_plain_name ? bound_as(*one).empty() && plain_name(one->name) == plain_name(tensor)
                          : bound_as(*one) == tensor;
        if (!is_it) continue;
        pair_with(i, *one);
        break;
      }
    }
  }
}

/// In order: the factors of a product as tl.dot has them, other operands as parameters stand.
void Pairer::pair_the_rest() {
  for (const bool made : {true, false}) {
    std::vector<const OperandDescription*> open = open_operands(made);
    std::erase_if(open, [&](const auto* one) { return !bound_as(*one).empty(); });
    std::vector<std::int32_t> wanted;
    for (std::int32_t i = 0; i < std::ssize(compute_.operands); ++i)
      if (!is_paired(i) && made == plan::makes(compute_.operands[static_cast<std::size_t>(i)].use))
        wanted.push_back(i);
    if (!made && !kernel_.reductions.empty()) {
      const std::vector<std::string>& order = kernel_.reductions.front().operands;
      std::ranges::stable_sort(open, [&](const auto* a, const auto* b) {
        return std::ranges::find(order, a->name) < std::ranges::find(order, b->name);
      });
    }
    if (open.size() < wanted.size() || (open.size() > wanted.size() && wanted.size() > 1)) continue;
    for (std::size_t i = 0; i < wanted.size(); ++i) pair_with(wanted[i], *open[i]);
  }
}

bool Pairer::is_operand_of_any(const std::string& tensor) const {
  const std::vector<plan::Compute>& all = plan_.codes.front().computes;
  return std::ranges::any_of(all,
                             [&](const plan::Compute& one) { return has_operand(one, tensor); });
}
bool Pairer::has_operand(const plan::Compute& compute, const std::string& tensor) const {
  return std::ranges::any_of(compute.operands, [&](const plan::ComputeOperand& operand) {
    return plan_.tensors[static_cast<std::size_t>(operand.tensor)].name == tensor;
  });
}

/// The tensor that an operand is said to be; empty: nobody says it of this launch.
std::string Pairer::bound_as(const OperandDescription& operand) const {
  return has_operand(compute_, operand.bound_as) ? operand.bound_as : std::string();
}

void Pairer::pair_operands() {
  for (const OperandDescription& one : kernel_.operands) {
    if (one.bound_as.empty()) continue;
    if (!is_operand_of_any(one.bound_as))
      throw Failure(fmt::format("compute '{}' of plan '{}' has no tensor '{}'", compute_.name,
                                plan_.name, one.bound_as),
                    {.file = "--bind"});
  }
  pair_by_names();
  pair_the_rest();
  std::vector<std::string> open;
  for (const OperandDescription& one : kernel_.operands)
    if (!is_paired(one)) open.push_back(one.name);
  for (std::int32_t i = 0; i < std::ssize(compute_.operands); ++i) {
    if (is_paired(i)) continue;
    const bool made = plan::makes(compute_.operands[static_cast<std::size_t>(i)].use);
    refuse(fmt::format("the kernel {} no operand that could be tensor '{}'",
                       made ? "writes" : "reads", tensor_of(i).name),
           open.empty() ? "the plan is of another operator"
                        : fmt::format("--bind {}=PARAMETER says which one it is; left are {}",
                                      tensor_of(i).name, fmt::join(open, ", ")));
  }
}

const AxisIndex& Pairer::index_of(const OperandPair& pair, std::size_t kernel_axis) const {
  const int first = pair.kernel->accesses.front();
  const auto found = std::ranges::find(kernel_.accesses, first, &AccessDescription::id);
  return found->axes[kernel_axis];
}

const std::string& Pairer::axis_name(const OperandPair& pair, std::size_t kernel_axis) const {
  return pair.kernel->axes[kernel_axis];
}

bool Pairer::try_axes(std::size_t next, const std::vector<std::size_t>& chosen) {
  OperandPair& pair = made_.pairs[next];
  const plan::ComputeOperand& operand = compute_.operands[static_cast<std::size_t>(pair.operand)];
  const auto axes_before = made_.compute_axis;
  const auto whole_before = whole_;
  bool fits = true;
  for (std::size_t i = 0; fits && i < chosen.size(); ++i) {
    const std::string& name = axis_name(pair, chosen[i]);
    const std::int32_t axis = operand.axes[i];
    const std::int64_t extent = tensor_of(pair.operand).shape[i];
    const bool is_tiled = !index_of(pair, chosen[i]).tiles.empty();
    if (axis < 0) {
      fits = !is_tiled && !made_.compute_axis.contains(name) &&
             (name.empty() || whole_.emplace(name, extent).first->second == extent);
      continue;
    }
    if (name.empty()) continue;
    fits = !whole_.contains(name) && made_.compute_axis.emplace(name, axis).first->second == axis &&
           std::ranges::none_of(made_.compute_axis, [&](const auto& one) {
             return one.second == axis && one.first != name;
           });
  }
  if (fits) {
    pair.kernel_axis = chosen;
    if (pair_axes(next + 1)) return true;
  }
  made_.compute_axis = axes_before;
  whole_ = whole_before;
  return false;
}

/// Axes of this pair and of those behind it, so that each name of the kernel is one axis.
bool Pairer::pair_axes(std::size_t next) {
  if (next == made_.pairs.size()) return true;
  const OperandPair& pair = made_.pairs[next];
  const std::size_t wanted = tensor_of(pair.operand).shape.size(), there = pair.kernel->axes.size();
  if (wanted > there) return false;
  std::vector<std::size_t> order(there);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::vector<std::size_t>> ways;
  do {
    ways.emplace_back(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(wanted));
  } while (std::next_permutation(order.begin(), order.end()));
  ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
  // Names that are alike first: heads are "h" of the plan rather than the batch.
  std::ranges::stable_sort(ways, [&](const auto& a, const auto& b) {
    return like_names(pair, a) > like_names(pair, b);
  });
  return std::ranges::any_of(ways, [&](const auto& chosen) { return try_axes(next, chosen); });
}

/// How many axes are called alike by the kernel and by the compute.
int Pairer::like_names(const OperandPair& pair, const std::vector<std::size_t>& chosen) const {
  const plan::ComputeOperand& operand = compute_.operands[static_cast<std::size_t>(pair.operand)];
  int alike = 0;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (operand.axes[i] < 0) continue;
    const std::string kernels = plain_name(axis_name(pair, chosen[i]));
    alike +=
        kernels.starts_with(compute_.axes[static_cast<std::size_t>(operand.axes[i])].name) ? 1 : 0;
  }
  return alike;
}

std::int32_t Pairer::axis_of(const OperandPair& pair, std::size_t axis) const {
  return compute_.operands[static_cast<std::size_t>(pair.operand)].axes[axis];
}

/// What the kernel is given of a tensor's axis: all of it, what the compute is of, or the room that
/// the tensor's rows have.
std::int64_t Pairer::extent_of(const OperandPair& pair, std::size_t axis) const {
  const std::int32_t of_compute = axis_of(pair, axis);
  if (has_room(pair)) return (*room_of(tensor_of(pair.operand)))[axis];
  return of_compute < 0 ? tensor_of(pair.operand).shape[axis]
                        : compute_.axes[static_cast<std::size_t>(of_compute)].extent;
}

void Pairer::say(const std::string& parameter, std::int64_t value, const Span& where) {
  if (!is_parameter(parameter)) return;
  const auto given = request_.constants.find(parameter);
  const auto known = given == request_.constants.end()
                         ? made_.sizes.emplace(parameter, value).first->second
                         : number_in(given->second).value_or(value);
  made_.sizes[parameter] = known;
  if (known == value) return;
  throw Failure(fmt::format("parameter '{}' of kernel '{}' would have to be {} and {}: the kernel "
                            "takes two things for equal that differ in plan '{}'",
                            parameter, kernel_.kernel, known, value, plan_.name),
                where.where(),
                "a kernel with a parameter for each of them, as examples/kernels/attention.py has "
                "for queries and keys");
}

bool Pairer::is_moved(std::int32_t tensor) const {
  bool moved = false;
  for (const plan::Code& code : plan_.codes) {
    for (const plan::Stream& stream : code.streams)
      plan::for_each_transfer(stream, 0, [&](const plan::Transfer& transfer, const Indices&) {
        moved = moved || transfer.source.tensor == tensor || transfer.destination.tensor == tensor;
      });
  }
  return moved;
}

void Pairer::say_sizes(const OperandPair& pair) {
  for_each_size(pair, [&](const AccessDescription& access, std::size_t i, int at) {
    say(access.axes[i].size, at < 0 ? 1 : extent_of(pair, static_cast<std::size_t>(at)),
        access.call);
  });
}

void Pairer::find_sizes() {
  // Tensors with room last: what their rows are as long as is what others say.
  for (const bool room : {false, true})
    for (const OperandPair& pair : made_.pairs)
      if (has_room(pair) == room) say_sizes(pair);
  // Axes of the plan first: one that the plan has not is one element, unless it has the size of one
  // that the plan has (a second way to number the same rows).
  for (const bool of_plan : {true, false}) {
    for (const TileAxis& axis : kernel_.axes) {
      const auto known = made_.compute_axis.find(axis.name);
      if (axis.splits_reduction || (known != made_.compute_axis.end()) != of_plan) continue;
      if (made_.sizes.contains(axis.size) && (!of_plan || has_room(axis.name))) continue;
      const std::int64_t extent =
          of_plan ? compute_.axes[static_cast<std::size_t>(known->second)].extent : 1;
      say(axis.size, extent, kernel_.definition);
      if (axis.block == "1") say(axis.tiles, extent, kernel_.definition);
    }
  }
  // Where a loop goes over an axis whose size no mask tells.
  for (const LoopDescription& loop : kernel_.loops) {
    const auto known = made_.compute_axis.find(loop.axis);
    if (known == made_.compute_axis.end() || made_.sizes.contains(loop.axis)) continue;
    say(loop.axis, compute_.axes[static_cast<std::size_t>(known->second)].extent, loop.statement);
  }
}

/// Sizes and strides that are found, and numbers that the user gives.
Names Pairer::known_numbers() const {
  Names names = made_.sizes;
  for (const auto& [name, value] : request_.constants)
    if (const auto number = number_in(value)) names.emplace(name, *number);
  return names;
}

/// A parameter that no size tells, from a stride that it is a factor of: N * K is 4096.
bool Pairer::solve_stride(const std::string& text, std::int64_t stride) {
  const Formula formula(text);
  Names names = known_numbers();
  std::string unknown;
  for (const std::string& name : formula.names()) {
    if (names.contains(name)) continue;
    if (!unknown.empty() || !is_parameter(name)) return false;
    unknown = name;
  }
  if (unknown.empty() || unknown == text) return false;
  names[unknown] = 1;
  const std::optional<std::int64_t> one = formula.value(names);
  names[unknown] = 2;
  const std::optional<std::int64_t> two = formula.value(names);
  if (!one || !two || *one < 1 || *two != 2 * *one || stride % *one != 0) return false;
  say(unknown, stride / *one, kernel_.definition);
  return true;
}

void Pairer::solve_strides() {
  for (bool found = true; found;) {
    found = false;
    for (const OperandPair& pair : made_.pairs) {
      const plan::Tensor& tensor = tensor_of(pair.operand);
      const std::vector<std::int64_t> layout = tensor.layout();
      for (std::size_t i = 0; i < pair.kernel_axis.size(); ++i)
        if (tensor.shape[i] > 1)
          found |= solve_stride(index_of(pair, pair.kernel_axis[i]).stride, layout[i]);
    }
  }
}

/// Of an axis of the plan's tensor. Axes of a descriptor that the host makes are those of memory,
/// the last one the fastest.
std::optional<std::int64_t> Pairer::stride_of(const OperandPair& pair, std::size_t axis) const {
  const AxisIndex& index = index_of(pair, pair.kernel_axis[axis]);
  if (!index.stride.empty()) return number_in(index.stride, known_numbers());
  std::int64_t stride = 1;
  for (std::size_t other = 0; other < pair.kernel_axis.size(); ++other)
    if (pair.kernel_axis[other] > pair.kernel_axis[axis])
      stride *= tensor_of(pair.operand).shape[other];
  return stride;
}

void Pairer::find_strides(const OperandPair& pair) {
  const plan::Tensor& tensor = tensor_of(pair.operand);
  const std::vector<std::int64_t> layout = tensor.layout();
  std::vector<std::int64_t> swapped = layout;
  if (layout.size() == 2) swapped = {1, tensor.shape[0]};
  // 0: as the plan's tensor lies, 1: the other way around.
  bool fits[2] = {true, layout.size() == 2};
  std::string wrong;
  for (std::size_t i = 0; i < pair.kernel_axis.size(); ++i) {
    const AxisIndex& index = index_of(pair, pair.kernel_axis[i]);
    if (is_parameter(index.stride) && !made_.sizes.contains(index.stride)) continue;
    const std::optional<std::int64_t> stride = stride_of(pair, i);
    for (const bool other : {false, true}) {
      if (stride == (other ? swapped : layout)[i] || tensor.shape[i] == 1) continue;
      fits[other ? 1 : 0] = false;
      if (!other) wrong = index.stride.empty() ? std::to_string(stride.value_or(0)) : index.stride;
    }
  }
  const std::int32_t number = compute_.operands[static_cast<std::size_t>(pair.operand)].tensor;
  const bool turns = !fits[0] && fits[1] && tensor.role == plan::Role::input && !is_moved(number);
  if (!fits[0] && !turns)
    refuse(fmt::format("operand '{}' has stride {} where tensor '{}' lies in rows",
                       pair.kernel->name, wrong, tensor.name),
           "a kernel that takes its strides as parameters fits any tensor");
  made_.is_transposed.push_back(turns);
  for (std::size_t i = 0; i < pair.kernel->axes.size(); ++i) {
    const auto at = std::ranges::find(pair.kernel_axis, i);
    const auto axis = static_cast<std::size_t>(at - pair.kernel_axis.begin());
    const bool is_outside = at == pair.kernel_axis.end();
    const std::int64_t stride = is_outside ? tensor.span() : (turns ? swapped : layout)[axis];
    const std::string& text = index_of(pair, i).stride;
    if (!made_.sizes.contains(text)) say(text, stride, kernel_.definition);
  }
}

void Pairer::pair_operands_and_axes() {
  pair_operands();
  if (!pair_axes(0)) {
    std::vector<std::string> both;
    for (const OperandPair& pair : made_.pairs)
      both.push_back(fmt::format("{} [{}] and {} [{}]", pair.kernel->name,
                                 fmt::join(pair.kernel->axes, ", "), tensor_of(pair.operand).name,
                                 fmt::join(tensor_of(pair.operand).shape, ", ")));
    refuse(fmt::format("their axes cannot be paired: {}", fmt::join(both, "; ")),
           "--bind TENSOR=PARAMETER says which operand is which tensor; "
           "'# @sy.pid_map M=pid_m' in the kernel says what its tile coordinates are");
  }
}

Pairing Pairer::pair() {
  pair_operands_and_axes();
  find_sizes();
  solve_strides();
  for (const OperandPair& pair : made_.pairs) find_strides(pair);
  return std::move(made_);
}

}  // namespace hemiola::compile
