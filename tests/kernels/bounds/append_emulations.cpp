#include <cmath>

#include "tests/kernels/bounds/emulation.hpp"
#include "tests/layers.hpp"

namespace greta::test::bounds {
namespace {

/// The heads of Q or K, normalised if there are weights, and rotated.
std::vector<float> rotated_heads(const Given& given, const char* name, const char* weight,
                                 std::size_t heads) {
  const std::size_t dim = given.dim("dim");
  const bool half = given.problem.attribute("style", "interleaved") == "half";
  const auto &positions = given["positions"], &table = given["table"];
  std::vector<float> out = given[name];
  for (std::size_t head = 0; head < out.size() / dim; ++head) {
    std::vector<Float> x(given[name].begin() + static_cast<std::ptrdiff_t>(head * dim),
                         given[name].begin() + static_cast<std::ptrdiff_t>((head + 1) * dim));
    if (given.has(weight)) {
      const auto at = [&](std::size_t i) { return x[i]; };
      const Float mean = dot(dim, at, at) / Float(static_cast<float>(dim));
      const Float factor = inverse_root(mean + Float(given.number("epsilon", "1e-05")));
      for (std::size_t i = 0; i < dim; ++i) x[i] = x[i] * factor * Float(given[weight][i]);
    }
    const auto position = static_cast<std::size_t>(positions[head / heads]);
    for (std::size_t pair = 0; pair < dim / 2; ++pair) {
      const std::size_t first = half ? pair : 2 * pair;
      const std::size_t second = half ? first + dim / 2 : first + 1;
      const Float cosine = table[position * dim + 2 * pair];
      const Float sine = table[position * dim + 2 * pair + 1];
      out[head * dim + first] = multiply_add(x[first], cosine, -(x[second] * sine)).value();
      out[head * dim + second] = multiply_add(x[first], sine, x[second] * cosine).value();
    }
  }
  return out;
}

/// A cache to which heads of tokens are appended, all of which have slots.
std::vector<float> appended(const Given& given, const char* name, const std::vector<float>& fresh) {
  const std::size_t tokens = given.dim("tokens"), heads = given.dim("kv_heads");
  const std::size_t dim = given.dim("dim"), capacity = given.dim("capacity");
  const std::string page = given.problem.attribute("page_size", "none");
  const std::size_t run = page == "none" ? capacity : std::stoul(page);
  const std::size_t pages = (capacity + run - 1) / run;  // of a sequence
  std::vector<float> cache = given[name];
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    const std::size_t row = i / dim / heads, head = i / dim % heads, sequence = row / tokens;
    const std::size_t slot = static_cast<std::size_t>(given["slots"][sequence]) + row % tokens;
    std::size_t group = sequence * pages + slot / run;
    if (page != "none") group = static_cast<std::size_t>(given["block_table"][group]);
    cache[((group * heads + head) * run + slot % run) * dim + i % dim] = fresh[i];
  }
  return cache;
}

Outputs rope_append(const Given& given) {
  std::vector<float> values = given["V"];
  if (bits_of(given.problem.out_dtype) < bits_of(given.problem.dtype)) {
    for (float& value : values) value = Float(value).value();
  }
  const auto queries = rotated_heads(given, "Q", "q_weight", given.dim("heads"));
  const auto keys =
      appended(given, "K_cache", rotated_heads(given, "K", "k_weight", given.dim("kv_heads")));
  const auto kept = appended(given, "V_cache", values);
  const bool in_place = given.problem.attribute("place", "out") == "in";
  if (in_place) return {queries, keys, kept};
  return {keys, kept, queries};
}

std::vector<Case> rope_append_cases(const DTypes& types) {
  using Options = std::vector<std::pair<std::string, std::string>>;
  const auto table = [](double, std::size_t index) {
    const double angle = std::floor(static_cast<double>(index) / 2);
    return index % 2 == 0 ? std::cos(angle) : std::sin(angle);
  };
  // Queries are f32 where caches are narrower.
  const bool narrower = types.in != types.out;
  const auto with = [&](const char* what, double size, Options more, const Factors& factors,
                        const Factors& of_narrower, const char* page = "none") {
    more.insert(more.end(), {{"batch", "2"},
                             {"tokens", "20"},
                             {"heads", "10"},
                             {"kv_heads", "3"},
                             {"dim", "80"},
                             {"positions", "64"},
                             {"capacity", "60"},
                             {"page_size", page}});
    return Case{
        what,
        more,
        {{"Q", times(size)},
         {"K", times(size)},
         {"V", times(size)},
         {"positions", index_below(64)},
         {"table", table},
         {"slots", [](double, std::size_t i) { return 13.0 + 20.0 * static_cast<double>(i); }},
         {"block_table", pages_of(60, page, 2)}},
        narrower ? of_narrower : factors};
  };
  const Options normed{{"norm", "rms"}, {"style", "half"}};
  const Options precise{{"norm", "rms"}, {"epsilon", "1e-12"}};
  const double small = tiny(types);
  std::vector<Case> cases{
      with("interleaved", 1, {}, {1.7, 0, 0, 1.1, 1.1}, {0, 0, 0, 1.7, 1.7}),
      with("half, in place", 1, {{"style", "half"}, {"place", "in"}}, {1.8, 0, 0, 1.1, 1.1},
           {0, 0, 0, 1.8, 1.8}),
      with("normalised", 64, normed, {7, 0, 0, 1.1, 1.1}, {0, 0, 0, 6.5, 6.5}),
      with("normalised, tiny", small, precise, {1.1, 0, 0, 1.1, 1.1}, {0, 0, 0, 6.5, 1.1}),
      with("tiny", small, {}, {2.2, 0, 0, 1.1, 2.2}, {0, 0, 0, 2.2, 2.2})};
  for (const char* page : {"16", "32", "64", "128", "256"}) {
    cases.push_back(with("pages", 1, {}, {1.8, 0, 0, 1.1, 1.1}, {0, 0, 0, 1.8, 1.8}, page));
  }
  return cases;
}

}  // namespace

std::vector<Emulation> append_emulations() {
  return {{"rope_append", rope_append_cases, rope_append}};
}

}  // namespace greta::test::bounds
