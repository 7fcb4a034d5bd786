#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/model/byte_formats.hpp"
#include "tests/kernels/bounds/emulation.hpp"
#include "tests/kernels/bounds/quantized_row.hpp"
#include "tests/layers.hpp"

namespace greta::test::bounds {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

/// e^(x - base), x <= base.
Float decayed(float x, float base) {
  return x == base ? Float(1) : exp(Float(x) - Float(base));
}

/// The score of a logit, relative to e^base.
Float score_of(bool softmax, float logit, float base) {
  if (softmax) return decayed(logit, base);
  return decayed(std::min(logit, 0.0F), base) / (Float(1) + exp(Float(-std::abs(logit))));
}

/// One token, by sorting.
class RoutedToken {
 public:
  RoutedToken(const Given& given, std::size_t token)
      : given_(given),
        experts_(given.dim("experts")),
        logits_(given["logits"].data() + token * experts_),
        order_(experts_),
        softmax_(given.problem.attribute("score", "softmax") == "softmax") {
    base_ = softmax_ ? *std::max_element(logits_, logits_ + experts_) : 0;
    if (softmax_) {
      total_ = sum(experts_, [&](std::size_t i) { return decayed(logits_[i], base_); });
    }
    std::vector<float> keys(logits_, logits_ + experts_);
    for (std::size_t i = 0; given.has("bias") && i < experts_; ++i) {
      keys[i] = (score(i) + Float(given["bias"][i])).value();
    }
    keep_groups(keys);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return keys[a] > keys[b]; });
    order_.resize(given.dim("top_k"));
  }

  void add_to(Outputs& outputs) const {
    std::vector<Float> weights;
    for (const std::size_t expert : order_) weights.push_back(score(expert));
    if (given_.problem.attribute("renormalise", "yes") == "yes") renormalise(weights);
    const float scale = given_.number("scale", "1");
    for (std::size_t i = 0; i < order_.size(); ++i) {
      outputs[0].push_back(static_cast<float>(order_[i]));
      outputs[1].push_back((scale == 1 ? weights[i] : weights[i] * Float(scale)).value());
    }
  }

 private:
  /// Gives the experts of groups that are not among the best the lowest keys. Groups are compared
  /// by their largest key, with a bias by the sum of the two largest.
  void keep_groups(std::vector<float>& keys) const {
    const std::size_t groups = std::stoul(given_.problem.attribute("groups", "1"));
    const std::size_t kept = std::stoul(given_.problem.attribute("top_groups", "1"));
    if (groups == 1) return;
    const auto size = static_cast<std::ptrdiff_t>(experts_ / groups);
    std::vector<std::pair<float, std::ptrdiff_t>> scores;
    for (auto first = keys.begin(); first != keys.end(); first += size) {
      std::vector<float> own(first, first + size);
      std::sort(own.rbegin(), own.rend());
      const float two = given_.has("bias") ? (Float(own[0]) + Float(own[1])).value() : own[0];
      scores.emplace_back(two, first - keys.begin());
    }
    std::stable_sort(scores.begin(), scores.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    for (std::size_t i = kept; i < scores.size(); ++i) {
      std::fill_n(keys.begin() + scores[i].second, size, -std::numeric_limits<float>::infinity());
    }
  }

  Float score(std::size_t expert) const {
    return score_of(softmax_, logits_[expert], base_) / total_;
  }

  void renormalise(std::vector<Float>& weights) const {
    float base = -std::numeric_limits<float>::infinity();
    for (const std::size_t expert : order_) base = std::max(base, logits_[expert]);
    if (!softmax_) base = std::min(base, 0.0F);
    for (std::size_t i = 0; i < order_.size(); ++i) {
      weights[i] = score_of(softmax_, logits_[order_[i]], base);
    }
    const Float all = sum(weights.size(), [&](std::size_t i) { return weights[i]; });
    for (Float& weight : weights) weight = weight / all;
  }

  const Given& given_;
  std::size_t experts_;
  const float* logits_;
  std::vector<std::size_t> order_;
  bool softmax_;  ///< or sigmoids
  float base_ = 0;
  Float total_ = 1;
};

Outputs route(const Given& given) {
  Outputs outputs(2);
  for (std::size_t token = 0; token < given.dim("tokens"); ++token) {
    RoutedToken(given, token).add_to(outputs);
  }
  return outputs;
}

