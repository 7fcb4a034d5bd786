// Protects: the methods of Operations request the correct problem with operands in order, and
// reject invalid calls.
#include "runtime/pipeline/compute/operations.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "kernels/model/problem_rules.hpp"
#include "runtime/pipeline/compute/prepared.hpp"
#include "tests/catalog.hpp"
#include "tests/pipeline/compute/cases.hpp"

namespace greta::test::operations_test {
namespace {

/// Records the last problem.
class Recorder final : public Operations {
 public:
  explicit Recorder(bool rounded_weights = false) : Operations(rounded_weights) {}
  Result<void> copy(const Tensor& to, const Tensor& from) override { return check_copy(to, from); }
  const Catalog& catalog() const override { return test::catalog(); }
  Result<void> run(const Problem& asked, std::span<const Tensor> given) override {
    problem = asked;
    operands.assign(given.begin(), given.end());
    return {};
  }

  Problem problem;
  std::vector<Tensor> operands;
};

Tensor tensor(DType dtype, const Shape& shape) {
  auto storage = std::make_shared<Storage>();
  storage->bytes = bytes_of(dtype, static_cast<std::size_t>(shape.elements()));
  return {std::move(storage), dtype, shape};
}

std::string message(const Result<void>& result) {
  return result ? "done" : result.failure().message;
}

TEST(Operations, EveryCallIsItsProblemWithOperandsInOrder) {
  std::set<std::string> seen;
  for (const test::OperationCase& one : test::operation_cases()) {
    SCOPED_TRACE(one.name);
    const Problem problem = Problem::parse(one.key).value();
    seen.insert(problem.op);
    const Operation& kernel = built_in(problem.op);
    check_problem(kernel, problem).value();
    const auto specs = kernel.tensors(problem);
    ASSERT_EQ(specs.size(), one.shapes.size());
    std::vector<Tensor> operands;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      operands.push_back(tensor(specs[i].dtype, one.shapes[i]));
    }
    Recorder recorder;
    EXPECT_EQ(message(one.call(recorder, operands)), "done");
    EXPECT_EQ(recorder.problem.key(), one.key);
    ASSERT_EQ(recorder.operands.size(), specs.size());
    for (std::size_t i = 0; i < specs.size(); ++i) {
      EXPECT_TRUE(recorder.operands[i].same_view(operands[i])) << specs[i].name;
      EXPECT_EQ(why_not(recorder.operands[i], specs[i]), "");
    }
  }
  EXPECT_EQ(seen.size(), catalog().size());  // every operation has a method
}

// A runtime's permission is for many rows of 16 bits, an option's for any of these.
TEST(Operations, WeightsAreRoundedWhereItIsAllowed) {
  const auto math = [](bool of_all, bool option, DType type, std::int64_t m) {
    Recorder ops(of_all);
    QuantizedGemmOptions options{.format = kernels::WeightFormat::q8_0};
    options.rounded_weights = option;
    ops.quantized_gemm(tensor(type, {m, 64}), tensor(DType::u8, {4, 68}), tensor(type, {m, 4}),
                       options)
        .value();
    return ops.problem.attribute("math", "exact");
  };
  EXPECT_EQ(math(false, false, DType::f16, 129), "exact");
  EXPECT_EQ(math(false, true, DType::bf16, 1), "rounded_weights");
  EXPECT_EQ(math(true, false, DType::f16, 129), "rounded_weights");
  EXPECT_EQ(math(true, false, DType::f16, 128), "exact");
  EXPECT_EQ(math(true, false, DType::f32, 129), "exact");
}

// Kernels load 16 bytes of B at once, or copy boxes, where its rows are multiples of that: a part
// of memory that begins elsewhere must be refused, as a tensor and as an address.
TEST(Operations, WeightsBeginWhereKernelsCanLoadThem) {
  using kernels::WeightFormat;
  const auto why = [](WeightFormat format, std::int64_t k,
                      std::int64_t begin) -> std::array<std::string, 2> {
    Recorder ops;
    const std::int64_t n = 4, row = kernels::row_bytes(format, k);
    const Tensor memory = tensor(DType::u8, {begin + n * row});
    const Tensor b = memory.slice(0, begin, n * row).reshape({n, row});
    QuantizedGemmOptions options{.format = format};
    if (!kernels::in_blocks(format)) options.scales = tensor(DType::f16, {n, 2});
    ops.quantized_gemm(tensor(DType::f16, {1, k}), b, tensor(DType::f16, {1, n}), options).value();
    const auto specs = built_in("quantized_gemm").tensors(ops.problem);
    std::vector<std::uint64_t> addresses;
    for (std::size_t i = 0; i < specs.size(); ++i) addresses.push_back((i + 1) << 20);
    addresses[1] += static_cast<std::uint64_t>(begin);
    return {message(check_operands(ops.problem, specs, ops.operands)),
            message(check_addresses(ops.problem, specs, addresses))};
  };
  for (const WeightFormat format : {WeightFormat::int4, WeightFormat::int8, WeightFormat::q4_0,
                                    WeightFormat::q8_0, WeightFormat::q4_k}) {
    const auto refusal = why(format, 256, 8);
    EXPECT_TRUE(refusal[0].ends_with(
        ": B begins at byte 8 of its memory, but it must be at a multiple of 16"))
        << refusal[0];
    EXPECT_TRUE(
        refusal[1].ends_with(": B is at address 0x200008, but it must be at a multiple of 16"))
        << refusal[1];
    for (const std::string& taken : why(format, 256, 16)) EXPECT_EQ(taken, "done");
  }
  for (const auto& [format, k] :
       {std::pair{WeightFormat::q4_0, 288}, {WeightFormat::q8_0, 288}, {WeightFormat::q6_k, 256}}) {
    const auto refusal = why(format, k, 1);
    EXPECT_TRUE(refusal[0].ends_with("must be at a multiple of 2")) << refusal[0];
    EXPECT_TRUE(refusal[1].ends_with("must be at a multiple of 2")) << refusal[1];
    for (const std::string& taken : why(format, k, 2)) EXPECT_EQ(taken, "done");
  }
}

// Kernels load four words of AWQ's and GPTQ's matrices at once.
TEST(Operations, PackedWordsBeginWhereKernelsCanLoadThem) {
  using kernels::WeightPacking;
  constexpr std::int64_t n = 64, k = 256, word = 4;
  const auto why = [&](WeightPacking packing, std::int64_t begin) {
    Recorder ops;
    const bool awq = packing == WeightPacking::awq;
    const std::int64_t rows = awq ? k : k / 8, cols = awq ? n / 8 : n;
    const Tensor memory = tensor(DType::i32, {begin / word + rows * cols});
    const Tensor b = memory.slice(0, begin / word, rows * cols).reshape({rows, cols});
    QuantizedGemmOptions options{.format = kernels::WeightFormat::int4};
    options.scales = tensor(DType::f16, {k / 128, n});
    options.packing = packing;
    ops.quantized_gemm(tensor(DType::f16, {1, k}), b, tensor(DType::f16, {1, n}), options).value();
    return message(
        check_operands(ops.problem, built_in("quantized_gemm").tensors(ops.problem), ops.operands));
  };
  for (const auto packing : {WeightPacking::awq, WeightPacking::gptq, WeightPacking::gptq_v2}) {
    EXPECT_TRUE(why(packing, 8).ends_with("must be at a multiple of 16")) << why(packing, 8);
    EXPECT_EQ(why(packing, 16), "done");
  }
}

/// Returns the key that was recorded, after checking its operands, or why there is none.
std::string recorded_key(const Recorder& ops, const Result<void>& result) {
  if (!result) return result.failure().message;
  const auto specs = built_in(ops.problem.op).tensors(ops.problem);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(why_not(ops.operands[i], specs[i]), "");
  }
  return ops.problem.key();
}

