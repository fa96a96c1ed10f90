// What an element of a block is computed from, as the text of a kernel says it, and its value where
// elements of memory have some. So what a tile stores can be compared with what reference() says.
// Private to readback/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hemiola::compile {
struct Node;
}

namespace hemiola::compile::readback {

struct Along;
struct Value;
struct Term;
using TermRef = std::shared_ptr<const Term>;

/// A block of computed data; its elements are made one by one, when somebody asks.
struct Term {
  enum class Kind : std::uint8_t {
    constant,  ///< `number`
    numbers,   ///< whole numbers: `base` + the sum of `axes`; truth: whether all of `axes` hold
    load,      ///< elements of `memory`, where `args[0]` (null: everywhere) holds; else `args[1]`
    products,  ///< the sum of left @ right of the first `count` of `pairs`
    apply,    ///< `op` of `args`, element by element; those with fewer axes are the same along them
    reduced,  ///< `op` of args[0] along axis `places[0]`, which is not there any more
    view,     ///< args[0] with its axis i at our axis places[i]; -1: it has one element there
    reshaped,  ///< elements of args[0] in their order
    part,      ///< args[0] at place `base` of its last axis
    opaque     ///< not known, because of `op`
  };
  using Pair = std::pair<TermRef, TermRef>;

  Kind kind = Kind::opaque;
  std::vector<std::int64_t> shape{};  ///< elements along each axis; none: a number
  std::string op{};
  double number = 0;
  std::int64_t base = 0;
  std::vector<Along> axes;  // without {}: clang wants to know what it holds then
  bool is_truth = false;
  std::int32_t memory = -1;
  std::int64_t when = 0;  ///< of a load: as memory is behind so many stores of its program
  std::vector<int> places{};
  std::vector<TermRef> args{};
  std::shared_ptr<std::vector<Pair>> pairs{};  ///< shared by sums that go on from each other
  std::size_t count = 0;
  int depth = 0;  ///< of applications, one in the other
  const Node* node = nullptr;
};

/// Of a number, a block of numbers or truth, or data. Never null.
TermRef term_of(const Value& value);
TermRef constant_term(double number);
/// Data that a term is, of its shape.
Value data_of(TermRef term);
/// `made` with a term of `of`, whose shape is that of `made`.
Value with_term(Value made, Term term, const Value& of);
/// "0.5", "1e-3", "-inf"; what is none is data that nobody knows.
Value fraction(std::string_view text);
TermRef opaque_term(std::string why);
/// Data: `op` of values, element by element; its shape is theirs together.
Value applied(std::string_view op, const std::vector<Value>& values, const Node* node = nullptr);
/// a + left @ right; `a` null: 0.
TermRef product_term(const TermRef& a, const TermRef& left, const TermRef& right, const Node* node);

/// Values of terms. Elements of memory are what `element(load, address)` says; nothing: unknown.
class Evaluator {
 public:
  using Place = std::vector<std::int64_t>;
  using Element = std::function<std::optional<double>(const Term& load, std::int64_t address)>;
  explicit Evaluator(Element element) : element_(std::move(element)) {}

  /// Of the element at `place`; nothing: it is not known, because of why().
  std::optional<double> value(const Term& term, const Place& place);
  const std::string& why() const { return why_; }
  /// All products have this value from here on.
  void fix_product(double value) { fixed_ = value; }

 private:
  struct Key {
    const Term* term;
    Place place;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  double at(const Term& term, const Place& place);
  double computed(const Term& term, const Place& place);
  static double counted(const Term& term, const Place& place);
  double turned(const Term& term, const Place& place);
  double applied(const Term& term, const Place& place);
  double product(const Term& term, const Place& place);
  double reduced(const Term& term, const Place& place);
  double loaded(const Term& term, const Place& place);
  double unknown(std::string why);
  void prepare(const Term& term, const Place& place);

  Element element_;
  std::optional<double> fixed_;
  std::unordered_map<Key, double, Hash> known_;
  std::string why_;
};

/// By axis, of an element of a dense tensor.
Evaluator::Place place_at(const std::vector<std::int64_t>& shape, std::int64_t address);
/// Of `term`, which has fewer axes or one element along some, the place that stands for one of a
/// block's.
Evaluator::Place place_in(const Term& term, const Evaluator::Place& place);

/// `tl.load` of elements base + the sum of `axes` of the memory of `from`, when that says. `mask`,
/// `other`: may be null.
TermRef load_term(Term from, const std::vector<Along>& axes, const Value* mask, const Value* other);

/// An element of a block that is stored.
struct Sample {
  std::int64_t address = 0;  ///< in its tensor
  Evaluator::Place place;    ///< in the block
};
/// One in the midst of a block, the last and the first one, and 16 more with every remainder of a
/// division by 16 along each axis: of those that `mask` (may be null) leaves. Places follow from
/// extents and mask alone.
std::vector<Sample> samples_of(std::int64_t base, const std::vector<Along>& axes,
                               const Value* mask);

/// Whether two values of one formula are the same but for rounding.
bool are_close(double a, double b);

}  // namespace hemiola::compile::readback
