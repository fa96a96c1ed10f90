// Parts that break the contracts of their roles, and the command line that is given them.
#include "hemiola/command.h"

int main(int argc, char** argv) {
  using namespace hemiola;
  parts::Registry registry = parts::built_ins();
  const auto nothing = [](const plan::TemplateArguments&) { return plan::Plan(); };
  const auto no_kernel = [](const program::KernelArguments&) { return program::Program(); };
  registry.add(plan::TemplateInfo{.name = "all-reduce/ring",
                                  .description = "its name is taken",
                                  .make = nothing,
                                  .collective = Collective::all_reduce});
  registry.add(plan::TemplateInfo{.name = "all-gather/mine", .make = nothing});
  registry.add(program::KernelInfo{.name = "all-reduce/mine",
                                   .description = "without a default",
                                   .parameters = {{"blocks", "", {}, "of threads"}},
                                   .make = no_kernel});
  registry.add(program::FormatReader{.name = "mine", .format = "my files"});
  registry.add(explore::ScheduleRule{.description = "without a name"});
  return command(argc, argv, registry);
}
