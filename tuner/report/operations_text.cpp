#include "tuner/report/operations_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/catalog.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/hardware/architectures.hpp"

namespace greta::tuner {
namespace {

constexpr auto head = R"(# Kernels

The catalog: every operation with its variants, types, constraints and error bound, as
`greta-tune operations --markdown` prints it. Parameters and constraints depend on the problem and the
device; they are listed for the size that each operation names, through HIP on gfx942.

)";

std::string types_text(const Operation& kernel) {
  std::vector<std::string> pairs;
  for (const auto& [in, out] : kernel.dtypes) {
    pairs.push_back(in == out ? fmt::format("{}", to_string(in))
                              : fmt::format("{} to {}", to_string(in), to_string(out)));
  }
  return fmt::format("{}", fmt::join(pairs, ", "));
}

std::string options_table(const Operation& kernel) {
  std::string text = "| option | meaning | values |\n|---|---|---|\n";
  for (const Dimension& d : kernel.dimensions) {
    const std::string fallback =
        d.fallback.empty() ? "" : fmt::format(", by default {}", d.fallback);
    text +=
        fmt::format("| `--{}` | {} | {} to {}{} |\n", d.name, d.help, d.least, d.most, fallback);
  }
  for (const Attribute& a : kernel.attributes) {
    text += fmt::format("| `--{}` | {} | {}; by default {} |\n", a.name, a.help, values_text(a),
                        a.fallback);
  }
  return text;
}

std::string variant_section(const Variant& variant, const Alternative& space) {
  std::string text = fmt::format("### {}\n\n{}.\n\n", variant.name, variant.summary);
  for (const auto& [name, values] : space.parameters) {
    text += fmt::format("- `{}` {}\n", name, fmt::join(values, ", "));
  }
  text += "\n| constraint | why it rejects | condition |\n|---|---|---|\n";
  for (const auto& [name, reason, condition, explain] : space.constraints) {
    const std::string read =
        fmt::format("a function of {}", fmt::join(condition.parameters(), ", "));
    text += fmt::format("| {} | {} | {} |\n", name, reason,
                        condition.expression() ? "`" + condition.expression()->text() + "`" : read);
  }
  return text + "\n";
}

std::string operation_section(const Operation& kernel) {
  const Problem problem = typical_problem(kernel, kernel.dtypes[0]);
  const DeviceInfo device = architecture_info("gfx942").value();
  std::string text =
      fmt::format("## {}\n\n{}.\n\n{}\n", kernel.name, kernel.summary, options_table(kernel));
  text += fmt::format("Types: {}.\n\nError bound: {}.\n\n", types_text(kernel), kernel.bound);
  if (!kernel.out_of_range.empty())
    text += fmt::format("Out of range: {}.\n\n", kernel.out_of_range);
  text += fmt::format("Listed for `{}`.\n\n", problem.key());
  for (const Variant& variant : kernel.variants) {
    text += variant_section(variant, variant.space(kernel.shape(problem), device));
  }
  return text;
}

}  // namespace

std::string operations_text(const Catalog& operations) {
  std::string text;
  for (const Operation& kernel : operations) {
    text += fmt::format("  {:<18} {}\n", kernel.name, kernel.summary);
    text += fmt::format("  {:<18} variants {}\n", "", fmt::join(kernel.variant_names(), ", "));
  }
  return text;
}

std::string operations_markdown(const Catalog& operations) {
  std::string text = head;
  text += "| operation | computes | variants |\n|---|---|---|\n";
  for (const Operation& kernel : operations) {
    text += fmt::format("| [{0}](#{0}) | {1} | {2} |\n", kernel.name, kernel.summary,
                        fmt::join(kernel.variant_names(), ", "));
  }
  text += "\n";
  for (const Operation& kernel : operations) text += operation_section(kernel);
  text.pop_back();  // leaves one newline at the end
  return text;
}

}  // namespace greta::tuner
