#include "workload/traces/pytorch_shapes.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

namespace hemiola::workload {
namespace {

struct TorchType {
  std::string_view name;
  DataType type;
};
// By the names of C++ (shapes of operators) and of ATen (arguments of collectives), in lower case.
constexpr std::array<TorchType, 32> kTorchTypes{{
    {"float", DataType::float32},
    {"float32", DataType::float32},
    {"double", DataType::float64},
    {"float64", DataType::float64},
    {"half", DataType::float16},
    {"float16", DataType::float16},
    {"bfloat16", DataType::bfloat16},
    {"float8_e4m3fn", DataType::fp8_e4m3},
    {"float8_e4m3fnuz", DataType::fp8_e4m3},
    {"float8_e5m2", DataType::fp8_e5m2},
    {"float8_e5m2fnuz", DataType::fp8_e5m2},
    {"long", DataType::int64},
    {"long int", DataType::int64},
    {"int64", DataType::int64},
    {"int", DataType::int32},
    {"int32", DataType::int32},
    {"unsigned int", DataType::uint32},
    {"uint32", DataType::uint32},
    {"unsigned char", DataType::uint8},
    {"byte", DataType::uint8},
    {"uint8", DataType::uint8},
    {"signed char", DataType::int8},
    {"char", DataType::int8},
    {"int8", DataType::int8},
    {"bool", DataType::uint8},
    {"short", DataType::float16},
    {"short int", DataType::float16},
    {"int16", DataType::float16},
    {"unsigned long", DataType::int64},
    {"uint64", DataType::int64},
    {"complexfloat", DataType::float64},
    {"complex<float>", DataType::float64},
}};

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

/// Reads a list of lists of numbers. What stands between is skipped.
class ShapeText {
 public:
  explicit ShapeText(std::string_view text) : text_(text) {}

  std::optional<ArgumentShapes> read() {
    skip();
    if (!take('[')) return std::nullopt;
    ArgumentShapes arguments;
    while (!take(']')) {
      std::vector<TensorShape>& shapes = arguments.emplace_back();
      if (!read_argument(shapes, 0)) return std::nullopt;
      skip();
    }
    return arguments;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == ',' || text_[at_] == '\n'))
      ++at_;
  }
  bool take(char wanted) {
    skip();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  bool read_argument(std::vector<TensorShape>& shapes, int depth) {
    constexpr int kDeepest = 8;
    if (depth > kDeepest || !take('[')) return false;
    TensorShape shape;
    while (!take(']')) {
      if (at_ < text_.size() && text_[at_] == '[') {
        if (!read_argument(shapes, depth + 1)) return false;
        continue;
      }
      std::int64_t number = 0;
      const char* end = text_.data() + text_.size();
      const auto [next, error] = std::from_chars(text_.data() + at_, end, number);
      if (error != std::errc{}) return false;
      at_ = index(next - text_.data());
      shape.push_back(number);
    }
    if (!shape.empty()) shapes.push_back(std::move(shape));
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::int64_t volume_of(const TensorShape& shape, std::size_t first, std::size_t end) {
  std::int64_t product = 1;
  for (std::size_t i = first; i < end; ++i) {
    if (shape[i] <= 0 || product > std::numeric_limits<std::int64_t>::max() / shape[i]) return 0;
    product *= shape[i];
  }
  return product;
}

/// [..., m, k] x [..., k, n], as torch.matmul has it, for matrices.
std::optional<machine::GemmShape> multiply_shapes(const TensorShape& a, const TensorShape& b) {
  if (a.size() < 2 || b.size() < 2) return std::nullopt;
  machine::GemmShape shape;
  shape.k = a.back();
  shape.n = b.back();
  if (b[b.size() - 2] != shape.k) return std::nullopt;
  if (b.size() == 2) {
    shape.m = volume_of(a, 0, a.size() - 1);
  } else {
    shape.m = a[a.size() - 2];
    shape.batch = std::max(volume_of(a, 0, a.size() - 2), volume_of(b, 0, b.size() - 2));
  }
  if (shape.m < 1 || shape.n < 1 || shape.k < 1 || shape.batch < 1) return std::nullopt;
  return shape;
}

struct ProductOperator {
  std::string_view name;
  std::size_t a, b;          ///< arguments
  bool transposed = false;   ///< b is n x k
  bool accumulates = false;  ///< argument 0 is added
};
constexpr std::array<ProductOperator, 9> kProducts{{
    {"aten::mm", 0, 1},
    {"aten::bmm", 0, 1},
    {"aten::matmul", 0, 1},
    {"aten::addmm", 1, 2, false, true},
    {"aten::baddbmm", 1, 2, false, true},
    {"aten::linear", 0, 1, true},
    {"aten::_scaled_mm", 0, 1},
    {"aten::addmm_", 1, 2, false, true},
    {"aten::_addmm_activation", 1, 2, false, true},
}};

const ProductOperator* find_product(std::string_view name) {
  const std::string_view plain = operator_of(name);
  for (const ProductOperator& one : kProducts)
    if (one.name == plain) return &one;
  return nullptr;
}

}  // namespace

std::optional<DataType> torch_type(std::string_view name) {
  if (name.starts_with("Tensor(") && name.ends_with(")")) name = name.substr(7, name.size() - 8);
  if (name.starts_with("c10::")) name.remove_prefix(5);
  const std::string plain = lower_case(name);
  for (const TorchType& one : kTorchTypes)
    if (one.name == plain) return one.type;
  return std::nullopt;
}

std::optional<ArgumentShapes> parse_shapes(std::string_view text) {
  return ShapeText(text).read();
}

std::vector<std::string> parse_types(std::string_view text) {
  std::vector<std::string> types;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '"' && text[at] != '\'') continue;
    const std::size_t end = text.find(text[at], at + 1);
    if (end == std::string_view::npos) break;
    types.emplace_back(text.substr(at + 1, end - at - 1));
    at = end;
  }
  return types;
}