std::vector<Case> route_cases(const DTypes&) {
  const auto with = [](const char* what, const char* tokens, const char* experts, const char* top_k,
                       Options more, double size, const Factors& factors) {
    more.insert(more.end(), {{"tokens", tokens}, {"experts", experts}, {"top_k", top_k}});
    return Case{what, more, {{"logits", times(size)}, {"bias", times(4)}}, factors};
  };
  return {
      with("near each other", "30000", "8", "2", {}, 1, {1.8, 1.8, 1.8, 0, 0}),
      with("far apart", "4000", "16", "4", {}, 64, {1.7, 1.7, 1.7, 0, 0}),
      with("of all", "2000", "64", "6", {{"renormalise", "no"}}, 8, {6, 6, 6, 0, 0}),
      with("scaled sigmoids", "4000", "16", "4", {{"score", "sigmoid"}, {"scale", "2.5"}}, 16,
           {3, 3, 3, 0, 0}),
      with("sigmoids", "4000", "12", "3", {{"score", "sigmoid"}, {"renormalise", "no"}}, 32,
           {1.4, 1.4, 1.4, 0, 0}),
      with("2 of 2", "500", "8", "2", {{"groups", "2"}, {"top_groups", "2"}}, 8, {2, 2, 2, 0, 0}),
      with("3 of 4", "500", "8", "2", {{"groups", "4"}, {"top_groups", "3"}}, 8, {2, 2, 2, 0, 0}),
      with("8 of 16", "500", "32", "2", {{"groups", "16"}, {"top_groups", "8"}}, 8,
           {2, 2, 2, 0, 0}),
      with("4 of 8", "500", "32", "4",
           {{"score", "sigmoid"}, {"bias", "expert"}, {"groups", "8"}, {"top_groups", "4"}}, 8,
           {3, 3, 3, 0, 0}),
      with("biased", "2000", "8", "3", {{"score", "sigmoid"}, {"bias", "expert"}}, 8,
           {3, 3, 2.5, 0, 0})};
}

// ---------------------------------------------------------------------- permute and unpermute

/// Places assignments by counting those of smaller experts and earlier ones.
Outputs permute(const Given& given) {
  const std::size_t tokens = given.dim("tokens"), top_k = given.dim("top_k");
  const std::size_t dim = given.dim("dim"), experts = given.dim("experts");
  const auto capacity = static_cast<std::size_t>(given.problem.dim("capacity", 0));
  const std::size_t block = std::stoul(given.problem.attribute("block", "1"));
  const std::size_t all = tokens * top_k;
  const std::size_t rows =
      capacity > 0 ? experts * capacity : all + std::min(experts, all) * (block - 1);
  std::vector<float> out(rows * dim, std::numeric_limits<float>::quiet_NaN()), groups(experts),
      places(all, -1);
  std::vector<std::size_t> counts(experts), starts(experts + 1);
  for (const float id : given["ids"]) ++counts[static_cast<std::size_t>(id)];
  for (std::size_t e = 0; e < experts; ++e) {
    const std::size_t taken = (counts[e] + block - 1) / block * block;
    starts[e + 1] = capacity > 0 ? (e + 1) * capacity : starts[e] + taken;
    groups[e] = static_cast<float>(capacity > 0 ? std::min(counts[e], capacity) : starts[e + 1]);
    if (capacity == 0) {
      std::fill_n(out.begin() + static_cast<std::ptrdiff_t>((starts[e] + counts[e]) * dim),
                  (taken - counts[e]) * dim, 0.0F);
    }
  }
  std::vector<std::size_t> next(starts.begin(), starts.end() - 1);
  for (std::size_t i = 0; i < all; ++i) {
    const auto expert = static_cast<std::size_t>(given["ids"][i]);
    if (next[expert] == starts[expert + 1]) continue;
    const std::size_t place = next[expert]++;
    places[i] = static_cast<float>(place);
    std::copy_n(given["x"].begin() + static_cast<std::ptrdiff_t>(i / top_k * dim), dim,
                out.begin() + static_cast<std::ptrdiff_t>(place * dim));
  }
  return {out, groups, places};
}

