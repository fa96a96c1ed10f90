#include "report/parts.h"

#include "explore/rules/rules.h"
#include "program/built_in.h"
#include "workload/trace_reader.h"

namespace hemiola::parts {

Registry built_ins() {
  return {plan::register_parts, program::register_parts, workload::register_parts,
          explore::register_parts};
}

}  // namespace hemiola::parts

namespace hemiola::report {

std::vector<PartRow> part_rows(const parts::Registry& registry) {
  std::vector<PartRow> rows;
  // Of algorithms the parameters of their lowering, too: --param takes these as well.
  for (const auto& one : registry.algorithms())
    rows.push_back({"collective algorithm", one.name, one.description, one.source,
                    program::parameters_of(one)});
  for (const auto& one : registry.kernels())
    rows.push_back({"library kernel", one.name, one.description, one.source, one.parameters});
  for (const auto& one : registry.formats())
    rows.push_back({"program format", one.name, one.format, one.source, {}});
  for (const auto& one : registry.trace_readers())
    rows.push_back({"trace reader", one.name, one.description, one.source, {}});
  for (const auto& one : registry.rules())
    rows.push_back({"schedule rule", one.name, one.description, one.source, {}});
  return rows;
}

}  // namespace hemiola::report
