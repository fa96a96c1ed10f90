#include "cli/options/kernel.h"

#include "cli/options/inputs.h"
#include "cli/options/values.h"

namespace hemiola::cli {

void add_kernel_options(CLI::App& verb, KernelOptions& options, const char* what) {
  const AddOptions add(verb);
  add("KERNEL", options.file, what, "");
  add("--kernel", options.kernel, "which kernel of the file", "NAME");
  add("--bind", options.bind, "the plan's name of an operand, and the parameter that it is",
      "NAME=PARAMETER");
  add("--role", options.role,
      "an operand that chunks arrive in (consumer) or leave from (producer)", "NAME=ROLE");
  add("--constexpr", options.constants, "the value of a parameter: decides conditions",
      "NAME=VALUE");
  add("--helper", options.helpers, "a file to look into for functions that imports do not lead to",
      "FILE");
  add("--target", options.target, "what the kernel is for: cuda or hip", "NAME");
}

compile::DescribeRequest describe_request(const KernelOptions& options) {
  compile::DescribeRequest request{
      .file = options.file, .kernel = options.kernel, .helpers = options.helpers};
  request.bind = pairs_of("--bind", options.bind);
  for (const auto& [name, value] : pairs_of("--role", options.role)) {
    const std::string role = choice_value("--role", value, {"consumer", "producer"});
    request.roles[name] = role == "consumer" ? compile::Role::consumer : compile::Role::producer;
  }
  request.constants = pairs_of("--constexpr", options.constants);
  request.target = choice_value("--target", options.target, {"cuda", "hip"}) == "hip"
                       ? compile::Target::hip
                       : compile::Target::cuda;
  return request;
}

}  // namespace hemiola::cli