std::vector<Case> permute_cases(const DTypes&) {
  const auto with = [](const char* what, const char* block, const char* capacity) {
    Options options{{"tokens", "300"}, {"experts", "12"}, {"top_k", "4"}, {"dim", "60"}};
    if (std::string(capacity) != "0") options.emplace_back("capacity", capacity);
    if (std::string(block) != "1") options.emplace_back("block", block);
    return Case{what, options, {{"ids", index_below(12)}}, {}};
  };
  std::vector<Case> cases{with("one after the other", "1", "0"), with("full", "1", "90")};
  for (const char* block : {"16", "32", "64", "128", "256"}) {
    cases.push_back(with("in blocks", block, "0"));
  }
  return cases;
}

Outputs unpermute(const Given& given) {
  const std::size_t tokens = given.dim("tokens"), top_k = given.dim("top_k");
  const std::size_t dim = given.dim("dim");
  const auto &weights = given["weights"], &places = given["places"], &y = given["y"];
  std::vector<float> out(tokens * dim);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t first = i / dim * top_k;
    out[i] = dot(
                 top_k, [&](std::size_t k) { return Float(weights[first + k]); },
                 [&](std::size_t k) {
                   const auto row = static_cast<std::size_t>(places[first + k]);
                   return Float(y[row * dim + i % dim]);
                 })
                 .value();
  }
  return {out};
}

std::vector<Case> unpermute_cases(const DTypes& types) {
  const auto with = [](const char* what, const char* top_k, double size, const Factors& factors) {
    return Case{what,
                {{"tokens", "500"}, {"rows", "900"}, {"top_k", top_k}, {"dim", "100"}},
                {{"places", index_below(900)}, {"y", times(size)}},
                factors};
  };
  return {with("one row", "1", 1, {3.5, 3.5, 3.5, 1.1, 1.1}),
          with("two rows", "2", 1, {3, 3, 3, 1.1, 1.1}),
          with("eight rows", "8", 4, {3.6, 3.6, 3.6, 1.1, 1.1}),
          with("tiny", "2", tiny(types), {3, 3, 3, 1.1, 2.5})};
}

// ------------------------------------------------------------------------------------ experts

/// The product of a scaled matrix's line with a vector, by loads of 16 numbers where blocks have
/// scales. An expert has `lines` of them.
template <typename Vector>
Float scaled_product(const Given& given, const QuantizedInput& matrix, std::size_t line,
                     const Vector& x, std::size_t lines) {
  const std::string shared = given.problem.attribute("scales", "none");
  const auto format =
      kernels::byte_format_from_string(given.problem.attribute("format", "e4m3")).value();
  const float* const bytes = &given[matrix.integers][line * matrix.k];
  const auto number = [&](std::size_t j) {
    return Float(kernels::decode_byte(format, static_cast<std::uint8_t>(bytes[j])));
  };
  const std::size_t expert = line / lines, within = line % lines;
  if (shared != "block") {
    return dot(matrix.k, x, number) * Float(given[matrix.scales][shared == "row" ? line : expert]);
  }
  const std::size_t row = expert * ((lines + 127) / 128) + within / 128;
  const auto part = [&](std::size_t s) {
    return dot(
        16, [&](std::size_t j) { return x(s * 16 + j); },
        [&](std::size_t j) { return number(s * 16 + j); });
  };
  return dot(matrix.k / 16, part, [&](std::size_t s) {
    return Float(given[matrix.scales][row * ((matrix.k + 127) / 128) + s / 8]);
  });
}

/// The product of a matrix's line with a vector, by chunks of scales where it is quantised.
/// An expert has `lines` of them.
template <typename Vector>
Float line_product(const Given& given, const QuantizedInput& matrix, std::size_t line,
                   const Vector& x, std::size_t lines) {
  if (given.problem.attribute("scales", "none") != "none") {
    return scaled_product(given, matrix, line, x, lines);
  }
  if (given.problem.attribute("weights", "dense") == "dense") {
    const float* const weights = &given[matrix.integers][line * matrix.k];
    return dot(matrix.k, x, [&](std::size_t j) { return Float(weights[j]); });
  }
  const QuantizedRow row(given, matrix, line);
  const std::size_t segment = row.segment();
  const auto part = [&](std::size_t s) {
    return dot(
        segment, [&](std::size_t j) { return x(s * segment + j); },
        [&](std::size_t j) { return row.at(s * segment + j); });
  };
  return dot(matrix.k / segment, part, [&](std::size_t s) { return row.scale(s * segment); });
}

