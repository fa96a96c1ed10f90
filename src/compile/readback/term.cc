#include "compile/readback/term.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "compile/readback/value.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

constexpr int kDeepest = 20'000;   // applications one in the other; turns of a loop of attention
constexpr int kDeepestCall = 200;  // that are evaluated in one go
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<std::int64_t> shape_of(const Value& value) {
  std::vector<std::int64_t> shape;
  for (const Along& along : value.axes) shape.push_back(along.count);
  return shape;
}

std::vector<std::int64_t> shape_of(const std::vector<TermRef>& terms) {
  std::vector<std::int64_t> shape;
  for (const TermRef& term : terms) {
    const auto& other = term->shape;
    if (other.size() > shape.size()) shape.insert(shape.begin(), other.size() - shape.size(), 1);
    for (std::size_t i = 0; i < other.size(); ++i) {
      std::int64_t& along = shape[shape.size() - other.size() + i];
      along = std::max(along, other[i]);
    }
  }
  return shape;
}

bool is_zero(const Term& term) {
  if (term.kind == Term::Kind::constant) return term.number == 0;
  return term.kind == Term::Kind::numbers && !term.is_truth && term.base == 0 &&
         std::ranges::none_of(term.axes, [](const Along& along) { return along.varies(); });
}

double modulo(double a, double b) {
  return a - std::floor(a / b) * b;
}

using Function1 = double (*)(double);
using Function2 = double (*)(double, double);

const std::map<std::string_view, Function1>& functions_of_one() {
  static const std::map<std::string_view, Function1> kAll{
      {"exp", [](double x) { return std::exp(x); }},
      {"exp2", [](double x) { return std::exp2(x); }},
      {"log", [](double x) { return std::log(x); }},
      {"log2", [](double x) { return std::log2(x); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"sqrt_rn", [](double x) { return std::sqrt(x); }},
      {"rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"abs", [](double x) { return std::abs(x); }},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"erf", [](double x) { return std::erf(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"neg", [](double x) { return -x; }},
      {"same", [](double x) { return x; }},
      {"not", [](double x) { return x == 0 ? 1.0 : 0.0; }}};
  return kAll;
}

const std::map<std::string_view, Function2>& functions_of_two() {
  static const std::map<std::string_view, Function2> kAll{
      {"+", [](double a, double b) { return a + b; }},
      {"-", [](double a, double b) { return a - b; }},
      {"*", [](double a, double b) { return a * b; }},
      {"/", [](double a, double b) { return a / b; }},
      {"fdiv", [](double a, double b) { return a / b; }},
      {"div_rn", [](double a, double b) { return a / b; }},
      {"//", [](double a, double b) { return std::floor(a / b); }},
      {"%", modulo},
      {"**", [](double a, double b) { return std::pow(a, b); }},
      {"pow", [](double a, double b) { return std::pow(a, b); }},
      {"<", [](double a, double b) { return a < b ? 1.0 : 0.0; }},
      {"<=", [](double a, double b) { return a <= b ? 1.0 : 0.0; }},
      {">", [](double a, double b) { return a > b ? 1.0 : 0.0; }},
      {">=", [](double a, double b) { return a >= b ? 1.0 : 0.0; }},
      {"==", [](double a, double b) { return a == b ? 1.0 : 0.0; }},
      {"!=", [](double a, double b) { return a != b ? 1.0 : 0.0; }},
      {"&", [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }},
      {"|", [](double a, double b) { return a != 0 || b != 0 ? 1.0 : 0.0; }},
      {"min", [](double a, double b) { return std::min(a, b); }},
      {"max", [](double a, double b) { return std::max(a, b); }}};
  return kAll;
}

}  // namespace

Evaluator::Place place_at(const std::vector<std::int64_t>& shape, std::int64_t address) {
  Evaluator::Place place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; address /= shape[i]) place[i] = address % shape[i];
  return place;
}

Evaluator::Place place_in(const Term& of, const Evaluator::Place& place) {
  Evaluator::Place made(of.shape.size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    const std::size_t behind = made.size() - i;
    made[i] = behind <= place.size() && of.shape[i] > 1 ? place[place.size() - behind] : 0;
  }
  return made;
}

Value data_of(TermRef term) {
  Value made{.type = Type::data, .term = std::move(term)};
  for (const std::int64_t count : made.term->shape) made.axes.push_back({.count = count});
  return made;
}

Value with_term(Value made, Term term, const Value& of) {
  term.args = {term_of(of)};
  term.depth = term.args[0]->depth + 1;
  for (const Along& one : made.axes) term.shape.push_back(one.count);
  made.term = std::make_shared<const Term>(std::move(term));
  return made;
}

