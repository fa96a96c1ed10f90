#include <fmt/format.h>

#include <optional>

#include "core/part_call.h"
#include "core/text.h"
#include "hemiola/parts/registry.h"
#include "plan/plan_json.h"
#include "program/built_in.h"
#include "program/formats/format_reader.h"
#include "program/kernels/kernel.h"
#include "program/lower/lower.h"
#include "program/program.h"

namespace hemiola::program {

#define HEMIOLA_KERNELS(name, source) std::vector<KernelInfo> name##_kernels();
#include "program/kernels/kernel_list.h"
#undef HEMIOLA_KERNELS

void register_parts(parts::Registry& registry) {
  const auto add = [&](std::vector<KernelInfo> rows, const char* source) {
    for (KernelInfo& row : rows) {
      row.source = source;
      registry.add(std::move(row));
    }
  };
#define HEMIOLA_KERNELS(name, source) add(name##_kernels(), source);
#include "program/kernels/kernel_list.h"
#undef HEMIOLA_KERNELS
#define HEMIOLA_READER(name) registry.add(name##_reader());
#include "program/formats/reader_list.h"
#undef HEMIOLA_READER
}

const parts::Registry& parts_or_built_in(const parts::Registry* parts) {
  if (parts != nullptr) return *parts;
  static const parts::Registry built_ins{plan::register_parts, register_parts};
  return built_ins;
}

namespace {

const FormatReader* reader_of(std::string_view content, const parts::Registry* parts) {
  for (const FormatReader& reader : parts_or_built_in(parts).formats())
    if (reader.recognises(content)) return &reader;
  return nullptr;
}

/// What the role promises. Failure with the name of the format.
Program read_as(const FormatReader& reader, std::string_view content, const std::string& file,
                const std::string& executor) {
  const std::string who = "the reader of " + reader.format;
  Program program =
      call_part(who, {.file = file}, [&] { return reader.read(content, file, executor); });
  if (program.ranks < 1) throw Failure(who + " made nothing of it", {.file = file});
  if (program.format != reader.name) {  // lowered from a plan
    program.format = reader.name;
    program.source = file;
  }
  return program;
}

void refuse_executor(const LoadOptions& options) {
  for (const auto& [name, value] : options.parameters) {
    if (name == kExecutorParameter)
      throw Failure("only files of MSCCL and MSCCL++ have an executor", {.file = "--executor"},
                    "built-ins and plans are what Hemiola itself runs");
  }
}

/// Takes the parameter of that name out.
std::string taken(LoadOptions& options, std::string_view name) {
  std::string value;
  std::erase_if(options.parameters, [&](const auto& parameter) {
    const bool is_it = parameter.first == name;
    if (is_it) value = parameter.second;
    return is_it;
  });
  return value;
}

Program read_by_content(const std::string& file, LoadOptions options) {
  const std::string content = read_file(file);
  if (plan::is_plan(content)) {
    const plan::Plan plan = plan::read_plan(content, file);
    require_own_size(plan, options.exact);
    refuse_executor(options);
    return lower_plan(plan, options.parameters, options.machine.get());
  }
  const std::string executor = taken(options, kExecutorParameter);
  if (!options.parameters.empty())
    throw Failure("only built-in programs and plans have parameters", {.file = "--param"});
  if (const auto* reader = reader_of(content, options.parts))
    return read_as(*reader, content, file, executor);
  const Format format = recognise(content);
  // Let the reader of the commonest JSON say what is missing, or where the syntax breaks.
  if (format == Format::json) return read_mscclpp(content, file, executor);
  std::string known = "chunk plans (JSON)";
  for (const FormatReader& reader : parts_or_built_in(options.parts).formats())
    known += ", " + reader.format;
  throw Failure(fmt::format("this is {}, not a program", describe(format)), {.file = file},
                "programs are " + known);
}

}  // namespace

bool is_readable(std::string_view content, const parts::Registry* parts) {
  return reader_of(content, parts) != nullptr || plan::is_plan(content);
}

bool is_built_in(const std::string& name, const parts::Registry* parts) {
  return plan::find_template(name, parts) != nullptr || find_kernel(name, parts) != nullptr;
}

Program load(const std::string& name_or_file, const LoadOptions& options) {
  if (!is_built_in(name_or_file, options.parts) && is_there(name_or_file))
    return read_by_content(name_or_file, options);
  refuse_executor(options);
  if (std::optional<Program> made = make_built_in(name_or_file, options)) return *std::move(made);
  if (std::optional<Program> made = make_kernel(name_or_file, options)) return *std::move(made);
  std::vector<std::string> names = built_in_names(options.parts);
  for (const KernelInfo& info : kernels(options.parts)) names.push_back(info.name);
  throw Failure(fmt::format("there is no file and no built-in program '{}'", name_or_file), kOption,
                suggest(name_or_file, names));
}

}  // namespace hemiola::program
