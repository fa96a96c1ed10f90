#include "compile/readback/epilogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "compile/readback/kernel.h"
#include "compile/readback/readback.h"
#include "core/index.h"

namespace hemiola::compile {
namespace readback {
namespace {

bool is_shape_only(const Term& term) {
  return term.kind == Term::Kind::view || term.kind == Term::Kind::reshaped ||
         term.kind == Term::Kind::part || (term.kind == Term::Kind::apply && term.op == "same");
}

bool varies(const Term& numbers) {
  return std::ranges::any_of(numbers.axes, [](const Along& along) { return along.varies(); });
}

/// Whether all its elements are one number, which the text says.
bool is_plain(const Term& term) {
  if (term.kind == Term::Kind::numbers) return !varies(term) && !term.is_truth;
  return term.kind == Term::Kind::constant ||
         (term.kind == Term::Kind::apply &&
          std::ranges::all_of(term.args, [](const TermRef& arg) { return is_plain(*arg); }));
}

/// The products that a term is made of.
void products_in(const TermRef& term, std::set<const Term*>& seen, std::set<const Term*>& found) {
  if (term == nullptr || !seen.insert(term.get()).second) return;
  if (term->kind == Term::Kind::products) {
    found.insert(term.get());
    return;
  }
  for (const TermRef& arg : term->args) products_in(arg, seen, found);
}

/// A term as Python. Terms that stand twice become variables.
class Printer {
 public:
  explicit Printer(const RankRecord& record) : record_(record) {}

  /// Nothing: it has something in it that is no function of elements.
  std::optional<Epilogue> print(const TermRef& term) {
    count(*term);
    Epilogue made;
    made.result = text(*term);
    if (!is_whole_) return std::nullopt;
    made.statements = std::move(statements_);
    made.operands.assign(operands_.begin(), operands_.end());
    return made;
  }

 private:
  void count(const Term& term) {
    if (uses_[&term]++ > 0) return;
    if (term.kind == Term::Kind::products || term.kind == Term::Kind::load) return;
    for (const TermRef& arg : term.args)
      if (arg != nullptr) count(*arg);
  }

  std::string unknown() {
    is_whole_ = false;
    return "?";
  }

  std::string text(const Term& term) {
    if (const auto known = names_.find(&term); known != names_.end()) return known->second;
    std::string made = written(term);
    if (term.kind != Term::Kind::apply || uses_[&term] < 2) return made;
    const std::string name = fmt::format("x{}", names_.size() + 1);
    statements_.push_back(fmt::format("{} = {}", name, made));
    names_.emplace(&term, name);
    return name;
  }

  std::string written(const Term& term) {
    if (is_plain(term)) {
      Evaluator evaluator([](const Term&, std::int64_t) { return std::nullopt; });
      const auto value = evaluator.value(term, Evaluator::Place(term.shape.size()));
      return value ? fmt::format("{}", *value) : unknown();
    }
    switch (term.kind) {
      case Term::Kind::products:
        return "product";
      case Term::Kind::load:
        return operand(term);
      case Term::Kind::view:
      case Term::Kind::reshaped:
      case Term::Kind::part:
        return turned(term);
      case Term::Kind::apply:
        return applied(term);
      default:
        return unknown();
    }
  }

  std::string operand(const Term& term) {
    const std::string& name = record_.tensors[index(term.memory)].name;
    operands_.insert(name);
    return fmt::format("of[\"{}\"].to(WIDE)", name);
  }

  /// Blocks of the product in another shape are the product in that; new axes are as PyTorch
  /// writes them.
  std::string turned(const Term& term) {
    const Term& of = *term.args[0];
    std::set<const Term*> seen, products;
    products_in(term.args[0], seen, products);
    if (!products.empty())
      return is_shape_only(of) || of.kind == Term::Kind::products ? text(of) : unknown();
    if (term.kind != Term::Kind::view) return unknown();
    std::string axes;
    std::size_t next = 0;
    for (std::size_t i = 0; i < term.shape.size(); ++i) {
      const bool is_old = next < term.places.size() && term.places[next] == static_cast<int>(i);
      next += is_old ? 1 : 0;
      axes += fmt::format("{}{}", axes.empty() ? "" : ", ", is_old ? ":" : "None");
    }
    if (next < term.places.size()) return unknown();  // turned
    return axes.starts_with("None") && axes.find(":") == axes.size() - 1
               ? text(of)
               : fmt::format("{}[{}]", text(of), axes);
  }

