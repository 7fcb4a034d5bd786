#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/pipeline/models/llama_config.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

/// What becomes of a model's projections when it is loaded.
enum class Quantisation : std::uint8_t {
  as_stored,  ///< quantised ones stay as the file has them, others are numbers
  decoded,    ///< all are numbers on the device
  // Projections of numbers are quantised. Those that the file has quantised, the head, and the
  // embedding stay as they are.
  q8_0,   ///< blocks of 32: scale = largest / 127
  q4_0,   ///< blocks of 32: the better of scales that map the largest to -8, and its size to 7
  mxfp4,  ///< e2m1 in groups of 32: the better of two powers of two, below which 8 or 4 times them
          ///< the largest is
  int4,   ///< groups of 128 without zero points, and scales chosen as with q4_0
  fp8,    ///< e4m3, and a scale for each row: largest / 448. Activations are quantised, too
};

/// Names of the values besides as_stored: "none" for decoded, and those of the formats.
inline constexpr std::array<std::string_view, 6> quantisation_names{"none",  "q8_0", "q4_0",
                                                                    "mxfp4", "int4", "fp8"};
std::optional<Quantisation> quantisation_from_string(std::string_view name);
/// Returns the format of quantised projections, if there is one.
MatrixFormat format_of(Quantisation quantisation);

/// What a quantisation did.
struct QuantisedProjections {
  std::int64_t quantised = 0;
  std::int64_t kept = 0;     ///< numbers whose rows aren't whole groups: they stay numbers
  std::int64_t already = 0;  ///< quantised before
};

/// Changes the formats of an architecture. The experts of a layer are quantised alike or not at
/// all.
QuantisedProjections quantise(LlamaConfig& config, Quantisation quantisation);

/// Quantises a model's weights, on all cores, into memory of the model. Scales beside integers are
/// stored in the type that devices have them in with `activations`. A block with weights that are
/// infinite or NaN has a NaN scale.
QuantisedProjections quantise(LlamaModel& model, Quantisation quantisation, DType activations);

/// Returns the formats of a model's quantised matrices, e.g. "q4_k, q6_k"; empty: none.
std::string quantised_formats(const LlamaConfig& config);

}  // namespace greta::runtime