Value fraction(std::string_view text) {
  std::string digits(text);
  std::erase(digits, '_');
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  Value made = unknown();
  if (!digits.empty() && *end == '\0') made.term = constant_term(value);
  return made;
}

TermRef constant_term(double number) {
  return std::make_shared<const Term>(Term{.kind = Term::Kind::constant, .number = number});
}

TermRef opaque_term(std::string why) {
  return std::make_shared<const Term>(Term{.kind = Term::Kind::opaque, .op = std::move(why)});
}

TermRef term_of(const Value& value) {
  if (value.term) {
    if (value.term->shape.size() == value.axes.size() && value.term->shape == shape_of(value))
      return value.term;
    // The same for more elements.
    return std::make_shared<const Term>(Term{.kind = Term::Kind::apply,
                                             .shape = shape_of(value),
                                             .op = "same",
                                             .args = {value.term},
                                             .depth = value.term->depth + 1});
  }
  if (value.is_number()) return constant_term(static_cast<double>(value.base));
  if (value.type != Type::number && value.type != Type::mask)
    return opaque_term("a value that the text does not say");
  return std::make_shared<const Term>(Term{.kind = Term::Kind::numbers,
                                           .shape = shape_of(value),
                                           .base = value.base,
                                           .axes = value.axes,
                                           .is_truth = value.type == Type::mask});
}

/// Whether a product joins the products of a sum: of a loop, which may have begun with a bias.
static bool goes_on(const Term& sum, const std::vector<std::int64_t>& shape) {
  return sum.shape == shape && (sum.kind == Term::Kind::products ||
                                (sum.kind == Term::Kind::apply && sum.op == "+" &&
                                 sum.args.size() == 2 && goes_on(*sum.args[1], shape)));
}

Value applied(std::string_view op, const std::vector<Value>& values, const Node* node) {
  Term made{.kind = Term::Kind::apply, .op = std::string(op), .node = node};
  for (const Value& value : values) {
    made.args.push_back(term_of(value));
    made.depth = std::max(made.depth, made.args.back()->depth + 1);
  }
  made.shape = shape_of(made.args);
  if (op == "+") {
    // What a loop adds up begins with zeros, and goes on from turn to turn.
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}}) {
      const TermRef &one = made.args[i], &other = made.args[1 - i];
      if (is_zero(*one) && other->shape == made.shape) return data_of(other);
      if (one->kind == Term::Kind::products && one->count == 1 && goes_on(*other, one->shape)) {
        const auto& [left, right] = one->pairs->front();
        return data_of(product_term(other, left, right, one->node));
      }
    }
  }
  if (made.depth > kDeepest)
    made = {.kind = Term::Kind::opaque,
            .shape = std::move(made.shape),
            .op = "values that follow each other too deeply"};
  return data_of(std::make_shared<const Term>(std::move(made)));
}

TermRef product_term(const TermRef& a, const TermRef& left, const TermRef& right,
                     const Node* node) {
  Term made{.kind = Term::Kind::products, .node = node};
  made.depth = std::max(left->depth, right->depth) + 1;
  made.shape = left->shape;
  if (!made.shape.empty() && !right->shape.empty()) made.shape.back() = right->shape.back();
  if (a != nullptr && !is_zero(*a)) {
    if (a->kind == Term::Kind::apply && goes_on(*a, made.shape)) {
      Term sum = *a;
      sum.args[1] = product_term(a->args[1], left, right, node);
      sum.depth = std::max(sum.depth, sum.args[1]->depth + 1);
      return std::make_shared<const Term>(std::move(sum));
    }
    if (a->kind != Term::Kind::products || a->shape != made.shape) {
      return applied("+", {data_of(a), data_of(product_term(nullptr, left, right, node))}, node)
          .term;
    }
    // Sums of one loop share a list; one that goes another way from the middle takes its own.
    made.pairs =
        a->count == a->pairs->size()
            ? a->pairs
            : std::make_shared<std::vector<Term::Pair>>(
                  a->pairs->begin(), a->pairs->begin() + static_cast<std::ptrdiff_t>(a->count));
    made.depth = std::max(made.depth, a->depth);
  } else {
    made.pairs = std::make_shared<std::vector<Term::Pair>>();
  }
  made.pairs->emplace_back(left, right);
  made.count = made.pairs->size();
  return std::make_shared<const Term>(std::move(made));
}

TermRef load_term(Term from, const std::vector<Along>& axes, const Value* mask,
                  const Value* other) {
  Term term = std::move(from);
  term.kind = Term::Kind::load;
  term.axes = axes;
  term.args = {nullptr, nullptr};
  for (const Along& along : axes) term.shape.push_back(along.count);
  if (mask != nullptr && mask->type != Type::none) term.args[0] = term_of(*mask);
  if (other != nullptr && other->type != Type::none) term.args[1] = term_of(*other);
  return std::make_shared<const Term>(std::move(term));
}

