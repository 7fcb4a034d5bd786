#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "tests/kernels/bounds/emulation.hpp"

namespace greta::test::bounds {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

/// Returns a weight as matrix cores read it: rounded to the inputs' type if that has 16 bits.
float stored_weight(DType type, Float weight) {
  if (bits_of(type) == 32) return weight.value();
  if (arithmetic().least_precise && weight < Float(static_cast<float>(smallest_normal(type)))) {
    return 0;
  }
  return as_number_of(type, weight).value();
}

/// Computes one row of the output: the weighted values of the keys. `straight` determines the
/// largest score first; others process blocks of keys and rescale their sums whenever a larger
/// score appears. A sink is added last. Returns the logarithm of the sum.
float attend(DType in, const std::vector<Float>& scores, std::optional<float> sink,
             const std::vector<const float*>& values, std::size_t dim, float* out) {
  const bool straight = arithmetic().sums == Arithmetic::Sums::straight;
  const std::size_t block = straight ? scores.size() : 16;
  Float most = std::numeric_limits<float>::lowest(), total = 0;
  std::vector<Float> sums(dim);
  for (std::size_t first = 0; first < scores.size(); first += block) {
    const std::size_t count = std::min(block, scores.size() - first);
    Float now = most;
    for (std::size_t j = 0; j < count; ++j) now = std::max(now, scores[first + j]);
    const Float kept = exp(most - now);
    std::vector<Float> weights(count), taken(count);
    for (std::size_t j = 0; j < count; ++j) {
      weights[j] = exp(scores[first + j] - now);
      taken[j] = straight ? weights[j] : Float(stored_weight(in, weights[j]));
    }
    total = multiply_add(total, kept, sum(count, [&](std::size_t j) { return weights[j]; }));
    for (std::size_t d = 0; d < dim; ++d) {
      sums[d] = multiply_add(sums[d], kept,
                             dot(
                                 count, [&](std::size_t j) { return taken[j]; },
                                 [&](std::size_t j) { return Float(values[first + j][d]); }));
    }
    most = now;
  }
  Float kept = 1;
  if (sink) {
    const Float now = std::max(most, Float(*sink));
    kept = exp(most - now);
    total = multiply_add(total, kept, exp(Float(*sink) - now));
    most = now;
  }
  for (std::size_t d = 0; d < dim; ++d) {
    out[d] = scores.empty() ? 0 : (sums[d] * kept / total).value();
  }
  if (total.value() == 0) return -std::numeric_limits<float>::infinity();
  return (most + Float(std::log(total.value()))).value();
}

/// Returns a scaled score below the limit.
Float capped(Float score, float cap) {
  const Float power = exp(score / Float(cap) * Float(2));
  return Float(cap) - Float(2 * cap) / (power + Float(1));
}

/// A token's query, and the keys of its sequence.
struct Place {
  std::size_t sequence, query, queries, first_key, keys;
};

Place packed_place(const Given& given, std::size_t token) {
  const auto start = [&](const char* name, std::size_t sequence) {
    return static_cast<std::size_t>(given[name][sequence]);
  };
  std::size_t s = 0;
  while (start("cu_seqlens_q", s + 1) <= token) ++s;
  const std::size_t first = start("cu_seqlens_q", s), key = start("cu_seqlens_k", s);
  return {s, token - first, start("cu_seqlens_q", s + 1) - first, key,
          start("cu_seqlens_k", s + 1) - key};
}

/// Whether a query of a tree sees a key: one before the tree's, its own, or one that its bits name.
bool is_seen(const Given& given, const Place& place, std::size_t key) {
  if (!given.has("tree") || key + place.queries < place.keys) return true;
  const std::size_t node = key + place.queries - place.keys;
  const std::size_t words = (place.queries + 31) / 32;
  const std::size_t row = place.sequence * place.queries + place.query;
  const auto word = static_cast<std::int64_t>(given["tree"][row * words + node / 32]);
  return node == place.query || (word >> (node % 32) & 1) != 0;
}

Outputs attention(const Given& given) {
  const bool latent = given.problem.op == "latent_attention";
  const std::size_t heads = given.dim("heads"), queries = given.dim("q"),
                    capacity = given.dim("kv");
  const std::size_t dim = latent ? given.dim("latent") + given.dim("rope") : given.dim("dim");
  const std::size_t shared = latent ? heads : heads / given.dim("kv_heads");
  const std::string said = given.problem.attribute("scale", "auto");
  const float scale = said == "auto" ? 1 / std::sqrt(static_cast<float>(dim)) : std::stof(said);
  const std::string window = given.problem.attribute("window", "none");
  const std::string cap = given.problem.attribute("softcap", "none");
  const std::string paged = given.problem.attribute("page_size", "none");
  const std::size_t page = paged == "none" ? capacity : std::stoul(paged);
  const std::size_t pages = (capacity + page - 1) / page;
  const auto &q = given["Q"], &k = given[latent ? "cache" : "K"],
             &v = given[latent ? "cache" : "V"];
  const std::size_t v_dim = latent
                                ? given.dim("latent")
                                : std::stoul(given.problem.attribute("v_dim", std::to_string(dim)));
  std::vector<float> out(q.size() / dim * v_dim), lse(q.size() / dim);
  const bool packed = given.problem.attribute("sequences", "padded") == "packed";
  for (std::size_t row = 0; row < q.size() / dim; ++row) {
    const Place place =
        packed ? packed_place(given, row / heads)
               : Place{row / heads / queries, row / heads % queries, queries, 0,
                       static_cast<std::size_t>(given["lengths"][row / heads / queries])};
    const std::size_t head = row % heads, sequence = place.sequence;
    auto visible = static_cast<std::int64_t>(place.keys);
    if (given.problem.attribute("mask", "none") == "causal") {
      visible +=
          static_cast<std::int64_t>(place.query) - static_cast<std::int64_t>(place.queries) + 1;
    }
    visible = std::max<std::int64_t>(0, visible);
    const std::int64_t hidden =
        window == "none" ? 0 : std::max<std::int64_t>(0, visible - std::stoll(window));
    std::vector<Float> scores;
    std::vector<const float*> values;
    for (auto key = static_cast<std::size_t>(hidden); key < static_cast<std::size_t>(visible);
         ++key) {
      if (!is_seen(given, place, key)) continue;
      const std::size_t entry = sequence * pages + key / page;
      const std::size_t number =
          paged == "none" ? entry : static_cast<std::size_t>(given["block_table"][entry]);
      const std::size_t kv_heads = heads / shared, kv_head = head / shared;
      const std::size_t line = packed ? (place.first_key + key) * kv_heads + kv_head
                                      : (number * kv_heads + kv_head) * page + key % page;
      const Float product = dot(
          dim, [&](std::size_t d) { return Float(q[row * dim + d]); },
          [&](std::size_t d) { return Float(k[line * dim + d]); });
      const Float score = product * Float(scale);
      scores.push_back(cap == "none" ? score : capped(score, std::stof(cap)));
      values.push_back(v.data() + line * (latent ? dim : v_dim));
    }
    std::optional<float> sink;
    if (given.has("sinks")) sink = given["sinks"][head];
    lse[row] = attend(given.problem.dtype, scores, sink, values, v_dim, out.data() + row * v_dim);
  }
  if (given.problem.attribute("lse", "none") == "none") return {out};
  return {out, lse};
}

/// Two packed sequences, of a third of all tokens and of the others.
Contents thirds(double tokens) {
  return [tokens](double, std::size_t i) {
    return i == 0 ? 0.0 : i == 1 ? std::floor(tokens / 3) : tokens;
  };
}

std::vector<Case> attention_cases(const DTypes& types) {
  struct Shape {
    const char *q, *kv, *dim, *mask, *scale;
  };
  const auto with = [&](const char* what, const Shape& s, const Contents& q, const Contents& v,
                        const Factors& factors, const Options& more = {}) {
    Options options{{"batch", "2"}, {"heads", "4"}, {"kv_heads", "2"},  {"q", s.q},
                    {"kv", s.kv},   {"dim", s.dim}, {"scale", s.scale}, {"mask", s.mask}};
    options.insert(options.end(), more.begin(), more.end());
    const Contents lengths = [full = std::stod(s.kv)](double, std::size_t i) {
      return i == 0 ? full : std::ceil(full / 2);
    };
    const auto paged = std::find_if(more.begin(), more.end(),
                                    [](const auto& o) { return o.first == "page_size"; });
    const Contents pages =
        pages_of(std::stoul(s.kv), paged == more.end() ? "none" : paged->second, 2);
    return Case{what,
                options,
                {{"Q", q},
                 {"V", v},
                 {"lengths", lengths},
                 {"block_table", pages},
                 {"cu_seqlens_q", thirds(std::stod(s.q))},
                 {"cu_seqlens_k", thirds(std::stod(s.kv))}},
                factors};
  };
  const Contents one = times(1), large = times(64), positive = between(0.25, 0.5);
  return {
      with("moderate", {"40", "90", "24", "causal", "auto"}, times(16), one,
           {26, 5.3, 5, 4.5, 4.2}),
      with("one key", {"200", "1", "8", "none", "auto"}, one, one, {19, 0, 0, 0, 0}),
      with("equal weights", {"8", "600", "16", "none", "1e-6"}, one, one, {18, 0, 0, 0, 0}),
      with("values of one sign", {"8", "600", "16", "none", "1e-6"}, one, positive,
           {8.2, 0, 0, 0, 0}),
      with("long products", {"150", "2", "256", "none", "1"}, large, one, {30, 1.8, 9.9, 1.9, 5.9}),
      with("far apart", {"60", "40", "8", "none", "1"}, large, one, {19, 1.6, 7.7, 1.7, 5.1}),
      with("tiny", {"60", "20", "16", "none", "auto"}, one, times(tiny(types)),
           {1.2, 6, 1.2, 2.4, 1.2}),
      with("limit", {"40", "90", "24", "causal", "1"}, one, one, {6.7, 4.8, 4.4, 4.3, 3.8},
           {{"softcap", "50"}, {"page_size", "256"}}),
      with("window, sinks", {"40", "90", "24", "causal", "auto"}, times(16), one,
           {20.1, 5.7, 5.4, 4.1, 4.5}, {{"window", "24"}, {"sinks", "head"}, {"page_size", "16"}}),
      with("logarithms", {"20", "40", "24", "none", "auto"}, times(16), one,
           {27.7, 23, 28, 20.1, 22.6}, {{"lse", "stored"}, {"page_size", "32"}}),
      with("other values", {"20", "40", "24", "none", "auto"}, times(16), one,
           {26, 5.3, 5.2, 4.5, 4.2}, {{"v_dim", "40"}, {"lengths", "ragged"}}),
      with("packed", {"40", "90", "24", "causal", "auto"}, times(16), one,
           {27.9, 5.6, 6.3, 4.5, 4.2}, {{"sequences", "packed"}}),
      with("pages of 64", {"20", "90", "16", "none", "1e-6"}, one, one, {16.1, 0, 0, 0, 0},
           {{"page_size", "64"}}),
      with("pages of 128", {"20", "150", "16", "none", "1e-6"}, one, one, {17.3, 0, 0, 0, 0},
           {{"page_size", "128"}})};
}

/// Cases of operations that share most with attention: pages, logarithms and `masked`. Bits of
/// trees are the odd ones of up to 24, as f32 holds. `factors` are in the order of the cases.
std::vector<Case> rows_cases(const Options& sizes, const Options& masked,
                             const std::vector<Factors>& factors) {
  std::vector<Case> cases;
  const auto add = [&](const char* what, const Options& more) {
    Options options = sizes;
    options.insert(options.end(), {{"batch", "2"}, {"heads", "4"}, {"kv", "90"}});
    options.insert(options.end(), more.begin(), more.end());
    const auto paged = std::find_if(more.begin(), more.end(),
                                    [](const auto& o) { return o.first == "page_size"; });
    const Contents pages = pages_of(90, paged == more.end() ? "none" : paged->second, 2);
    const Contents lengths = [](double, std::size_t i) { return i == 0 ? 90.0 : 45.0; };
    const Contents bits = [](double, std::size_t i) {
      return static_cast<double>(0xaaaaaa & (i * 0x9e3779b1));
    };
    cases.push_back(
        {what,
         options,
         {{"Q", times(16)}, {"lengths", lengths}, {"block_table", pages}, {"tree", bits}},
         factors.at(cases.size())});
  };
  add("moderate", {{"page_size", "16"}});
  add("ragged", {{"page_size", "32"}, {"lengths", "ragged"}});
  add("pages of 64", {{"page_size", "64"}});
  add("scaled", {{"page_size", "128"}, {"scale", "0.25"}});
  add("logarithms", {{"lse", "stored"}, {"page_size", "256"}});
  for (const auto& mask : masked) add("masked", {mask});
  return cases;
}

std::vector<Case> latent_cases(const DTypes&) {
  return rows_cases({{"latent", "24"}, {"rope", "8"}, {"q", "54"}},
                    {{"mask", "causal"}, {"mask", "tree"}},
                    {{19.2, 6.0, 4.7, 4.4, 4.4},
                     {26.5, 6.4, 5.9, 4.0, 4.2},
                     {25.5, 4.7, 5.0, 4.5, 4.1},
                     {24.1, 4.9, 6.2, 4.2, 4.6},
                     {29.1, 21.4, 23.9, 21.4, 23.9},
                     {22.5, 5.1, 4.9, 4.4, 4.5},
                     {25.6, 5.9, 6.1, 4.4, 4.6}});
}

std::vector<Case> tree_cases(const DTypes&) {
  return rows_cases({{"kv_heads", "2"}, {"dim", "24"}, {"q", "72"}}, {},
                    {{20.2, 5.5, 5.4, 4.5, 4.2},
                     {18.5, 4.7, 5.7, 4.0, 4.3},
                     {20.5, 5.9, 6.0, 4.5, 4.0},
                     {19.9, 4.1, 5.8, 3.6, 3.9},
                     {28.4, 24.9, 32.2, 22.6, 32.2}});
}

}  // namespace

std::vector<Emulation> attention_emulations() {
  return {{"attention", attention_cases, attention},
          {"latent_attention", latent_cases, attention},
          {"tree_attention", tree_cases, attention}};
}

}  // namespace greta::test::bounds
