#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "runtime/pipeline/llama/network.hpp"
#include "runtime/pipeline/llama/options.hpp"
#include "tuner/bench/matrix.hpp"
#include "tuner/cli/model/model_options.hpp"

namespace greta::tuner::cli {

/// The options of --matrix.
struct MatrixChoice {
  bool wanted = false;
  bool json = false;                  ///< print JSON instead of a table
  std::filesystem::path export_file;  ///< CSV file to which rows are appended; empty: none
  bool no_lock = false;
  double seconds = 2;      ///< time limit of a problem's rounds
  std::uint64_t seed = 1;  ///< of the inputs
  /// The alternatives that the passes use for their chains, which are printed after the rows.
  std::vector<ChosenChain> chains{};
};

/// Adds --matrix and --seconds. Returns the option --matrix.
CLI::Option* add_matrix_options(CLI::App& command, MatrixChoice& choice);

/// Returns the problems of a model's passes of these numbers of tokens, each with the ways to
/// compute it and the one that `runtime` runs. Allocates and compiles nothing. Throws Error.
std::vector<MatrixRow> matrix_rows(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                   const LlamaOptions& options,
                                   std::span<const std::int64_t> passes);

/// Returns the alternatives that `runtime` uses for the chains of these passes. Throws Error.
std::vector<ChosenChain> matrix_chains(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                       const LlamaOptions& options,
                                       std::span<const std::int64_t> passes);

/// Measures rows on the device of --device, and prints and exports them. Returns the exit code: 1
/// if a way computed something wrong or failed.
int run_matrix(std::vector<MatrixRow> rows, const RuntimeChoice& runtime,
               const MatrixChoice& choice);

}  // namespace greta::tuner::cli