std::vector<Sample> samples_of(std::int64_t base, const std::vector<Along>& axes,
                               const Value* mask) {
  // One in the midst, the last and the first; then such that every remainder of a division by 2, 4,
  // 8 and 16 comes along each axis, for masks that come again and again. By number and axis alone:
  // tiles that merge what others left look at the same elements of all their blocks.
  constexpr std::size_t kFixed = 3, kSamples = kFixed + 16;
  constexpr std::int64_t kSteps[] = {83, 37, 59};
  const std::size_t masked =
      mask != nullptr && mask->type == Type::mask ? mask->axes.size() : std::size_t{0};
  std::vector<Sample> made(kSamples, {base, {}});
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t behind = axes.size() - i;
    std::vector<std::int64_t> left;
    if (behind <= masked) {
      const Along& holds = mask->axes[masked - behind];
      for (std::int64_t k = 0; !holds.values.empty() && k < axes[i].count; ++k)
        if (holds.at(holds.count > 1 ? k : 0) != 0) left.push_back(k);
    }
    const std::int64_t count = left.empty() ? axes[i].count : std::ssize(left);
    for (std::size_t n = 0; n < kSamples; ++n) {
      const std::int64_t places[] = {count * 5 / 8, count - 1, 0};
      const std::int64_t step = kSteps[std::min(i, std::size(kSteps) - 1)];
      const std::int64_t at =
          n < kFixed ? places[n] : (static_cast<std::int64_t>(n) * step + step / 8) % count;
      made[n].place.push_back(left.empty() ? at : left[index(at)]);
      made[n].address += axes[i].at(axes[i].count > 1 ? made[n].place.back() : 0);
    }
  }
  std::vector<Sample> apart;
  for (Sample& one : made)
    if (std::ranges::none_of(apart,
                             [&](const Sample& other) { return other.address == one.address; }))
      apart.push_back(std::move(one));
  return apart;
}

std::size_t Evaluator::Hash::operator()(const Key& key) const {
  std::size_t made = std::hash<const void*>()(key.term);
  for (const std::int64_t one : key.place)
    made = made * 0x9e3779b97f4a7c15U + static_cast<std::size_t>(one) + (made >> 29);
  return made;
}

std::optional<double> Evaluator::value(const Term& term, const Place& place) {
  why_.clear();
  known_.clear();
  prepare(term, place);
  const double made = at(term, place);
  return why_.empty() ? std::optional(made) : std::nullopt;
}

double Evaluator::unknown(std::string why) {
  if (why_.empty()) why_ = std::move(why);
  return kNaN;
}

/// Of what is deep the parts first, so that no call is: each is known when it is asked for.
void Evaluator::prepare(const Term& term, const Place& place) {
  std::vector<std::pair<const Term*, Place>> parts;
  const Term* one = &term;
  Place here = place;
  int marked = term.depth;
  while (one->depth > kDeepestCall && one->kind == Term::Kind::apply) {
    const auto deepest = std::ranges::max_element(
        one->args, [](const TermRef& a, const TermRef& b) { return a->depth < b->depth; });
    here = place_in(**deepest, here);
    one = deepest->get();
    if (marked - one->depth < kDeepestCall) continue;
    marked = one->depth;
    parts.emplace_back(one, here);
  }
  for (; !parts.empty(); parts.pop_back()) at(*parts.back().first, parts.back().second);
}

double Evaluator::at(const Term& term, const Place& place) {
  if (!why_.empty()) return kNaN;
  const bool is_kept = term.kind == Term::Kind::apply || term.kind == Term::Kind::reduced ||
                       term.kind == Term::Kind::products;
  if (!is_kept) return computed(term, place);
  Key key{&term, place};
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const double made = computed(term, place);
  known_.emplace(std::move(key), made);
  return made;
}

double Evaluator::computed(const Term& term, const Place& place) {
  switch (term.kind) {
    case Term::Kind::constant:
      return term.number;
    case Term::Kind::numbers:
      return counted(term, place);
    case Term::Kind::load:
      return loaded(term, place);
    case Term::Kind::products:
      return fixed_ ? *fixed_ : product(term, place);
    case Term::Kind::reduced:
      return reduced(term, place);
    case Term::Kind::opaque:
      return unknown(term.op);
    case Term::Kind::apply:
      return applied(term, place);
    case Term::Kind::view:
    case Term::Kind::reshaped:
    case Term::Kind::part:
      return turned(term, place);
  }
  return unknown("what this is");
}

