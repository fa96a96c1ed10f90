// What a command line or a laboratory knows by name: the parts of each role. A value, without
// hidden state: two of them in a process know nothing of each other.
//
//     int main(int argc, char** argv) {
//       hemiola::parts::Registry registry = hemiola::parts::built_ins();
//       registry.add(my_algorithm());
//       return hemiola::command(argc, argv, registry);
//     }
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "hemiola/error.h"
#include "hemiola/parts/collective_algorithm.h"
#include "hemiola/parts/library_kernel.h"
#include "hemiola/parts/program_format.h"
#include "hemiola/parts/schedule_rule.h"
#include "hemiola/parts/trace_reader.h"

namespace hemiola::parts {

class Registry {
 public:
  Registry() = default;
  /// With what each of these adds.
  Registry(std::initializer_list<void (*)(Registry&)> rooms) {
    for (const auto& add_parts : rooms) add_parts(*this);
  }

  /// A part that breaks the contract of its role is left out, and remembered: an empty name or
  /// description, blanks in a name, a name twice (algorithms and kernels share theirs), no
  /// function, a parameter without a name, a description or a default, or with a default that is
  /// none of its choices; of algorithms of a collective a name that does not begin with it.
  void add(plan::TemplateInfo algorithm);
  void add(program::KernelInfo kernel);
  void add(program::FormatReader format);
  void add(workload::TraceReader reader);
  void add(explore::ScheduleRule rule);
  template <class Part>
  void add(std::vector<Part> parts) {
    for (Part& part : parts) add(std::move(part));
  }

  /// By collective, then by the first word of their names, then in order of registration.
  const std::vector<plan::TemplateInfo>& algorithms() const { return algorithms_; }
  // In order of registration.
  const std::vector<program::KernelInfo>& kernels() const { return kernels_; }
  const std::vector<program::FormatReader>& formats() const { return formats_; }
  const std::vector<workload::TraceReader>& trace_readers() const { return trace_readers_; }
  const std::vector<explore::ScheduleRule>& rules() const { return rules_; }

  /// What was left out, and why. Whoever is given the registry refuses to begin with it.
  const Diagnostics& problems() const { return problems_; }

 private:
  template <class Part>
  bool is_sound(std::string_view role, const Part& part, bool has_function);
  bool is_free(std::string_view role, std::string_view name);

  std::vector<plan::TemplateInfo> algorithms_;
  std::vector<program::KernelInfo> kernels_;
  std::vector<program::FormatReader> formats_;
  std::vector<workload::TraceReader> trace_readers_;
  std::vector<explore::ScheduleRule> rules_;
  Diagnostics problems_;
};

/// Null: there is none of that name.
template <class Part>
const Part* find(const std::vector<Part>& parts, std::string_view name) {
  for (const Part& part : parts)
    if (part.name == name) return &part;
  return nullptr;
}

/// All that comes with Hemiola.
Registry built_ins();

}  // namespace hemiola::parts
