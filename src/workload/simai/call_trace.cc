#include "workload/simai/call_trace.h"

#include <algorithm>

#include "core/lists.h"

namespace hemiola::workload::simai {

std::int64_t read_number(std::string_view text, std::int64_t least, std::int64_t most,
                         const SourceLocation& where) {
  const bool is_float = text.size() > 2 && text.ends_with(".0");
  return read_count(is_float ? text.substr(0, text.size() - 2) : text, least, most, where);
}

void refuse_trace_options(const TraceRequest& request) {
  if (!request.groups.empty())
    throw Failure("the text says which groups there are", {.file = "--groups"}, "leave it out");
  if (!request.sizes.empty())
    throw Failure("the text has the size of every call", {.file = "--call-sizes"}, "leave it out");
}

void refuse_nothing(const Workload& workload) {
  for (const RankClass& one : workload.classes)
    if (!one.trace->nodes.empty()) return;
  throw Failure("nothing in it takes any time", {.file = workload.source},
                "calls in groups of one rank, and of 0 bytes, are left out");
}

RankClass class_of(const std::string& name, std::shared_ptr<const Trace> trace, int first,
                   int count) {
  return {name, std::move(trace), ranks_from(first, count)};
}

CallTrace::CallTrace(WorkloadBuilder& builder, std::string file) : builder_(builder) {
  trace_->source = std::move(file);
}

std::uint32_t CallTrace::add(Node node, std::string_view name, std::vector<std::uint32_t> after) {
  std::ranges::sort(after);
  after.erase(std::unique(after.begin(), after.end()), after.end());
  node.id = trace_->nodes.size();
  node.name = builder_.name(name);
  return trace_->add(node, after);
}

void CallTrace::compute(std::string_view name, Time time, std::int32_t work) {
  if (time == Time{} && work < 0) return;
  now_ = {add({.kind = NodeKind::compute,
               .stream = builder_.stream("compute"),
               .work = work,
               .recorded = time},
              name, now_)};
}

std::uint32_t CallTrace::call(std::string_view name, const CollectiveCall& call, Time then) {
  const auto family = index(call.family);
  const std::string stream = "group " + builder_.workload().families[family].name;
  const std::uint32_t called = add({.kind = NodeKind::collective,
                                    .stream = builder_.stream(stream),
                                    .work = builder_.collective(call)},
                                   name, now_);
  if (then == Time{}) return called;
  return add(
      {.kind = NodeKind::compute, .stream = builder_.stream("update", false), .recorded = then},
      "update", {called});
}

std::uint32_t CallTrace::message(std::string_view name, NodeKind kind, const Message& message) {
  return add({.kind = kind,
              .stream = builder_.stream(kind == NodeKind::send ? "send" : "receive"),
              .work = builder_.message(message)},
             name, now_);
}

}  // namespace hemiola::workload::simai
