#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "kernels/model/random.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/head_sizes.hpp"
#include "kernels/planning/pages.hpp"
#include "kernels/planning/stride_attributes.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/skeletons/elementwise.hpp"

namespace greta::kernels {
namespace {

/// A stride is that of K and of V, so it holds the longer of their tokens.
std::int64_t packed_stride(const Problem& problem) {
  return problem.dim("kv_heads") * std::max(problem.dim("dim"), v_dim_of(problem));
}

std::vector<TensorSpec> tensors(const Problem& problem) {
  const std::int64_t tokens = problem.dim("tokens"), heads = problem.dim("kv_heads");
  const std::int64_t dim = problem.dim("dim"), v_dim = v_dim_of(problem), page = page_of(problem);
  const std::int64_t pages = page > 0 ? ceil_div(problem.dim("capacity"), page) : 0;
  const std::int64_t slots = heads * (page > 0 ? pages * page : problem.dim("capacity"));
  const std::int64_t stride = problem.stride("kv_stride", packed_stride(problem));
  std::vector<TensorSpec> list{{"K", Role::input, problem.dtype, tokens, heads * dim, stride},
                               {"V", Role::input, problem.dtype, tokens, heads * v_dim, stride},
                               {"position", Role::input, DType::i32, 1, 1}};
  if (page > 0) list.push_back({"block_table", Role::input, DType::i32, 1, pages});
  const DType out = problem.out_dtype;
  list.push_back({"K_cache", Role::input_output, out, slots, dim, 0, false, page > 0});
  list.push_back({"V_cache", Role::input_output, out, slots, v_dim, 0, false, page > 0});
  return list;
}

HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  if (spec.name == "block_table") return random_block_table(spec, seed);
  if (spec.dtype != DType::i32) return random_tensor(spec, seed);
  return random_indices(spec, problem.dim("capacity") - problem.dim("tokens"), seed);
}

/// Sets positions for which some or all tokens have no slot, below the first or beyond the last.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  for (std::size_t tensor = 0; tensor < inputs.size(); ++tensor) {
    HostTensor& t = inputs[tensor];
    if (t.spec.dtype == DType::i32) continue;
    mix_in_adversarial_rows(t, magnitudes_of(t.spec.dtype), mix64(seed + tensor));
    mix_in_special_values(t, mix64(seed + tensor));
  }
  constexpr std::int64_t farthest = 2147483647;
  const std::int64_t tokens = problem.dim("tokens"), capacity = problem.dim("capacity");
  const std::int64_t positions[] = {capacity - tokens, capacity - (tokens + 1) / 2,
                                    capacity - 1,      capacity,
                                    farthest,          -(tokens / 2),
                                    -tokens,           -1,
                                    -farthest - 1};
  // Half of the draws leave the position unchanged.
  const std::uint64_t draw = mix64(seed) % (2 * std::size(positions));
  if (draw >= std::size(positions)) return;
  store_element(DType::i32, inputs[2].data.data(), 0, static_cast<double>(positions[draw]));
}

Result<void> check(const Problem& problem) {
  if (auto good = check_capacity(problem); !good) return good;
  auto counted = check_count(problem, "kv_heads", {"tokens", "kv_heads"});
  return counted ? check_count(problem, "capacity", {"capacity", "kv_heads"}) : counted;
}

/// Appended elements are read and written once. No arithmetic.
Work work(const Problem& problem) {
  const auto rows = static_cast<double>(problem.dim("tokens") * problem.dim("kv_heads"));
  const double elements = rows * static_cast<double>(problem.dim("dim") + v_dim_of(problem));
  return {0, bytes_of(problem.dtype, elements) + bytes_of(problem.out_dtype, elements) +
                 bytes_of(DType::i32, 1.0)};
}

ElementwiseShape shape(const Problem& problem) {
  const std::int64_t dim = problem.dim("dim"), v_dim = v_dim_of(problem);
  ElementwiseShape shape = row_shape(problem, problem.dim("tokens") * problem.dim("kv_heads"),
                                     std::max(dim, v_dim), "dim");
  if (v_dim != dim) {
    shape.run = std::gcd(dim, v_dim);
    shape.run_name = "dim and v_dim, of which the greatest divisor is";
  }
  const std::int64_t page = page_of(problem);
  shape.defines = {stride_define(shape.strides, "kv_stride", packed_stride(problem)),
                   {"PAGE", std::to_string(page)},
                   {"V_DIM", std::to_string(v_dim)}};
  add_constants(shape.defines, problem, {"kv_heads", "dim"});
  const std::size_t tensors = page > 0 ? 6 : 5;
  for (std::size_t i = 0; i < tensors; ++i) shape.arguments.emplace_back(OperandArgument{i});
  add_extents(shape.arguments, problem, {"tokens", "capacity"});
  return shape;
}

}  // namespace

Operation make_kv_update() {
  Operation t;
  t.name = "kv_update";
  t.summary = "appends new keys and values to their caches";
  t.bound =
      "none where types agree, else the output's rounding; the rest of the caches stays as it is, "
      "bit for bit";
  t.out_of_range =
      "token i goes to slot position + i; a token whose slot is below 0, or not below capacity, is "
      "skipped";
  t.dimensions = {run_time_tokens("number of tokens to append"),
                  {.name = "kv_heads", .help = "number of KV heads"},
                  {.name = "dim", .help = "elements of a head"},
                  {.name = "capacity",
                   .help = "KV capacity: number of tokens that the caches hold",
                   .examples = {160, 168, 200}}};
  t.attributes = {
      // Before the stride, whose least value depends on it.
      v_dim_attribute("elements of a head of values, if not those of keys", 1,
                      std::numeric_limits<std::int32_t>::max(), {"1", "40"}),
      stride_attribute("kv_stride", "elements from one token to the next, of K and of V",
                       "kv_heads x max(dim, v_dim)", packed_stride),
      page_size_attribute()};
  t.dtypes = converted_dtypes();
  t.sizes = {{{4096, 32, 128, 8192}}, {{1, 32, 128, 2048}}, {{16, 8, 80, 2048}}, {{7, 3, 5, 100}}};
  set_elementwise(t, "kv_update/append",
                  "a thread takes ITEMS vectors of the keys and the same of the values", shape);
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