std::int64_t elements_of(const std::vector<TensorShape>& shapes) {
  std::int64_t sum = 0;
  for (const TensorShape& shape : shapes) {
    const std::int64_t elements = volume_of(shape, 0, shape.size());
    if (elements > std::numeric_limits<std::int64_t>::max() - sum) return 0;
    sum += elements;
  }
  return sum;
}

std::string_view operator_of(std::string_view name) {
  if (!name.ends_with(")")) return name;
  const std::size_t open = name.rfind('(');
  if (open == std::string_view::npos || open + 2 >= name.size()) return name;
  const std::string_view number = name.substr(open + 1, name.size() - open - 2);
  const bool is_number = std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; });
  return is_number ? name.substr(0, open) : name;
}

bool is_product_operator(std::string_view name) {
  return find_product(name) != nullptr;
}

std::optional<Compute> product_of(std::string_view name, const ArgumentShapes& shapes,
                                  const std::vector<std::string>& types) {
  const ProductOperator* product = find_product(name);
  if (product == nullptr || shapes.size() <= std::max(product->a, product->b)) return std::nullopt;
  if (shapes[product->a].size() != 1 || shapes[product->b].size() != 1) return std::nullopt;
  TensorShape b = shapes[product->b].front();
  if (product->transposed && b.size() == 2) std::swap(b[0], b[1]);
  const std::optional<machine::GemmShape> shape = multiply_shapes(shapes[product->a].front(), b);
  if (!shape) return std::nullopt;
  Compute compute{.kind = Compute::Kind::product, .product = *shape};
  if (product->a < types.size()) {
    const std::optional<DataType> type = torch_type(types[product->a]);
    if (!type) return std::nullopt;
    compute.product.type = *type;
  }
  compute.type = compute.product.type;
  // A bias of one row is added in the registers; a whole matrix is read.
  const std::size_t dimensions = shapes[product->a].front().size();
  compute.product.accumulate = product->accumulates && shapes[0].size() == 1 &&
                               shapes[0].front().size() == dimensions &&
                               elements_of(shapes[0]) == shape->m * shape->n * shape->batch;
  return compute;
}

std::optional<Compute> bytes_of_operator(std::string_view name, const ArgumentShapes& shapes,
                                         const std::vector<std::string>& types) {
  constexpr std::array<std::string_view, 18> kReductions{"sum",     "mean",
                                                         "norm",    "linalg_vector_norm",
                                                         "max",     "min",
                                                         "amax",    "amin",
                                                         "argmax",  "any",
                                                         "all",     "dot",
                                                         "argmin",  "prod",
                                                         "var",     "std",
                                                         "nonzero", "nll_loss_forward"};
  // Of a table only some rows are read, and compiled functions have kernels of all kinds.
  constexpr std::array<std::string_view, 7> kUnknown{
      "conv", "lookup", "Lookup", "embedding", "Compiled", "compiled", "index_select"};
  std::string_view plain = operator_of(name);
  if (is_product_operator(plain) || std::ranges::any_of(kUnknown, [&](std::string_view part) {
        return plain.find(part) != std::string_view::npos;
      }))
    return std::nullopt;
  if (plain.starts_with("aten::")) plain.remove_prefix(6);
  Compute compute{.concluded = true};
  std::int64_t first = 0, largest = 0, all = 0;
  for (std::size_t a = 0; a < shapes.size(); ++a) {
    // Lists of tensors do not say their type.
    const DataType type = (a < types.size() ? torch_type(types[a]) : std::optional<DataType>())
                              .value_or(DataType::float32);
    const std::int64_t elements = elements_of(shapes[a]);
    constexpr std::int64_t kMost = std::int64_t{1} << 50;
    if (elements <= 0 || elements > kMost) continue;
    const std::int64_t bytes = elements * size_of(type);
    if (all == 0) compute.type = type;
    if (a == 0) first = bytes;
    largest = std::max(largest, bytes);
    all = std::min(kMost, all + bytes);
  }
  if (all == 0) return std::nullopt;
  const bool sets = plain == "fill_" || plain == "zero_";
  compute.read = sets ? 0 : plain == "copy_" ? all - first : all;
  if (std::ranges::find(kReductions, plain) == kReductions.end())
    compute.written = plain.ends_with('_') && first > 0 ? first : largest;
  return compute;
}

bool is_product_kernel(std::string_view name) {
  const std::string plain = lower_case(name);
  constexpr std::array<std::string_view, 7> kParts{"gemm",  "gemv",  "cutlass", "xmma",
                                                   "cijk_", "nvjet", "matmul"};
  return plain.find("splitkreduce") == std::string::npos &&
         std::ranges::any_of(
             kParts, [&](std::string_view part) { return plain.find(part) != std::string::npos; });
}

}  // namespace hemiola::workload
