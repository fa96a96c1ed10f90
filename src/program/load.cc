#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/text.h"
#include "program/built_in.h"
#include "program/program.h"

namespace hemiola::program {
namespace {

Program read_by_content(const std::string& file) {
  const std::string content = read_file(file);
  switch (const Format format = recognise(content)) {
    case Format::mscclpp_json:
      return read_mscclpp(content, file);
    case Format::msccl_xml:
      return read_msccl(content, file);
    case Format::json:  // let the reader say what is missing, or where the syntax breaks
      return read_mscclpp(content, file);
    default:
      throw Failure(fmt::format("this is {}, not a program", describe(format)), {.file = file},
                    "programs are MSCCL++ execution plans (JSON) and MSCCL algorithms (XML)");
  }
}

}  // namespace

bool is_built_in(const std::string& name) {
  const std::vector<std::string> names = built_in_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Program load(const std::string& name_or_file, const LoadOptions& options) {
  std::error_code ignored;
  if (!is_built_in(name_or_file) && std::filesystem::exists(name_or_file, ignored))
    return read_by_content(name_or_file);
  if (std::optional<Program> made = make_built_in(name_or_file, options)) return *std::move(made);
  throw Failure(fmt::format("there is no file and no built-in program '{}'", name_or_file),
                {.file = "<option>"}, suggest(name_or_file, built_in_names()));
}

}  // namespace hemiola::program
