#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/model/random.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "kernels/planning/operand_work.hpp"
#include "kernels/planning/pages.hpp"
#include "kernels/planning/stride_attributes.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/attention/adversarial.hpp"
#include "kernels/templates/attention/lengths.hpp"
#include "kernels/templates/attention/options.hpp"
#include "kernels/templates/attention/shape.hpp"

namespace greta::kernels {
namespace {

Result<void> check(const Problem& problem) {
  const auto bad = [](const char* field, std::int64_t value, const std::string& reason) {
    return bad_field(field, std::to_string(value), reason);
  };
  const std::int64_t heads = problem.dim("heads"), kv_heads = problem.dim("kv_heads");
  const std::int64_t queries = problem.dim("q"), keys = problem.dim("kv");
  const std::int64_t dim = problem.dim("dim");
  if (heads % kv_heads != 0) {
    return bad("kv_heads", kv_heads, fmt::format("must divide the {} heads", heads));
  }
  if (dim % 8 != 0) return bad("dim", dim, "must be a multiple of 8");
  const bool packed = attention::packs_sequences(problem);
  if (!packed && problem.attribute("mask", "none") == "causal" && keys < queries) {
    return bad("kv", keys,
               fmt::format("causal attention needs at least the {} keys of its queries", queries));
  }
  if (auto options = attention::check_options(problem); !options) return options;
  const std::int64_t stride = problem.stride("q_stride", 0);
  if (stride % 8 != 0) return bad("q_stride", stride, "must be a multiple of 8");
  const attention::Shape s = attention::shape_of(problem);
  if (s.page > 0 && s.batch * s.pages() > std::numeric_limits<std::int32_t>::max() / s.page) {
    return bad("kv", keys, "has more than 2^31 - 1 keys in pages");
  }
  if (packed) {
    auto counted = check_count(problem, "q", {"heads", "q"});
    return counted ? check_count(problem, "kv", {"kv_heads", "kv"}) : counted;
  }
  auto counted = check_count(problem, "q", {"batch", "heads", "q"});
  return counted ? check_count(problem, "kv", {"batch", "kv_heads", "kv"}) : counted;
}

std::int64_t packed_stride(const Problem& problem) {
  return problem.dim("heads") * problem.dim("dim");
}

/// A row of Q is one head, or one token if the tokens are strided.
std::vector<TensorSpec> tensors(const Problem& problem) {
  const attention::Shape s = attention::shape_of(problem);
  const std::int64_t tokens = s.tile_sets() * s.queries, rows = tokens * s.heads;
  const std::int64_t keys =
      s.tile_sets() * s.kv_heads * (s.page > 0 ? s.pages() * s.page : s.capacity);
  TensorSpec q{"Q", Role::input, s.in, rows, s.dim};
  if (s.q_stride > 0) {
    q = {"Q", Role::input, s.in, tokens, packed_stride(problem), s.q_stride};
  }
  std::vector<TensorSpec> list{q,
                               {"K", Role::input, s.in, keys, s.dim, 0, false, s.page > 0},
                               {"V", Role::input, s.in, keys, s.v_dim, 0, false, s.page > 0}};
  if (s.packed) {
    for (const char* name : {"cu_seqlens_q", "cu_seqlens_k"}) {
      list.push_back({name, Role::input, DType::i32, 1, s.batch + 1});
    }
  } else {
    list.push_back({"lengths", Role::input, DType::i32, 1, s.batch});
  }
  if (s.page > 0) list.push_back({"block_table", Role::input, DType::i32, s.batch, s.pages()});
  if (s.sinks) list.push_back({"sinks", Role::input, DType::f32, 1, s.heads});
  list.push_back({"out", Role::output, s.out, rows, s.v_dim});
  if (s.lse) list.push_back({"lse", Role::output, DType::f32, tokens, s.heads});
  return list;
}

/// Returns the number of pairs of a query and a key that it sees, in a head of a sequence of these
/// lengths. A causal mask hides q^2 / 2 pairs: half of all if q equals kv.
double visible_pairs(const attention::Shape& s, const attention::Lengths& lengths) {
  const auto kv = static_cast<double>(lengths.keys);
  if (!s.causal) return static_cast<double>(lengths.queries) * kv;
  // The first queries of packed sequences may see no key.
  const auto q = static_cast<double>(std::min(lengths.queries, lengths.keys));
  if (s.window == 0) return q * kv - q * q / 2;
  // Queries whose keys all lie within the window, from the first one's on.
  const auto window = static_cast<double>(s.window), first = kv - q + 1;
  const double short_rows = std::clamp(window - first + 1, 0.0, q);
  return short_rows * (first + (short_rows - 1) / 2) + (q - short_rows) * window;
}

/// Products of dim and v_dim multiplications for every pair of a query and a key that it sees.
Work work(const Problem& problem) {
  const attention::Shape s = attention::shape_of(problem);
  double pairs = 0;
  std::int64_t keys = 0;  // that some query sees
  attention::for_each_length(s, [&](const attention::Lengths& lengths, std::int64_t count) {
    if (lengths.queries == 0) return;
    const std::int64_t window = s.window + lengths.queries - 1;
    pairs += visible_pairs(s, lengths) * static_cast<double>(count);
    keys += (s.window == 0 ? lengths.keys : std::min(lengths.keys, window)) * count;
  });
  Work least;
  least.flops = 2 * static_cast<double>(s.heads * s.both_dims()) * pairs;
  auto operands = tensors(problem);
  std::erase_if(operands, [](const TensorSpec& tensor) {
    return tensor.name == "lengths" || tensor.name.starts_with("cu_seqlens");
  });
  for (TensorSpec& tensor : operands) {
    if (tensor.name == "K" || tensor.name == "V") tensor.rows = keys * s.kv_heads;
  }
  least.bytes = operand_bytes(operands);
  return least;
}

/// Sequences have the lengths of for_each_length(). Queries are scaled so that the standard
/// deviation of the scores is about 4/3. Some keys then have fifty times the weight of others.
HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
  const attention::Shape s = attention::shape_of(problem);
  HostTensor tensor = random_tensor(spec, seed);
  if (spec.name == "lengths") {
    std::size_t i = 0;
    attention::for_each_length(s, [&](const attention::Lengths& lengths, std::int64_t count) {
      for (std::int64_t last = 0; last < count; ++last) {
        store_element(DType::i32, tensor.data.data(), i++, static_cast<double>(lengths.keys));
      }
    });
  } else if (spec.name.starts_with("cu_seqlens")) {
    std::size_t i = 0;
    double start = 0;
    store_element(DType::i32, tensor.data.data(), i++, start);
    attention::for_each_length(s, [&](const attention::Lengths& lengths, std::int64_t) {
      start += static_cast<double>(spec.name == "cu_seqlens_q" ? lengths.queries : lengths.keys);
      store_element(DType::i32, tensor.data.data(), i++, start);
    });
  } else if (spec.name == "block_table") {
    tensor = random_block_table(spec, seed);
  } else if (spec.name == "sinks") {
    // As large as scores.
    for (std::size_t i = 0; i < spec.elements(); ++i) {
      store_element(spec.dtype, tensor.data.data(), i, 4 * tensor.at(i));
    }
  } else if (spec.name == "Q") {
    const double spread = 16 / (s.scale * std::sqrt(static_cast<double>(s.dim)));
    const double factor = std::exp2(std::round(std::log2(std::clamp(spread, 0x1p-6, 0x1p6))));
    for (std::size_t i = 0; i < spec.elements(); ++i) {
      store_element(spec.dtype, tensor.data.data(), i, factor * tensor.at(i));
    }
  }
  return tensor;
}

/// Limits of scores, sinks and log-sum-exps change little of what a kernel reads, and lengths are
/// those that are measured.
Problem unfused(const Problem& problem) {
  Problem plain = problem;
  std::erase_if(plain.attributes, [](const auto& attribute) {
    const std::string& name = attribute.first;
    return name == "softcap" || name == "sinks" || name == "lse" || name == "lengths";
  });
  return plain;
}

/// Reduces the number of sequences first, unless they are packed, then the number of groups of
/// heads.
Problem stand_in(const Problem& problem, double fraction) {
  Problem smaller = problem;
  std::int64_t &batch = smaller.extent("batch"), &heads = smaller.extent("heads"),
               &kv_heads = smaller.extent("kv_heads");
  const std::int64_t group = heads / kv_heads;
  const auto part = [](std::int64_t extent, double of) {
    return std::max<std::int64_t>(1, std::llround(std::ceil(static_cast<double>(extent) * of)));
  };
  const bool packed = attention::packs_sequences(problem);
  const std::int64_t sequences = packed ? batch : part(batch, fraction);
  fraction *= static_cast<double>(batch) / static_cast<double>(sequences);
  batch = sequences;
  if (fraction < 1) kv_heads = part(kv_heads, fraction);
  heads = kv_heads * group;
  return smaller;
}

}  // namespace

