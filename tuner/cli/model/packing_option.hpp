#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/pipeline/llama/packing.hpp"

/// The option --packing of commands that run a model.
namespace greta::tuner::cli {

void add_packing_option(CLI::App& command, std::string& choice);
/// The option of `greta-tune model`: rows, panels or any.
void add_tuned_packing_option(CLI::App& command, std::string& choice);
/// Stores a model's quantised matrices in panels. Throws CommandError if it has none.
void apply_panels(LlamaConfig& config, const std::string& choice);

/// Decides how a model's quantised matrices are packed, as --packing says. Throws CommandError.
std::vector<MatrixPacking> apply_packing(Runtime& runtime, LlamaConfig& config, DType dtype,
                                         const std::vector<CountedPass>& passes,
                                         const std::string& choice);

/// Returns the decisions as a table, and what is known of each product; empty without any.
std::string packing_table(const std::vector<MatrixPacking>& matrices);
nlohmann::json packing_json(const std::vector<MatrixPacking>& matrices);

}  // namespace greta::tuner::cli
