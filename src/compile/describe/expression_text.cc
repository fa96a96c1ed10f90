// Expressions as Python.
#include <algorithm>

#include "compile/describe/expression.h"
#include "compile/python/formula.h"

namespace hemiola::compile {
namespace {

constexpr int kSum = 1, kProduct = 2, kAtom = 3;  ///< how strongly what stands around binds
constexpr std::size_t kLongestText = 400;
constexpr int kDeepestText = 7;

bool is_infix(const std::string& name) {
  const bool is_call = name == "min" || name == "max" || name == "cdiv";
  return name == "/" || (!is_call && infix_named(name) != nullptr);
}

struct ExpressionText {
  const Algebra& algebra;

  std::string text(const Atom& a, int strength, int depth) const;
  std::string text(const Term& t, int depth) const;
  std::string text(const Expr& e, int strength, int depth) const;
  std::string call(const std::string& name, const Atom& a, int depth) const;
  std::string function_text(const Atom& a, int strength, int depth) const;
  std::string sum_text(const Expr& e, int depth) const;
};

std::string ExpressionText::call(const std::string& name, const Atom& a, int depth) const {
  std::string all = name + '(';
  for (std::size_t i = 0; i < a.args.size(); ++i)
    all += (i > 0 ? ", " : "") + text(a.args[i], 0, depth + 1);
  return all + ')';
}

std::string ExpressionText::text(const Atom& a, int strength, int depth) const {
  if (depth > kDeepestText) return "...";
  switch (a.kind) {
    case AtomKind::parameter:
    case AtomKind::constexpr_:
      return a.name;
    case AtomKind::program:
      return "tl.program_id(" + std::to_string(a.number) + ')';
    case AtomKind::programs:
      return "tl.num_programs(" + std::to_string(a.number) + ')';
    case AtomKind::iteration: {
      const auto named = algebra.loop_names.find(a.number);
      return named == algebra.loop_names.end() ? "iteration" : named->second;
    }
    case AtomKind::trips:
      return "iterations";
    case AtomKind::range:
      return call("tl.arange", a, depth);
    case AtomKind::loaded: {
      const auto named = algebra.load_names.find(a.number);
      return named == algebra.load_names.end() ? "loaded" : named->second;
    }
    case AtomKind::data:
      return "data";
    case AtomKind::carried:
      return a.name;
    case AtomKind::opaque:
      return "?";
    case AtomKind::function:
      return function_text(a, strength, depth);
  }
  return {};
}

std::string ExpressionText::function_text(const Atom& a, int strength, int depth) const {
  if (a.args.size() == 2 && is_infix(a.name)) {
    const std::string all =
        text(a.args[0], kAtom, depth + 1) + ' ' + a.name + ' ' + text(a.args[1], kAtom, depth + 1);
    return strength >= kProduct ? '(' + all + ')' : all;
  }
  if (a.name == "number") return a.args.empty() ? "0.0" : call(a.name, a, depth);
  if (!a.name.empty() && a.name[0] == '#') return a.name.substr(1);  // a literal
  return call(a.name == "min" || a.name == "max" ? a.name : "tl." + a.name, a, depth);
}

std::string ExpressionText::text(const Term& t, int depth) const {
  std::string all;
  const std::int64_t size = t.coefficient < 0 ? -t.coefficient : t.coefficient;
  if (size != 1 || t.factors.empty()) all = std::to_string(size);
  std::vector<std::string> factors;
  for (const AtomId factor : t.factors) {
    factors.push_back(text(algebra.atom(factor),
                           t.factors.size() + (size != 1 ? 1U : 0U) > 1 ? kProduct : kSum, depth));
    if (all.size() + factors.back().size() > kLongestText) factors.back() = "...";
  }
  for (const std::string& factor : factors) all += (all.empty() ? "" : " * ") + factor;
  return (t.coefficient < 0 ? "-" : "") + all;
}

std::string ExpressionText::sum_text(const Expr& e, int depth) const {
  std::string all;
  // What varies first, constants last, as people write it.
  std::vector<const Term*> order;
  for (const Term& term : e.terms) order.push_back(&term);
  std::ranges::stable_sort(order, [](const Term* a, const Term* b) {
    return (a->factors.empty() ? 1 : 0) < (b->factors.empty() ? 1 : 0);
  });
  for (const Term* term : order) {
    if (all.size() > kLongestText) return all + " + ...";
    std::string part = text(*term, depth);
    if (all.empty())
      all = part;
    else if (part[0] == '-')
      all += " - " + part.substr(1);
    else
      all += " + " + part;
  }
  return all;
}

std::string ExpressionText::text(const Expr& e, int strength, int depth) const {
  if (e.is_zero()) return "0";
  if (e.terms.size() == 1 && e.terms[0].coefficient == 1 && e.terms[0].factors.size() == 1)
    return text(algebra.atom(e.terms[0].factors[0]), strength, depth);
  const std::string all = sum_text(e, depth);
  const bool bare = e.is_constant() && e.constant() >= 0;
  return strength >= kProduct && !bare ? '(' + all + ')' : all;
}

}  // namespace

std::string Algebra::text(const Term& t) const {
  return ExpressionText{*this}.text(t, 0);
}

std::string Algebra::text(const Expr& e) const {
  return ExpressionText{*this}.text(e, 0, 0);
}

}  // namespace hemiola::compile