Operation make_attention() {
  Operation t;
  t.name = "attention";
  t.summary = "scaled dot-product attention, softmax(scale Q K^T) V, with a KV cache";
  t.bound =
      "a relative error of each weight, of its score's dot product, scaling and exponential, times "
      "|v| + |out|; u min(n + 2, 8) sqrt(n) (|out| + the root of the sum of (w v)^2) for the sums "
      "over n keys, u = 2^-24; for f16 and bf16 inputs, which matrix cores' weights have as well, "
      "their "
      "roundoff times |out| + 6 of those roots; the output's rounding";
  t.dimensions = {
      {.name = "batch",
       .help = "sequences",
       .fallback = "1",
       .examples = {1, 2},
       .at_run_time = RunTimeExtent{.steps = 4}},
      {.name = "heads", .help = "number of query heads", .examples = {2, 4}},
      {.name = "kv_heads", .help = "number of KV heads", .fallback = "heads", .examples = {1, 2}},
      {.name = "q",
       .help = "number of queries per sequence, or of all packed sequences",
       .examples = {1, 4, 9, 40},
       .at_run_time = RunTimeExtent{.exact_to = 16}},
      {.name = "kv",
       .help = "KV capacity: number of keys per sequence that the cache holds, or of all packed "
               "sequences",
       .fallback = "q",
       .examples = {1, 70, 600},
       .at_run_time = RunTimeExtent{}},
      {.name = "dim",
       .help = "head size: number of elements, a multiple of 8",
       .least = 8,
       .most = 256,
       .examples = {8, 64, 120, 80}},
  };
  t.attributes = {
      {.name = "mask",
       .help = "what a query sees: all keys; causal: only the keys up to its own",
       .fallback = "none",
       .allowed = {"none", "causal"}},
      attention::scale_attribute("1 / sqrt(dim)"),
      stride_attribute("q_stride", "elements from one token of Q to the next, a multiple of 8",
                       "heads x dim", packed_stride)};
  for (Attribute& option : attention::option_attributes()) {
    t.attributes.push_back(std::move(option));
  }
  t.renamed = {{"causal", "1", "mask", "causal"}, {"causal", "0", "mask", "none"}};
  for (const DType type : narrow_types()) t.dtypes.push_back({type, type});
  t.dtypes.push_back({DType::f32, DType::f32});
  for (const DType type : narrow_types()) t.dtypes.push_back({type, DType::f32});
  const std::vector<std::pair<std::string, std::string>> causal{{"mask", "causal"}};
  t.sizes = {{{4, 32, 32, 4096, 4096, 128}, causal}, {{1, 32, 32, 2048, 2048, 128}, causal},
             {{32, 32, 32, 1, 2048, 128}},           {{1, 32, 8, 1, 8192, 128}},
             {{1, 8, 2, 300, 1000, 80}, causal},     {{2, 16, 16, 512, 512, 64}},
             {{1, 4, 4, 1000, 1000, 96}, causal},    {{1, 8, 4, 2, 500, 256}, causal}};
  t.shape = [](const Problem& problem) { return ProblemShape(attention::shape_of(problem)); };
  t.check = check;
  t.out_of_range =
      "a length below 0 counts as 0, one above kv as kv; a query that sees no key gives zeros, as "
      "the first ones of a causal sequence do whose length is below q; the first packed sequence "
      "begins with the first token, starts below 0 count as 0 and those past all tokens as their "
      "end, and tokens after the last sequence give zeros";
  t.work = work;
  t.tensors = tensors;
  t.input = input;
  t.harden = attention::harden;
  t.reference = attention_reference;
  t.fully_checked = attention_fully_checked;
  t.unfused = unfused;
  t.stand_in = stand_in;
  t.variants = {attention::decode(), attention::warpgroups(), attention::matrix(),
                attention::vector(), attention::vendor()};
  t.untuned = Operation::Untuned::best_predicted;
  return t;
}

}  // namespace greta::kernels
