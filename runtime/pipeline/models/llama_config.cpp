#include "runtime/pipeline/models/llama_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/device/result.hpp"

namespace greta::runtime {
namespace {

/// Extents and their limits. With these limits, no product of a model's extents overflows:
/// max_positions * kv_dim * layers is at most 2^59.
struct Limit {
  const char* name;
  std::int64_t LlamaConfig::*extent;
  std::int64_t most;
};
constexpr Limit limits[] = {
    {"dim", &LlamaConfig::dim, 1 << 18},
    {"hidden_dim", &LlamaConfig::hidden_dim, 1 << 20},
    {"layers", &LlamaConfig::layers, 1 << 12},
    {"heads", &LlamaConfig::heads, 1 << 12},
    {"kv_heads", &LlamaConfig::kv_heads, 1 << 12},
    {"head_dim", &LlamaConfig::head_dim, 1 << 12},
    {"vocab", &LlamaConfig::vocab, 1 << 24},
    {"max_positions", &LlamaConfig::max_positions, 1 << 27},
};
constexpr std::int64_t most_q_dim = 1 << 20;

void require(bool holds, const std::string& otherwise) {
  if (!holds) throw Error(otherwise);
}

void check_yarn(const LlamaConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  const double fast = scaling.fast_rotations, slow = scaling.slow_rotations;
  require(
      std::isfinite(fast) && slow > 0 && slow < fast,
      fmt::format("rope_scaling's beta_slow is {} and beta_fast {}; allowed: above 0, the first "
                  "below the second",
                  slow, fast));
  require(std::isfinite(scaling.attention_factor) && scaling.attention_factor > 0,
          fmt::format("rope_scaling's attention_factor is {}; allowed: above 0",
                      scaling.attention_factor));
  require(config.rope_theta > 1, "rope_theta is 1; allowed with yarn: above 1");
  require(scaling.original_positions >= 1,
          fmt::format("rope_scaling's original_max_position_embeddings is {}; allowed: 1 and more",
                      scaling.original_positions));
}

void check_rope(const LlamaConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  require(std::isfinite(config.rope_theta) && config.rope_theta >= 1,
          fmt::format("rope_theta is {}; allowed: 1 and more", config.rope_theta));
  const auto& divisors = config.rope_divisors;
  require(divisors.empty() || static_cast<std::int64_t>(divisors.size()) == config.head_dim / 2,
          fmt::format("there are {} divisors of rope's frequencies; allowed: {}", divisors.size(),
                      config.head_dim / 2));
  for (const double divisor : divisors) {
    require(std::isfinite(divisor) && divisor > 0,
            fmt::format("a divisor of rope's frequencies is {}; allowed: above 0", divisor));
  }
  if (scaling.kind == RopeScaling::Kind::none) return;
  require(std::isfinite(scaling.factor) && scaling.factor >= 1,
          fmt::format("rope_scaling's factor is {}; allowed: 1 and more", scaling.factor));
  if (scaling.kind == RopeScaling::Kind::linear) return;
  if (scaling.kind == RopeScaling::Kind::yarn) return check_yarn(config);
  const double low = scaling.low_frequency_factor, high = scaling.high_frequency_factor;
  require(
      std::isfinite(high) && low > 0 && low < high,
      fmt::format("rope_scaling's low_freq_factor is {} and high_freq_factor {}; allowed: above "
                  "0, the first below the second",
                  low, high));
  require(scaling.original_positions >= 1,
          fmt::format("rope_scaling's original_max_position_embeddings is {}; allowed: 1 and more",
                      scaling.original_positions));
}

void check_experts(const LlamaExperts& experts) {
  if (experts.count == 0) return;
  const std::int64_t most_hidden = 1 << 20;
  require(experts.count >= 1 && experts.count <= LlamaExperts::most,
          fmt::format("there are {} experts; allowed: 1 to {}", experts.count, LlamaExperts::most));
  const std::int64_t most = std::min(experts.count, LlamaExperts::most_top_k);
  require(experts.top_k >= 1 && experts.top_k <= most,
          fmt::format("a token has {} of {} experts; allowed: 1 to {}", experts.top_k,
                      experts.count, most));
  require(experts.hidden_dim >= 1 && experts.hidden_dim <= most_hidden,
          fmt::format("the hidden_dim of an expert is {}; allowed: 1 to {}", experts.hidden_dim,
                      most_hidden));
  require(experts.shared_hidden_dim >= 0 && experts.shared_hidden_dim <= most_hidden,
          fmt::format("the hidden_dim of the shared expert is {}; allowed: 0 to {}",
                      experts.shared_hidden_dim, most_hidden));
}

/// Returns the number of weights of an attention block and of the norms of a layer.
std::int64_t attention_parameters(const LlamaConfig& c) {
  return 2 * c.dim + 2 * c.q_dim() * c.dim + 2 * c.kv_dim() * c.dim +
         (c.qkv_bias ? c.q_dim() + 2 * c.kv_dim() : 0) + (c.out_bias ? c.dim : 0) +
         (c.qk_norm ? 2 * c.head_dim : 0);
}

}  // namespace

std::string_view to_string(RopeStyle style) {
  return style == RopeStyle::interleaved ? "interleaved" : "half";
}

std::int64_t LlamaConfig::parameters() const {
  std::int64_t networks = 0;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    networks += 3 * ffn_dim(layer) * dim;
    if (has_mlp_bias(layer)) networks += 2 * hidden_dim + dim;
    if (!has_experts(layer)) continue;
    networks += experts.count * (dim + 3 * experts.hidden_dim * dim);
    if (experts.shared_hidden_dim > 0) networks += dim;  // its router
  }
  return (tied_embeddings ? 1 : 2) * vocab * dim + layers * attention_parameters(*this) + networks +
         dim;
}