  std::string applied(const Term& term) {
    const auto arg = [&](std::size_t i) { return text(*term.args[i]); };
    if (term.op == "same") return arg(0);
    if (term.op == "neg") return fmt::format("(-{})", arg(0));
    if (term.op == "where")
      return fmt::format("torch.where({}, {}, {})", arg(0), tensor(term, 1), tensor(term, 2));
    static constexpr std::array kSigns{
        "+", "-", "*", "/", "**", "<", "<=", ">", ">=", "==", "!=", "&", "|"};
    if (term.args.size() == 2 && std::ranges::find(kSigns, term.op) != kSigns.end())
      return fmt::format("({} {} {})", arg(0), term.op, arg(1));
    if (term.args.size() == 2 && (term.op == "fdiv" || term.op == "div_rn"))
      return fmt::format("({} / {})", arg(0), arg(1));
    if (term.args.size() == 3 && term.op == "fma")
      return fmt::format("({} * {} + {})", arg(0), arg(1), arg(2));
    if (term.op == "max" || term.op == "min")
      return fmt::format("torch.{}imum({}, {})", term.op, tensor(term, 0), tensor(term, 1));
    static constexpr std::array kSame{"exp", "exp2", "log", "log2", "sqrt",    "rsqrt", "abs",
                                      "sin", "cos",  "erf", "tanh", "sigmoid", "floor", "ceil"};
    if (term.args.size() == 1 && std::ranges::find(kSame, term.op) != kSame.end())
      return fmt::format("torch.{}({})", term.op, arg(0));
    return unknown();
  }

  /// An argument that PyTorch wants to be a tensor.
  std::string tensor(const Term& term, std::size_t i) {
    const std::string made = text(*term.args[i]);
    return is_plain(*term.args[i]) ? fmt::format("torch.tensor({}, dtype=WIDE)", made) : made;
  }

  const RankRecord& record_;
  std::map<const Term*, int> uses_;
  std::map<const Term*, std::string> names_;
  std::vector<std::string> statements_;
  std::set<std::string> operands_;
  bool is_whole_ = true;
};

/// The epilogue as a function of the product and of its operands, at one element.
class Shape {
 public:
  Shape(const Term& term, Evaluator::Place place) : term_(term), place_(std::move(place)) {}

  /// `zeros`: operands that are 0; `other`: one that has another value than usual.
  double at(double product, const std::set<std::int32_t>& zeros, std::int32_t other = -1) const {
    Evaluator evaluator([&](const Term& load, std::int64_t) -> std::optional<double> {
      if (zeros.contains(load.memory)) return 0;
      return 0.37 + 0.21 * load.memory + (load.memory == other ? 0.5 : 0);
    });
    evaluator.fix_product(product);
    return evaluator.value(term_, place_).value_or(std::nan(""));
  }

  /// Whether an operand is added, whatever the product is, and does nothing else.
  bool is_added(std::int32_t memory) const {
    const auto change = [&](double product) { return at(product, {}, memory) - at(product, {}); };
    const double first = change(1.3);
    return first != 0 && are_close(first, change(-2.1)) && are_close(first, change(17.5));
  }
  bool is_linear(const std::set<std::int32_t>& added) const {
    static constexpr std::array<std::pair<double, double>, 5> kPairs{
        {{1.3, -0.7}, {-2.1, 0.4}, {50, -49.5}, {-3.25, -1.5}, {0.01, 7}}};
    if (std::abs(at(0, added)) > 1e-12) return false;
    return std::ranges::all_of(kPairs, [&](const auto& pair) {
      return are_close(at(pair.first, added) + at(pair.second, added),
                       at(pair.first + pair.second, added));
    });
  }

