// Products of greta.h, and what quantises their operands.
#include <fmt/format.h>

#include "runtime/pipeline/c/call.hpp"

using namespace greta::runtime;     // NOLINT
using namespace greta::runtime::c;  // NOLINT

namespace {

Activation choose_activation(greta_activation activation) {
  return choose(
      activation,
      {Activation::none, Activation::silu, Activation::gelu, Activation::swiglu, Activation::geglu},
      "activation");
}

greta::kernels::ByteFormat byte_format(greta_numbers numbers) {
  using Format = greta::kernels::ByteFormat;
  return choose(numbers,
                {Format::e4m3, Format::e5m2, Format::e4m3_fnuz, Format::e5m2_fnuz, Format::int8,
                 Format::e2m1},
                "numbers");
}

ScaleSharing scale_sharing(greta_scales scales) {
  return choose(scales,
                {ScaleSharing::tensor, ScaleSharing::row, ScaleSharing::block, ScaleSharing::mx},
                "scales");
}

std::optional<greta::kernels::WeightPacking> weight_packing(std::int64_t packing) {
  using Packing = greta::kernels::WeightPacking;
  if (packing < GRETA_NOT_PACKED || packing > GRETA_PANELS) {
    refuse(fmt::format("packing is {}, but it must be 0 to {}", packing, int{GRETA_PANELS}));
  }
  if (packing == GRETA_NOT_PACKED) return std::nullopt;
  if (packing == GRETA_PANELS) return Packing::panels;
  return static_cast<Packing>(packing - 1);
}

/// Returns the options of an operation that repacks weights.
RepackOptions repack_options(const Call& call, greta_weights weights, const greta_tensor* qzeros,
                             const greta_tensor* zeros, const greta_tensor* order) {
  RepackOptions wanted;
  wanted.format = weight_format(weights, "weights");
  wanted.qzeros = call.maybe(qzeros, "qzeros");
  wanted.zeros = call.maybe(zeros, "zeros");
  wanted.order = call.maybe(order, "order");
  return wanted;
}

}  // namespace

greta_status greta_gemm(greta_operations* operations, const greta_tensor* a, const greta_tensor* b,
                        const greta_tensor* c, const greta_gemm_options* options) {
  return guarded([&] {
    const Call call(operations);
    const auto given = read_options(options, greta_gemm_defaults(), "options");
    GemmOptions wanted;
    wanted.layout =
        choose(given.layout, {Layout::nn, Layout::nt, Layout::tn, Layout::tt}, "layout");
    wanted.activation = choose_activation(given.activation);
    wanted.alpha = given.alpha;
    wanted.beta = given.beta;
    wanted.bias = call.maybe(given.bias, "bias");
    wanted.residual = call.maybe(given.residual, "residual");
    wanted.norm_weight = call.maybe(given.norm_weight, "norm_weight");
    wanted.norm_epsilon = given.norm_epsilon;
    wanted.tf32x3 = given.tf32x3 != 0;
    wanted.panels = in_panels(given.packing);
    return call->gemm(call(a, "a"), call(b, "b"), call(c, "c"), wanted);
  });
}

greta_status greta_grouped_gemm(greta_operations* operations, const greta_tensor* a,
                                const greta_tensor* b, const greta_tensor* groups,
                                const greta_tensor* c, greta_layout layout,
                                greta_activation activation) {
  return guarded([&] {
    const Call call(operations);
    return call->grouped_gemm(
        call(a, "a"), call(b, "b"), call(groups, "groups"), call(c, "c"),
        choose(layout, {Layout::nn, Layout::nt, Layout::tn, Layout::tt}, "layout"),
        choose_activation(activation));
  });
}

greta_status greta_quantized_gemm(greta_operations* operations, const greta_tensor* a,
                                  const greta_tensor* b, const greta_tensor* scales,
                                  const greta_tensor* zeros, const greta_tensor* c,
                                  greta_weights weights) {
  greta_quantized_gemm_options options = greta_quantized_gemm_defaults();
  options.weights = weights;
  options.scales = scales;
  options.zeros = zeros;
  return greta_quantized_gemm_fused(operations, a, b, c, &options);
}

