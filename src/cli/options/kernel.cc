#include "cli/options/kernel.h"

#include "cli/options/values.h"

namespace hemiola::cli {

void add_kernel_options(CLI::App& verb, KernelOptions& options, const char* what) {
  verb.add_option("KERNEL", options.file, what)->type_name("");
  const auto add_list = [&](const char* name, std::vector<std::string>& values,
                            const char* description, const char* type) {
    verb.add_option(name, values, description)
        ->type_name(type)
        ->take_all()
        ->allow_extra_args(false);
  };
  verb.add_option("--kernel", options.kernel, "which kernel of the file")->type_name("NAME");
  add_list("--bind", options.bind, "the plan's name of an operand, and the parameter that it is",
           "NAME=PARAMETER");
  add_list("--role", options.role,
           "an operand that chunks arrive in (consumer) or leave from (producer)", "NAME=ROLE");
  add_list("--constexpr", options.constants, "the value of a parameter: decides conditions",
           "NAME=VALUE");
  add_list("--helper", options.helpers,
           "a file to look into for functions that imports do not lead to", "FILE");
  verb.add_option("--target", options.target, "what the kernel is for: cuda or hip")
      ->type_name("NAME")
      ->capture_default_str();
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