TEST(Operations, OnRowsTakeColumnsOfAWiderMatrix) {
  Recorder ops;
  const Tensor wide = tensor(DType::f32, {4, 48}), packed = tensor(DType::f32, {4, 16});
  const Tensor x = wide.slice(1, 0, 16), y = wide.slice(1, 16, 16);
  const auto key = [&ops](const Result<void>& result) { return recorded_key(ops, result); };
  EXPECT_EQ(key(ops.softmax(x, packed)),
            "softmax dtype=f32 out=f32 x_stride=\"48\" rows=4 cols=16");
  EXPECT_EQ(key(ops.softmax(x, x, {.scale = 2})),
            "softmax dtype=f32 out=f32 scale=\"2\" place=in x_stride=\"48\" y_stride=\"48\" "
            "rows=4 cols=16");
  EXPECT_EQ(key(ops.rmsnorm(packed, y)),
            "rmsnorm dtype=f32 out=f32 affine=none y_stride=\"48\" rows=4 cols=16");
  EXPECT_EQ(key(ops.layernorm(x.slice(0, 1, 1), y.slice(0, 2, 1))),
            "layernorm dtype=f32 out=f32 affine=none rows=1 cols=16");
  EXPECT_EQ(key(ops.argmax(x, tensor(DType::i32, {4}))),
            "argmax dtype=f32 out=i32 x_stride=\"48\" rows=4 cols=16");
  EXPECT_EQ(key(ops.add_rmsnorm(x, y, packed, packed)),
            "add_rmsnorm dtype=f32 out=f32 affine=none x_stride=\"48\" rows=4 cols=16");
}

