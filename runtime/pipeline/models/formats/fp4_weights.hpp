#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/formats/model_tensors.hpp"

namespace greta::runtime {

/// Which numbers e2m1 with scales a folder has: nvfp4, in groups of 16, or mxfp4, in groups of 32.
enum class Fp4Kind : std::uint8_t { nvfp4, mxfp4 };

/// Reads quantization_config of a config.json; std::nullopt unless it is of compressed-tensors in
/// the format nvfp4-pack-quantized or mxfp4-pack-quantized. Throws Error for what can't be read,
/// activations of four bits above all.
std::optional<Fp4Kind> fp4_weights_of(const JsonFields& config);

/// Reads weights of four bits as compressed-tensors stores them. A projection [n, k] has
/// `weight_packed` U8 [n, k / 2], the even number of two in the lower half of a byte, and
///
/// - nvfp4: `weight_scale` F8_E4M3 [n, k / 16] and `weight_global_scale` F32 [1]; a number is times
///   its scale divided by the global one, which f32 rounds. No product of GRETA's has such scales,
///   so that weights become numbers on devices.
/// - mxfp4: `weight_scale` U8 or F8_E8M0 [n, k / 32], powers of two. This is WeightFormat::mxfp4.
///
/// Projections that have a `weight` are read as it is. Source: compressed-tensors,
/// NVFP4PackedCompressor and MXFP4PackedCompressor.
class Fp4Reader {
 public:
  /// `name` is the model's in messages.
  Fp4Reader(ModelTensors& tensors, Fp4Kind kind, std::string name)
      : tensors_(tensors), kind_(kind), name_(std::move(name)) {}

  /// Returns a projection [n, k] called `name`, which ends in "weight". Throws Error.
  WeightView take(const std::string& name, const std::vector<std::int64_t>& shape);

  /// Returns the memory of the scales so far.
  const std::vector<std::shared_ptr<const std::vector<std::byte>>>& memory() const {
    return memory_;
  }

 private:
  /// Returns scales of nvfp4 in f32.
  const std::byte* scales_of(const std::string& name, const StoredTensor& stored);

  ModelTensors& tensors_;
  Fp4Kind kind_;
  std::string name_;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> memory_;
};

}  // namespace greta::runtime
