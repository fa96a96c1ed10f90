#include "compile/describe/expression.h"

#include <algorithm>
#include <numeric>

#include "compile/python/formula.h"

namespace hemiola::compile {
namespace {

void append(std::string& key, const Expr& e) {
  for (const Term& term : e.terms) {
    key += std::to_string(term.coefficient);
    for (const AtomId factor : term.factors) key += '.' + std::to_string(factor);
    key += '+';
  }
  key += ';';
}

std::string key_of(const Atom& atom) {
  std::string key = std::to_string(static_cast<int>(atom.kind)) + '|' + atom.name + '|' +
                    std::to_string(atom.number) + '|';
  for (const Expr& arg : atom.args) append(key, arg);
  key += '|';
  for (const int dim : atom.dims) key += std::to_string(dim) + ',';
  key += '|';
  for (const int load : atom.loads) key += std::to_string(load) + ',';
  key += atom.has_dot ? 'd' : '-';
  key += atom.has_exp ? 'e' : '-';
  return key;
}

void join(std::vector<int>& into, const std::vector<int>& more) {
  if (more.empty()) return;
  std::vector<int> both;
  std::set_union(into.begin(), into.end(), more.begin(), more.end(), std::back_inserter(both));
  into = std::move(both);
}

/// What an atom says of itself, and what its arguments say.
void inherit(const Algebra& algebra, Atom& atom) {
  switch (atom.kind) {
    case AtomKind::program:
      atom.has_program = true;
      break;
    case AtomKind::iteration:
      atom.loops = {atom.number};
      break;
    case AtomKind::range:
      atom.has_range = true;
      break;
    case AtomKind::loaded:
      atom.has_load = true;
      atom.loads = {atom.number};
      break;
    case AtomKind::data:
      atom.has_data = true;
      break;
    case AtomKind::trips:
    case AtomKind::carried:
      atom.has_carried = true;
      atom.has_load = !atom.loads.empty();
      break;
    case AtomKind::opaque:
      atom.has_opaque = true;
      break;
    default:
      break;
  }
  for (const Expr& arg : atom.args) atom.join(algebra.traits(arg));
}

Expr normal(std::map<std::vector<AtomId>, std::int64_t>&& sum) {
  Expr e;
  for (auto& [factors, coefficient] : sum)
    if (coefficient != 0) e.terms.push_back({coefficient, factors});
  return e;
}

}  // namespace

void Traits::join(const Traits& other) {
  has_program |= other.has_program;
  has_range |= other.has_range;
  has_load |= other.has_load;
  has_opaque |= other.has_opaque;
  has_data |= other.has_data;
  has_carried |= other.has_carried;
  has_dot |= other.has_dot;
  has_exp |= other.has_exp;
  compile::join(loops, other.loops);
  compile::join(loads, other.loads);
}

Expr Algebra::number(std::int64_t value) {
  if (value == 0) return {};
  return {{{value, {}}}};
}

Expr Algebra::make(Atom atom) {
  const auto [known, is_new] = known_.try_emplace(key_of(atom), static_cast<AtomId>(atoms_.size()));
  if (is_new) {
    inherit(*this, atom);
    atoms_.push_back(std::move(atom));
  }
  return of(known->second);
}

Expr Algebra::parameter(const std::string& name, bool is_constexpr) {
  return make({.kind = is_constexpr ? AtomKind::constexpr_ : AtomKind::parameter, .name = name});
}
Expr Algebra::program(int axis) {
  return make({.kind = AtomKind::program, .number = axis});
}
Expr Algebra::programs(int axis) {
  return make({.kind = AtomKind::programs, .number = axis});
}
Expr Algebra::iteration(int loop) {
  return make({.kind = AtomKind::iteration, .number = loop});
}
Expr Algebra::range(const Expr& begin, const Expr& end, int dim) {
  return make({.kind = AtomKind::range, .args = {begin, end}, .dims = {dim}});
}
Expr Algebra::opaque(const std::string& reason, int place) {
  return make({.kind = AtomKind::opaque, .name = reason, .number = place});
}
Expr Algebra::data(std::vector<int> loads, bool dot, bool exp) {
  Atom made{.kind = AtomKind::data};
  made.loads = std::move(loads);
  made.has_dot = dot;
  made.has_exp = exp;
  return make(std::move(made));
}

Traits Algebra::traits(const Expr& e) const {
  Traits all;
  for (const Term& term : e.terms)
    for (const AtomId factor : term.factors) all.join(atom(factor));
  return all;
}

/// Values of which no address is made may be as long as they like: what they were computed from is
/// kept.
Expr Algebra::too_long(const Expr& a, const Expr& b) {
  Traits both = traits(a);
  both.join(traits(b));
  if (both.loads.empty() && !both.has_data)
    return opaque("an expression is too long to follow", -1);
  return data(std::move(both.loads), both.has_dot, both.has_exp);
}

Expr Algebra::add(const Expr& a, const Expr& b) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  return sum(a, b, false);
}

