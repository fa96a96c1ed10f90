// What reference() of a fused file says: sums over all ranks, and what is put together from the
// parts of several.
#include <algorithm>

#include "compile/kernel_needs.h"
#include "compile/readback_program.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

constexpr std::string_view kChunk = ".chunk(RANKS)[rank]", kColumns = ".chunk(RANKS,1)[rank]";

std::string without_spaces(std::string_view text) {
  std::string made;
  for (const char c : text)
    if (c != ' ' && c != '\n') made += c;
  return made;
}

plan::Region part_of_tensor(const plan::Plan& plan, std::int32_t tensor, std::size_t axis,
                            std::int64_t part, std::int64_t parts) {
  plan::Box box;
  const auto& shape = plan.tensors[index(tensor)].shape;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t extent = i == axis ? shape[i] / parts : shape[i];
    box.push_back({constant(i == axis ? part * extent : 0), extent});
  }
  return {.tensor = tensor, .boxes = {std::move(box)}};
}

class Expecter {
 public:
  Expecter(const Reading& reading, plan::Plan& plan) : reading_(reading), plan_(plan) {}

  void expect() {
    const Module& module = reading_.walker.module();
    if (const Function* reference = module.find("reference")) {
      std::vector<const Node*> nodes;
      find_all(reference->body(), Kind::assignment, nodes);
      for (const Node* node : nodes) gathered(module.source, *node);
      nodes.clear();
      find_all(reference->body(), Kind::pair, nodes);
      for (const Node* node : nodes) {
        const std::string key(module.source.text(*node->child(Field::key)));
        sums_[key.substr(1, key.size() - 2)] =
            without_spaces(module.source.text(*node->child(Field::value)));
      }
    }
    for (int rank = 0; rank < reading_.ranks; ++rank) outputs(rank);
  }

 private:
  std::int32_t tensor_of(std::string_view name) const {
    const auto found = std::find_if(plan_.tensors.begin(), plan_.tensors.end(),
                                    [&](const plan::Tensor& one) { return one.name == name; });
    return found == plan_.tensors.end() ? -1
                                        : static_cast<std::int32_t>(found - plan_.tensors.begin());
  }