TEST(Operations, TakeQueriesKeysAndValuesFromOneProduct) {
  Recorder ops;
  const std::int64_t heads = 4, kv_heads = 2, dim = 8;
  const Tensor all = tensor(DType::f32, {2, 5, heads + 2 * kv_heads, dim});
  const Tensor by_token = all.reshape({10, heads + 2 * kv_heads, dim});
  const Tensor table = tensor(DType::f32, {9, dim}), one = tensor(DType::i32, {1});
  const Tensor cache = tensor(DType::f32, {kv_heads, 16, dim});
  const Tensor caches = tensor(DType::f32, {2, kv_heads, 16, dim});
  const auto key = [&ops](const Result<void>& result) { return recorded_key(ops, result); };
  const Tensor rotated = by_token.slice(1, 0, heads + kv_heads);
  EXPECT_EQ(key(ops.rope(rotated, tensor(DType::i32, {10}), table, rotated)),
            "rope dtype=f32 out=f32 place=in x_stride=\"64\" tokens=10 heads=6 dim=8 "
            "positions=9");
  EXPECT_EQ(key(ops.rope(rotated, tensor(DType::i32, {10}), table, tensor(DType::f32, {10, 6, 8}))),
            "rope dtype=f32 out=f32 x_stride=\"64\" tokens=10 heads=6 dim=8 positions=9");
  EXPECT_EQ(key(ops.kv_update(by_token.slice(1, 4, 2).slice(0, 5, 5),
                              by_token.slice(1, 6, 2).slice(0, 5, 5), one, cache, cache)),
            "kv_update dtype=f32 out=f32 kv_stride=\"64\" tokens=5 kv_heads=2 dim=8 capacity=16");
  const Tensor q = all.slice(2, 0, heads), k = all.slice(2, 4, 2), v = all.slice(2, 6, 2);
  const Tensor places = tensor(DType::i32, {2, 5}), slots = tensor(DType::i32, {2});
  const Tensor others = tensor(DType::f32, {2, kv_heads, 16, dim});
  EXPECT_EQ(key(ops.rope_append(q, k, v, places, table, slots, caches, others, q)),
            "rope_append dtype=f32 out=f32 place=in q_stride=\"64\" kv_stride=\"64\" batch=2 "
            "tokens=5 heads=4 kv_heads=2 dim=8 positions=9 capacity=16");
  EXPECT_EQ(
      key(ops.attention(all.slice(2, 0, heads), caches, caches, tensor(DType::i32, {2}),
                        tensor(DType::f32, {2, 5, heads, dim}))),
      "attention dtype=f32 out=f32 q_stride=\"64\" batch=2 heads=4 kv_heads=2 q=5 kv=16 dim=8");
}

// B's form, and what has a line for each gate and up, depend on who packed the weights.
TEST(Operations, MistakesWithQuantisedWeightsAreNamedByTheirPacking) {
  using Format = kernels::WeightFormat;
  using Packing = kernels::WeightPacking;
  Recorder ops;
  const Tensor a = tensor(DType::f16, {3, 256}), c = tensor(DType::f16, {3, 8});
  const auto told = [&](const Tensor& b, const QuantizedGemmOptions& options) {
    return message(ops.quantized_gemm(a, b, c, options));
  };
  const Tensor flat = tensor(DType::i32, {64}), b = tensor(DType::i32, {256, 2});
  const auto form = [&](Format format, std::optional<Packing> packing) {
    return told(flat, {.format = format, .packing = packing});
  };
  const std::string must = "quantized_gemm: B is i32 [64], but it must be ";
  EXPECT_EQ(form(Format::int4, std::nullopt), must + "[n, bytes of a row]");
  EXPECT_EQ(form(Format::int4, Packing::awq), must + "[k, n / 8]");
  EXPECT_EQ(form(Format::int4, Packing::gptq), must + "[k / 8, n]");
  EXPECT_EQ(form(Format::int8, Packing::gptq_v2), must + "[k / 4, n]");

  const Tensor scales = tensor(DType::f16, {2, 15});
  EXPECT_EQ(told(b, {.scales = scales, .gated = true, .packing = Packing::awq}),
            "quantized_gemm: scales have 15 columns, but gates need as many ups");
  EXPECT_EQ(told(tensor(DType::u8, {15, 128}), {.scales = scales, .gated = true}),
            "quantized_gemm: B has 15 rows, but gates need as many ups");
  EXPECT_EQ(told(b, {.gated = true, .packing = Packing::awq}),
            "quantized_gemm: int4, int8 and mxfp4 need scales");
  EXPECT_EQ(told({}, {.scales = tensor(DType::f16, {16, 2}), .gated = true}),
            "quantized_gemm: B is missing");
}

