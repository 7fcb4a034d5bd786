#include "kernels/planning/head_sizes.hpp"

#include <fmt/format.h>

#include <utility>

#include "kernels/planning/number_attribute.hpp"

namespace greta::kernels {

Attribute v_dim_attribute(std::string help, std::int64_t step, std::int64_t most,
                          std::vector<std::string> examples) {
  examples.insert(examples.begin(), "dim");
  const auto canonical = [=](const std::string& text) -> std::optional<std::string> {
    if (text == "dim") return text;
    const auto elements = whole_number(text);
    if (!elements || *elements < step || *elements > most || *elements % step != 0) {
      return std::nullopt;
    }
    return std::to_string(*elements);
  };
  return {.name = "v_dim",
          .help = std::move(help),
          .fallback = "dim",
          .allowed_text = step == 1 ? fmt::format("a whole number from 1 to {}", most)
                                    : fmt::format("a multiple of {} up to {}", step, most),
          .canonical = canonical,
          .examples = std::move(examples)};
}

std::int64_t v_dim_of(const Problem& problem) {
  return whole_number(problem.attribute("v_dim", "dim")).value_or(problem.dim("dim"));
}

}  // namespace greta::kernels