greta_status greta_quantized_gemm_fused(greta_operations* operations, const greta_tensor* a,
                                        const greta_tensor* b, const greta_tensor* c,
                                        const greta_quantized_gemm_options* options) {
  return guarded([&] {
    const Call call(operations);
    const auto given = read_options(options, greta_quantized_gemm_defaults(), "options");
    QuantizedGemmOptions wanted;
    wanted.format = weight_format(given.weights, "weights");
    wanted.scales = call.maybe(given.scales, "scales");
    wanted.zeros = call.maybe(given.zeros, "zeros");
    wanted.bias = call.maybe(given.bias, "bias");
    wanted.residual = call.maybe(given.residual, "residual");
    const Activation activation = choose_activation(given.activation);
    if (activation != Activation::none && activation != Activation::swiglu) {
      refuse("activation is of another kind; allowed: GRETA_NO_ACTIVATION, GRETA_SWIGLU");
    }
    wanted.gated = activation == Activation::swiglu;
    wanted.norm_weight = call.maybe(given.norm_weight, "norm_weight");
    wanted.norm_epsilon = given.norm_epsilon;
    wanted.rounded_weights = given.rounded_weights != 0;
    wanted.packing = weight_packing(given.packing);
    return call->quantized_gemm(call(a, "a"), call(b, "b"), call(c, "c"), wanted);
  });
}

greta_status greta_quantized_grouped_gemm(greta_operations* operations, const greta_tensor* a,
                                          const greta_tensor* b, const greta_tensor* groups,
                                          const greta_tensor* c,
                                          const greta_quantized_grouped_gemm_options* options) {
  return guarded([&] {
    const Call call(operations);
    const auto given = read_options(options, greta_quantized_grouped_gemm_defaults(), "options");
    return call->quantized_grouped_gemm(call(a, "a"), call(b, "b"), call(groups, "groups"),
                                        call(c, "c"),
                                        {.format = weight_format(given.weights, "weights"),
                                         .scales = call.maybe(given.scales, "scales"),
                                         .zeros = call.maybe(given.zeros, "zeros"),
                                         .activation = choose_activation(given.activation),
                                         .panels = in_panels(given.packing)});
  });
}

namespace {

greta_status dequantize(greta_operations* operations, const greta_tensor* b,
                        const greta_tensor* scales, const greta_tensor* zeros,
                        const greta_tensor* out, greta_weights weights, bool panels) {
  return guarded([&] {
    const Call call(operations);
    return call->dequantize(call(b, "b"), call(out, "out"),
                            {.format = weight_format(weights, "weights"),
                             .scales = call.maybe(scales, "scales"),
                             .zeros = call.maybe(zeros, "zeros"),
                             .panels = panels});
  });
}

}  // namespace

greta_status greta_dequantize(greta_operations* operations, const greta_tensor* b,
                              const greta_tensor* scales, const greta_tensor* zeros,
                              const greta_tensor* out, greta_weights weights) {
  return dequantize(operations, b, scales, zeros, out, weights, false);
}

greta_status greta_dequantize_panels(greta_operations* operations, const greta_tensor* b,
                                     const greta_tensor* scales, const greta_tensor* zeros,
                                     const greta_tensor* out, greta_weights weights) {
  return dequantize(operations, b, scales, zeros, out, weights, true);
}

greta_status greta_repack_weights(greta_operations* operations, const greta_tensor* qweight,
                                  const greta_tensor* qscales, const greta_tensor* qzeros,
                                  const greta_tensor* order, const greta_tensor* b,
                                  const greta_tensor* scales, const greta_tensor* zeros,
                                  greta_packing packing, greta_weights weights) {
  return guarded([&] {
    const Call call(operations);
    RepackOptions wanted = repack_options(call, weights, qzeros, zeros, order);
    const auto packed = weight_packing(packing);
    if (!packed || !greta::kernels::in_words(*packed)) {
      refuse("packing must be GRETA_AWQ, GRETA_GPTQ or GRETA_GPTQ_V2");
    }
    wanted.packing = *packed;
    return call->repack_weights(call(qweight, "qweight"), call(qscales, "qscales"), call(b, "b"),
                                call(scales, "scales"), wanted);
  });
}

greta_status greta_repack_to_panels(greta_operations* operations, const greta_tensor* qweight,
                                    const greta_tensor* qscales, const greta_tensor* qzeros,
                                    const greta_tensor* order, const greta_tensor* b,
                                    const greta_tensor* scales, const greta_tensor* zeros,
                                    greta_packing packing, greta_weights weights) {
  return guarded([&] {
    const Call call(operations);
    RepackOptions wanted = repack_options(call, weights, qzeros, zeros, order);
    wanted.packing = weight_packing(packing).value_or(greta::kernels::WeightPacking::rows);
    wanted.panels = true;
    return call->repack_weights(call(qweight, "qweight"), call.maybe(qscales, "qscales"),
                                call(b, "b"), call.maybe(scales, "scales"), wanted);
  });
}

