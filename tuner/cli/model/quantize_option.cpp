#include "tuner/cli/model/quantize_option.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <vector>

#include "runtime/pipeline/models/quantise.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {

void add_quantize_option(CLI::App& command, std::string& choice) {
  command
      .add_option(
          "--quantize", choice,
          fmt::format("Format in which the layers' projections are multiplied: {}; none: as "
                      "numbers of --dtype [as the model stores them]",
                      fmt::join(quantisation_names, ", ")))
      ->type_name("FORMAT");
}

namespace {

std::optional<Quantisation> read_quantisation(const std::string& choice) {
  if (choice.empty()) return std::nullopt;
  const auto known = quantisation_from_string(choice);
  if (known) return known;
  throw CommandError(exit_usage, fmt::format("--quantize {}: must be {}", choice,
                                             fmt::join(quantisation_names, ", ")));
}

void report_quantised(const std::string& choice, Quantisation how,
                      const QuantisedProjections& counts) {
  const MatrixFormat format = format_of(how);
  if (format.plain()) return;
  const std::string units = fmt::format("{} of {} weights",
                                        format.scaled      ? "loads"
                                        : format.group > 0 ? "groups"
                                                           : "blocks",
                                        format.unit());
  if (counts.quantised == 0 && counts.already == 0) {
    throw CommandError(exit_usage, fmt::format("--quantize {}: no projection has rows of whole {}",
                                               choice, units));
  }
  if (counts.kept > 0) {
    tell(
        fmt::format("--quantize {}: {} of {} projections are not quantised, as their rows are not "
                    "whole {}",
                    choice, counts.kept, counts.quantised + counts.kept + counts.already, units));
  }
  if (counts.already > 0) {
    tell(fmt::format("--quantize {}: {} of {} projections stay in the formats that the model has",
                     choice, counts.already, counts.quantised + counts.kept + counts.already));
  }
}

/// Quantises by a function. A model that can't be quantised is an error of usage.
template <typename Quantise>
void apply(const std::string& choice, Quantisation how, const Quantise& quantise) {
  try {
    report_quantised(choice, how, quantise());
  } catch (const Error& error) {
    throw CommandError(exit_usage, fmt::format("--quantize {}: {}", choice, error.what()));
  }
}

void refuse_unread_experts(const LlamaConfig& config, const std::string& model) {
  const std::string& unread = config.formats.unread_experts;
  if (unread.empty()) return;
  throw CommandError(
      exit_usage, fmt::format("{}: the experts of a layer are stored in {}, which their products "
                              "can't read; --quantize none decodes all weights",
                              model, unread));
}

/// Reports matrices that a file has quantised and no product reads.
void report_decoded(const LlamaModel& model, DType activations) {
  const DecodedMatrices found = decoded_matrices(model.weights, activations);
  if (found.counts.empty()) return;
  std::vector<std::string> parts;
  for (const auto& [format, count] : found.counts) {
    parts.push_back(fmt::format("{} of {}", count, format));
  }
  tell(fmt::format("{}: matrices in formats that no product reads are numbers of {}: {}; {}",
                   model.path.string(), to_string(activations), fmt::join(parts, ", "),
                   format_bytes(static_cast<double>(found.bytes))));
}

}  // namespace

void apply_quantisation(const std::string& choice, LlamaConfig& config) {
  const auto how = read_quantisation(choice);
  if (how != Quantisation::decoded) refuse_unread_experts(config, "--config");
  if (how) apply(choice, *how, [&] { return quantise(config, *how); });
}

void apply_quantisation(const std::string& choice, LlamaModel& model, DType activations) {
  const auto how = read_quantisation(choice);
  if (how != Quantisation::decoded) refuse_unread_experts(model.config, model.path.string());
  if (how) apply(choice, *how, [&] { return quantise(model, *how, activations); });
  if (how != Quantisation::decoded) report_decoded(model, activations);
}

}  // namespace greta::tuner::cli