/// A token's experts one after the other.
Outputs experts(const Given& stored) {
  const std::size_t tokens = stored.dim("tokens"), top_k = stored.dim("top_k");
  const std::size_t dim = stored.dim("dim"), hidden = stored.dim("hidden");
  const std::size_t all = stored.dim("experts");
  const Tensors tensors = in_rows(stored, {{"gate_up", all * 2 * hidden}, {"down", all * dim}});
  const Given given{stored.problem, tensors};
  const std::string other = given.problem.attribute("down_weights", "same");
  const QuantizedInput gate_up{"gate_up", "gate_up_scales", all * 2 * hidden, dim, "gate_up_zeros"};
  const QuantizedInput down{"down", "down_scales", all * dim,
                            hidden, "down_zeros",  other == "same" ? nullptr : other.c_str()};
  std::vector<float> out(tokens * dim);
  for (std::size_t token = 0; token < tokens; ++token) {
    std::vector<float> h(top_k * hidden);
    const float* const row = &given["x"][token * dim];
    const auto expert = [&](std::size_t slot) {
      return static_cast<std::size_t>(given["ids"][token * top_k + slot]);
    };
    for (std::size_t i = 0; i < h.size(); ++i) {
      const std::size_t gate = expert(i / hidden) * 2 * hidden + i % hidden;
      const auto x = [&](std::size_t j) { return Float(row[j]); };
      h[i] = (silu(line_product(given, gate_up, gate, x, 2 * hidden)) *
              line_product(given, gate_up, gate + hidden, x, 2 * hidden))
                 .value();
    }
    for (std::size_t col = 0; col < dim; ++col) {
      const auto of_slot = [&](std::size_t slot) {
        const auto x = [&](std::size_t j) { return Float(h[slot * hidden + j]); };
        return line_product(given, down, expert(slot) * dim + col, x, dim);
      };
      const auto weight = [&](std::size_t slot) {
        return Float(given["weights"][token * top_k + slot]);
      };
      out[token * dim + col] = dot(top_k, weight, of_slot).value();
    }
  }
  return {out};
}

/// Bytes of 120 numbers of each sign, which are finite in all formats.
double finite_byte(double draw, std::size_t) {
  const int one = static_cast<int>((draw + 0.5) * 240);
  return one % 120 + 1 + (one < 120 ? 0 : 128);
}

/// A case of scaled matrices, whose last blocks of scales are not whole.
Case scaled_experts(const char* format, const char* scales, const Factors& factors) {
  const Contents factor =
      times(4 / kernels::traits(kernels::byte_format_from_string(format).value()).largest);
  return {format,
          {{"format", format},
           {"scales", scales},
           {"tokens", "4"},
           {"experts", "6"},
           {"top_k", "2"},
           {"dim", "144"},
           {"hidden", "80"}},
          {{"ids", index_below(6)},
           {"gate_up", finite_byte},
           {"down", finite_byte},
           {"gate_up_scales", factor},
           {"down_scales", factor}},
          factors};
}

