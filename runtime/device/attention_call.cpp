#include "runtime/device/attention_call.hpp"

#include <fmt/format.h>

namespace greta::device {

std::string AttentionCall::text() const {
  return fmt::format(
      "batch={} heads={} kv_heads={} queries={} keys={} dim={} v_dim={} type={} query_step={} "
      "causal={} window={} scale={} softcap={} sinks={} lse={} workspace={} rank={}",
      batch, heads, kv_heads, queries, keys, dim, v_dim, to_string(type), query_step, causal,
      window, scale, softcap, sinks, lse, workspace_bytes, rank);
}

}  // namespace greta::device
