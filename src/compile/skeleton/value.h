// Values of a kernel that is executed for its synchronisation only: whole numbers and addresses are
// what they are, data are nothing but unknown.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/inline_vector.h"

namespace hemiola::compile::skeleton {

/// One element of a tensor, or a scalar.
struct Element {
  enum class Kind : std::uint8_t {
    unknown,
    number,
    open,     ///< a parameter plus `number`, of which is not known yet whether it is an address
    address,  ///< element `number` of array `array` on rank `rank`
    loaded,   ///< what element `number` of the array holds: an address, or a number nobody knows
    distance  ///< an address without its base: element `number` of `array`, or (array < 0) the way
              ///< from one rank's memory to that of `rank`
  };
  Kind kind = Kind::unknown;
  bool is_vague = false;    ///< of an address: which element is not known
  std::int32_t array = -1;  ///< in Arrays
  std::int32_t rank = 0;    ///< whose memory; -1: not known
  std::int64_t number = 0;

  bool operator==(const Element&) const = default;
  bool is_number() const { return kind == Kind::number; }
};
using Elements = InlineVector<Element, 1>;
inline Element number_element(std::int64_t number) {
  return {.kind = Element::Kind::number, .number = number};
}

/// Memory that kernels reach: what parameters point to, and what addresses in tables point to.
struct Array {
  std::string name;   ///< "flags", "peer_flags[]"
  int table = -1;     ///< the array whose elements are addresses of this one; -1: a parameter's own
  int parameter = 0;  ///< whose memory, or whose table, it is
  std::int64_t kind = 0;      ///< of a table's: how many times all ranks stand before it
  bool is_symmetric = false;  ///< a library was asked for the same place at a peer
  bool is_table = false;      ///< its elements were used as addresses
  bool is_indexed = false;    ///< ... and more than its first one was looked at
  bool is_number = false;     ///< the parameter was multiplied, compared or counted with
  bool is_pointer = false;    ///< ... or its memory was looked at or written
};

class Arrays {
 public:
  /// Ranks that the kernel runs on: tables have an address for each, kind after kind.
  int world = 2;

  int add(Array array);
  Array& operator[](int i) { return arrays_[i]; }
  const Array& operator[](int i) const { return arrays_[i]; }
  int size() const { return static_cast<int>(arrays_.size()); }
  /// Forgets all but the first, which parameters point to.
  void keep(int count);
  /// What an element of a table points to. A table of which only the first element is ever looked
  /// at has the address of one peer: the rank behind.
  Element target(const Element& loaded);

 private:
  std::vector<Array> arrays_;
  std::map<std::pair<int, std::int64_t>, int> targets_;  ///< by table and kind
};

struct Value {
  enum class Kind : std::uint8_t {
    elements,  ///< a scalar or a tensor; unknown data are a scalar whatever their shape
    tuple,     ///< also lists, and what range() makes
    text,
    none,
    descriptor  ///< items: base, strides, block, offsets of the block
  };
  Kind kind = Kind::elements;
  std::vector<int> shape;
  Elements elements{Element{}};
  std::vector<Value> items;
  std::string text;

  static Value of(Element element) { return {.elements = {element}}; }
  static Value of(std::int64_t number) { return of(number_element(number)); }
  static Value of_text(std::string text) { return {.kind = Kind::text, .text = std::move(text)}; }
  static Value of_items(std::vector<Value> items) {
    return {.kind = Kind::tuple, .items = std::move(items)};
  }

  bool operator==(const Value&) const = default;
  bool is_scalar() const { return kind == Kind::elements && elements.size() == 1; }
  bool is_number() const { return is_scalar() && elements[0].is_number(); }
  std::int64_t number() const { return elements[0].number; }
  bool has_unknown() const;
};

/// As Python's operators and tl's functions, element by element: "+", "//", "<", "and", "min".
Value binary(Arrays& arrays, std::string_view op, const Value& a, const Value& b);
Value unary(Arrays& arrays, std::string_view op, const Value& a);
/// tl.sum, tl.max, tl.min, tl.xor_sum over all elements; unknown for an axis of several.
Value reduced(std::string_view name, const Value& a, bool has_axis);
/// a[:, None]: `pattern` has ':' for an axis that stays and 'n' for one that is new.
Value reshaped(const Value& a, std::string_view pattern);
Value broadcast(const Value& a, const std::vector<int>& shape);
/// Rows and columns of a block of two axes change places.
Value transposed(const Value& a);

}  // namespace hemiola::compile::skeleton
