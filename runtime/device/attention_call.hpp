#pragma once

#include <cstdint>
#include <string>

#include "runtime/device/dtype.hpp"
#include "runtime/device/layers.hpp"

namespace greta::device {

/// Attention that a vendor's library computes. Q has a row of `dim` elements for each sequence,
/// query and head, in this order, and the output one of `v_dim`. K has a row of `dim` elements and
/// V one of `v_dim` for each sequence, KV head and key. Each sequence has all `queries`, and as
/// many of its `keys` as its length says, which a 32-bit integer in device memory holds. Scores are
/// f32.
struct AttentionCall {
  std::uint64_t batch = 0, heads = 0, kv_heads = 0, queries = 0, keys = 0;
  std::uint64_t dim = 0, v_dim = 0;
  DType type = DType::f16;       ///< of Q, K, V and the output: f16 or bf16
  std::uint64_t query_step = 0;  ///< elements of Q from one query to the next
  bool causal = false;       ///< the last query sees all keys, the one before it all but one, …
  std::uint64_t window = 0;  ///< keys that a causal query sees at most; 0: all
  float scale = 1;           ///< of the scores
  float softcap = 0;         ///< scores are softcap tanh(score / softcap); 0: as they are
  bool sinks = false;        ///< each head's sum of exponentials includes that of a sink (f32)
  bool lse = false;          ///< also writes the logarithms of these sums, f32
  std::uint64_t workspace_bytes = 0;  ///< the most that the library may use
  std::uint32_t rank = 0;             ///< position in the library's own ranking for this problem

  /// Returns all fields as text, for content keys and messages.
  std::string text() const;
  bool operator==(const AttentionCall&) const = default;
};

/// The argument block of an AttentionCall's launch: device addresses, 0 where there is none.
/// `lengths` is the number of keys of each sequence; `sinks` has one element for each head; `lse`
/// one for each sequence, query and head, in this order.
struct AttentionArguments {
  std::uint64_t q = 0, k = 0, v = 0, lengths = 0, sinks = 0, out = 0, lse = 0, workspace = 0;
};

}  // namespace greta::device
