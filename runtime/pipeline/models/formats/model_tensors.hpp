#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/block_formats.hpp"
#include "runtime/device/dtype.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"

namespace greta::runtime {

/// A tensor as a file stores it.
struct StoredTensor {
  std::string type;                     ///< as in the file, e.g. "F16"
  std::optional<DType> dtype;           ///< of its elements, if it has one of GRETA's types
  std::vector<std::int64_t> shape;      ///< the outermost extent first
  std::span<const std::byte> data;      ///< may be unaligned
  std::optional<BlockFormat> blocks{};  ///< of its rows, if it has a format of GRETA's
};

/// The tensors of a model, from one file or several, by name.
class ModelTensors {
 public:
  /// `name` is the model's in messages; `types` names the types that a tensor may have, as the
  /// format spells them.
  ModelTensors(std::string name, std::string types)
      : name_(std::move(name)), types_(std::move(types)) {}

  void add(const std::string& name, const StoredTensor& tensor) { tensors_.emplace(name, tensor); }
  bool has(const std::string& name) const { return tensors_.count(name) > 0; }

  /// Returns a tensor of this shape; a vector is one row. Throws Error if there is none, or one of
  /// another shape, or of a type that can't be used.
  WeightView take(const std::string& name, const std::vector<std::int64_t>& shape);

  /// The same of any type.
  const StoredTensor& take_stored(const std::string& name, const std::vector<std::int64_t>& shape);

  /// The same of any type and shape.
  const StoredTensor& take_any(const std::string& name);

  /// Throws Error for a tensor that was not taken, unless ignored(name).
  void check_rest(const std::function<bool(std::string_view)>& ignored) const;

 private:
  const StoredTensor& stored(const std::string& name) const;

  std::string name_, types_;
  std::map<std::string, StoredTensor> tensors_;
  std::set<std::string> taken_;
};

/// What a format calls the tensors of experts, after those of the layer. "{}" is an expert's
/// number; without it, a tensor has the matrices of all experts.
struct ExpertNames {
  std::string_view router, gate, up, down;
  std::string_view shared_router, shared_gate, shared_up, shared_down;
  bool shared_router_is_vector = false;  ///< of one dimension
};

/// What a format calls the tensors of a Llama.
struct LlamaNames {
  std::string_view embedding, final_norm, head;
  std::string_view layer;  ///< in front of the names below; "{}" is the layer's number
  std::string_view attn_norm, wq, wk, wv, wo, ffn_norm, gate, up, down;
  std::string_view bq, bk, bv, bo, b_gate, b_up, b_down, q_norm, k_norm;
  ExpertNames experts;
};

/// Takes a projection of this name and shape.
using TakeProjection =
    std::function<WeightView(const std::string& name, const std::vector<std::int64_t>& shape)>;

/// Takes the weights of a model. Tied weights may be stored as either of embedding and head.
/// `projection` takes the layers' projections and an untied head, instead of ModelTensors::take().
LlamaWeights take_llama(ModelTensors& tensors, const LlamaConfig& config, const LlamaNames& names,
                        const TakeProjection& projection = nullptr);

}  // namespace greta::runtime