 private:
  const Term& term_;
  Evaluator::Place place_;
};

bool depends(const TermRef& term) {
  std::set<const Term*> seen, products;
  products_in(term, seen, products);
  return !products.empty();
}

/// The first function behind the products that is not linear.
const Term* first_of_sums(const TermRef& term, std::set<const Term*>& seen) {
  if (term == nullptr || !depends(term) || !seen.insert(term.get()).second) return nullptr;
  for (const TermRef& arg : term->args)
    if (const Term* found = first_of_sums(arg, seen)) return found;
  if (term->kind != Term::Kind::apply || is_shape_only(*term)) return nullptr;
  static constexpr std::array kLinear{"+", "-", "neg"};
  if (std::ranges::find(kLinear, term->op) != kLinear.end()) return nullptr;
  const auto of_product = std::ranges::count_if(term->args, depends);
  const bool scales = (term->op == "*" && of_product == 1) ||
                      ((term->op == "/" || term->op == "fdiv" || term->op == "div_rn") &&
                       !depends(term->args[1])) ||
                      (term->op == "fma" && !(depends(term->args[0]) && depends(term->args[1])));
  const bool chooses = term->op == "where" && !depends(term->args[0]);
  return scales || chooses ? nullptr : term.get();
}

struct Stored {
  const Node* node;
  TermRef value;
  std::vector<Sample> samples;
  std::vector<std::int64_t> shape;  ///< of the tensor
};

/// What program 0 of the first launch, or its last one, stores first to a tensor of this name.
std::optional<Stored> first_store(Walker& walker, const RankRecord& record, int ranks,
                                  const std::string& tensor, bool of_last = false) {
  for (const auto& stream : record.streams) {
    for (const HostOp& op : stream) {
      if (op.kind != HostOp::Kind::launch) continue;
      KernelRun run(walker, record, op, 0, ranks, INT64_MAX);
      std::optional<Stored> found;
      run.run(
          of_last ? run.programs() - 1 : 0,
          [&](KernelEvent& event) {
            if (found || event.value == nullptr || event.samples.empty() ||
                record.tensors[index(event.regions.front().tensor)].name != tensor)
              return;
            found = Stored{event.node, event.value, event.samples,
                           record.tensors[index(event.regions.front().tensor)].shape};
          },
          [](std::int64_t, std::int64_t) { return std::int64_t{-1}; });
      if (found) return found;
    }
  }
  return std::nullopt;
}

/// A file, and what rank 0 stores first to a tensor.
struct FirstTile {
  FirstTile(const std::string& file, std::string text, const std::string& tensor)
      : module(library.add(file, std::move(text))),
        walker(library, module,
               {.steps = FusedReadOptions().most_steps, .words = FusedReadOptions().most_words}),
        ranks(static_cast<int>(walker.whole(walker.constant("RANKS", module.source.root()),
                                            module.source.root(), "how many RANKS"))),
        record(record_rank(walker, 0, ranks)),
        stored(first_store(walker, record, ranks, tensor)) {}

  std::string line_of(const Node* node) const {
    if (node == nullptr) return {};
    const std::uint32_t begin = module.source.line_begin(node->begin);
    return std::string(module.source.text().substr(begin, module.source.line_end(begin) - begin));
  }

  Library library;
  const Module& module;
  Walker walker;
  int ranks;
  RankRecord record;
  std::optional<Stored> stored;
};

/// Looks for what makes a stored term no function of one product at its element.
class UnusualTerm {
 public:
  explicit UnusualTerm(const FirstTile& tile) : tile_(tile) {}

  Unusual find(const Stored& stored) {
    walk(*stored.value, nullptr);
    if (what_.empty() && products_.size() > 1)
      say("makes an element of several products", products_[1]->node);
    if (what_.empty() && !products_.empty()) {
      const auto& [left, right] = products_.front()->pairs->front();
      operand(*left);
      operand(*right);
    }
    if (what_.empty()) elements(stored);
    return {what_, tile_.line_of(node_)};
  }

 private:
  void say(std::string what, const Node* node) {
    if (!what_.empty()) return;
    what_ = std::move(what);
    node_ = node;
  }

  /// `inside`: the nearest function that has a place.
  void walk(const Term& term, const Node* inside) {
    if (!seen_.insert(&term).second) return;
    const Node* const node = term.node != nullptr ? term.node : inside;
    switch (term.kind) {
      case Term::Kind::products:
        products_.push_back(&term);
        return;
      case Term::Kind::load:
        return;
      case Term::Kind::numbers:
        if (!varies(term)) return;
        say("makes an element depend on where it lies", node);
        return;
      case Term::Kind::reduced:
        say(fmt::format("makes an element of others by '{}'", term.op), node);
        return;
      case Term::Kind::opaque:
        say(fmt::format("makes an element of {}", term.op), node);
        return;
      default:
        for (const TermRef& arg : term.args)
          if (arg != nullptr) walk(*arg, node);
    }
  }