std::vector<Case> experts_cases(const DTypes&) {
  const auto with = [](const char* what, const char* tokens, const char* top_k, const char* dim,
                       const char* hidden, double gates, const Factors& factors) {
    return Case{
        what,
        {{"tokens", tokens}, {"experts", "6"}, {"top_k", top_k}, {"dim", dim}, {"hidden", hidden}},
        {{"ids", index_below(6)}, {"gate_up", times(gates)}},
        factors};
  };
  const auto quantized = [](const char* format, const char* group, const char* extent,
                            const Contents& bytes, const Factors& factors) {
    Case one{format,
             {{"weights", format}},
             {{"ids", index_below(2)}, {"gate_up", bytes}, {"down", bytes}},
             factors};
    if (std::string(group) != "128") one.options.emplace_back("group", group);
    one.options.insert(
        one.options.end(),
        {{"tokens", "1"}, {"experts", "2"}, {"top_k", "2"}, {"dim", extent}, {"hidden", extent}});
    return one;
  };
  const auto other_down = [](const char* format, const char* down, const Contents& bytes,
                             const Contents& down_bytes, const Factors& factors) {
    return Case{down,
                {{"weights", format},
                 {"down_weights", down},
                 {"tokens", "1"},
                 {"experts", "2"},
                 {"top_k", "2"},
                 {"dim", "256"},
                 {"hidden", "256"}},
                {{"ids", index_below(2)}, {"gate_up", bytes}, {"down", down_bytes}},
                factors};
  };
  const auto zeros = [&](Case one) {
    one.what = "zero points";
    one.options.emplace_back("zeros", "groups");
    one.contents["gate_up_zeros"] = one.contents["down_zeros"] = index_below(16);
    return one;
  };
  const auto panels = [](Case one) {
    one.what = "panels";
    one.options.emplace_back("packing", "panels");
    return one;
  };
  const auto powers = [](Case one) {
    one.contents["gate_up_scales"] = [](double, std::size_t) { return 125; };
    one.contents["down_scales"] = [](double, std::size_t) { return 124; };
    return one;
  };
  const Contents bytes = index_below(256);
  return {powers(quantized("mxfp4", "128", "128", bytes, {52.4, 65, 65, 1.2, 1.1})),
          scaled_experts("e4m3", "block", {31.3, 32.2, 40.2, 1.1, 1.1}),
          scaled_experts("e4m3_fnuz", "row", {15, 21.1, 29.5, 1.1, 1.1}),
          scaled_experts("e5m2", "tensor", {12.2, 15, 18.6, 1.1, 1.1}),
          scaled_experts("e5m2_fnuz", "tensor", {18.2, 20, 21.5, 1.1, 1.1}),
          scaled_experts("int8", "row", {21.6, 24.3, 29.9, 1.1, 1.1}),
          zeros(quantized("int4", "64", "128", bytes, {44.9, 65.8, 61.1, 1.2, 1.1})),
          panels(quantized("int8", "32", "128", bytes, {48, 55.7, 57.1, 1.7, 1.2})),
          other_down("q4_k", "q6_k", byte_of_q4_k, bytes_of_blocks(210, 208),
                     {69.2, 84.7, 63.3, 1.2, 1.1}),
          other_down("q6_k", "q4_k", bytes_of_blocks(210, 208), byte_of_q4_k,
                     {62.2, 60.8, 55.8, 1.2, 1.1}),
          other_down("q4_0", "q8_0", bytes_of_blocks(18, 0), bytes_of_blocks(34, 0),
                     {78.8, 89.4, 96.5, 1.2, 1.1}),
          other_down("q8_0", "q4_0", bytes_of_blocks(34, 0), bytes_of_blocks(18, 0),
                     {67.6, 90.4, 78.1, 1.2, 1.1}),
          with("short", "60", "1", "4", "3", 4, {10.6, 6.8, 9.3, 1.2, 1.2}),
          with("wide", "64", "1", "1100", "2", 0.3, {14.8, 17.5, 51.9, 1.2, 1.1}),
          with("two experts", "20", "2", "60", "20", 2, {19.8, 26.9, 28.6, 1.2, 1.1}),
          with("six experts", "4", "6", "100", "60", 1, {36.6, 33.2, 71.4, 1.2, 1.2}),
          quantized("int4", "64", "128", bytes, {44.2, 65.4, 76, 1.3, 1.2}),
          quantized("int8", "32", "128", bytes, {38.3, 55.7, 57.1, 1.6, 1.2}),
          quantized("q4_0", "128", "128", bytes_of_blocks(18, 0), {54.5, 90.7, 87.1, 1.2, 1.2}),
          quantized("q8_0", "128", "128", bytes_of_blocks(34, 0), {70.7, 77.7, 88.2, 1.3, 1.2}),
          quantized("q4_k", "128", "256", byte_of_q4_k, {65.6, 89.9, 68.3, 1.2, 1.2}),
          quantized("q6_k", "128", "256", bytes_of_blocks(210, 208), {67.9, 71.1, 59.6, 1.2, 1.2})};
}

}  // namespace

std::vector<Emulation> expert_emulations() {
  return {{"route", route_cases, route},
          {"permute", permute_cases, permute, true},
          {"unpermute", unpermute_cases, unpermute},
          {"experts", experts_cases, experts}};
}

}  // namespace greta::test::bounds
