// Values of a text of Python that is followed with numbers in it: the host's part of a fused file
// and its kernel. Blocks of a kernel are kept by axis, so that following a load costs no more than
// its block has rows and columns. Private to readback/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compile/python/modules.h"

namespace hemiola::compile::readback {

/// Numbers of a text, elements of tensors too, lie between this and its negative; so sums of a few
/// cannot overflow. What is beyond is data.
constexpr std::int64_t kMostNumber = std::int64_t{1} << 40;
/// Elements of a block along an axis, and tiles of a kernel.
constexpr std::int64_t kMostElements = std::int64_t{1} << 22;
constexpr std::size_t kMostAxes = 8;

constexpr bool fits(std::int64_t number) {
  return number >= -kMostNumber && number <= kMostNumber;
}
/// a * b; what does not fit is kMostNumber + 1.
std::int64_t times(std::int64_t a, std::int64_t b);
/// a + b, at an end of what there is where it is beyond.
std::int64_t plus(std::int64_t a, std::int64_t b);

/// What a block of numbers adds to its base along one axis: i * stride, or values[i].
struct Along {
  std::int64_t count = 1;
  std::int64_t stride = 0;
  std::vector<std::int64_t> values{};  ///< empty: by stride

  std::int64_t at(std::int64_t i) const {
    return values.empty() ? i * stride : values[static_cast<std::size_t>(i)];
  }
  bool varies() const { return count > 1 && (stride != 0 || !values.empty()); }
};

/// Numbers at equal distances.
struct Run {
  std::int64_t first = 0, count = 1, stride = 1;
};
/// The numbers along an axis, those only for which `holds` is not 0 (null: all).
std::vector<Run> runs_of(const Along& along, const Along* holds);

enum class Type : std::uint8_t {
  none,        ///< None
  number,      ///< a whole number, or a block of them: base + the sum of `axes`
  mask,        ///< a block of truth: base != 0, and along every axis its values (none: all true)
  data,        ///< computed from what is loaded, or a fraction; a block of the shape of `axes`
  look,        ///< what a signal is when it is looked at, plus `base`
  text,        ///< a string
  list,        ///< or a tuple
  dictionary,  ///< of texts and numbers
  function,    ///< of the file, or a lambda
  name,        ///< something of a module: "tl.load", "torch.half", "range"
  pointer,     ///< elements of `memory`: base + the sum of `axes`
  descriptor,  ///< of a tensor: items are the pointer, then shape, strides and block as lists
  object       ///< of the host (readback/host.h)
};

struct Compound;
struct Term;
using TermRef = std::shared_ptr<const Term>;

struct Value {
  Type type = Type::none;
  std::int64_t base = 0;
  std::int32_t memory = -1;  ///< of a pointer, of a look: which
  std::vector<Along> axes{};
  std::string text{};  ///< of texts and names
  std::shared_ptr<const Compound> more{};
  TermRef term{};  ///< of data: what it is computed from; null: nobody knows

  bool is_number() const { return type == Type::number && axes.empty(); }
};

/// Anything of the host that a text has a value for.
struct Object {
  virtual ~Object() = default;
};

struct Compound {
  std::vector<Value> items{};                      ///< of lists and descriptors
  std::vector<std::pair<Value, Value>> entries{};  ///< of dictionaries
  const Function* function = nullptr;              ///< of a `def`
  const Node* lambda = nullptr;                    ///< or a lambda, and the names that it sees
  std::vector<std::pair<std::string, Value>> seen{};
  std::shared_ptr<Object> object{};
  std::int64_t weight = 0;  ///< of all values in it; set by held()
};

/// What a value takes of memory, about, in words of 8 bytes. What several share counts for each.
std::int64_t weight(const Value& value);
/// As what a value holds.
std::shared_ptr<const Compound> held(Compound made);

Value number(std::int64_t value);
Value text(std::string value);
Value name(std::string value);
Value list(std::vector<Value> items);
Value object(std::shared_ptr<Object> made);
/// Data of the shape of `like`.
Value unknown(const std::vector<Along>& like = {});
/// begin, begin + 1, ...
Value range_of(std::int64_t begin, std::int64_t count);

/// The object of this class that a value is; null: it is none.
template <class Kind>
std::shared_ptr<Kind> object_of(const Value& value) {
  return value.type == Type::object ? std::dynamic_pointer_cast<Kind>(value.more->object) : nullptr;
}

/// As Python and Triton compute: + - * // % / ** & | < <= > >= == !=, min, max. What is not
/// followed is data: a block that is no sum of its axes, blocks whose shapes do not go together,
/// and numbers that do not fit. A look is only added to, and compared by the interpreter.
/// `node`: where it stands.
Value binary(std::string_view op, const Value& a, const Value& b, const Node* node = nullptr);
/// where(condition, a, b) of blocks; data where it is not followed.
Value where(const Value& condition, const Value& a, const Value& b, const Node* node = nullptr);
/// Axes in another order, or a new one of one element at `axis`.
Value transposed(const Value& value, const std::vector<std::size_t>& order);
Value expanded(const Value& value, std::size_t axis);

/// "exp" of triton.language, and the like: of each element of a block by itself.
bool is_function_of_elements(std::string_view name);

}  // namespace hemiola::compile::readback