/// Of numbers that the text says.
double Evaluator::counted(const Term& term, const Place& place) {
  std::int64_t made = term.base;
  for (std::size_t i = 0; i < term.axes.size(); ++i) {
    const Along& along = term.axes[i];
    if (!term.is_truth)
      made += along.at(along.count > 1 ? place[i] : 0);
    else if (!along.values.empty() && along.at(along.count > 1 ? place[i] : 0) == 0)
      made = 0;
  }
  return static_cast<double>(made);
}

/// Of what lies at another place of another block.
double Evaluator::turned(const Term& term, const Place& place) {
  switch (term.kind) {
    case Term::Kind::view: {
      Place inner(term.places.size());
      for (std::size_t i = 0; i < inner.size(); ++i)
        inner[i] = term.places[i] < 0 ? 0 : place[index(term.places[i])];
      return at(*term.args[0], inner);
    }
    case Term::Kind::reshaped: {
      std::int64_t number = 0;
      for (std::size_t i = 0; i < place.size(); ++i) number = number * term.shape[i] + place[i];
      const auto& shape = term.args[0]->shape;
      Place inner(shape.size());
      for (std::size_t i = shape.size(); i-- > 0; number /= shape[i]) inner[i] = number % shape[i];
      return at(*term.args[0], inner);
    }
    case Term::Kind::part: {
      Place inner = place;
      inner.push_back(term.base);
      return at(*term.args[0], inner);
    }
    default:
      return unknown("what this is");
  }
}

/// Of functions of the elements at one place.
double Evaluator::applied(const Term& term, const Place& place) {
  const auto arg = [&](std::size_t i) { return at(*term.args[i], place_in(*term.args[i], place)); };
  if (term.op == "where" && term.args.size() == 3) return arg(0) != 0 ? arg(1) : arg(2);
  if (term.op == "fma" && term.args.size() == 3) return arg(0) * arg(1) + arg(2);
  if (term.args.size() == 1)
    if (const auto found = functions_of_one().find(term.op); found != functions_of_one().end())
      return found->second(arg(0));
  if (term.args.size() == 2)
    if (const auto found = functions_of_two().find(term.op); found != functions_of_two().end())
      return found->second(arg(0), arg(1));
  return unknown("what '" + term.op + "' computes is not followed");
}

double Evaluator::loaded(const Term& term, const Place& place) {
  if (const TermRef& mask = term.args[0]; mask != nullptr) {
    if (at(*mask, place_in(*mask, place)) == 0) {
      const TermRef& other = term.args[1];
      return other == nullptr ? unknown("elements are used that a mask leaves out")
                              : at(*other, place_in(*other, place));
    }
  }
  std::int64_t address = term.base;
  for (std::size_t i = 0; i < term.axes.size(); ++i)
    address += term.axes[i].at(term.axes[i].count > 1 ? place[i] : 0);
  const std::optional<double> made = element_(term, address);
  return made ? *made : unknown("elements are read that other tiles, or nobody, have written");
}

double Evaluator::product(const Term& term, const Place& place) {
  double made = 0;
  for (std::size_t p = 0; p < term.count; ++p) {
    const auto& [left, right] = (*term.pairs)[p];
    Place row = place_in(*left, place), column = place_in(*right, place);
    const std::size_t of_rows = row.size() - 2, of_columns = column.size() - 2;
    if (row.size() == place.size()) row[of_rows] = place[place.size() - 2];
    const std::int64_t depth = left->shape.back();
    for (std::int64_t k = 0; k < depth && why_.empty(); ++k) {
      row[of_rows + 1] = k;
      column[of_columns] = k;
      const double a = at(*left, row);
      made += a == 0 ? 0 : a * at(*right, column);
    }
  }
  return made;
}

double Evaluator::reduced(const Term& term, const Place& place) {
  const std::size_t axis = index(term.places[0]);
  Place inner = place;
  inner.insert(inner.begin() + static_cast<std::ptrdiff_t>(axis), 0);
  const bool adds = term.op == "sum", finds_most = term.op == "max";
  if (!adds && !finds_most && term.op != "min")
    return unknown("what '" + term.op + "' computes is not followed");
  double made = 0;
  for (std::int64_t k = 0; k < term.args[0]->shape[axis] && why_.empty(); ++k) {
    inner[axis] = k;
    const double one = at(*term.args[0], inner);
    made = adds     ? made + one
           : k == 0 ? one
                    : (finds_most ? std::max(made, one) : std::min(made, one));
  }
  return made;
}

bool are_close(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return false;
  return a == b || std::abs(a - b) <= 1e-5 * (1 + std::max(std::abs(a), std::abs(b)));
}

}  // namespace hemiola::compile::readback
