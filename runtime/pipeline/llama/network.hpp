#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/llama/device_weights.hpp"
#include "runtime/pipeline/llama/options.hpp"
#include "runtime/pipeline/llama/trace.hpp"

namespace greta::runtime {

/// How many tokens a pass through the network takes.
struct LlamaPassShape {
  std::int64_t batch = 1;   ///< sequences, all of the same length
  std::int64_t tokens = 1;  ///< of each

  std::int64_t rows() const { return batch * tokens; }
  /// i32 values that a pass is given: ids and positions of all tokens, and for each sequence the
  /// slot of its first token, its length afterwards, and the row whose logits are wanted.
  std::int64_t inputs() const { return 2 * rows() + 3 * batch; }
};

/// What a pass is given anew each time, as one i32 tensor of LlamaPassShape::inputs(), in order.
struct LlamaInputs {
  Tensor all;
  Tensor ids, positions;  ///< [rows]: all tokens of a sequence, then those of the next
  Tensor slot;            ///< [batch]
  Tensor lengths;         ///< [batch]
  Tensor last;            ///< [batch]

  LlamaInputs(const Tensor& memory, const LlamaPassShape& shape);
};

/// Memory of the sequences on a device, besides what one pass needs.
struct LlamaMemory {
  std::int64_t capacity = 0;  ///< tokens of a sequence
  std::vector<Tensor> keys;   ///< of each layer: [batch, kv_heads, capacity, head_dim]
  std::vector<Tensor> values;
  Tensor rope_table;        ///< f32 [capacity, head_dim]
  Tensor inputs;            ///< i32, of the largest pass
  Tensor staged_inputs;     ///< the same, host-visible: what every pass begins by copying
  Tensor logits;            ///< f32 [batch, vocab]: of the last tokens
  Tensor likeliest;         ///< i32 [batch]: their argmax
  Tensor staged_likeliest;  ///< the same, host-visible
};

/// Bytes that a batch of sequences takes: LlamaMemory's keys and values.
std::uint64_t cache_bytes(const LlamaConfig& config, DType dtype, std::int64_t batch,
                          std::int64_t capacity);
/// Tensors for the memory that complete options ask for, without contents.
LlamaMemory make_memory(const LlamaConfig& config, DType dtype, const LlamaOptions& options,
                        const TensorMaker& make);
/// The same on a device, with the angles' table filled in. Throws Error.
LlamaMemory allocate_memory(Runtime& runtime, const LlamaConfig& config, DType dtype,
                            const LlamaOptions& options);

/// Told the result of each stage as it is recorded; layer -1: of the whole model. Of stages whose
/// results are columns of one matrix it is told once, by the first one's name: `gate` has gate and
/// up, `q` has q, k and v, and `q_rope` has q_rope, k_rope and v. Of k_cache and v_cache it is not
/// told: they are in LlamaMemory.
using LlamaTap = std::function<void(std::int64_t layer, LlamaStage stage, const Tensor& result)>;

/// Records a pass: tokens' keys and values are appended to the caches, and the logits of each
/// sequence's last token computed. Throws Error.
void record_llama(Pipeline& pipeline, const LlamaDeviceWeights& weights, const LlamaMemory& memory,
                  const LlamaPassShape& shape, const LlamaTap& tap = nullptr);

}  // namespace greta::runtime