TEST(Operations, WhatCantBeMeantIsOneLine) {
  Recorder ops;
  const Tensor matrix = tensor(DType::f32, {4, 8}), vector = tensor(DType::f32, {8});
  const Tensor ids = tensor(DType::i32, {4}), head = tensor(DType::f32, {4, 2, 4});
  EXPECT_EQ(message(ops.gemm(matrix, vector, matrix)), "gemm: B is f32 [8], but it must be [k, n]");
  EXPECT_EQ(message(ops.gemm(vector, matrix, matrix, {.layout = Layout::tn})),
            "gemm: A is f32 [8], but it must be [k, m]");
  EXPECT_EQ(message(ops.gemm({}, matrix, matrix)), "gemm: A is missing");
  EXPECT_EQ(message(ops.gemm(matrix, {}, matrix)), "gemm: B is missing");
  EXPECT_EQ(message(ops.gemm(matrix, matrix, {})), "gemm: C is missing");
  EXPECT_EQ(message(ops.rope(matrix, ids, matrix, matrix)),
            "rope: x is f32 [4, 8], but it must be [tokens, heads, dim]");
  EXPECT_EQ(message(ops.rope(head, ids, {}, head)), "rope: table is missing");
  EXPECT_EQ(message(ops.kv_update(head, head, ids, matrix, matrix)),
            "kv_update: K_cache is f32 [4, 8], but it must be [kv_heads, capacity, dim]");
  const auto append = [&](const Tensor& q, const Tensor& k, const Tensor& cache,
                          const RopeAppendOptions& options = {}) {
    return message(ops.rope_append(q, k, k, ids, matrix, ids, cache, cache, q, options));
  };
  EXPECT_EQ(append(matrix, head, head),
            "rope_append: Q is f32 [4, 8], but it must be [batch, tokens, heads, dim]");
  EXPECT_EQ(append(head, matrix, head),
            "rope_append: K is f32 [4, 8], but it must be [batch, tokens, kv_heads, dim]");
  EXPECT_EQ(append(head, head, matrix),
            "rope_append: K_cache is f32 [4, 8], but it must be [batch, kv_heads, capacity, dim]");
  EXPECT_EQ(append(head, head, head, {.block_table = ids}),
            "rope_append: K_cache is f32 [4, 2, 4], but it must be [pages, kv_heads, page, dim]");
  EXPECT_EQ(append(head, head, head, {.q_norm = vector}),
            "rope_append: weights of the norms of both q and k, or of neither");
  EXPECT_EQ(message(ops.attention(matrix, head, head, ids, matrix)),
            "attention: Q is f32 [4, 8], but it must be [batch, q, heads, dim]");
  EXPECT_EQ(message(ops.softmax(matrix, matrix, {.mask = SoftmaxMask::causal, .added = matrix})),
            "softmax: a mask that is added, or a causal one, not both");
  EXPECT_EQ(message(ops.rmsnorm(matrix, matrix, {.weight = vector, .bias = vector})),
            "rmsnorm: it takes no bias");
  EXPECT_EQ(message(ops.layernorm(matrix, matrix, {.bias = vector})),
            "layernorm: a bias needs a weight beside it");
  EXPECT_EQ(message(ops.layernorm_rmsnorm(matrix, matrix, vector)),
            "layernorm_rmsnorm: a gain, exactly where there is a weight");
  EXPECT_EQ(message(ops.copy(matrix, vector)),
            "copy: f32 [8] to f32 [4, 8]: types and numbers of elements must agree");
  EXPECT_EQ(message(ops.copy(matrix, matrix)), "copy: source and target overlap");
  EXPECT_EQ(message(ops.copy(matrix, {})), "copy: from is missing");
}

}  // namespace
}  // namespace greta::test::operations_test