  /// `a = torch.cat([of["x"].chunk(RANKS)[rank] for of in held], 1)`: of every rank its part for
  /// this one, beside each other.
  void gathered(const Source& source, const Node& node) {
    const std::int32_t tensor = tensor_of(source.text(*node.child(Field::left)));
    const Node* right = node.child(Field::right);
    if (tensor < 0 || right == nullptr) return;
    const std::string text = without_spaces(source.text(*right));
    constexpr std::string_view kBegin = "torch.cat([of[\"", kMade = "torch.cat([of.chunk";
    const bool is_made = text.starts_with(kMade);
    if (!is_made && !text.starts_with(kBegin)) return;
    const std::size_t end = is_made ? kMade.find(".chunk") : text.find("\"]", kBegin.size());
    if (end == text.npos) return;
    constexpr std::string_view kIn = "[rank]forofin";
    const std::size_t in = is_made ? text.find(kIn) : 0, last = text.find(']', in + kIn.size());
    if (in == text.npos || last == text.npos) return;
    const std::int32_t from =
        tensor_of(is_made ? text.substr(in + kIn.size(), last - in - kIn.size())
                          : text.substr(kBegin.size(), end - kBegin.size()));
    if (from < 0 || from == tensor) return;  // gathered in its own place
    // Where tiles read copies, these say nothing of their places.
    if (!is_read(0, tensor) && !is_moved_output(tensor)) return;
    std::string_view rest = std::string_view(text).substr(is_made ? end : end + 2);
    const bool is_rows = rest.starts_with(kChunk);
    if (!is_rows && !rest.starts_with(kColumns)) return;
    rest.remove_prefix((is_rows ? kChunk : kColumns).size());
    if (!is_made && !rest.starts_with("forofinheld]")) return;
    const std::size_t axis = rest.ends_with(",1)") ? 1 : 0, cut = is_rows ? 0 : 1;
    const auto& shape = plan_.tensors[index(tensor)].shape;
    const auto& source_shape = plan_.tensors[index(from)].shape;
    if (axis >= shape.size() || shape[axis] % plan_.ranks != 0 || cut >= source_shape.size() ||
        source_shape[cut] % plan_.ranks != 0)
      return;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      for (int holder = 0; holder < plan_.ranks; ++holder) {
        plan::Expectation one{.region = part_of_tensor(plan_, tensor, axis, holder, plan_.ranks)};
        one.of = part_of_tensor(plan_, from, cut, rank, plan_.ranks);
        one.holder = constant(holder);
        if (one.region.elements() != one.of->elements()) return;
        plan_.codes[index(rank)].expected.push_back(std::move(one));
      }
    }
  }

  /// Tensors that tiles of a rank make.
  std::set<std::int32_t> computed(int rank) const {
    std::set<std::int32_t> made;
    for (const LaunchFacts& facts : reading_.launches[index(rank)])
      for (const auto& [tile, touched] : facts.tiles)
        for (const auto& [tensor, rect] : touched.writes) made.insert(tensor);
    return made;
  }

  /// An output that nothing but movements writes.
  bool is_moved_output(std::int32_t tensor) const {
    const auto& outputs = reading_.records.front().outputs;
    return is_moved_to(0, tensor) && !computed(0).contains(tensor) &&
           std::any_of(outputs.begin(), outputs.end(),
                       [&](const auto& one) { return one.second.tensor == tensor; });
  }

  bool is_read(int rank, std::int32_t tensor) const {
    for (const LaunchFacts& facts : reading_.launches[index(rank)])
      for (const auto& [tile, touched] : facts.tiles)
        if (touched.reads.contains(tensor)) return true;
    return false;
  }

  /// Whether tiles of a rank read all tensors that a formula names: where they read copies that lie
  /// in another order, their results do, too.
  bool are_read(int rank, std::string_view formula) const {
    constexpr std::string_view kBegin = "of[\"";
    for (std::size_t at = formula.find(kBegin); at != formula.npos;
         at = formula.find(kBegin, at + 1)) {
      const std::size_t begin = at + kBegin.size(), end = formula.find('"', begin);
      if (!is_read(rank, tensor_of(formula.substr(begin, end - begin)))) return false;
    }
    return true;
  }

  /// Whether a movement of any rank writes the tensor of this one.
  bool is_moved_to(int rank, std::int32_t tensor) const {
    for (const RankRecord& record : reading_.records)
      for (const auto& stream : record.streams)
        for (const HostOp& op : stream)
          if (is_transfer(op) && op.regions[0].tensor == tensor && op.regions[0].rank == rank)
            return true;
    return false;
  }

  void outputs(int rank) {
    const std::set<std::int32_t> made = computed(rank);
    std::set<std::int32_t> last = made;  // without what other tiles read
    std::erase_if(last, [&](std::int32_t tensor) { return is_read(rank, tensor); });
    for (const auto& [name, region] : reading_.records[index(rank)].outputs) {
      const Tensor& tensor = reading_.records[index(rank)].tensors[index(region.tensor)];
      const plan::Rect rect = rect_of(tensor, region);
      plan::Expectation one;
      one.region.tensor = region.tensor;
      plan::Box& box = one.region.boxes.emplace_back();
      for (std::size_t i = 0; i < rect.begin.size(); ++i)
        box.push_back({constant(rect.begin[i]), rect.end[i] - rect.begin[i]});
      const auto formula = sums_.find(name);
      const bool is_sum = formula != sums_.end() && formula->second.starts_with("sum(") &&
                          formula->second.ends_with("forofinheld)");
      if (is_sum) {
        if (last.size() != 1 || !are_read(rank, formula->second)) continue;
        const bool is_part = formula->second.find(kChunk) != std::string::npos;
        one.reduced = true;
        one.of =
            part_of_tensor(plan_, *last.begin(), 0, is_part ? rank : 0, is_part ? plan_.ranks : 1);
        if (one.of->elements() != one.region.elements()) continue;
      } else if (!made.contains(region.tensor)) {
        if (!is_moved_to(rank, region.tensor))
          throw Failure("nothing writes the output '" + name + "' of rank " + std::to_string(rank),
                        reading_.walker.module().source.where(
                            reading_.walker.module().find("run")->node->begin),
                        "", ExitCode::wrong_program);
        continue;
      } else if (is_moved_to(rank, region.tensor)) {
        continue;  // part of it is made elsewhere, and nothing says where
      }
      plan_.codes[index(rank)].expected.push_back(std::move(one));
    }
  }

  const Reading& reading_;
  plan::Plan& plan_;
  std::map<std::string, std::string, std::less<>> sums_;
};

}  // namespace

void add_expectations(const Reading& reading, plan::Plan& plan) {
  Expecter(reading, plan).expect();
}

}  // namespace hemiola::compile::readback
