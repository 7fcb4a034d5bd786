#include "kernels/templates/quantized_gemm/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <utility>

#include "kernels/model/parallel.hpp"
#include "kernels/model/random.hpp"
#include "kernels/planning/expert_ids.hpp"
#include "kernels/templates/experts/shape.hpp"
#include "kernels/templates/gemm/adversarial.hpp"
#include "kernels/templates/gemm/shape.hpp"
#include "kernels/templates/scaled_gemm/inputs.hpp"

namespace greta::kernels::experts {
namespace {

/// Experts of plain inputs depend on nothing but the extents, as bytes are counted from them.
constexpr std::uint64_t plain_seed = 1;

TensorSpec plain_ids(const Shape& s) {
  return {"ids", Role::input, DType::i32, s.tokens, s.top_k};
}

void scale(HostTensor& tensor, double factor) {
  parallel_parts(tensor.spec.rows * tensor.spec.cols, [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      store_element(tensor.spec.dtype, tensor.data.data(), i, factor * tensor.at(i));
    }
  });
}

/// Returns quantised weights or their scales, as quantized_gemm has them.
HostTensor quantized_input(const Problem& problem, TensorSpec spec, std::uint64_t seed) {
  const Shape s(problem);
  const bool down = spec.name.starts_with("down");
  Problem product{"quantized_gemm", problem.dtype, problem.out_dtype, problem.attributes, {}};
  std::erase_if(product.attributes, [](const auto& one) {
    return one.first == "weights" || one.first == "down_weights" || one.first == "packing";
  });
  const WeightFormat format = *(down ? s.down_format : s.format);
  product.attributes.emplace_back("weights", std::string(traits(format).name));
  product.dims = {{"m", 1}, {"n", spec.rows}, {"k", down ? s.hidden : s.dim}};
  const char* const operand = spec.name.ends_with("_scales")  ? "scales"
                              : spec.name.ends_with("_zeros") ? "zeros"
                                                              : "B";
  const std::string name = std::exchange(spec.name, operand);
  HostTensor tensor = quantized_gemm::input(product, spec, seed);
  tensor.spec.name = name;
  return tensor;
}

/// Returns numbers of eight bits, or their scales, which make weights as large as those of dense
/// matrices.
HostTensor scaled_input(const Shape& s, const TensorSpec& spec, std::uint64_t seed) {
  HostTensor tensor = scaled_gemm::random_operand(s.gate_up_lines->format, spec, seed);
  if (spec.name == "gate_up_scales") scale(tensor, 8 / std::sqrt(static_cast<double>(s.dim)));
  if (spec.name == "down_scales") scale(tensor, 4 / std::sqrt(static_cast<double>(s.hidden)));
  return tensor;
}

/// Weights of 0, of NaN and of both signs; experts that a token has twice.
void harden_choice(const Shape& s, HostTensor& ids, HostTensor& weights, std::mt19937_64& random) {
  ids = different_experts(ids.spec, s.experts, random());
  mix_in_invalid_indices(ids, s.experts, random());
  for (std::size_t i = 0; i < ids.spec.elements(); ++i) {
    const bool first = i % static_cast<std::size_t>(s.top_k) == 0;
    if (!first && uniform_below(random, 8) == 0)
      store_element(DType::i32, ids.data.data(), i, ids.at(i - 1));
    double weight = 2 * uniform(random) - 1;
    const std::uint64_t kind = uniform_below(random, 32);
    if (kind < 6) weight = kind % 2 == 0 ? 0.0 : -0.0;
    if (kind == 6) weight = std::numeric_limits<double>::quiet_NaN();
    if (kind == 7) weight *= 0x1p-60;
    store_element(DType::f32, weights.data.data(), i, weight);
  }
}

/// Makes the matrices of experts that no token has, or all with weights of 0, NaN. Of quantised
/// ones, scales that are operands become NaN, and those in blocks by bytes of 255.
void hide_others(const Shape& s, std::vector<HostTensor>& inputs) {
  const HostTensor &ids = inputs[1], &weights = inputs[2];
  std::vector<bool> used(static_cast<std::size_t>(s.experts));
  for (std::size_t i = 0; i < ids.spec.elements(); ++i) {
    const double id = ids.at(i);
    if (id >= 0 && id < static_cast<double>(s.experts) && weights.at(i) != 0)
      used[static_cast<std::size_t>(id)] = true;
  }
  for (auto matrix = inputs.begin() + 3; matrix != inputs.end(); ++matrix) {
    const std::size_t each = matrix->spec.elements() / used.size();
    const bool bytes = matrix->spec.dtype == DType::u8;
    for (std::size_t i = 0; i < matrix->spec.elements(); ++i) {
      if (used[i / each]) continue;
      store_element(matrix->spec.dtype, matrix->data.data(), i,
                    bytes ? 255 : std::numeric_limits<double>::quiet_NaN());
    }
  }
}

/// x and gate_up are those of a gated product. Its elements are at most an eighth of the output's
/// range, and so is a sum of as many products with elements of `down`.
void harden_numbers(const Shape& s, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  gemm::Shape gated;
  gated.m = s.tokens;
  gated.n = s.hidden;
  gated.k = s.dim;
  gated.in = s.in;
  gated.out = s.out;
  gated.b_along_k = gated.gated = true;
  gated.activation = 1;
  HostTensor &x = inputs[0], &gate_up = inputs[3], &down = inputs[4];
  gemm::harden_product(gated, x, gate_up, seed);
  const double least = std::max(smallest_normal(s.in), 0x1p-40);
  const double most = 4 / static_cast<double>(s.hidden * s.top_k);
  mix_in_adversarial_rows(down, {least, std::max(most, 16 * least)}, mix64(seed + 1));
  for (std::size_t i = 0; i < down.spec.elements(); ++i) {  // plain rows
    const double value = down.at(i);
    if (std::abs(value) > most)
      store_element(s.in, down.data.data(), i, std::copysign(most, value));
  }
}

/// Gates and ups are at most `most_gate`, and a token's sum over h at most 4 times its square. A
/// NaN in gate_up is in all outputs of the tokens that have the expert, so there is one at most.
void harden_scaled(const Shape& s, std::vector<HostTensor>& inputs, std::mt19937_64& random) {
  mix_in_adversarial_rows(inputs[0], {0x1p-14, 1}, random());
  const bool finite = s.gate_up_lines->integers() || random() >> 63 != 0;
  const double largest = traits(s.gate_up_lines->format).largest + 1;
  const double most_gate = std::exp2(3 * static_cast<double>(uniform_below(random, 3)));
  scaled_gemm::harden_lines(*s.gate_up_lines, most_gate / largest / static_cast<double>(s.dim),
                            true, inputs[3], inputs[4], random);
  scaled_gemm::harden_lines(*s.down_lines, 4 / largest / static_cast<double>(s.hidden * s.top_k),
                            finite, inputs[5], inputs[6], random);
  if (finite || uniform_below(random, 4) != 0) return;
  inputs[3].data[uniform_below(random, inputs[3].data.size())] =
      std::byte{encode_byte(s.gate_up_lines->format, NAN)};
}

/// The ends of the range of e8m0. 2^-127, which devices may take for 0, is in gate_up alone, as x
/// is at most 1 there. A NaN in gate_up is in all outputs of the tokens that have the expert.
void mix_in_end_powers(std::vector<HostTensor>& inputs, std::mt19937_64& random) {
  HostTensor &gate_up = inputs[4], &down = inputs[6];
  const bool smallest = uniform_below(random, 2) == 0;
  for (std::byte& scale : gate_up.data) {
    if (smallest && uniform_below(random, 4) == 0) scale = std::byte{0};
  }
  const auto nan = [&](HostTensor& scales) {
    scales.data[uniform_below(random, scales.data.size())] = std::byte{255};
  };
  if (uniform_below(random, 2) == 0) nan(down);
  if (uniform_below(random, 8) == 0) nan(gate_up);
}

}  // namespace

