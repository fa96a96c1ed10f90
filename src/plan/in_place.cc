#include "plan/in_place.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/diagnostics.h"
#include "hemiola/parts/build_plan.h"

namespace hemiola::plan {
namespace {

/// What the collective means on one rank, in place.
struct Terms {
  std::vector<Region> resident;
  std::vector<Expectation> expected;
  bool operator==(const Terms&) const = default;
};

std::int64_t chunks(const Plan& plan, Role role) {
  for (const Tensor& tensor : plan.tensors)
    if (tensor.role == role) return tensor.elements();
  return 0;
}

/// Whether input and output are as long as the collective's, as far as one lies in the other.
bool fits(const Plan& plan, std::int64_t in, std::int64_t out) {
  if (plan.collective == Collective::all_gather) return out == in * plan.ranks;
  if (plan.collective == Collective::reduce_scatter) return in == out * plan.ranks;
  return in == out && (plan.collective != Collective::all_to_all || in % plan.ranks == 0);
}

/// Nothing for a collective, or sizes of its input and output, that have no form in place.
std::optional<Terms> terms(const Plan& plan, std::int32_t whole, int rank) {
  const std::int64_t in = chunks(plan, Role::input), out = chunks(plan, Role::output);
  if (!fits(plan, in, out)) return std::nullopt;
  const std::int64_t all = std::max(in, out), part = std::min(in, out);
  const Region everything = chunks_of(whole, {}, all);
  const Region own = chunks_of(whole, constant(part < all ? rank * part : 0), part);
  switch (plan.collective) {
    case Collective::all_reduce:
      return Terms{{everything}, {{everything, true}}};
    case Collective::reduce_scatter:
      return Terms{{everything}, {{own, true}}};
    case Collective::all_gather:
      return Terms{{own}, {{everything, false}}};
    case Collective::broadcast:
      if (rank != plan.root) return Terms{{}, {{everything, false}}};
      return Terms{{everything}, {{everything, false}}};
    case Collective::reduce:
      if (rank != plan.root) return Terms{{everything}, {}};
      return Terms{{everything}, {{everything, true}}};
    case Collective::all_to_all: {
      Terms made{{everything}, {}};
      const std::int64_t block = all / plan.ranks;
      for (int peer = 0; peer < plan.ranks; ++peer)
        made.expected.push_back({chunks_of(whole, constant(peer * block), block), false,
                                 chunks_of(whole, constant(rank * block), block), constant(peer)});
      return made;
    }
    default:
      return std::nullopt;
  }
}

}  // namespace

bool is_in_place(const Plan& plan) {
  return plan.collective != Collective::custom && !plan.of_elements() &&
         std::ranges::any_of(plan.codes, [](const Code& code) { return !code.expected.empty(); });
}

bool states_result(const Plan& plan) {
  return plan.collective == Collective::custom || is_in_place(plan);
}

bool set_in_place(Plan& plan, std::int32_t whole) {
  if (!terms(plan, whole, 0)) return false;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    Terms made = *terms(plan, whole, rank);
    Code& code = plan.codes[static_cast<std::size_t>(plan.code_of[static_cast<std::size_t>(rank)])];
    code.resident = std::move(made.resident);
    code.expected = std::move(made.expected);
  }
  plan.in_place_safe = true;
  return true;
}

void check_in_place(const Plan& plan, const std::string& source) {
  if (!is_in_place(plan)) return;
  const auto fail = [&](const std::string& message) {
    throw Failure("plan '" + plan.name + "' " + message, {.file = source, .pointer = "/codes"},
                  "a plan with a result of its own is of the collective 'custom'");
  };
  const std::string name(name_of(plan.collective));
  std::int32_t whole = -1;
  for (const Code& code : plan.codes)
    if (!code.expected.empty()) whole = code.expected.front().region.tensor;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const Code& code = plan.code(rank);
    const std::optional<Terms> wanted = terms(plan, whole, rank);
    if (!wanted)
      fail("expects something, but its tensors are not those of '" + name + "' in place");
    if (!code.resident || Terms{*code.resident, code.expected} != *wanted)
      fail("is called " + name + ", but rank " + std::to_string(rank) +
           " holds or expects something else than that in place");
  }
}

}  // namespace hemiola::plan
