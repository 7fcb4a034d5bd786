#include "tests/pipeline/compute/cases.hpp"

namespace greta::test {

using Operands = std::vector<Tensor>;

namespace {

/// Returns the cases of products, and these.
std::vector<OperationCase> with_products(std::vector<OperationCase> others) {
  std::vector<OperationCase> all = product_cases();
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

/// Returns a case of matrices with weights of four bits, in groups of 32 with scales beside them.
template <kernels::WeightFormat format>
OperationCase experts_in_groups(const char* name, const char* key) {
  return {name,
          key,
          {{2, 3, 64},
           {2, 3, 2},
           {2, 3, 2},
           {5, 64, 32},
           {5, 64, 2},
           {5, 64, 16},
           {5, 64, 1},
           {2, 3, 64}},
          [](Operations& ops, const Operands& t) {
            return ops.experts(t[0], t[1], t[2], t[3], t[5], t[7],
                               {.format = format, .gate_up_scales = t[4], .down_scales = t[6]});
          }};
}

}  // namespace

const std::vector<OperationCase>& operation_cases() {
  static const std::vector<OperationCase> cases = with_products({
      {"Add",
       "add dtype=f16 out=f16 rows=6 cols=20",
       {{2, 3, 20}, {2, 3, 20}, {2, 3, 20}},
       [](Operations& ops, const Operands& t) { return ops.add(t[0], t[1], t[2]); }},
      {"SiluMul",
       "silu_mul dtype=f32 out=f16 rows=3 cols=20",
       {{3, 20}, {3, 20}, {3, 20}},
       [](Operations& ops, const Operands& t) { return ops.silu_mul(t[0], t[1], t[2]); }},
      {"SiluMulPacked",
       "silu_mul dtype=f32 out=f32 layout=packed rows=3 cols=20",
       {{3, 40}, {3, 20}},
       [](Operations& ops, const Operands& t) { return ops.silu_mul(t[0], t[1]); }},
      {"Gelu",
       "gelu dtype=f32 out=f32 form=erf rows=3 cols=20",
       {{3, 20}, {3, 20}},
       [](Operations& ops, const Operands& t) { return ops.gelu(t[0], t[1], GeluForm::erf); }},
      {"Rope",
       "rope dtype=f32 out=f32 style=half tokens=5 heads=3 dim=8 positions=9",
       {{5, 3, 8}, {5}, {9, 8}, {5, 3, 8}},
       [](Operations& ops, const Operands& t) {
         return ops.rope(t[0], t[1], t[2], t[3], RopePairs::half);
       }},
      {"RopeInPlace",
       "rope dtype=f16 out=f16 place=in tokens=5 heads=3 dim=8 positions=9",
       {{5, 3, 8}, {5}, {9, 8}},
       [](Operations& ops, const Operands& t) { return ops.rope(t[0], t[1], t[2], t[0]); }},
      {"KvUpdate",
       "kv_update dtype=f32 out=f16 tokens=3 kv_heads=2 dim=8 capacity=7",
       {{3, 2, 8}, {3, 2, 8}, {1}, {2, 7, 8}, {2, 7, 8}},
       [](Operations& ops, const Operands& t) {
         return ops.kv_update(t[0], t[1], t[2], t[3], t[4]);
       }},
      {"KvUpdateOfPages",
       "kv_update dtype=f32 out=f16 page_size=\"16\" tokens=3 kv_heads=2 dim=8 capacity=48",
       {{3, 2, 8}, {3, 2, 8}, {1}, {3}, {3, 2, 16, 8}, {3, 2, 16, 8}},
       [](Operations& ops, const Operands& t) {
         return ops.kv_update(t[0], t[1], t[2], t[4], t[5], t[3]);
       }},
      {"RopeAppend",
       "rope_append dtype=f32 out=f16 batch=2 tokens=3 heads=4 kv_heads=2 dim=8 positions=9 "
       "capacity=7",
       {{2, 3, 4, 8},
        {2, 3, 2, 8},
        {2, 3, 2, 8},
        {2, 3},
        {9, 8},
        {2},
        {2, 2, 7, 8},
        {2, 2, 7, 8},
        {2, 3, 4, 8}},
       [](Operations& ops, const Operands& t) {
         return ops.rope_append(t[0], t[1], t[2], t[3], t[4], t[5], t[6], t[7], t[8]);
       }},
      {"RopeAppendToPagesInPlace",
       "rope_append dtype=f16 out=f16 norm=rms epsilon=1e-06 style=half place=in page_size=\"16\" "
       "batch=2 tokens=1 heads=4 kv_heads=2 dim=8 positions=9 capacity=48",
       {{2, 1, 4, 8},
        {2, 1, 2, 8},
        {2, 1, 2, 8},
        {8},
        {8},
        {2, 1},
        {9, 8},
        {2},
        {2, 3},
        {6, 2, 16, 8},
        {6, 2, 16, 8}},
       [](Operations& ops, const Operands& t) {
         return ops.rope_append(t[0], t[1], t[2], t[5], t[6], t[7], t[9], t[10], t[0],
                                {.pairs = RopePairs::half,
                                 .q_norm = t[3],
                                 .k_norm = t[4],
                                 .epsilon = 1e-6F,
                                 .block_table = t[8]});
       }},
      {"KvUpdateOfOtherValues",
       "kv_update dtype=f32 out=f16 v_dim=\"5\" tokens=3 kv_heads=2 dim=8 capacity=7",
       {{3, 2, 8}, {3, 2, 5}, {1}, {2, 7, 8}, {2, 7, 5}},
       [](Operations& ops, const Operands& t) {
         return ops.kv_update(t[0], t[1], t[2], t[3], t[4]);
       }},
      {"Embedding",
       "embedding dtype=f16 out=f32 tokens=4 vocabulary=10 dim=24",
       {{4}, {10, 24}, {4, 24}},
       [](Operations& ops, const Operands& t) { return ops.embedding(t[0], t[1], t[2]); }},
      {"GatherColumns",
       "gather_columns dtype=f16 out=f32 rows=4 width=10 cols=24",
       {{24}, {4, 10}, {4, 24}},
       [](Operations& ops, const Operands& t) { return ops.gather_columns(t[0], t[1], t[2]); }},
      {"Argmax",
       "argmax dtype=f32 out=i32 rows=3 cols=100",
       {{3, 100}, {3}},
       [](Operations& ops, const Operands& t) { return ops.argmax(t[0], t[1]); }},
      {"Sample",
       "sample dtype=f16 out=i32 rows=4 cols=200",
       {{2, 2, 200}, {4, 4}, {4, 3}, {4}},
       [](Operations& ops, const Operands& t) { return ops.sample(t[0], t[1], t[2], t[3]); }},
      {"SampleWithPenalties",
       "sample dtype=f32 out=i32 rows=3 cols=100 history=7",
       {{3, 100}, {3, 4}, {3, 3}, {3, 3}, {3, 7}, {3}},
       [](Operations& ops, const Operands& t) {
         return ops.sample(t[0], t[1], t[2], t[5], {.penalties = t[3], .history = t[4]});
       }},
      {"Route",
       "route dtype=f16 out=f32 tokens=6 experts=16 top_k=4",
       {{2, 3, 16}, {2, 3, 4}, {2, 3, 4}},
       [](Operations& ops, const Operands& t) { return ops.route(t[0], t[1], t[2]); }},
      {"RouteWithABias",
       "route dtype=f32 out=f32 score=sigmoid renormalise=no bias=expert scale=2.5 tokens=5 "
       "experts=12 top_k=3",
       {{5, 12}, {12}, {5, 3}, {5, 3}},
       [](Operations& ops, const Operands& t) {
         return ops.route(
             t[0], t[2], t[3],
             {.score = ExpertScore::sigmoid, .renormalise = false, .bias = t[1], .scale = 2.5F});
       }},
      {"RouteToGroups",
       "route dtype=f32 out=f32 groups=\"4\" top_groups=\"2\" tokens=5 experts=16 top_k=3",
       {{5, 16}, {5, 3}, {5, 3}},
       [](Operations& ops, const Operands& t) {
         return ops.route(t[0], t[1], t[2], {.groups = 4, .top_groups = 2});
       }},
      {"Permute",
       "permute dtype=f16 out=f16 block=\"16\" tokens=6 experts=8 top_k=2 dim=24",
       {{2, 3, 24}, {2, 3, 2}, {132, 24}, {8}, {2, 3, 2}},
       [](Operations& ops, const Operands& t) {
         return ops.permute(t[0], t[1], t[2], t[3], t[4], 16);
       }},
      {"PermuteToExpertsOfACapacity",
       "permute dtype=f32 out=f32 tokens=5 experts=3 top_k=2 dim=10 capacity=4",
       {{5, 10}, {5, 2}, {3, 4, 10}, {3}, {5, 2}},
       [](Operations& ops, const Operands& t) {
         return ops.permute(t[0], t[1], t[2], t[3], t[4]);
       }},
      {"Unpermute",
       "unpermute dtype=f16 out=f32 tokens=6 rows=20 top_k=3 dim=24",
       {{20, 24}, {2, 3, 3}, {2, 3, 3}, {2, 3, 24}},
       [](Operations& ops, const Operands& t) { return ops.unpermute(t[0], t[1], t[2], t[3]); }},
      {"Experts",
       "experts dtype=f16 out=f32 tokens=6 experts=5 top_k=2 dim=24 hidden=16",
       {{2, 3, 24}, {2, 3, 2}, {2, 3, 2}, {5, 32, 24}, {5, 24, 16}, {2, 3, 24}},
       [](Operations& ops, const Operands& t) {
         return ops.experts(t[0], t[1], t[2], t[3], t[4], t[5]);
       }},
      experts_in_groups<kernels::WeightFormat::int4>(
          "ExpertsOfIntegers",
          "experts dtype=bf16 out=f32 weights=int4 group=\"32\" tokens=6 experts=5 "
          "top_k=2 dim=64 hidden=32"),
      experts_in_groups<kernels::WeightFormat::mxfp4>(
          "ExpertsOfMxfp4",
          "experts dtype=f16 out=f32 weights=mxfp4 tokens=6 experts=5 top_k=2 dim=64 "
          "hidden=32"),
      {"ScaledExperts",
       "experts dtype=bf16 out=f32 format=e5m2 scales=block tokens=6 experts=5 top_k=2 dim=144 "
       "hidden=80",
       {{2, 3, 144},
        {2, 3, 2},
        {2, 3, 2},
        {5, 160, 144},
        {10, 2},
        {5, 144, 80},
        {10, 1},
        {2, 3, 144}},
       [](Operations& ops, const Operands& t) {
         return ops.experts(
             t[0], t[1], t[2], t[3], t[5], t[7],
             {.gate_up_scales = t[4],
              .down_scales = t[6],
              .scaled = ScaledGemmOptions{kernels::ByteFormat::e5m2, ScaleSharing::block}});
       }},
      {"Dequantize",
       "dequantize dtype=bf16 out=bf16 group=\"32\" zeros=groups rows=6 cols=64",
       {{6, 32}, {6, 2}, {6, 2}, {2, 3, 64}},
       [](Operations& ops, const Operands& t) {
         return ops.dequantize(t[0], t[3], {.scales = t[1], .zeros = t[2]});
       }},
      {"DequantizePanels",
       "dequantize dtype=f16 out=f16 weights=mxfp4 packing=panels rows=32 cols=64",
       {{32, 32}, {32, 2}, {2, 16, 64}},
       [](Operations& ops, const Operands& t) {
         return ops.dequantize(t[0], t[2],
                               {.format = WeightFormat::mxfp4, .scales = t[1], .panels = true});
       }},
      {"AttentionOfABatch",
       "attention dtype=f32 out=f32 mask=causal scale=0.25 batch=2 heads=4 kv_heads=2 q=5 kv=9 "
       "dim=8",
       {{2, 5, 4, 8}, {2, 2, 9, 8}, {2, 2, 9, 8}, {2}, {2, 5, 4, 8}},
       [](Operations& ops, const Operands& t) {
         return ops.attention(t[0], t[1], t[2], t[3], t[4], {.scale = 0.25F, .causal = true});
       }},
      {"AttentionOfASequence",
       "attention dtype=f16 out=f16 batch=1 heads=4 kv_heads=1 q=1 kv=33 dim=16",
       {{1, 4, 16}, {1, 33, 16}, {1, 33, 16}, {1}, {1, 4, 16}},
       [](Operations& ops, const Operands& t) {
         return ops.attention(t[0], t[1], t[2], t[3], t[4]);
       }},
      {"AttentionWithOptions",
       "attention dtype=f32 out=f32 mask=causal window=\"4\" softcap=\"30\" sinks=head lse=stored "
       "batch=2 heads=4 kv_heads=2 q=5 kv=9 dim=8",
       {{2, 5, 4, 8}, {2, 2, 9, 8}, {2, 2, 9, 8}, {2}, {4}, {2, 5, 4, 8}, {2, 5, 4}},
       [](Operations& ops, const Operands& t) {
         return ops.attention(
             t[0], t[1], t[2], t[3], t[5],
             {.causal = true, .window = 4, .softcap = 30.0F, .sinks = t[4], .lse = t[6]});
       }},
      {"AttentionOverPages",
       "attention dtype=f16 out=f16 page_size=\"16\" batch=2 heads=4 kv_heads=2 q=1 kv=48 dim=16",
       {{2, 1, 4, 16}, {6, 2, 16, 16}, {6, 2, 16, 16}, {2}, {2, 3}, {2, 1, 4, 16}},
       [](Operations& ops, const Operands& t) {
         return ops.attention(t[0], t[1], t[2], t[3], t[5], {.block_table = t[4]});
       }},
      {"AttentionOfOtherValues",
       "attention dtype=f16 out=f16 v_dim=\"16\" batch=1 heads=4 kv_heads=2 q=3 kv=20 dim=24",
       {{1, 3, 4, 24}, {1, 2, 20, 24}, {1, 2, 20, 16}, {1}, {1, 3, 4, 16}},
       [](Operations& ops, const Operands& t) {
         return ops.attention(t[0], t[1], t[2], t[3], t[4]);
       }},
      {"AttentionOfPackedSequences",
       "attention dtype=f16 out=f16 mask=causal lse=stored sequences=packed "
       "lengths=ragged batch=3 heads=4 "
       "kv_heads=2 q=20 kv=30 dim=16",
       {{20, 4, 16}, {30, 2, 16}, {30, 2, 16}, {4}, {4}, {20, 4, 16}, {20, 4}},
       [](Operations& ops, const Operands& t) {
         return ops.attention(t[0], t[1], t[2], {}, t[5],
                              {.causal = true,
                               .lse = t[6],
                               .cu_seqlens_q = t[3],
                               .cu_seqlens_k = t[4],
                               .ragged = true});
       }},
      {"AttentionOfATree",
       "tree_attention dtype=f16 out=f16 lse=stored page_size=\"16\" batch=2 heads=4 kv_heads=2 "
       "q=5 "
       "kv=48 dim=16",
       {{2, 5, 4, 16},
        {6, 2, 16, 16},
        {6, 2, 16, 16},
        {2},
        {2, 3},
        {2, 5, 1},
        {2, 5, 4, 16},
        {2, 5, 4}},
       [](Operations& ops, const Operands& t) {
         return ops.attention(t[0], t[1], t[2], t[3], t[6],
                              {.lse = t[7], .block_table = t[4], .tree = t[5]});
       }},
      {"LatentAttention",
       "latent_attention dtype=f32 out=f32 mask=causal scale=0.25 lse=stored lengths=ragged "
       "batch=2 "
       "heads=4 q=3 kv=20 latent=32 rope=16",
       {{2, 3, 4, 48}, {2, 20, 48}, {2}, {2, 3, 4, 32}, {2, 3, 4}},
       [](Operations& ops, const Operands& t) {
         return ops.latent_attention(t[0], t[1], t[2], t[3],
                                     {.scale = 0.25F, .causal = true, .lse = t[4], .ragged = true});
       }},
      {"LatentAttentionOfATreeOverPages",
       "latent_attention dtype=f16 out=f16 mask=tree page_size=\"16\" batch=2 heads=4 q=5 kv=48 "
       "latent=64 rope=16",
       {{2, 5, 4, 80}, {6, 16, 80}, {2}, {2, 3}, {2, 5, 1}, {2, 5, 4, 64}},
       [](Operations& ops, const Operands& t) {
         return ops.latent_attention(t[0], t[1], t[2], t[5], {.tree = t[4], .block_table = t[3]});
       }},
      {"AttentionMerge",
       "attention_merge dtype=f32 out=f16 parts=3 tokens=10 heads=4 dim=8",
       {{3, 10, 4, 8}, {3, 10, 4}, {2, 5, 4, 8}},
       [](Operations& ops, const Operands& t) { return ops.attention_merge(t[0], t[1], t[2]); }},
      {"AttentionMergeWithLogarithms",
       "attention_merge dtype=f16 out=f16 lse=stored parts=2 tokens=5 heads=4 dim=24",
       {{2, 5, 4, 24}, {2, 5, 4}, {5, 4, 24}, {5, 4}},
       [](Operations& ops, const Operands& t) {
         return ops.attention_merge(t[0], t[1], t[2], t[3]);
       }},
      {"SoftmaxScaledAndCausal",
       "softmax dtype=f32 out=f32 scale=0.125 mask=causal rows=6 cols=6",
       {{6, 6}, {6, 6}},
       [](Operations& ops, const Operands& t) {
         return ops.softmax(t[0], t[1], {.scale = 0.125F, .mask = SoftmaxMask::causal});
       }},
      {"SoftmaxAdditiveInPlace",
       "softmax dtype=f32 out=f32 mask=additive place=in rows=5 cols=40",
       {{5, 40}, {5, 40}},
       [](Operations& ops, const Operands& t) { return ops.softmax(t[0], t[0], {.added = t[1]}); }},
      {"Layernorm",
       "layernorm dtype=f16 out=f16 rows=5 cols=40",
       {{5, 40}, {40}, {40}, {5, 40}},
       [](Operations& ops, const Operands& t) {
         return ops.layernorm(t[0], t[3], {.weight = t[1], .bias = t[2]});
       }},
      {"Rmsnorm",
       "rmsnorm dtype=f32 out=f32 epsilon=1e-06 rows=5 cols=40",
       {{5, 40}, {40}, {5, 40}},
       [](Operations& ops, const Operands& t) {
         return ops.rmsnorm(t[0], t[2], {.weight = t[1], .epsilon = 1e-6F});
       }},
      {"AddRmsnorm",
       "add_rmsnorm dtype=f32 out=f32 affine=none rows=5 cols=40",
       {{5, 40}, {5, 40}, {5, 40}, {5, 40}},
       [](Operations& ops, const Operands& t) { return ops.add_rmsnorm(t[0], t[1], t[2], t[3]); }},
      {"LayernormRmsnorm",
       "layernorm_rmsnorm dtype=f32 out=f32 affine=weight rows=5 cols=40",
       {{5, 40}, {40}, {40}, {5, 40}},
       [](Operations& ops, const Operands& t) {
         return ops.layernorm_rmsnorm(t[0], t[3], t[2], {.weight = t[1]});
       }},
  });
  return cases;
}

}  // namespace greta::test
