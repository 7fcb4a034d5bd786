#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "runtime/pipeline/models/llama_weights.hpp"

/// The option --quantize of commands that run a model.
namespace greta::tuner::cli {

/// Adds --quantize.
void add_quantize_option(CLI::App& command, std::string& choice);
/// Quantises the projections of an architecture, or of a model whose activations have a type, as
/// --quantize says. Reports on standard error which projections stay as they are, and which
/// matrices become numbers because no product reads their format. Throws CommandError if none can
/// be quantised.
void apply_quantisation(const std::string& choice, LlamaConfig& config);
void apply_quantisation(const std::string& choice, LlamaModel& model, DType activations);

}  // namespace greta::tuner::cli
