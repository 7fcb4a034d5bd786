#include "tuner/cli/problem_options.hpp"

#include <fmt/format.h>

namespace greta::tuner::cli {

void add_problem_options(CLI::App& command, const KernelTemplate& kernel_template,
                         ProblemRequest& request) {
  const auto add = [&](const std::string& name, const std::string& help) {
    command.add_option_function<std::string>(
        "--" + name,
        [&request, name](const std::string& text) { request.values.emplace_back(name, text); },
        help);
  };
  for (const auto& dimension : kernel_template.dimensions) {
    add(dimension.name, dimension.fallback.empty()
                            ? dimension.help + " (needed)"
                            : fmt::format("{} [{}]", dimension.help, dimension.fallback));
  }
  command.add_option("--dtype", request.dtype,
                     fmt::format("type of the inputs: {} [{}]", input_types_text(kernel_template),
                                 to_string(kernel_template.dtypes[0].in)));
  command.add_option(
      "--out-dtype", request.out_dtype,
      fmt::format("type of the output: {} [the first]", output_types_text(kernel_template)));
  for (const auto& attribute : kernel_template.attributes) {
    add(attribute.name,
        fmt::format("{}: {} [{}]", attribute.help, values_text(attribute), attribute.fallback));
  }
}

}  // namespace greta::tuner::cli