  void operand(const Term& term) {
    const Term* of = &term;
    while (is_shape_only(*of)) of = of->args[0].get();
    if (of->kind != Term::Kind::load)
      say(fmt::format("changes an operand before the product{}",
                      of->op.empty() ? "" : " by '" + of->op + "'"),
          of->node);
  }

  /// What is read beside the product lies at the element's own row and column.
  void elements(const Stored& stored) {
    for (const Sample& sample : stored.samples) {
      const Evaluator::Place own = place_at(stored.shape, sample.address);
      Evaluator evaluator([&](const Term& load, std::int64_t address) -> std::optional<double> {
        const Tensor& from = tile_.record.tensors[index(load.memory)];
        if (!is_at(from.shape, own, address) && !(from.shape.size() == 1 && address == own[0]))
          say(fmt::format("reads '{}' at another place than its element's", from.name), load.node);
        return 0.5;
      });
      evaluator.fix_product(1);
      evaluator.value(*stored.value, place_in(*stored.value, sample.place));
    }
  }

  /// Whether an element of a tensor is the one of a place, axes aligned from behind.
  static bool is_at(const std::vector<std::int64_t>& shape, const Evaluator::Place& place,
                    std::int64_t address) {
    std::int64_t expected = 0, stride = 1;
    for (std::size_t i = 0; i < shape.size() && i < place.size(); ++i) {
      const std::int64_t along = shape[shape.size() - 1 - i];
      if (along > 1) expected += place[place.size() - 1 - i] * stride;
      stride *= along;
    }
    return expected == address;
  }

  const FirstTile& tile_;
  std::set<const Term*> seen_;
  std::vector<const Term*> products_;
  std::string what_;
  const Node* node_ = nullptr;
};

}  // namespace
}  // namespace readback

Unusual what_is_unusual(const std::string& file, std::string text, const std::string& tensor) {
  using namespace readback;
  FirstTile tile(file, std::move(text), tensor);
  if (!tile.stored) return {};
  Unusual made = UnusualTerm(tile).find(*tile.stored);
  if (!made.what.empty()) return made;
  const auto last = first_store(tile.walker, tile.record, tile.ranks, tensor, true);
  if (!last) return made;
  made = UnusualTerm(tile).find(*last);
  const auto as_text = [&](const TermRef& value) {
    const std::optional<Epilogue> printed = Printer(tile.record).print(value);
    return printed ? fmt::format("{};{}", fmt::join(printed->statements, ";"), printed->result)
                   : std::string();
  };
  if (made.what.empty() && as_text(last->value) != as_text(tile.stored->value))
    made = {"stores something else in some tiles than in others", tile.line_of(last->node)};
  return made;
}

std::optional<Epilogue> read_epilogue(const std::string& file, std::string text,
                                      const std::string& tensor) {
  using namespace readback;
  const FirstTile tile(file, std::move(text), tensor);
  const RankRecord& record = tile.record;
  const std::optional<Stored>& stored = tile.stored;
  if (!stored) return std::nullopt;
  const Term* term = stored->value.get();
  while (is_shape_only(*term)) term = term->args[0].get();
  std::set<const Term*> seen, products;
  products_in(stored->value, seen, products);
  if (term->kind == Term::Kind::products || products.size() != 1) return std::nullopt;
  std::optional<Epilogue> made = Printer(record).print(stored->value);
  if (!made) return std::nullopt;
  const Shape shape(*stored->value, place_in(*stored->value, stored->samples.front().place));
  std::set<std::int32_t> added;
  for (std::size_t t = 0; t < record.tensors.size(); ++t) {
    const std::string& name = record.tensors[t].name;
    const auto memory = static_cast<std::int32_t>(t);
    if (std::ranges::find(made->operands, name) == made->operands.end() || !shape.is_added(memory))
      continue;
    added.insert(memory);
    made->added.push_back(name);
  }
  seen.clear();
  // By its form, and by numbers: constants that are added have the form of a bias.
  const Term* first = first_of_sums(stored->value, seen);
  made->is_linear = first == nullptr && shape.is_linear(added);
  if (first != nullptr) {
    made->function = first->op;
    made->line = tile.line_of(first->node);
  }
  return made;
}

}  // namespace hemiola::compile
