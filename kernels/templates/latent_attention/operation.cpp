#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "kernels/planning/pages.hpp"
#include "kernels/planning/stride_attributes.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/templates/attention/options.hpp"
#include "kernels/templates/latent_attention/inputs.hpp"

/// What latent_attention and tree_attention have in common.
namespace greta::kernels::latent {
namespace {

/// Log-sum-exps change little of what a kernel reads, and lengths are those that are measured.
Problem unfused(const Problem& problem) {
  Problem plain = problem;
  std::erase_if(plain.attributes, [](const auto& attribute) {
    return attribute.first == "lse" || attribute.first == "lengths";
  });
  return plain;
}

/// Reduces the number of sequences, whose tiles do not depend on each other.
Problem fewer_sequences(const Problem& problem, double fraction) {
  Problem smaller = problem;
  std::int64_t& batch = smaller.extent("batch");
  const double part = std::ceil(static_cast<double>(batch) * fraction);
  batch = std::max<std::int64_t>(1, std::llround(part));
  return smaller;
}

}  // namespace

Result<void> check(const Problem& problem, const Shape& shape) {
  const auto bad = [](const char* field, std::int64_t value, const std::string& reason) {
    return bad_field(field, std::to_string(value), reason);
  };
  if (shape.heads % shape.kv_heads != 0) {
    return bad("kv_heads", shape.kv_heads, fmt::format("must divide the {} heads", shape.heads));
  }
  if ((shape.causal || shape.tree) && shape.capacity < shape.queries) {
    return bad("kv", shape.capacity,
               fmt::format("must hold at least the {} keys of the queries", shape.queries));
  }
  if (shape.q_stride % 8 != 0) return bad("q_stride", shape.q_stride, "must be a multiple of 8");
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (shape.page > 0 && shape.batch * shape.pages() > most / shape.page) {
    return bad("kv", shape.capacity, "has more than 2^31 - 1 keys in pages");
  }
  if (shape.kv_heads > most / shape.batch / shape.capacity) {
    return bad("kv", shape.capacity, fmt::format("batch x KV heads x kv must not exceed {}", most));
  }
  return check_count(problem, "q", {"batch", "heads", "q"});
}

std::vector<Attribute> attributes(std::function<std::int64_t(const Problem&)> packed_queries) {
  return {
      attention::scale_attribute("1 / sqrt(elements of a key)"),
      stride_attribute("q_stride", "elements from one token of Q to the next, a multiple of 8",
                       "heads x elements of a key", std::move(packed_queries)),
      {.name = "lse",
       .help = "stored: a second output is the logarithm of each row's sum of exponentials",
       .fallback = "none",
       .allowed = {"none", "stored"}},
      page_size_attribute(),
      {.name = "lengths",
       .help = "lengths of sequences that are measured: full: all keys; ragged: each has its own "
               "number of keys, up to kv",
       .fallback = "full",
       .allowed = {"full", "ragged"}},
  };
}

void set_rows_operation(Operation& t, Shape (*shape)(const Problem&)) {
  t.bound =
      "that of attention: a relative error of each weight times |v| + |out|; u min(n + 2, 8) "
      "sqrt(n) (|out| + the root of the sum of (w v)^2) for the sums over n keys, u = 2^-24; for "
      "f16 and bf16 inputs their roundoff times |out| + 6 of those roots; the output's rounding";
  t.out_of_range =
      "a length below 0 counts as 0, one above kv as kv; a query that sees no key gives zeros, as "
      "the first ones of a sequence do whose length is below q";
  for (const DType type : narrow_types()) t.dtypes.push_back({type, type});
  t.dtypes.push_back({DType::f32, DType::f32});
  for (const DType type : narrow_types()) t.dtypes.push_back({type, DType::f32});
  t.shape = [shape](const Problem& problem) { return ProblemShape(shape(problem)); };
  t.check = [shape](const Problem& problem) { return check(problem, shape(problem)); };
  t.work = [shape](const Problem& problem) { return least_work(shape(problem)); };
  t.tensors = [shape](const Problem& problem) { return tensors(shape(problem)); };
  t.input = [shape](const Problem& problem, const TensorSpec& spec, std::uint64_t seed) {
    return input(shape(problem), spec, seed);
  };
  t.harden = [shape](const Problem& problem, std::vector<HostTensor>& inputs,
                     const InputSeed& seed) { harden(shape(problem), inputs, seed); };
  t.reference = attention_reference;
  t.fully_checked = attention_fully_checked;
  t.unfused = unfused;
  t.stand_in = fewer_sequences;
  t.variants = {matrix(t.name), vector(t.name)};
}

}  // namespace greta::kernels::latent