Expr Algebra::difference(const Expr& a, const Expr& b) {
  return sum(a, scale(b, -1), true);
}

Expr Algebra::sum(const Expr& a, const Expr& b, bool is_exact) {
  if (a.terms.size() + b.terms.size() > kLongest) return too_long(a, b);
  std::map<std::vector<AtomId>, std::int64_t> terms;
  for (const Expr* e : {&a, &b}) {
    for (const Term& term : e->terms) {
      std::int64_t& to = terms[term.factors];
      if (__builtin_add_overflow(to, term.coefficient, &to))
        return opaque("a number is too large", -1);
      // Two data that come from the same loads are not the same data.
      if (to == 0 && !is_exact && is_data({{term}})) to = 1;
    }
  }
  return with_little_data(rejoin(normal(std::move(terms))));
}

/// Data that was computed is one thing beside what an address is made of.
Expr Algebra::with_little_data(Expr e) {
  Expr computed, others;
  for (Term& term : e.terms) {
    const bool is_data =
        std::ranges::any_of(term.factors, [&](AtomId id) { return atom(id).has_data; });
    (is_data ? computed : others).terms.push_back(std::move(term));
  }
  if (computed.terms.size() <= kMostData) {
    computed.terms.insert(computed.terms.end(), others.terms.begin(), others.terms.end());
    std::ranges::sort(computed.terms, {}, &Term::factors);
    return computed;
  }
  return add(others, too_long(computed, {}));
}

Expr Algebra::scale(const Expr& a, std::int64_t by) const {
  Expr scaled;
  if (by == 0) return scaled;
  for (Term term : a.terms) {
    if (__builtin_mul_overflow(term.coefficient, by, &term.coefficient)) term.coefficient = 0;
    if (term.coefficient != 0) scaled.terms.push_back(std::move(term));
  }
  return scaled;
}

Expr Algebra::subtract(const Expr& a, const Expr& b) {
  return add(a, scale(b, -1));
}

Expr Algebra::multiply(const Expr& a, const Expr& b) {
  if (a.is_zero() || b.is_zero()) return {};
  if (a.is_constant() && a.constant() == 1) return b;
  if (b.is_constant() && b.constant() == 1) return a;
  if (traits(a).has_data && traits(b).has_data) return too_long(a, b);
  if (a.terms.size() * b.terms.size() > kLongest) return too_long(a, b);
  std::map<std::vector<AtomId>, std::int64_t> sum;
  for (const Term& left : a.terms) {
    for (const Term& right : b.terms) {
      std::vector<AtomId> factors;
      std::merge(left.factors.begin(), left.factors.end(), right.factors.begin(),
                 right.factors.end(), std::back_inserter(factors));
      std::int64_t coefficient = 0;
      std::int64_t& to = sum[factors];
      if (__builtin_mul_overflow(left.coefficient, right.coefficient, &coefficient) ||
          __builtin_add_overflow(to, coefficient, &to))
        return opaque("a number is too large", -1);
      if (factors.size() > kHighest) return too_long(a, b);
    }
  }
  return rejoin(normal(std::move(sum)));
}

bool Algebra::divide(const Term& term, const Term& by, Term& quotient) {
  if (by.coefficient == 0 || term.coefficient % by.coefficient != 0) return false;
  if (!std::includes(term.factors.begin(), term.factors.end(), by.factors.begin(),
                     by.factors.end()))
    return false;
  quotient.coefficient = term.coefficient / by.coefficient;
  quotient.factors.clear();
  std::set_difference(term.factors.begin(), term.factors.end(), by.factors.begin(),
                      by.factors.end(), std::back_inserter(quotient.factors));
  return true;
}

bool Algebra::divide(const Expr& e, const Term& by, Expr& quotient) const {
  std::map<std::vector<AtomId>, std::int64_t> sum;
  for (const Term& term : e.terms) {
    Term part;
    if (!divide(term, by, part)) return false;
    sum[part.factors] += part.coefficient;
  }
  quotient = normal(std::move(sum));
  return true;
}

Term Algebra::common_factor(const Expr& e) {
  if (e.terms.empty()) return {1, {}};
  Term common = e.terms.front();
  common.coefficient = std::abs(common.coefficient);
  for (const Term& term : e.terms) {
    std::vector<AtomId> shared;
    std::set_intersection(common.factors.begin(), common.factors.end(), term.factors.begin(),
                          term.factors.end(), std::back_inserter(shared));
    common.factors = std::move(shared);
    common.coefficient = std::gcd(common.coefficient, term.coefficient);
  }
  return common;
}

