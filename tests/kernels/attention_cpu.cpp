#include "tests/kernels/attention_cpu.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/catalog.hpp"

namespace greta::test {
namespace {

std::vector<float> values(const HostTensor& t) {
  std::vector<float> list(t.spec.elements());
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = static_cast<float>(t.at(i));
  return list;
}

float as_f16(float value) {
  std::byte raw[2];
  store_element(DType::f16, raw, 0, value);
  return static_cast<float>(load_element(DType::f16, raw, 0));
}

}  // namespace

Problem attention_problem(const AttentionShape& s, DType in, DType out, const std::string& scale) {
  std::vector<std::pair<std::string, std::string>> attributes;
  if (s.causal) attributes.emplace_back("mask", "causal");
  if (scale != "auto") attributes.emplace_back("scale", scale);
  if (s.v_dim > 0) attributes.emplace_back("v_dim", std::to_string(s.v_dim));
  return {"attention",
          in,
          out,
          std::move(attributes),
          {{"batch", s.batch},
           {"heads", s.heads},
           {"kv_heads", s.kv_heads == 0 ? s.heads : s.kv_heads},
           {"q", s.queries},
           {"kv", s.keys},
           {"dim", s.dim}}};
}

std::vector<HostTensor> attention_inputs(const Problem& problem, std::uint64_t seed,
                                         const std::vector<std::int64_t>& lengths) {
  std::vector<HostTensor> inputs;
  for (const TensorSpec& spec : built_in("attention").tensors(problem)) {
    if (spec.role == Role::output) continue;
    inputs.push_back(built_in("attention").input(problem, spec, seed + inputs.size()));
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    store_element(DType::i32, inputs[3].data.data(), i, static_cast<double>(lengths[i]));
  }
  return inputs;
}

HostTensor cpu_attention(const Problem& problem, const std::vector<HostTensor>& inputs,
                         const AttentionMistakes& mistakes) {
  const auto extent = [&](const char* name) { return static_cast<std::size_t>(problem.dim(name)); };
  const std::size_t heads = extent("heads"), kv_heads = extent("kv_heads"), dim = extent("dim");
  const std::size_t queries = extent("q"), capacity = extent("kv");
  const std::string given = problem.attribute("scale", "auto");
  const float scale = given == "auto" ? 1 / std::sqrt(static_cast<float>(dim)) : std::stof(given);
  const auto q = values(inputs[0]), k = values(inputs[1]), v = values(inputs[2]);
  const TensorSpec spec = built_in("attention").tensors(problem).back();
  HostTensor out{spec, std::vector<std::byte>(spec.bytes())};
  std::vector<float> sums(dim);
  for (std::size_t row = 0; row < extent("batch") * queries * heads; ++row) {
    const std::size_t head = row % heads, query = row / heads % queries;
    const std::size_t sequence = row / heads / queries;
    const std::size_t kv_head = mistakes.wrong_heads ? head % kv_heads : head / (heads / kv_heads);
    const std::size_t first = (sequence * kv_heads + kv_head) * capacity;
    const auto length =
        std::clamp<std::int64_t>(std::int64_t(inputs[3].at(sequence)), 0, std::int64_t(capacity));
    auto end = mistakes.ignores_lengths ? std::int64_t(capacity) : length;
    if (problem.attribute("mask", "none") == "causal") {
      end = std::max<std::int64_t>(0, end - problem.dim("q") + std::int64_t(query) + 1);
      if (mistakes.sees_next && end < length) ++end;
    }
    float most = mistakes.lowest_score, sum = 0;
    std::fill(sums.begin(), sums.end(), 0.0F);
    for (std::int64_t j = 0; j < end; ++j) {
      if (j >= mistakes.skip_from && j < mistakes.skip_to) continue;
      const std::size_t key = (first + static_cast<std::size_t>(j)) * dim;
      float score = 0;
      for (std::size_t d = 0; d < dim; ++d) score += q[row * dim + d] * k[key + d];
      score *= scale;
      if (mistakes.f16_scores) score = as_f16(score);
      const float now = mistakes.no_maximum ? 0 : std::max(most, score);
      const float kept = std::exp(most - now), weight = std::exp(score - now);
      most = now;
      sum = sum * kept + weight;
      for (std::size_t d = 0; d < dim; ++d) sums[d] = sums[d] * kept + weight * v[key + d];
      if (mistakes.f16_every > 0 && j % mistakes.f16_every == 0) {
        for (float& x : sums) x = as_f16(x);
      }
    }
    for (std::size_t d = 0; d < dim; ++d) {
      store_element(spec.dtype, out.data.data(), row * dim + d, sum > 0 ? sums[d] / sum : 0);
    }
  }
  return out;
}

}  // namespace greta::test
