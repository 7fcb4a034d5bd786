#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/formats/model_tensors.hpp"

namespace greta::runtime {

/// Weights of eight bits as a folder has them.
struct ScaledCheckpoint {
  /// Of projections: with scales of blocks if the config names their size, otherwise of rows.
  ScaledFormat format{};
  /// Whether activations stay numbers, so that weights become numbers on devices.
  bool weights_only = false;
  /// Whether activations are static where a projection has an `input_scale`. With
  /// ScaledFormat::given_input, each must have one.
  bool inputs_if_stored = false;

  bool operator==(const ScaledCheckpoint&) const = default;
};

/// Reads quantization_config of a config.json; std::nullopt unless it says that weights are fp8 or
/// integers of eight bits: its quant_method is fp8, as in DeepSeek's and AutoFP8's folders,
/// fbgemm_fp8, modelopt with FP8, or compressed-tensors in the format float-quantized,
/// int-quantized or naive-quantized. Throws Error for what can't be read.
std::optional<ScaledCheckpoint> scaled_weights_of(const JsonFields& config);

/// Reads weights of eight bits as folders of Hugging Face store them. A projection [n, k] has
/// `weight` of F8_E4M3 or F8_E5M2, or of I8 in two's complement, and scales, by which its numbers
/// are multiplied, of F32, F16 or BF16:
///
/// - `weight_scale_inv` [ceil(n / 128), ceil(k / 128)]: of blocks of 128 x 128, not with integers
///   (DeepSeek)
/// - `weight_scale` of the same shape; [n, 1] or [n], of rows; or [1] or a scalar, of all weights
///
/// A `weight_zero_point` and an `input_zero_point` must be 0.
///
/// With static activations, `input_scale` or `activation_scale`, [1] or a scalar, is what those of
/// the projection are divided by. Otherwise it has no use, nor have scales of keys, values and
/// results that a cache of fp8 would have; caches are numbers. Projections of other types are read
/// as they are.
class ScaledReader {
 public:
  /// `name` is the model's in messages.
  ScaledReader(ModelTensors& tensors, const ScaledCheckpoint& checkpoint, std::string name)
      : tensors_(tensors), checkpoint_(checkpoint), name_(std::move(name)) {}

  /// Returns a projection [n, k] called `name`, which ends in "weight". Throws Error.
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
  std::optional<ByteFormat> numbers_of(const std::string& type) const;
  void check_zero_points(const std::string& name);
  /// Returns the scale of static activations of the projection `prefix`, if it has one.
  std::optional<float> input_scale_of(const std::string& prefix);

  ModelTensors& tensors_;
  ScaledCheckpoint checkpoint_;
  std::string name_;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> memory_;
};

/// Gives matrices that multiply the same rows of static activations the greatest of their scales,
/// as vLLM does: queries, keys and values of a layer, gates and ups, and the same matrices of all
/// of its experts.
void share_input_scales(LlamaWeights& weights);

}  // namespace greta::runtime
