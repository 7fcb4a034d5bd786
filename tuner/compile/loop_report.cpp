#include "tuner/compile/loop_report.hpp"

#include <fmt/format.h>

#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

std::string lds_text(const LoopFigures& figures) {
  if (figures.lds_least_cycles == 0) return "no LDS";
  std::string text = format_bytes(figures.lds_bytes) + " of LDS in ";
  if (!figures.lds_cycles) {
    return text + fmt::format("at least {:.0f} cycles (conflicts unknown: {})",
                              figures.lds_least_cycles, figures.lds_unknown);
  }
  const double conflicts = *figures.lds_cycles - figures.lds_least_cycles;
  text += fmt::format("{:.0f} cycles", *figures.lds_cycles);
  // Lanes that are not active want no banks, so that an access may take less.
  return text + (conflicts > 0 ? fmt::format(", {:.0f} of conflicts", conflicts)
                               : std::string(", no conflicts"));
}

}  // namespace

std::string loop_text(const LoopFigures& figures) {
  const std::string name = figures.loop ? "main loop" : "no loop";
  std::string text = fmt::format("   {:<10} {} instructions", name, figures.instructions);
  if (figures.matrix > 0) {
    text += fmt::format(", {} matrix ({:.1f} %), for each {:.2f} vector, {:.2f} scalar",
                        figures.matrix, 100 * figures.matrix_share(), figures.vector_per_matrix(),
                        figures.scalar_per_matrix());
  } else {
    text += fmt::format(", {} vector, {} scalar, {} of memory", figures.vector, figures.scalar,
                        figures.vector_memory);
  }
  text += fmt::format("; {} waits drain; {} accumulator moves\n", figures.drains,
                      figures.accumulator_moves);
  text += fmt::format("              {}", lds_text(figures));
  if (figures.bound) {
    text += fmt::format("; {:.0f} matrix cycles; at most {:.0f} % of peak, by {}",
                        figures.matrix_cycles, 100 * *figures.bound, figures.bounded_by);
  }
  return text + "\n";
}

nlohmann::json loop_json(const LoopFigures& figures) {
  nlohmann::json json{{"loop", figures.loop},
                      {"instructions", figures.instructions},
                      {"matrix", figures.matrix},
                      {"vector", figures.vector},
                      {"scalar", figures.scalar},
                      {"lds", figures.lds},
                      {"vector_memory", figures.vector_memory},
                      {"scalar_memory", figures.scalar_memory},
                      {"waits", figures.waits},
                      {"drains", figures.drains},
                      {"accumulator_moves", figures.accumulator_moves},
                      {"matrix_type", figures.matrix_type},
                      {"matrix_flops", figures.matrix_flops},
                      {"instructions_per_mflop", figures.per_mflop()},
                      {"matrix_cycles", figures.matrix_cycles},
                      {"vector_cycles", figures.vector_cycles},
                      {"issue_cycles", figures.issue_cycles},
                      {"lds_bytes", figures.lds_bytes},
                      {"lds_least_cycles", figures.lds_least_cycles},
                      {"lds_cycles", nullptr},
                      {"lds_unknown", figures.lds_unknown},
                      {"waves", figures.waves},
                      {"bound", nullptr},
                      {"bounded_by", figures.bounded_by}};
  if (figures.lds_cycles) json["lds_cycles"] = *figures.lds_cycles;
  if (figures.bound) json["bound"] = *figures.bound;
  return json;
}

}  // namespace greta::tuner
