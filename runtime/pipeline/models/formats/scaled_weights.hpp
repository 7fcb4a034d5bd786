#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/formats/model_tensors.hpp"

namespace greta::runtime {

/// Reads quantization_config of a config.json; std::nullopt unless it says that weights are fp8:
/// its quant_method is fp8, as in DeepSeek's and AutoFP8's folders, or compressed-tensors in the
/// format float-quantized or naive-quantized. Returns the format of projections with scales of
/// blocks if the config names their size, otherwise of rows. Throws Error for what can't be read.
std::optional<ScaledFormat> scaled_weights_of(const JsonFields& config);

/// Reads fp8 weights as folders of Hugging Face store them. A projection [n, k]
/// has `weight` of F8_E4M3 or F8_E5M2, and scales, by which its numbers are
/// multiplied, of F32, F16 or BF16:
///
/// - `weight_scale_inv` [ceil(n / 128), ceil(k / 128)]: of blocks of 128 x 128
/// (DeepSeek)
/// - `weight_scale` of the same shape; [n, 1] or [n], of rows; or [1] or a
/// scalar, of all weights
///
/// `input_scale`, the scale of static activations, is not used: activations
/// have a scale for each row, which is found when they are quantised. Nor are scales of keys,
/// values and results that a cache of fp8 would have; caches are numbers. Projections of other
/// types are read as they are.
class ScaledReader {
 public:
  /// `name` is the model's in messages.
  ScaledReader(ModelTensors& tensors, std::string name)
      : tensors_(tensors), name_(std::move(name)) {}

  /// Returns a projection [n, k] called `name`, which ends in "weight". Throws
  /// Error.
  WeightView take(const std::string& name, const std::vector<std::int64_t>& shape);

  /// Returns whether a tensor of this name has no use.
  static bool ignored(std::string_view name);

  /// Returns the memory of the scales so far.
  const std::vector<std::shared_ptr<const std::vector<std::byte>>>& memory() const {
    return memory_;
  }

 private:
  /// Returns scales in f32, those of a tensor for each row.
  std::shared_ptr<const std::vector<std::byte>> scales_of(const std::string& name, std::int64_t n,
                                                          std::int64_t k, ScaledFormat& format);

  ModelTensors& tensors_;
  std::string name_;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> memory_;
};

}  // namespace greta::runtime