greta_status greta_scaled_gemm(greta_operations* operations, const greta_tensor* a,
                               const greta_tensor* b, const greta_tensor* scales_a,
                               const greta_tensor* scales_b, const greta_tensor* c,
                               greta_numbers numbers, greta_scales scales) {
  return guarded([&] {
    const Call call(operations);
    const ScaledGemmOptions wanted{byte_format(numbers), scale_sharing(scales)};
    return call->scaled_gemm(call(a, "a"), call(b, "b"), call(scales_a, "scales_a"),
                             call(scales_b, "scales_b"), call(c, "c"), wanted);
  });
}

greta_status greta_mx_gemm(greta_operations* operations, const greta_tensor* a,
                           const greta_tensor* b, const greta_tensor* scales_a,
                           const greta_tensor* scales_b, const greta_tensor* c,
                           greta_numbers numbers_a, greta_numbers numbers_b) {
  return guarded([&] {
    const Call call(operations);
    const ScaledGemmOptions wanted{byte_format(numbers_a), ScaleSharing::mx,
                                   byte_format(numbers_b)};
    return call->scaled_gemm(call(a, "a"), call(b, "b"), call(scales_a, "scales_a"),
                             call(scales_b, "scales_b"), call(c, "c"), wanted);
  });
}

greta_status greta_scaled_grouped_gemm(greta_operations* operations, const greta_tensor* a,
                                       const greta_tensor* b, const greta_tensor* scales_a,
                                       const greta_tensor* scales_b, const greta_tensor* groups,
                                       const greta_tensor* c, greta_numbers numbers,
                                       greta_scales scales, greta_activation activation) {
  return guarded([&] {
    const Call call(operations);
    ScaledGroupedGemmOptions wanted;
    wanted.format = byte_format(numbers);
    wanted.scales = scale_sharing(scales);
    wanted.activation = choose_activation(activation);
    return call->scaled_grouped_gemm(call(a, "a"), call(b, "b"), call(scales_a, "scales_a"),
                                     call(scales_b, "scales_b"), call(groups, "groups"),
                                     call(c, "c"), wanted);
  });
}

greta_status greta_scaled_experts(greta_operations* operations, const greta_tensor* x,
                                  const greta_tensor* ids, const greta_tensor* weights,
                                  const greta_tensor* gate_up, const greta_tensor* gate_up_scales,
                                  const greta_tensor* down, const greta_tensor* down_scales,
                                  const greta_tensor* out, greta_numbers numbers,
                                  greta_scales scales) {
  return guarded([&] {
    const Call call(operations);
    ExpertsOptions wanted;
    wanted.scaled = ScaledGemmOptions{byte_format(numbers), scale_sharing(scales)};
    wanted.gate_up_scales = call(gate_up_scales, "gate_up_scales");
    wanted.down_scales = call(down_scales, "down_scales");
    return call->experts(call(x, "x"), call(ids, "ids"), call(weights, "weights"),
                         call(gate_up, "gate_up"), call(down, "down"), call(out, "out"), wanted);
  });
}

greta_status greta_quantize(greta_operations* operations, const greta_tensor* x,
                            const greta_tensor* other, const greta_tensor* weight,
                            const greta_tensor* sum, const greta_tensor* q,
                            const greta_tensor* scales, greta_numbers numbers, greta_scales sharing,
                            float epsilon) {
  return guarded([&] {
    const Call call(operations);
    QuantizeOptions wanted{.format = byte_format(numbers), .scales = scale_sharing(sharing)};
    wanted.weight = call.maybe(weight, "weight");
    (weight != nullptr ? wanted.residual : wanted.up) = call.maybe(other, "other");
    wanted.sum = call.maybe(sum, "sum");
    wanted.epsilon = epsilon;
    return call->quantize(call(x, "x"), call(q, "q"), call(scales, "scales"), wanted);
  });
}

greta_status greta_quantize_layernorm(greta_operations* operations, const greta_tensor* x,
                                      const greta_tensor* weight, const greta_tensor* bias,
                                      const greta_tensor* q, const greta_tensor* scales,
                                      greta_numbers numbers, greta_scales sharing, float epsilon) {
  return guarded([&] {
    const Call call(operations);
    QuantizeOptions wanted{.format = byte_format(numbers), .scales = scale_sharing(sharing)};
    wanted.layernorm = true;
    wanted.weight = call.maybe(weight, "weight");
    wanted.bias = call.maybe(bias, "bias");
    wanted.epsilon = epsilon;
    return call->quantize(call(x, "x"), call(q, "q"), call(scales, "scales"), wanted);
  });
}
