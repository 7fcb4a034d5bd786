#include "tests/pipeline/compute/cases.hpp"

namespace greta::test {

using Operands = std::vector<Tensor>;

std::vector<OperationCase> product_cases() {
  return {
      {"GemmFused",
       "gemm dtype=f16 out=f32 layout=nt epilogue=bias,residual,silu m=12 n=24 k=40",
       {{3, 4, 40}, {24, 40}, {24}, {12, 24}, {3, 4, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.gemm(t[0], t[1], t[4],
                         {.layout = Layout::nt,
                          .activation = Activation::silu,
                          .bias = t[2],
                          .residual = t[3]});
       }},
      {"GemmOfNormedRows",
       "gemm dtype=f16 out=f32 layout=nt epilogue=bias,swiglu prologue=rmsnorm epsilon=1e-06 m=6 "
       "n=12 k=40",
       {{2, 3, 40}, {24, 40}, {40}, {24}, {2, 3, 12}},
       [](Operations& ops, const Operands& t) {
         return ops.gemm(t[0], t[1], t[4],
                         {.layout = Layout::nt,
                          .activation = Activation::swiglu,
                          .bias = t[3],
                          .norm_weight = t[2],
                          .norm_epsilon = 1e-6F});
       }},
      {"GemmGated",
       "gemm dtype=f32 out=f32 epilogue=geglu m=1 n=20 k=16",
       {{16}, {16, 40}, {20}},
       [](Operations& ops, const Operands& t) {
         return ops.gemm(t[0], t[1], t[2], {.activation = Activation::geglu});
       }},
      {"GemmOfAVector",
       "gemm dtype=f32 out=f32 m=1 n=64 k=48",
       {{48}, {48, 64}, {64}},
       [](Operations& ops, const Operands& t) { return ops.gemm(t[0], t[1], t[2]); }},
      {"GemmInTf32",
       "gemm dtype=f32 out=f32 math=tf32x3 m=12 n=24 k=16",
       {{12, 16}, {16, 24}, {12, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.gemm(t[0], t[1], t[2], {.tf32x3 = true});
       }},
      {"GemmOfPanels",
       "gemm dtype=f16 out=f16 layout=nt packing=panels m=6 n=32 k=40",
       {{6, 40}, {32, 40}, {6, 32}},
       [](Operations& ops, const Operands& t) {
         return ops.gemm(t[0], t[1], t[2], {.layout = Layout::nt, .panels = true});
       }},
      {"GemmOfABatch",
       "gemm dtype=f16 out=f32 layout=nt epilogue=bias m=6 n=24 k=40 batch=3",
       {{3, 6, 40}, {3, 24, 40}, {24}, {3, 6, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.gemm(t[0], t[1], t[3], {.layout = Layout::nt, .bias = t[2]});
       }},
      {"GroupedGemm",
       "grouped_gemm dtype=f16 out=f32 groups=3 m=20 n=24 k=40",
       {{20, 40}, {3, 24, 40}, {3}, {20, 24}},
       [](Operations& ops, const Operands& t) { return ops.grouped_gemm(t[0], t[1], t[2], t[3]); }},
      {"GroupedGemmMasked",
       "grouped_gemm dtype=f32 out=f32 form=masked layout=nn groups=3 m=5 n=24 k=16",
       {{3, 5, 16}, {3, 16, 24}, {3}, {3, 5, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.grouped_gemm(t[0], t[1], t[2], t[3], Layout::nn);
       }},
      {"GroupedGemmGated",
       "grouped_gemm dtype=f16 out=f16 epilogue=swiglu groups=3 m=20 n=24 k=40",
       {{20, 40}, {3, 48, 40}, {3}, {20, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.grouped_gemm(t[0], t[1], t[2], t[3], Layout::nt, Activation::swiglu);
       }},
      {"QuantizedGroupedGemm",
       "quantized_grouped_gemm dtype=f16 out=f32 group=\"32\" zeros=groups epilogue=swiglu "
       "groups=3 "
       "m=20 n=24 k=64",
       {{20, 64}, {3, 48, 32}, {3, 48, 2}, {3, 48, 2}, {3}, {20, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.quantized_grouped_gemm(
             t[0], t[1], t[4], t[5],
             {.scales = t[2], .zeros = t[3], .activation = Activation::swiglu});
       }},
      {"QuantizedGroupedGemmMasked",
       "quantized_grouped_gemm dtype=bf16 out=bf16 form=masked weights=q6_k groups=3 m=5 n=24 "
       "k=256",
       {{3, 5, 256}, {3, 24, 210}, {3}, {3, 5, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.quantized_grouped_gemm(t[0], t[1], t[2], t[3],
                                           {.format = kernels::WeightFormat::q6_k});
       }},
      {"QuantizedGemm",
       "quantized_gemm dtype=f16 out=f32 group=\"32\" zeros=groups m=6 n=24 k=64",
       {{2, 3, 64}, {24, 32}, {24, 2}, {24, 2}, {2, 3, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.quantized_gemm(t[0], t[1], t[4], {.scales = t[2], .zeros = t[3]});
       }},
      {"QuantizedGemmOfBlocks",
       "quantized_gemm dtype=bf16 out=f32 weights=q6_k m=2 n=24 k=512",
       {{2, 512}, {24, 420}, {2, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.quantized_gemm(t[0], t[1], t[2], {.format = kernels::WeightFormat::q6_k});
       }},
      {"QuantizedGemmWithGates",
       "quantized_gemm dtype=f16 out=f16 group=\"32\" zeros=groups epilogue=swiglu m=3 n=24 k=96",
       {{3, 96}, {48, 48}, {48, 3}, {48, 3}, {3, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.quantized_gemm(t[0], t[1], t[4],
                                   {.scales = t[2], .zeros = t[3], .gated = true});
       }},
      {"QuantizedGemmWithResidual",
       "quantized_gemm dtype=bf16 out=f32 weights=q4_k epilogue=residual m=3 n=24 k=256",
       {{3, 256}, {24, 144}, {3, 24}, {3, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.quantized_gemm(t[0], t[1], t[3],
                                   {.format = kernels::WeightFormat::q4_k, .residual = t[2]});
       }},
      {"QuantizedGemmWithBias",
       "quantized_gemm dtype=f16 out=f16 weights=q8_0 epilogue=bias m=3 n=24 k=64",
       {{3, 64}, {24, 68}, {24}, {3, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.quantized_gemm(t[0], t[1], t[3],
                                   {.format = kernels::WeightFormat::q8_0, .bias = t[2]});
       }},
      {"QuantizedGemmOfMxfp4",
       "quantized_gemm dtype=f16 out=f16 weights=mxfp4 m=3 n=24 k=96",
       {{3, 96}, {24, 48}, {24, 3}, {3, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.quantized_gemm(t[0], t[1], t[3],
                                   {.format = kernels::WeightFormat::mxfp4, .scales = t[2]});
       }},
      {"QuantizedGemmOfAwq",
       "quantized_gemm dtype=f16 out=f32 group=\"32\" zeros=groups packing=awq m=3 n=24 k=64",
       {{3, 64}, {64, 3}, {2, 24}, {2, 3}, {3, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.quantized_gemm(
             t[0], t[1], t[4],
             {.scales = t[2], .zeros = t[3], .packing = kernels::WeightPacking::awq});
       }},
      {"QuantizedGemmOfGptq",
       "quantized_gemm dtype=bf16 out=bf16 weights=int8 epilogue=swiglu packing=gptq m=3 n=12 "
       "k=128",
       {{3, 128}, {32, 24}, {1, 24}, {3, 12}},
       [](Operations& ops, const Operands& t) {
         return ops.quantized_gemm(t[0], t[1], t[3],
                                   {.format = kernels::WeightFormat::int8,
                                    .scales = t[2],
                                    .gated = true,
                                    .packing = kernels::WeightPacking::gptq});
       }},
      {"QuantizedGemmOfPanels",
       "quantized_gemm dtype=f16 out=f16 group=\"64\" epilogue=swiglu packing=panels m=3 n=16 "
       "k=128",
       {{3, 128}, {32, 64}, {32, 2}, {3, 16}},
       [](Operations& ops, const Operands& t) {
         return ops.quantized_gemm(
             t[0], t[1], t[3],
             {.scales = t[2], .gated = true, .packing = kernels::WeightPacking::panels});
       }},
      {"RepackToPanels",
       "repack_weights dtype=f16 out=f16 packing=gptq_v2 to=panels n=32 k=128",
       {{16, 32}, {1, 32}, {32, 64}, {32, 1}},
       [](Operations& ops, const Operands& t) {
         return ops.repack_weights(t[0], t[1], t[2], t[3],
                                   {.packing = kernels::WeightPacking::gptq_v2, .panels = true});
       }},
      {"RepackRowsOfMxfp4",
       "repack_weights dtype=f16 out=f16 packing=rows weights=mxfp4 to=panels n=32 k=96",
       {{32, 48}, {32, 48}},
       [](Operations& ops, const Operands& t) {
         return ops.repack_weights(
             t[0], {}, t[1], {},
             {.packing = kernels::WeightPacking::rows, .format = kernels::WeightFormat::mxfp4});
       }},
      {"RepackRowsOfNumbers",
       "repack_weights dtype=f16 out=f16 packing=rows weights=bf16 to=panels n=32 k=40",
       {{32, 40}, {32, 40}},
       [](Operations& ops, const Operands& t) {
         return ops.repack_weights(t[0], {}, t[1], {}, {.packing = kernels::WeightPacking::rows});
       }},
      {"RepackWeights",
       "repack_weights dtype=f16 out=bf16 group=\"32\" zeros=groups n=24 k=64",
       {{64, 3}, {2, 24}, {2, 3}, {24, 32}, {24, 2}, {24, 2}},
       [](Operations& ops, const Operands& t) {
         return ops.repack_weights(t[0], t[1], t[3], t[4], {.qzeros = t[2], .zeros = t[5]});
       }},
      {"RepackWeightsInAnotherOrder",
       "repack_weights dtype=bf16 out=bf16 packing=gptq weights=int8 order=given n=24 k=128",
       {{32, 24}, {1, 24}, {128}, {24, 128}, {24, 1}},
       [](Operations& ops, const Operands& t) {
         return ops.repack_weights(t[0], t[1], t[3], t[4],
                                   {.packing = kernels::WeightPacking::gptq,
                                    .format = kernels::WeightFormat::int8,
                                    .order = t[2]});
       }},
      {"ScaledGemm",
       "scaled_gemm dtype=f32 out=f32 format=e5m2 scales=row m=6 n=24 k=48",
       {{2, 3, 48}, {24, 48}, {6, 1}, {24, 1}, {2, 3, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.scaled_gemm(t[0], t[1], t[2], t[3], t[4],
                                {.format = kernels::ByteFormat::e5m2, .scales = ScaleSharing::row});
       }},
      {"ScaledGemmOfBlocks",
       "scaled_gemm dtype=f16 out=f16 format=int8 scales=block m=2 n=136 k=272",
       {{2, 272}, {136, 272}, {2, 3}, {2, 3}, {2, 136}},
       [](Operations& ops, const Operands& t) {
         return ops.scaled_gemm(
             t[0], t[1], t[2], t[3], t[4],
             {.format = kernels::ByteFormat::int8, .scales = ScaleSharing::block});
       }},
      {"ScaledGemmOfMicroscalingFormats",
       "scaled_gemm dtype=bf16 out=bf16 format=e2m1 scales=mx format_b=e5m2 m=6 n=24 k=96",
       {{2, 3, 48}, {24, 96}, {6, 3}, {24, 3}, {2, 3, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.scaled_gemm(t[0], t[1], t[2], t[3], t[4],
                                {.format = kernels::ByteFormat::e2m1,
                                 .scales = ScaleSharing::mx,
                                 .format_b = kernels::ByteFormat::e5m2});
       }},
      {"ScaledGroupedGemm",
       "scaled_grouped_gemm dtype=bf16 out=bf16 scales=row epilogue=swiglu groups=3 m=20 n=24 k=48",
       {{20, 48}, {3, 48, 48}, {20, 1}, {144, 1}, {3}, {20, 24}},
       [](Operations& ops, const Operands& t) {
         ScaledGroupedGemmOptions options;
         options.scales = ScaleSharing::row;
         options.activation = Activation::swiglu;
         return ops.scaled_grouped_gemm(t[0], t[1], t[2], t[3], t[4], t[5], options);
       }},
      {"ScaledGroupedGemmMasked",
       "scaled_grouped_gemm dtype=f32 out=f32 form=masked format=int8 scales=block groups=3 m=5 "
       "n=136 "
       "k=272",
       {{3, 5, 272}, {3, 136, 272}, {15, 3}, {6, 3}, {3}, {3, 5, 136}},
       [](Operations& ops, const Operands& t) {
         ScaledGroupedGemmOptions options;
         options.format = kernels::ByteFormat::int8;
         options.scales = ScaleSharing::block;
         return ops.scaled_grouped_gemm(t[0], t[1], t[2], t[3], t[4], t[5], options);
       }},
      {"Quantize",
       "quantize dtype=f16 out=u8 format=e5m2 rows=6 cols=48",
       {{2, 3, 48}, {2, 3, 48}, {6, 1}},
       [](Operations& ops, const Operands& t) {
         return ops.quantize(t[0], t[1], t[2], {.format = kernels::ByteFormat::e5m2});
       }},
      {"QuantizeBlocksOfSums",
       "quantize dtype=f32 out=u8 scales=block fused=add_rmsnorm epsilon=1e-06 rows=5 cols=272",
       {{5, 272}, {5, 272}, {272}, {5, 272}, {5, 272}, {5, 3}},
       [](Operations& ops, const Operands& t) {
         return ops.quantize(t[0], t[4], t[5],
                             {.scales = ScaleSharing::block,
                              .weight = t[2],
                              .residual = t[1],
                              .sum = t[3],
                              .epsilon = 1e-6F});
       }},
      {"QuantizeLayerNorms",
       "quantize dtype=bf16 out=u8 format=e4m3_fnuz fused=layernorm epsilon=1e-06 rows=5 cols=72",
       {{5, 72}, {72}, {72}, {5, 72}, {5, 1}},
       [](Operations& ops, const Operands& t) {
         return ops.quantize(t[0], t[3], t[4],
                             {.format = kernels::ByteFormat::e4m3_fnuz,
                              .weight = t[1],
                              .layernorm = true,
                              .bias = t[2],
                              .epsilon = 1e-6F});
       }},
      {"QuantizeLayerNormsWithoutWeights",
       "quantize dtype=f32 out=u8 scales=tensor fused=layernorm affine=none rows=3 cols=40",
       {{3, 40}, {1, 1}, {3, 40}},
       [](Operations& ops, const Operands& t) {
         return ops.quantize(t[0], t[2], t[1], {.scales = ScaleSharing::tensor, .layernorm = true});
       }},
      {"QuantizePackedGates",
       "quantize dtype=f16 out=u8 format=int8 scales=tensor fused=silu_mul layout=packed rows=3 "
       "cols=40",
       {{3, 80}, {1, 1}, {3, 40}},
       [](Operations& ops, const Operands& t) {
         return ops.quantize(t[0], t[2], t[1],
                             {.format = kernels::ByteFormat::int8, .scales = ScaleSharing::tensor});
       }},
      {"GemmAccumulates",
       "gemm dtype=f32 out=f32 layout=tn epilogue=gelu alpha=-0.5 beta=\"2\" m=8 n=16 k=12",
       {{12, 8}, {12, 16}, {8, 16}},
       [](Operations& ops, const Operands& t) {
         return ops.gemm(
             t[0], t[1], t[2],
             {.layout = Layout::tn, .activation = Activation::gelu, .alpha = -0.5F, .beta = 2});
       }},
  };
}

}  // namespace greta::test
