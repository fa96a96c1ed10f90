// Calls that compute, and what an access of several elements does. What calls mean is in
// machine_words.cc.
#include <algorithm>

#include "compile/skeleton/machine.h"

namespace hemiola::compile::skeleton {
namespace {

using EK = Element::Kind;
using Meaning = Word::Meaning;

bool is_off(const Value* mask, std::size_t lane) {
  if (mask == nullptr || mask->kind != Value::Kind::elements) return false;
  const Elements& all = mask->elements;
  const Element& one = all.size() == 1 ? all[0] : lane < all.size() ? all[lane] : Element{};
  return one.is_number() && one.number == 0;
}

const Element& lane_of(const Value& value, std::size_t lane) {
  static const Element none;
  if (value.kind != Value::Kind::elements) return none;
  return value.elements.size() == 1     ? value.elements[0]
         : lane < value.elements.size() ? value.elements[lane]
                                        : none;
}

std::vector<int> shape_in(const Value& value) {
  std::vector<int> shape;
  const auto add = [&](const Value& one) {
    shape.push_back(one.is_number() && one.number() > 0 && one.number() < (1 << 14)
                        ? static_cast<int>(one.number())
                        : 1);
  };
  if (value.kind == Value::Kind::tuple)
    for (const Value& one : value.items) add(one);
  else if (value.is_number())
    add(value);
  return shape;
}

/// Lanes that go through a condition of threads; null: all.
const Value* active_lanes(const Process& who, const Value& where) {
  const Value* lanes = who.masks.empty() ? nullptr : &who.masks.back().second;
  return lanes != nullptr && lanes->elements.size() == where.elements.size() ? lanes : nullptr;
}

/// What is told and awaited is a number.
void note_numbers(Arrays& arrays, const Value& value) {
  if (value.kind != Value::Kind::elements) return;
  for (const Element& one : value.elements)
    if (one.kind == EK::open) arrays[one.array].is_number = true;
}

}  // namespace

Value Machine::program(const Process& who, const Arguments& given) const {
  const Value* axis = given.role("axis");
  const std::size_t at =
      axis != nullptr && axis->is_number() && axis->number() > 0 && axis->number() < 3
          ? static_cast<std::size_t>(axis->number())
          : 0;
  if (given.call.meaning == Meaning::num_programs) return Value::of(programs[at]);
  std::int64_t rest = who.program;
  for (std::size_t i = 0; i < at; ++i) rest /= programs[i];
  return Value::of(rest % programs[at]);
}

Value Machine::computed(const Process& who, const Arguments& given) {
  switch (given.call.meaning) {
    case Meaning::rank:
      return Value::of(who.rank);
    case Meaning::world:
      return Value::of(arrays_.world);
    case Meaning::lane:
      return lanes();
    case Meaning::address:
      return there(who, given, "pointer");
    case Meaning::program_id:
    case Meaning::num_programs:
      return program(who, given);
    case Meaning::arange:
      return arange(given);
    case Meaning::full: {
      const Value *shape = given.role("shape"), *fill = given.role("value");
      const Value one = fill == nullptr ? Value::of(0) : *fill;
      return shape == nullptr || !one.is_number() ? one : broadcast(one, shape_in(*shape));
    }
    case Meaning::cdiv:
    case Meaning::fold:
      return folded(given);
    case Meaning::range:
      return range(given);
    case Meaning::pointer_type:
      return Value::of_text("pointer");
    case Meaning::descriptor:
      return descriptor(given);
    default:
      return given.count == 0 ? Value{} : of_first(given, *given.values);
  }
}

/// What is made of the first argument.
Value Machine::of_first(const Arguments& given, const Value& a) {
  switch (given.call.meaning) {
    case Meaning::none:  // of a value and what it waited for
      return given.role("pointer") == nullptr ? Value{} : *given.role("pointer");
    case Meaning::first:
      return a;
    case Meaning::transpose:
      return transposed(a);
    case Meaning::reduce:
      return reduced(given.call.name, a, given.role("axis") != nullptr);
    case Meaning::where:
      return chosen(given, a);
    case Meaning::cast:
      return cast(given, a);
    case Meaning::advance: {
      const Value* by = given.role("offsets");
      if (by == nullptr || a.kind != Value::Kind::descriptor) return {};
      Value result = a;
      for (std::size_t i = 0; i < result.items[3].items.size() && i < by->items.size(); ++i)
        result.items[3].items[i] = binary(arrays_, "+", result.items[3].items[i], by->items[i]);
      return result;
    }
    default:
      return {};
  }
}

Value Machine::arange(const Arguments& given) const {
  const Value *begin = given.role("start"), *end = given.role("end");
  if (begin == nullptr || end == nullptr || !begin->is_number() || !end->is_number()) return {};
  const std::int64_t count = end->number() - begin->number();
  if (count < 1 || count > (1 << 14)) return {};
  Value result{.shape = {static_cast<int>(count)}, .elements = {}};
  for (std::int64_t i = 0; i < count; ++i)
    result.elements.push_back(number_element(begin->number() + i));
  return result;
}

/// min, max and cdiv.
Value Machine::folded(const Arguments& given) {
  if (given.count == 0) return {};
  if (given.call.meaning == Meaning::cdiv) {
    const Value *x = given.role("x"), *y = given.role("div");
    if (x == nullptr || y == nullptr) return {};
    const Value up = binary(arrays_, "-", binary(arrays_, "+", *x, *y), Value::of(1));
    return binary(arrays_, "//", up, *y);
  }
  const std::string_view op = given.call.name.starts_with("min") ? "min" : "max";
  Value result = given.values[0];
  for (std::size_t i = 1; i < given.count; ++i)
    result = binary(arrays_, op, result, given.values[i]);
  return result;
}

Value Machine::range(const Arguments& given) {
  std::vector<Value> parts(given.values, given.values + given.call.positional);
  for (const Value& one : parts)
    if (one.kind == Value::Kind::elements && one.elements[0].kind == EK::open)
      arrays_[one.elements[0].array].is_number = true;
  if (parts.size() == 1) parts.insert(parts.begin(), Value::of(0));
  if (parts.size() == 2) parts.push_back(Value::of(1));
  Value result = Value::of_items(std::move(parts));
  result.text = "range";
  return result;
}

/// tl.where: shapes by the usual rules, each element from one of the two.
Value Machine::chosen(const Arguments& given, const Value& condition) {
  const Value *x = given.role("x"), *y = given.role("y");
  if (x == nullptr || y == nullptr) return {};
  if (condition.is_number()) return condition.number() != 0 ? *x : *y;
  Value result = binary(arrays_, "+", binary(arrays_, "+", condition, *x), *y);
  const Value c = broadcast(condition, result.shape), p = broadcast(*x, result.shape),
              q = broadcast(*y, result.shape);
  for (std::size_t i = 0; i < result.elements.size(); ++i) {
    const Element& one = lane_of(c, i);
    result.elements[i] = !one.is_number()  ? Element{}
                         : one.number != 0 ? lane_of(p, i)
                                           : lane_of(q, i);
  }
  return result;
}

Value Machine::cast(const Arguments& given, const Value& a) {
  Value result = a;
  const Value* type = given.role("dtype");
  const bool to_pointer =
      type != nullptr && type->kind == Value::Kind::text && type->text == "pointer";
  if (!to_pointer || result.kind != Value::Kind::elements) return result;
  for (Element& one : result.elements) {
    if (one.kind == EK::loaded) {
      arrays_[one.array].is_table = true;
      one = arrays_.target(one);
    }
    if (one.kind == EK::open) arrays_[one.array].is_pointer = true;
  }
  return result;
}

Value Machine::descriptor(const Arguments& given) {
  Value made{.kind = Value::Kind::descriptor};
  for (const char* name : {"base", "strides", "block_shape", "offsets"}) {
    const Value* found = given.role(name);
    made.items.push_back(found == nullptr ? Value::of_items({}) : *found);
  }
  made.text = given.call.word->fixed_of("bulk", "");
  return made;
}

Value Machine::block_of(const Value& descriptor, const Value& offsets) {
  const std::vector<Value>&strides = descriptor.items[1].items, &block = descriptor.items[2].items;
  Value where = descriptor.items[0];
  for (std::size_t axis = 0; axis < block.size(); ++axis) {
    const std::int64_t extent = block[axis].is_number() ? block[axis].number() : 1;
    Value lanes{.shape = std::vector<int>(block.size(), 1), .elements = {}};
    lanes.shape[axis] = static_cast<int>(std::clamp<std::int64_t>(extent, 1, 256));
    for (int i = 0; i < lanes.shape[axis]; ++i) lanes.elements.push_back(number_element(i));
    const Value offset = axis < offsets.items.size() ? offsets.items[axis] : Value::of(0);
    const Value stride = axis < strides.size() ? strides[axis] : Value::of(1);
    where = binary(arrays_, "+", where,
                   binary(arrays_, "*", binary(arrays_, "+", offset, lanes), stride));
  }
  return where;
}

Element Machine::addressed(const Process& who, const Element& element) {
  Element one = element;
  if (one.kind == EK::loaded) one = arrays_.target(one);
  if (one.kind == EK::open) {
    arrays_[one.array].is_pointer = true;
    one.kind = EK::address;
    one.rank = who.rank;
  }
  if (one.kind != EK::address) return {};
  if (const int table = arrays_[one.array].table; table >= 0) arrays_[table].is_table = true;
  return one;
}

Value Machine::touch(Process& who, const Value& where, Access access, const Value* value,
                     const Value* compare, const Value* mask) {
  Value result = where;
  if (where.kind != Value::Kind::elements) return {};
  access.step = who.pc - 1;
  access.is_block = where.elements.size() > 1;
  const Value* lanes = active_lanes(who, where);
  if (value != nullptr && access.kind == Access::Kind::atomic) note_numbers(arrays_, *value);
  who.steps += static_cast<std::int64_t>(where.elements.size());
  for (std::size_t i = 0; i < where.elements.size(); ++i) {
    result.elements[i] = Element{};
    access.place = addressed(who, where.elements[i]);
    if (is_off(mask, i) || is_off(lanes, i)) {
      shared_.skip(who, access);
      continue;
    }
    if (value != nullptr) access.value = lane_of(*value, i);
    if (compare != nullptr) access.compare = lane_of(*compare, i);
    result.elements[i] = shared_.access(who, access);
  }
  return result;
}

/// Of several words each is waited for; which are done is kept while the program waits.
bool Machine::wait(Process& who, const Value& where, Access access, const Value& value,
                   std::string_view comparison) {
  if (where.kind != Value::Kind::elements) return true;
  note_numbers(arrays_, value);
  access.step = who.pc - 1;
  access.is_block = where.elements.size() > 1;
  if (who.lanes_done.size() != where.elements.size())
    who.lanes_done.assign(where.elements.size(), false);
  bool all = true;
  who.watched.clear();
  const Value* lanes = active_lanes(who, where);
  for (std::size_t i = 0; i < where.elements.size(); ++i) {
    if (who.lanes_done[i] || is_off(lanes, i)) continue;
    access.place = addressed(who, where.elements[i]);
    access.compare = lane_of(value, i);
    who.lanes_done[i] = shared_.try_wait(who, access, comparison);
    all = all && who.lanes_done[i];
  }
  if (all) who.lanes_done.clear();
  return all;
}

}  // namespace hemiola::compile::skeleton
