#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/llama/device_weights.hpp"
#include "runtime/pipeline/llama/options.hpp"
#include "runtime/pipeline/llama/sampler.hpp"
#include "runtime/pipeline/llama/trace.hpp"

namespace greta::runtime {

/// The number of tokens in a pass through the network.
struct LlamaPassShape {
  std::int64_t batch = 1;   ///< number of sequences, or of parts of them, of the same length
  std::int64_t tokens = 1;  ///< per sequence
  std::int64_t pages = 0;   ///< of a sequence, with LlamaMemory::page

  std::int64_t rows() const { return batch * tokens; }
  /// Returns the number of i32 inputs of a pass: ids and positions of all tokens, and for each
  /// sequence the slot of its first token, its length afterwards, the row whose logits are
  /// computed, the three words of Operations::sample()'s seeds, and the numbers of its pages.
  std::int64_t inputs() const { return 2 * rows() + (6 + pages) * batch; }
  auto operator<=>(const LlamaPassShape&) const = default;
};

/// The inputs of a pass as one i32 tensor of LlamaPassShape::inputs() elements, in order.
struct LlamaInputs {
  Tensor all;
  Tensor ids, positions;  ///< [rows]: all tokens of a sequence, then those of the next
  Tensor slot;            ///< [batch]
  Tensor lengths;         ///< [batch]
  Tensor last;            ///< [batch]
  Tensor seeds;           ///< [batch, 3]
  Tensor block_table{};   ///< [batch, pages]; empty: no pages

  LlamaInputs(const Tensor& memory, const LlamaPassShape& shape);
};

/// Device memory of the sequences, besides temporaries of passes.
struct LlamaMemory {
  std::int64_t capacity = 0;  ///< tokens per sequence
  std::int64_t page = 0;      ///< tokens of a page; 0: a cache for each sequence
  /// Per layer: [batch, kv_heads, capacity, head_dim], or [pages, kv_heads, page, head_dim].
  std::vector<Tensor> keys;
  std::vector<Tensor> values;
  Tensor rope_table;        ///< f32 [capacity, head_dim]
  Tensor inputs;            ///< i32, size of the largest pass
  Tensor staged_inputs;     ///< the same, host-visible; every pass begins with a copy of it
  Tensor zeros{};           ///< i32 of 0, one for each row of the largest pass; with biases
  Tensor numbers{};         ///< i32 [rows of the largest pass]: 0, 1, …; with a shared expert
  Tensor ones{};            ///< f32 of 1, [most rows of a product, 1]; with static activations
  Tensor logits;            ///< f32 [most sequences of a pass, vocab]: of the last tokens
  Tensor settings;          ///< f32 [the same, 4], of Operations::sample(); empty: argmax
  Tensor penalties{};       ///< f32 [the same, 3], of Operations::sample(); empty: none
  Tensor history{};         ///< with penalties: i32 [the same, capacity], the rows' earlier tokens
  Tensor staged_history{};  ///< the same, host-visible
  /// i32 [the same], host-visible, as a copy would take longer than the kernel's few writes: argmax
  /// of the logits, or what is drawn of them.
  Tensor likeliest;
};

/// Returns the size of the keys and values of a batch of sequences.
std::uint64_t cache_bytes(const LlamaConfig& config, DType dtype, std::int64_t batch,
                          std::int64_t capacity);
/// Sizes of the memory of sequences.
struct LlamaMemorySizes {
  Shape cache;                 ///< of the keys, and of the values, of a layer
  std::int64_t capacity = 0;   ///< tokens per sequence
  std::int64_t page = 0;       ///< tokens of a page; 0: a cache for each sequence
  std::int64_t sequences = 1;  ///< most of a pass
  std::int64_t rows = 1;       ///< most tokens of a pass
  std::int64_t inputs = 0;     ///< most of LlamaPassShape::inputs()
  bool sample = false;
  bool penalties = false;

  /// Returns the sizes for options without missing values.
  static LlamaMemorySizes of(const LlamaConfig& config, const LlamaOptions& options);
};

/// Creates uninitialised tensors. Gives matrices for static activations LlamaMemory::ones.
LlamaMemory make_memory(LlamaDeviceWeights& weights, const LlamaMemorySizes& sizes,
                        const TensorMaker& make);
/// Does the same with memory of a device, and fills in what is constant. Throws Error.
LlamaMemory allocate_memory(Runtime& runtime, LlamaDeviceWeights& weights,
                            const LlamaMemorySizes& sizes);
/// Replaces how tokens are drawn, of all rows. Throws Error, also for penalties without a history.
void set_sampling(Runtime& runtime, const LlamaMemory& memory, const SamplerOptions& options);

/// A callback for the result of each stage as it is recorded; layer -1: the whole model. Stages
/// whose results are columns of one matrix cause one call with the first stage: `gate` for gate and
/// up, `q` for q, k and v, and `q_rope` for q_rope, k_rope and v. Where they are matrices of their
/// own, which may be with weights of several formats, there is a call for each. There are no calls
/// for k_cache and v_cache, which are in LlamaMemory. Stages that are computed within another
/// launch have no results, which depends on the alternatives that are chosen for the chains
/// (kernels/chains/chains.hpp): attn_norm, ffn_norm, gate and up, and k_rope beside q_rope. A norm
/// whose call follows that of the sum it is computed of may be computed with it, before the sum is
/// rounded. expert_gate is a call for expert_up, too; the rows of these, of expert_rows,
/// expert_silu_mul and expert_out are in the order of the experts, and expert_places says which are
/// whose.
using LlamaTap = std::function<void(std::int64_t layer, LlamaStage stage, const Tensor& result)>;

/// Records a pass, which appends the tokens' keys and values to the caches and computes the logits
/// of each sequence's last token. Throws Error.
void record_llama(Pipeline& pipeline, const LlamaDeviceWeights& weights, const LlamaMemory& memory,
                  const LlamaPassShape& shape, const LlamaTap& tap = nullptr);

/// Returns the options with which a pass of this shape is finished. Launches of passes of at most
/// 64 tokens overlap. Those of longer passes take so long that there is nothing to gain.
PipelineOptions pass_options(const LlamaPassShape& shape, bool graph);

}  // namespace greta::runtime