std::int64_t chosen_experts(const Shape& s) {
  // Candidates of a problem ask one after the other.
  thread_local std::tuple<std::int64_t, std::int64_t, std::int64_t> asked;
  thread_local std::int64_t answer = 0;
  const std::tuple extents(s.tokens, s.experts, s.top_k);
  if (answer > 0 && asked == extents) return answer;
  asked = extents;
  return answer = count_different_experts(plain_ids(s), s.experts, plain_seed);
}

/// Gates are moderate, so that they are neither 0 nor all that counts after the activation, and
/// sums stay in the range of the output. Weights are positive and add up to about 1.
HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  const Shape s(problem);
  if (spec.name == "ids") return different_experts(plain_ids(s), s.experts, plain_seed);
  const bool matrix = spec.name.starts_with("gate_up") || spec.name.starts_with("down");
  if (s.scaled() && matrix) return scaled_input(s, spec, seed);
  if (s.format && matrix) return quantized_input(problem, spec, seed);
  HostTensor tensor = random_tensor(spec, seed);
  if (spec.name == "gate_up") scale(tensor, 8 / std::sqrt(static_cast<double>(s.dim)));
  if (spec.name == "down") scale(tensor, 4 / std::sqrt(static_cast<double>(s.hidden)));
  for (std::size_t i = 0; spec.name == "weights" && i < spec.elements(); ++i) {
    store_element(spec.dtype, tensor.data.data(), i,
                  2 * std::abs(tensor.at(i)) / static_cast<double>(s.top_k));
  }
  return tensor;
}

/// Quantised matrices but mxfp4 stay plain: quantized_gemm has extreme ones.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed) {
  const Shape s(problem);
  std::mt19937_64 random(mix64(seed));
  if (s.scaled()) {
    harden_scaled(s, inputs, random);
  } else if (s.format) {
    mix_in_adversarial_rows(inputs[0], {0x1p-14, 1}, random());
    if (s.format == WeightFormat::mxfp4) mix_in_end_powers(inputs, random);
  } else {
    harden_numbers(s, inputs, seed);
  }
  harden_choice(s, inputs[1], inputs[2], random);
  hide_others(s, inputs);
}

}  // namespace greta::kernels::experts
