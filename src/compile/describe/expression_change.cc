// Expressions changed from within: dimensions moved, atoms replaced, conditions decided.
#include <algorithm>
#include <array>
#include <set>

#include "compile/describe/expression.h"

namespace hemiola::compile {
namespace {

/// An atom with other arguments.
Expr remake(Algebra& algebra, const Atom& atom, std::vector<Expr> args) {
  static constexpr std::array kNormal{"//", "%", "cdiv", "min", "max"};
  if (atom.kind == AtomKind::function && args.size() == 2 &&
      std::ranges::find(kNormal, atom.name) != kNormal.end())
    return algebra.infix(atom.name, args[0], args[1]);
  Atom changed{.kind = atom.kind,
               .name = atom.name,
               .number = atom.number,
               .args = std::move(args),
               .dims = atom.dims};
  if (atom.kind == AtomKind::data)
    changed.loads = atom.loads, changed.has_dot = atom.has_dot, changed.has_exp = atom.has_exp;
  return algebra.make(std::move(changed));
}

}  // namespace

Expr Algebra::transform(const Expr& e, const Change& change, std::map<AtomId, Expr>& done) {
  Expr sum;
  for (const Term& term : e.terms) {
    Expr product = number(term.coefficient);
    for (const AtomId factor : term.factors) {
      auto known = done.find(factor);
      if (known == done.end()) {
        Expr changed;
        if (std::optional<Expr> given = change(factor)) {
          changed = std::move(*given);
        } else if (atom(factor).args.empty()) {
          changed = of(factor);
        } else {
          const Atom before = atom(factor);
          std::vector<Expr> args;
          for (const Expr& arg : before.args) args.push_back(transform(arg, change, done));
          changed = args == before.args ? of(factor) : remake(*this, before, std::move(args));
        }
        known = done.emplace(factor, std::move(changed)).first;
      }
      product = multiply(product, known->second);
    }
    sum = add(sum, product);
  }
  return sum;
}

Expr Algebra::move_dims(const Expr& e, const std::vector<int>& to) {
  std::map<AtomId, Expr> done;
  return transform(
      e,
      [&](AtomId id) -> std::optional<Expr> {
        if (atom(id).dims.empty()) return std::nullopt;
        Atom moved = atom(id);
        for (int& dim : moved.dims)
          if (dim >= 0 && dim < static_cast<int>(to.size()))
            dim = to[static_cast<std::size_t>(dim)];
        return make(std::move(moved));
      },
      done);
}

Expr Algebra::flat(const Expr& e) {
  std::map<AtomId, Expr> done;
  return transform(
      e,
      [&](AtomId id) -> std::optional<Expr> {
        if (atom(id).dims.empty()) return std::nullopt;
        Atom moved = atom(id);
        for (int& dim : moved.dims) dim = 0;
        return make(std::move(moved));
      },
      done);
}

Expr Algebra::replace(const Expr& e, AtomId id, const Expr& by) {
  if (!mentions(e, id)) return e;
  std::map<AtomId, Expr> done;
  return transform(
      e, [&](AtomId found) { return found == id ? std::optional<Expr>(by) : std::nullopt; }, done);
}

Expr Algebra::with_variables(const Expr& e, const std::map<int, Counter>& loops) {
  Expr all;
  for (const Term& term : e.terms) {
    // One counter times its step is the variable less what it begins with.
    const auto counter = std::ranges::find_if(term.factors, [&](AtomId id) {
      return atom(id).kind == AtomKind::iteration && loops.contains(atom(id).number);
    });
    if (counter != term.factors.end()) {
      const Counter& loop = loops.at(atom(*counter).number);
      Term rest, times;
      divide(term, {1, {*counter}}, rest);
      const bool is_whole = loop.step.terms.size() == 1 && divide(rest, loop.step.terms[0], times);
      const Expr moved = subtract(loop.variable, with_variables(loop.begin, loops));
      const Expr product =
          is_whole ? multiply({{times}}, moved)
                   : multiply({{rest}}, infix("//", moved, with_variables(loop.step, loops)));
      all =
          add(all, is_whole || term.factors.size() == 1 ? product : with_variables(product, loops));
      continue;
    }
    Expr product = number(term.coefficient);
    for (const AtomId id : term.factors) {
      const Atom before = atom(id);
      if (before.loops.empty() || before.args.empty()) {
        product = multiply(product, of(id));
        continue;
      }
      std::vector<Expr> args;
      for (const Expr& arg : before.args) args.push_back(with_variables(arg, loops));
      product = multiply(product, remake(*this, before, std::move(args)));
    }
    all = add(all, product);
  }
  return all;
}

Expr Algebra::decide(const Expr& e, const std::map<AtomId, bool>& facts) {
  std::map<AtomId, Expr> done;
  return transform(
      e,
      [&](AtomId id) -> std::optional<Expr> {
        const Atom a = atom(id);
        if (a.kind != AtomKind::function || a.name != "where") return std::nullopt;
        const Expr& condition = a.args[0];
        if (condition.terms.size() != 1 || condition.terms[0].factors.size() != 1)
          return std::nullopt;
        const auto known = facts.find(condition.terms[0].factors[0]);
        if (known == facts.end()) return std::nullopt;
        return decide(a.args[known->second ? 1 : 2], facts);
      },
      done);
}

bool Algebra::is_data(const Expr& e) const {
  return !e.is_zero() && std::ranges::all_of(e.terms, [&](const Term& term) {
    return std::ranges::any_of(term.factors, [&](AtomId id) { return atom(id).has_data; });
  });
}

bool Algebra::mentions(const Expr& e, AtomId id) const {
  std::set<AtomId> seen;
  std::vector<AtomId> open;
  for (const Term& term : e.terms)
    open.insert(open.end(), term.factors.begin(), term.factors.end());
  while (!open.empty()) {
    const AtomId next = open.back();
    open.pop_back();
    if (next == id) return true;
    if (next < id || !seen.insert(next).second) continue;  // an atom is younger than its arguments
    for (const Expr& arg : atom(next).args)
      for (const Term& term : arg.terms)
        open.insert(open.end(), term.factors.begin(), term.factors.end());
  }
  return false;
}

}  // namespace hemiola::compile