/// b x (a // b) + a % b is a.
Expr Algebra::rejoin(Expr e) {
  for (std::size_t i = 0; i < e.terms.size(); ++i) {
    for (const AtomId factor : e.terms[i].factors) {
      const Atom& a = atom(factor);
      if (a.kind != AtomKind::function || a.name != "%" || a.args.size() != 2 ||
          a.args[1].terms.size() != 1)
        continue;
      const auto found = known_.find(
          key_of({.kind = AtomKind::function, .name = "//", .args = {a.args[0], a.args[1]}}));
      if (found == known_.end()) continue;
      // The term that it needs as its other half.
      Term half = e.terms[i];
      half.factors.erase(std::ranges::find(half.factors, factor));
      const Term rest = half;
      half.factors.push_back(found->second);
      const Term& by = a.args[1].terms[0];
      half.factors.insert(half.factors.end(), by.factors.begin(), by.factors.end());
      std::ranges::sort(half.factors);
      if (__builtin_mul_overflow(half.coefficient, by.coefficient, &half.coefficient)) continue;
      const auto other = std::ranges::find(e.terms, half);
      if (other == e.terms.end()) continue;
      const Expr whole = a.args[0];
      const Term mine = e.terms[i];
      std::erase_if(e.terms, [&](const Term& t) { return t == half || t == mine; });
      return add(e, multiply({{rest}}, whole));
    }
  }
  return e;
}

Expr Algebra::function(const std::string& name, std::vector<Expr> args, bool commutes) {
  // Who looks for a choice takes its three arguments for granted.
  if (name == "where" && args.size() != 3) return function("where_", std::move(args), commutes);
  Traits all;
  for (const Expr& arg : args) all.join(traits(arg));
  if (all.has_data) return data(std::move(all.loads), all.has_dot, all.has_exp);
  if (commutes) {
    std::ranges::sort(args, [](const Expr& a, const Expr& b) {
      std::string left, right;
      append(left, a);
      append(right, b);
      return left < right;
    });
  }
  return make({.kind = AtomKind::function, .name = name, .args = std::move(args)});
}

Expr Algebra::infix(const std::string& op, const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant())
    if (const auto made = compile::infix(op, a.constant(), b.constant())) return number(*made);
  if (op == "+") return add(a, b);
  if (op == "-") return subtract(a, b);
  if (op == "*") return multiply(a, b);
  if (op == "//") return floor_divide(a, b);
  if (op == "cdiv") return ceil_divide(a, b);
  if (op == "min" || op == "max") return a == b ? a : function(op, {a, b}, true);
  Expr quotient;
  if (op == "%" && b.terms.size() == 1 && divide(a, b.terms[0], quotient)) return {};
  return function(op, {a, b});
}

Expr Algebra::floor_divide(const Expr& a, const Expr& b) {
  if (b.is_constant() && b.constant() == 1) return a;
  if (a.is_zero()) return a;
  Expr quotient;
  if (b.terms.size() == 1 && divide(a, b.terms[0], quotient)) return quotient;
  if (a == b) return number(1);
  // (x + b - 1) // b
  const Expr x = add(subtract(a, b), number(1));
  if (x.terms.size() < a.terms.size()) return ceil_divide(x, b);
  // (b x + y) // b with y = x' % b: what the usual decompositions of a tile id leave.
  if (b.terms.size() == 1) {
    Expr whole, rest;
    for (const Term& term : a.terms) {
      Term part;
      if (divide(term, b.terms[0], part))
        whole.terms.push_back(part);
      else
        rest.terms.push_back(term);
    }
    if (!whole.is_zero() && rest.terms.size() == 1 && rest.terms[0].coefficient == 1 &&
        rest.terms[0].factors.size() == 1) {
      const Atom& y = atom(rest.terms[0].factors[0]);
      if (y.kind == AtomKind::function && y.name == "%" && y.args[1] == b) return add(whole, {});
    }
  }
  return function("//", {a, b});
}

Expr Algebra::ceil_divide(const Expr& a, const Expr& b) {
  if (b.is_constant() && b.constant() == 1) return a;
  Expr quotient;
  if (b.terms.size() == 1 && divide(a, b.terms[0], quotient)) return quotient;
  return function("cdiv", {a, b});
}

Expr Algebra::choose(const Expr& condition, const Expr& a, const Expr& b) {
  if (a == b) return a;
  Expr common, left, right;
  for (const Term& term : a.terms) {
    const bool in_both = std::ranges::find(b.terms, term) != b.terms.end();
    (in_both ? common : left).terms.push_back(term);
  }
  for (const Term& term : b.terms)
    if (std::ranges::find(a.terms, term) == a.terms.end()) right.terms.push_back(term);
  return add(common, function("where", {condition, left, right}));
}

}  // namespace hemiola::compile