bool LlamaConfig::has_experts(std::int64_t layer) const {
  const auto& dense = experts.dense_layers;
  return experts.count > 0 && !std::binary_search(dense.begin(), dense.end(), layer);
}

void LlamaConfig::check() const {
  for (const Limit& limit : limits) {
    const std::int64_t extent = this->*limit.extent;
    require(extent >= 1 && extent <= limit.most,
            fmt::format("{} is {}; allowed: 1 to {}", limit.name, extent, limit.most));
  }
  require(head_dim % 2 == 0, fmt::format("head_dim is {}; allowed: even numbers", head_dim));
  require(q_dim() <= most_q_dim,
          fmt::format("heads times head_dim is {}; allowed: up to {}", q_dim(), most_q_dim));
  require(heads % kv_heads == 0,
          fmt::format("heads is {} and kv_heads {}; the second must divide the first", heads,
                      kv_heads));
  require(norm_epsilon > 0 && norm_epsilon < 1,
          fmt::format("norm_epsilon is {}; allowed: above 0, below 1", norm_epsilon));
  check_rope(*this);
  check_experts(experts);
  require(bos >= -1 && bos < vocab,
          fmt::format("the token of the beginning is {} of {}", bos, vocab));
  for (const std::int32_t id : eos) {
    require(id >= 0 && id < vocab, fmt::format("a token of the end is {} of {}", id, vocab));
  }
}

const std::vector<std::string>& llama_names() {
  static const std::vector<std::string> names{"llama-2-7b", "llama-3-8b", "mixtral-8x7b",
                                              "qwen3-30b-a3b"};
  return names;
}

std::optional<LlamaConfig> named_llama(std::string_view name) {
  LlamaConfig config;
  config.dim = 4096;
  config.layers = 32;
  config.heads = 32;
  config.head_dim = 128;
  if (name == "llama-2-7b") {
    config.hidden_dim = 11008;
    config.kv_heads = 32;
    config.vocab = 32000;
    config.max_positions = 4096;
    config.eos = {2};
    return config;
  }
  if (name == "llama-3-8b") {
    config.hidden_dim = 14336;
    config.kv_heads = 8;
    config.vocab = 128256;
    config.max_positions = 8192;
    config.rope_theta = 500000;
    config.bos = 128000;
    config.eos = {128001, 128009};
    return config;
  }
  config.rope_theta = 1000000;
  if (name == "mixtral-8x7b") {
    config.hidden_dim = 14336;
    config.kv_heads = 8;
    config.vocab = 32000;
    config.max_positions = 32768;
    config.eos = {2};
    config.experts = {.count = 8, .top_k = 2, .hidden_dim = 14336};
    return config;
  }
  if (name == "qwen3-30b-a3b") {
    config.dim = 2048;
    config.hidden_dim = 6144;
    config.layers = 48;
    config.kv_heads = 4;
    config.vocab = 151936;
    config.max_positions = 40960;
    config.norm_epsilon = 1e-6;
    config.qk_norm = true;
    config.bos = -1;
    config.eos = {151645, 151643};
    config.experts = {.count = 128, .top_k = 8, .hidden_dim = 768};
    return config;
  }
  return std::nullopt;
}

double yarn_attention_factor(double factor, double scale) {
  return factor > 1 ? 0.1 * scale * std::log(factor) + 1 : 1;
}

namespace {

constexpr double two_pi = 6.283185307179586;

/// Returns the share of YaRN's frequency of a pair that is not divided.
double yarn_kept(const LlamaConfig& config, std::size_t pair) {
  const RopeScaling& scaling = config.rope_scaling;
  const auto dim = static_cast<double>(config.head_dim);
  // The pair that turns this number of times in the original positions.
  const auto pair_of = [&](double rotations) {
    return dim * std::log(static_cast<double>(scaling.original_positions) / (rotations * two_pi)) /
           (2 * std::log(config.rope_theta));
  };
  double first = pair_of(scaling.fast_rotations), last = pair_of(scaling.slow_rotations);
  if (scaling.whole_pairs) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, dim - 1);
  if (first == last) last += 0.001;  // as the libraries do
  return 1 - std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
}

}  // namespace

std::vector<double> rope_frequencies(const LlamaConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  const auto original = static_cast<double>(scaling.original_positions);
  std::vector<double> frequencies(static_cast<std::size_t>(config.head_dim / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
    double& frequency = frequencies[i];
    frequency = std::pow(config.rope_theta, exponent);
    if (!config.rope_divisors.empty()) frequency /= config.rope_divisors[i];
    if (scaling.kind == RopeScaling::Kind::linear) frequency /= scaling.factor;
    const bool yarn = scaling.kind == RopeScaling::Kind::yarn;
    if (scaling.kind != RopeScaling::Kind::llama3 && !yarn) continue;
    // 0 for long wavelengths, 1 for short ones.
    const double low = scaling.low_frequency_factor, high = scaling.high_frequency_factor;
    const double kept =
        yarn ? yarn_kept(config, i)
             : std::clamp((original * frequency / two_pi - low) / (high - low), 0.0, 1.0);
    frequency = (1 - kept) * frequency / scaling.factor + kept * frequency;
  }
  return frequencies;
}

std::vector<float> rope_table(const LlamaConfig& config, std::int64_t positions) {
  const std::vector<double> frequencies = rope_frequencies(config);
  const double factor = config.rope_scaling.attention_factor;
  std::vector<float> table;
  table.reserve(static_cast<std::size_t>(positions * config.head_dim));
  for (std::int64_t position = 0; position < positions; ++position) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      table.push_back(static_cast<float>(factor * std::cos(angle)));
      table.push_back(static_cast<float>(factor * std::sin(angle)));
    }
  }
  return table;
}

}  // namespace greta::runtime
