#include "tuner/cli/model/packing_option.hpp"

#include <fmt/format.h>

#include "kernels/model/weight_formats.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {

void add_packing_option(CLI::App& command, std::string& choice) {
  command
      .add_option("--packing", choice,
                  "How int4, int8 and mxfp4 matrices are stored on the device: in rows, in panels "
                  "of 16 rows, or auto: panels if both were measured for each of their products "
                  "and panels are faster (docs/lookup.md)")
      ->check(CLI::IsMember({"rows", "panels", "auto"}))
      ->type_name("PACKING")
      ->capture_default_str();
}

void add_tuned_packing_option(CLI::App& command, std::string& choice) {
  command
      .add_option("--packing", choice,
                  "How int4, int8 and mxfp4 matrices are stored while the model is tuned: in rows, "
                  "in panels of 16 rows, or any: in rows and then in panels, each with half of the "
                  "budget, so that greta-run --packing auto has times of both (docs/llama.md)")
      ->check(CLI::IsMember({"rows", "panels", "any"}))
      ->type_name("PACKING")
      ->capture_default_str();
}

void apply_panels(LlamaConfig& config, const std::string& choice) {
  try {
    pack_in_panels(config);
  } catch (const Error& error) {
    throw CommandError(exit_usage, fmt::format("--packing {}: {}", choice, error.what()));
  }
}

std::vector<MatrixPacking> apply_packing(Runtime& runtime, LlamaConfig& config, DType dtype,
                                         const std::vector<CountedPass>& passes,
                                         const std::string& choice) {
  const WeightsAs how = choice == "rows"     ? WeightsAs::rows
                        : choice == "panels" ? WeightsAs::panels
                                             : WeightsAs::measured;
  try {
    return pack_matrices(runtime, config, dtype, passes, how);
  } catch (const Error& error) {
    if (error.status() != Status::invalid_argument || how != WeightsAs::panels) throw;
    throw CommandError(exit_usage, fmt::format("--packing panels: {}", error.what()));
  }
}

std::string packing_table(const std::vector<MatrixPacking>& matrices) {
  if (matrices.empty()) return "";
  Table table({{"weights"}, {"shape"}, {"format"}, {"matrices", Table::Align::right}, {"packing"}});
  std::string products;
  for (const MatrixPacking& one : matrices) {
    table.add({one.name, fmt::format("{} x {}", one.rows, one.cols),
               std::string(kernels::traits(*one.format.quantised).name),
               std::to_string(one.matrices), one.choice.reason});
    for (const PackedProduct& product : one.choice.products) {
      products += fmt::format("{}: {}\n", one.name, packing_text(product));
    }
  }
  return table.text() + products;
}

nlohmann::json packing_json(const std::vector<MatrixPacking>& matrices) {
  auto list = nlohmann::json::array();
  for (const MatrixPacking& one : matrices) {
    list.push_back({{"weights", one.name},
                    {"rows", one.rows},
                    {"cols", one.cols},
                    {"matrices", one.matrices},
                    {"packing", kernels::to_string(one.choice.packing)},
                    {"measured", one.choice.measured},
                    {"reason", one.choice.reason}});
  }
  return list;
}

}  // namespace greta::tuner::cli
