// Words for the enumerations of a kernel's description, the same in the text and in JSON.
#pragma once

#include <string>
#include <string_view>

#include "compile/describe/description.h"

namespace hemiola::report {

std::string_view word_of(compile::Family family);
std::string_view word_of(compile::Scheduler::Order order);
std::string_view word_of(compile::Action action);
std::string_view word_of(compile::Mechanism mechanism);
std::string_view word_of(compile::IndexKind kind);
std::string_view word_of(compile::Role role);
std::string_view word_of(compile::Target target);
std::string_view word_of(compile::Provenance provenance);
/// "product, split-K, grouped order (GROUP_M), persistent"
std::string kind_of(const compile::Description& description);

}  // namespace hemiola::report
