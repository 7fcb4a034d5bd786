// Defaults of the options in greta.h.
#include "runtime/pipeline/c/greta.h"

greta_gemm_options greta_gemm_defaults() {
  return {sizeof(greta_gemm_options),
          GRETA_NN,
          GRETA_NO_ACTIVATION,
          1,
          0,
          nullptr,
          nullptr,
          nullptr,
          1e-5F,
          0,
          GRETA_NOT_PACKED};
}

greta_quantized_gemm_options greta_quantized_gemm_defaults() {
  return {sizeof(greta_quantized_gemm_options),
          GRETA_INT4,
          GRETA_NO_ACTIVATION,
          nullptr,
          nullptr,
          nullptr,
          nullptr,
          nullptr,
          1e-5F,
          0,
          0,
          GRETA_NOT_PACKED};
}

greta_quantized_grouped_gemm_options greta_quantized_grouped_gemm_defaults() {
  return {sizeof(greta_quantized_grouped_gemm_options),
          GRETA_INT4,
          GRETA_NO_ACTIVATION,
          nullptr,
          nullptr,
          GRETA_NOT_PACKED};
}

greta_quantized_experts_options greta_quantized_experts_defaults() {
  return {sizeof(greta_quantized_experts_options),
          GRETA_INT4,
          GRETA_SAME_WEIGHTS,
          nullptr,
          nullptr,
          nullptr,
          nullptr,
          GRETA_NOT_PACKED};
}

greta_rope_append_options greta_rope_append_defaults() {
  return {sizeof(greta_rope_append_options), GRETA_INTERLEAVED, 1e-5F, nullptr, nullptr, nullptr};
}

greta_softmax_options greta_softmax_defaults() {
  return {sizeof(greta_softmax_options), 1, 0, nullptr};
}

greta_route_options greta_route_defaults() {
  return {sizeof(greta_route_options), 0, 1, nullptr, 1, 1, 1};
}

greta_attention_options greta_attention_defaults() {
  greta_attention_options options{};
  options.size = sizeof options;
  return options;
}

greta_latent_attention_options greta_latent_attention_defaults() {
  greta_latent_attention_options options{};
  options.size = sizeof options;
  return options;
}

greta_norm_options greta_norm_defaults() {
  return {sizeof(greta_norm_options), nullptr, nullptr, 1e-5F};
}
