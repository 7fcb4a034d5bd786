#include "kernels/templates/kv_update/kv_update.hpp"

#include <fmt/format.h>

#include <iterator>

#include "kernels/model/random.hpp"
#include "kernels/reference/kv_update.hpp"
#include "kernels/templates/common/elementwise.hpp"
#include "kernels/templates/common/limits.hpp"
#include "kernels/templates/common/strides.hpp"

namespace greta::kernels {
namespace {

std::int64_t packed(const Problem& problem) {
  return problem.dim("kv_heads") * problem.dim("dim");
}

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t tokens = problem.dim("tokens"), heads = problem.dim("kv_heads");
  const std::int64_t dim = problem.dim("dim"), slots = heads * problem.dim("capacity");
  const std::int64_t stride = problem.stride("kv_stride", packed(problem));
  return {{"K", Role::input, problem.dtype, tokens, heads * dim, stride},
          {"V", Role::input, problem.dtype, tokens, heads * dim, stride},
          {"position", Role::input, DType::i32, 1, 1},
          {"K_cache", Role::input_output, problem.out_dtype, slots, dim},
          {"V_cache", Role::input_output, problem.out_dtype, slots, dim}};
}

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.dtype != DType::i32) return random_tensor(spec, seed);
  return random_indices(spec, problem.dim("capacity") - problem.dim("tokens"), seed);
}

/// Positions of tokens of which some or all have no slot, before the first one or behind the last.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  for (const std::size_t tensor : {0, 1, 3, 4}) {
    HostTensor& t = inputs[tensor];
    mix_in_adversarial_rows(t, magnitudes_of(t.spec.dtype), mix64(seed + tensor));
  }
  constexpr std::int64_t farthest = 2147483647;
  const std::int64_t tokens = problem.dim("tokens"), capacity = problem.dim("capacity");
  const std::int64_t positions[] = {capacity - tokens, capacity - (tokens + 1) / 2,
                                    capacity - 1,      capacity,
                                    farthest,          -(tokens / 2),
                                    -tokens,           -1,
                                    -farthest - 1};
  const std::uint64_t draw = mix64(seed) % (2 * std::size(positions));  // else as it is, in half
  if (draw >= std::size(positions)) return;
  store_element(DType::i32, inputs[2].data.data(), 0, static_cast<double>(positions[draw]));
}

Result<void> check(const Problem& problem) {
  const std::int64_t tokens = problem.dim("tokens"), capacity = problem.dim("capacity");
  if (capacity < tokens) {
    return Failure{Status::invalid_argument,
                   fmt::format("--capacity {}: must be at least the {} tokens", capacity, tokens),
                   {}};
  }
  auto counted = check_count(problem, "kv_heads", {"tokens", "kv_heads"});
  return counted ? check_count(problem, "capacity", {"capacity", "kv_heads"}) : counted;
}

/// What is appended is read and written once; nothing is computed.
Work work(const Problem& problem) {
  const auto rows = static_cast<double>(problem.dim("tokens") * problem.dim("kv_heads"));
  const double elements = 2 * rows * static_cast<double>(problem.dim("dim"));
  const auto bytes = static_cast<double>(size_of(problem.dtype) + size_of(problem.out_dtype));
  return {0, elements * bytes + 4};
}

ElementwiseShape shape(const Problem& problem) {
  return row_shape(problem.dim("tokens") * problem.dim("kv_heads"), problem.dim("dim"), "dim", 2);
}

Defines defines(const Problem& problem) {
  return {stride_define(problem, "kv_stride", packed(problem))};
}

std::vector<Argument> arguments(const Problem& problem) {
  std::vector<Argument> list;
  for (std::size_t tensor = 0; tensor < 5; ++tensor) list.emplace_back(OperandArgument{tensor});
  for (const char* name : {"tokens", "kv_heads", "dim", "capacity"}) {
    list.emplace_back(static_cast<std::uint32_t>(problem.dim(name)));
  }
  return list;
}

}  // namespace

KernelTemplate make_kv_update() {
  KernelTemplate t;
  t.name = "kv_update";
  t.summary = "appends new keys and values to their caches";
  t.bound =
      "none where types agree, else the output's rounding; the rest of the caches stays as it is, "
      "bit for bit";
  t.out_of_range =
      "token i goes to slot position + i; a token whose slot is below 0, or not below capacity, is "
      "left out";
  t.dimensions = {{"tokens", "tokens that are appended"},
                  {"kv_heads", "heads of keys and values"},
                  {"dim", "elements of a head"},
                  {"capacity", "tokens that the caches hold", 1, 2147483647, "", {160, 168, 200}}};
  t.attributes = {stride_attribute(
      "kv_stride", "elements from one token to the next, of K and of V", "kv_heads x dim", packed)};
  t.dtypes = converted_dtypes();
  t.sizes = {{4096, 32, 128, 8192}, {1, 32, 128, 2048}, {16, 8, 80, 2048}, {7, 3, 5, 100}};
  t.variants = {elementwise_variant(
      {"kv_update/append", "a thread takes ITEMS vectors of the keys and the same of the values",
       shape, defines, arguments})};
  t.check = check;
  t.work = work;
  t.tensors = tensors;
  t.input = input;
  t.harden = harden;
  t.reference = kv_update_reference;
  t.stand_in = fewer_tokens;
  return t;
}

}  // namespace greta::kernels
