// Symbolic integers: sums of (coefficient x atoms), in one canonical form, so that equal ones
// compare equal and an address splits by its strides.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hemiola::compile {

using AtomId = int;

/// coefficient x factors; a factor that stands twice is squared. No factors: a constant.
struct Term {
  std::int64_t coefficient = 0;
  std::vector<AtomId> factors;  ///< ascending
  friend bool operator==(const Term&, const Term&) = default;
};

/// A sum of terms with different factors, none of which is zero, in ascending order of the factors.
/// Empty: 0.
struct Expr {
  std::vector<Term> terms;

  bool is_zero() const { return terms.empty(); }
  bool is_constant() const {
    return terms.empty() || (terms.size() == 1 && terms[0].factors.empty());
  }
  /// Of a constant.
  std::int64_t constant() const { return terms.empty() ? 0 : terms[0].coefficient; }
  friend bool operator==(const Expr&, const Expr&) = default;
};

enum class AtomKind : std::uint8_t {
  parameter,   ///< of the kernel, not a tl.constexpr
  constexpr_,  ///< a tl.constexpr parameter, or a constant of the module whose value is not known
  program,     ///< tl.program_id(number)
  programs,    ///< tl.num_programs(number)
  iteration,   ///< 0, 1, 2, ... of loop `number`
  trips,       ///< how often loop `number` runs
  range,       ///< tl.arange(args[0], args[1]) along a dimension
  loaded,      ///< what access `number` read
  function,    ///< `name`(args): //, %, min, max, cdiv, where, <, sqrt, ...
  carried,     ///< what a variable has from the iteration before, where that is no fixed step
  data,    ///< computed from what the accesses in `loads` read, in a way that no address comes from
  opaque,  ///< not understood; `name` is the reason, `number` the place
};

/// What is in an atom, or in its arguments; what all factors of an expression have in common.
struct Traits {
  bool has_program = false, has_range = false, has_load = false, has_opaque = false,
       has_data = false, has_carried = false, has_dot = false, has_exp = false;
  std::vector<int> loops;  ///< ascending loops whose iteration is in it
  std::vector<int> loads;  ///< ascending accesses that it comes from

  /// A number that is the same in all programs and iterations.
  bool is_uniform() const {
    return !has_program && !has_range && !has_load && !has_opaque && !has_data && !has_carried &&
           loops.empty();
  }
  void join(const Traits& other);
};

struct Atom : Traits {
  AtomKind kind = AtomKind::opaque;
  std::string name;
  int number = 0;
  std::vector<Expr> args;
  /// Of what is not a scalar: the dimensions of the block that it varies along, in the order of its
  /// own.
  std::vector<int> dims;
};

/// Owns the atoms of one kernel and computes with expressions of them. Work is bounded: what grows
/// too long becomes data or opaque.
class Algebra {
 public:
  const Atom& atom(AtomId id) const { return atoms_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return atoms_.size(); }

  static Expr number(std::int64_t value);
  Expr of(AtomId id) const { return {{{1, {id}}}}; }
  /// One atom, the same for the same content.
  Expr make(Atom atom);
  Expr parameter(const std::string& name, bool is_constexpr);
  Expr program(int axis);
  Expr programs(int axis);
  Expr iteration(int loop);
  Expr range(const Expr& begin, const Expr& end, int dim);
  Expr opaque(const std::string& reason, int place);
  Expr data(std::vector<int> loads, bool dot, bool exp);

  Expr add(const Expr& a, const Expr& b);
  Expr subtract(const Expr& a, const Expr& b);
  /// a - b of two states of one value: data that is in both is the same, which it is not elsewhere.
  Expr difference(const Expr& a, const Expr& b);
  Expr multiply(const Expr& a, const Expr& b);
  Expr scale(const Expr& a, std::int64_t by) const;
  /// a OP b for an operator of Python, "min", "max" or "cdiv".
  Expr infix(const std::string& op, const Expr& a, const Expr& b);
  /// Any other pure function; `commutes`: its arguments have no order.
  Expr function(const std::string& name, std::vector<Expr> args, bool commutes = false);
  /// What is equal in `a` and `b` plus where(condition, rest of a, rest of b).
  Expr choose(const Expr& condition, const Expr& a, const Expr& b);

  Traits traits(const Expr& e) const;
  /// Dimensions moved: dimension d becomes to[d]; to[d] < 0 takes it out (as of a reduction).
  Expr move_dims(const Expr& e, const std::vector<int>& to);
  /// All dimensions made 0: for comparing indices before and after [:, None].
  Expr flat(const Expr& e);
  /// Every occurrence of atom `id` replaced, also inside arguments.
  Expr replace(const Expr& e, AtomId id, const Expr& by);
  /// where(c, a, b) of conditions that are known, decided.
  Expr decide(const Expr& e, const std::map<AtomId, bool>& facts);
  /// Counters of loops as what people write: of loop `first`, whose variable goes from `begin` by
  /// `step`, the counter is (variable - begin) // step.
  struct Counter {
    Expr variable, begin, step;
  };
  Expr with_variables(const Expr& e, const std::map<int, Counter>& loops);
  bool mentions(const Expr& e, AtomId id) const;
  /// Not zero, and nothing but data.
  bool is_data(const Expr& e) const;
  /// e / by where every term divides; false: it does not.
  bool divide(const Expr& e, const Term& by, Expr& quotient) const;
  static bool divide(const Term& term, const Term& by, Term& quotient);
  /// The largest product that is in every term.
  static Term common_factor(const Expr& e);

  /// As Python, with the names that atoms have; `loops` gives the name of a loop's counter.
  std::string text(const Expr& e) const;
  std::string text(const Term& t) const;
  /// Names of loop counters, for text().
  std::map<int, std::string> loop_names;
  std::map<int, std::string> load_names;

 private:
  static constexpr std::size_t kLongest = 64;  ///< terms of a sum
  static constexpr std::size_t kHighest = 12;  ///< factors of a term
  static constexpr std::size_t kMostData = 4;  ///< terms of a sum that are data

  Expr sum(const Expr& a, const Expr& b, bool is_exact);
  Expr too_long(const Expr& a, const Expr& b);
  Expr with_little_data(Expr e);
  Expr floor_divide(const Expr& a, const Expr& b);
  Expr ceil_divide(const Expr& a, const Expr& b);
  /// Every atom that `change` gives something for replaced; of the others the arguments likewise.
  using Change = std::function<std::optional<Expr>(AtomId)>;
  Expr transform(const Expr& e, const Change& change, std::map<AtomId, Expr>& done);
  Expr rejoin(Expr e);

  std::vector<Atom> atoms_;
  std::map<std::string, AtomId> known_;
};

}  // namespace hemiola::compile
