#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/weight_packing.hpp"
#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/formats/model_tensors.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

/// Weights of 4 bits as AWQ and GPTQ store them in folders of Hugging Face, and of 8 bits as GPTQ
/// does (kernels::WeightPacking). A projection [n, k] has three tensors, whose names end in
/// `qweight`, `qzeros` and `scales` instead of `weight`: of I32, I32, and F16 or BF16.
///
/// GPTQ may add `g_idx`, I32 [k], the group of each k, and a `bias` of zeros. Groups have equal
/// numbers of weights; with activation order (desc_act) these are not consecutive.
///
/// compressed-tensors stores them in the format pack-quantized, of 4 or 8 bits, which are rows
/// (WeightPacking::rows) but for zero points: `weight_packed` I32 [n, k / 8] or [n, k / 4],
/// `weight_scale` F16 or BF16 [n, groups], `weight_shape`, and if they are not symmetric
/// `weight_zero_point` I32 [ceil(n / 8), groups] or [ceil(n / 4), groups], with consecutive rows in
/// a word. `weight_g_idx` is as GPTQ's. Source: compressed-tensors, PackedQuantizationCompressor.
struct PackedWeights {
  kernels::WeightPacking packing = kernels::WeightPacking::awq;
  std::int64_t group = 128;  ///< weights with a scale, on devices
  /// Weights with a scale in files: `group`, a multiple of it, or 0 for all of a row.
  std::int64_t stored_group = 128;
  std::int64_t bits = 4;  ///< or 8, of GPTQ and in rows
  bool zeros = true;      ///< whether zero points may differ from 8, or with 8 bits from 128
  /// Whether weights of a group are not consecutive, as far as the configuration says it.
  bool reordered = false;

  /// Sets the groups of a size that a file has. Throws Error.
  void set_group(const JsonFields& fields, std::int64_t size);

  bool operator==(const PackedWeights&) const = default;

  MatrixFormat format() const {
    return {bits == 8 ? WeightFormat::int8 : WeightFormat::int4, group, zeros};
  }
};

/// Returns quantization_config of a config.json, which older versions of compressed-tensors call
/// compression_config; std::nullopt if there is none.
std::optional<JsonFields> quantisation_of(const JsonFields& config);

/// Reads quantization_config of a config.json; std::nullopt if there is none. Throws Error for
/// other methods, and for what can't be repacked: other numbers of bits, groups and versions.
std::optional<PackedWeights> packed_weights_of(const JsonFields& config);

/// The same; `fields` is quantization_config.
PackedWeights packed_weights_in(const JsonFields& fields);

/// Reads what packed_weights_of() does of compressed-tensors' format pack-quantized. `fields` is
/// quantization_config.
PackedWeights compressed_weights_of(const JsonFields& fields);

/// Throws Error if one of compressed-tensors' config_groups has quantised activations, which
/// checkpoints of `format` do not have.
void refuse_activations(const JsonFields& group, std::string_view format);
/// Throws Error for what compressed-tensors may do to a model besides: sparse weights, and
/// transforms of activations. `fields` is quantization_config.
void refuse_transforms(const JsonFields& fields);

/// Where the parts of a repacked matrix are in memory. An order of its columns is after them.
struct PackedPlaces {
  explicit PackedPlaces(const kernels::PackedMatrix& m)
      : scales(m.n * m.row_bytes()),
        zeros(scales + 2 * m.n * m.groups()),
        bytes((zeros + m.n * m.groups() + 3) / 4 * 4) {}
  std::int64_t scales, zeros, bytes;  ///< in whole int32
};

/// Repacks weights on loading.
class WeightUnpacker {
 public:
  /// `name` is the model's in messages, and `config` its architecture.
  WeightUnpacker(ModelTensors& tensors, const PackedWeights& packed, std::string name,
                 const LlamaConfig& config)
      : tensors_(tensors),
        packed_(packed),
        name_(std::move(name)),
        qkv_bias_(config.qkv_bias),
        out_bias_(config.out_bias),
        mlp_bias_(config.mlp_bias) {}

  /// Returns a projection [n, k] called `name`, which ends in "weight": as int4 or int8 in rows if
  /// it is packed, otherwise as it is stored. Groups that are not of consecutive weights become so,
  /// and the view has the order of its columns. Throws Error.
  WeightView take(const std::string& name, const std::vector<std::int64_t>& shape);

  /// Renumbers the hidden units of feed-forward networks as their projections `down` have them, so
  /// that these have no order of their own: rows of gate and up, and their biases, are moved.
  void renumber_hidden(LlamaWeights& weights);

  /// Returns the memory of the weights so far.
  const std::vector<std::shared_ptr<const std::vector<std::byte>>>& memory() const {
    return memory_;
  }

 private:
  const StoredTensor& take_typed(const std::string& name, std::string_view types,
                                 const std::vector<std::int64_t>& shape);
  WeightView take_rows(const std::string& name, const std::vector<std::int64_t>& shape);
  std::vector<std::int32_t> order_of(const std::string& name, const kernels::PackedMatrix& stored);
  void move_rows(WeightView& view, const std::int32_t* order);
  void check_bias(const std::string& prefix, std::int64_t n);

  ModelTensors& tensors_;
  PackedWeights packed_;
  std::string name_;
  bool qkv_bias_, out_bias_, mlp_bias_;
  std::vector<std::shared_ptr<const std::vector<std::byte>>> memory_;
};

}  // namespace greta::runtime
