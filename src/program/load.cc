#include <fmt/format.h>

#include <optional>

#include "core/text.h"
#include "plan/plan_json.h"
#include "program/built_in.h"
#include "program/formats/format_reader.h"
#include "program/kernels/kernel.h"
#include "program/lower/lower.h"
#include "program/program.h"

namespace hemiola::program {
namespace {

std::vector<FormatReader> readers() {
  return {
#define HEMIOLA_READER(name) name##_reader(),
#include "program/formats/reader_list.h"
#undef HEMIOLA_READER
  };
}

std::optional<FormatReader> reader_of(std::string_view content) {
  for (const FormatReader& reader : readers())
    if (reader.recognises(content)) return reader;
  return std::nullopt;
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
  if (const auto reader = reader_of(content)) return reader->read(content, file, executor);
  const Format format = recognise(content);
  // Let the reader of the commonest JSON say what is missing, or where the syntax breaks.
  if (format == Format::json) return read_mscclpp(content, file, executor);
  std::string known = "chunk plans (JSON)";
  for (const FormatReader& reader : readers()) known += ", " + std::string(reader.format);
  throw Failure(fmt::format("this is {}, not a program", describe(format)), {.file = file},
                "programs are " + known);
}

}  // namespace

bool is_readable(std::string_view content) {
  return reader_of(content).has_value() || plan::is_plan(content);
}

bool is_built_in(const std::string& name) {
  return plan::find_template(name) != nullptr || find_kernel(name) != nullptr;
}

Program load(const std::string& name_or_file, const LoadOptions& options) {
  if (!is_built_in(name_or_file) && is_there(name_or_file))
    return read_by_content(name_or_file, options);
  refuse_executor(options);
  if (std::optional<Program> made = make_built_in(name_or_file, options)) return *std::move(made);
  if (std::optional<Program> made = make_kernel(name_or_file, options)) return *std::move(made);
  std::vector<std::string> names = built_in_names();
  for (const KernelInfo& info : kernels()) names.push_back(info.name);
  throw Failure(fmt::format("there is no file and no built-in program '{}'", name_or_file), kOption,
                suggest(name_or_file, names));
}

}  // namespace hemiola::program
