#include "kernels/templates/attention/options.hpp"

#include <fmt/format.h>

#include <limits>

#include "kernels/planning/head_sizes.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "kernels/planning/pages.hpp"

namespace greta::kernels::attention {
namespace {

std::optional<std::string> canonical_window(const std::string& text) {
  if (text == "none") return text;
  const auto keys = whole_number(text);
  if (!keys || *keys < 1 || *keys > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  return std::to_string(*keys);
}

// Scores of kernels are multiplied by log2(e) and divided by the limit, in f32.
constexpr float least_cap = 1e-3f, most_cap = 1e6f;

std::optional<std::string> canonical_softcap(const std::string& text) {
  if (text == "none") return text;
  const auto cap = finite_number(text);
  if (!cap || *cap < least_cap || *cap > most_cap) return std::nullopt;
  return fmt::format("{}", *cap);
}

// The difference of two scores has the rounding of the scores: with larger factors, weights would
// be made of it. A score of a key that is not seen is -1e30.
constexpr float most_scale = 65536;

std::optional<std::string> canonical_scale(const std::string& text) {
  if (text == "auto") return text;
  const auto value = finite_number(text);
  if (!value || *value <= 0 || *value > most_scale) return std::nullopt;
  return fmt::format("{}", *value);
}

}  // namespace

Attribute scale_attribute(std::string_view usual) {
  return {.name = "scale",
          .help = "factor of the scores",
          .fallback = "auto",
          .allowed_text =
              fmt::format("auto, which is {}, or a positive number up to {}", usual, most_scale),
          .canonical = canonical_scale,
          .examples = {"auto", "0.25"}};
}

std::vector<Attribute> option_attributes() {
  return {
      v_dim_attribute("head size of values and outputs, if it is not that of keys", 8, 256,
                      {"16", "128"}),
      {.name = "window",
       .help = "sliding window: with a causal mask, a query sees this number of keys, its own and "
               "those before it",
       .fallback = "none",
       .allowed_text = "none or a number of keys",
       .canonical = canonical_window,
       .examples = {"none", "1", "24", "150"}},
      {.name = "softcap",
       .help = "limit c of the scores s, which become c tanh(s / c)",
       .fallback = "none",
       .allowed_text = "none or a number from 0.001 to 1e6",
       .canonical = canonical_softcap,
       .examples = {"none", "2", "50", "200"}},
      {.name = "sinks",
       .help = "head: the input sinks has a score for each head that is added to the sums of "
               "exponentials, and has no value",
       .fallback = "none",
       .allowed = {"none", "head"}},
      {.name = "lse",
       .help = "stored: a second output is the logarithm of each row's sum of exponentials",
       .fallback = "none",
       .allowed = {"none", "stored"}},
      page_size_attribute(),
      {.name = "sequences",
       .help =
           "packed: tokens of sequences of any lengths lie one after the other; q and kv are their "
           "numbers in all sequences, and the inputs cu_seqlens_q and cu_seqlens_k say where each "
           "sequence begins",
       .fallback = "padded",
       .allowed = {"padded", "packed"}},
      {.name = "lengths",
       .help =
           "lengths of sequences that are measured: full: all queries and keys; ragged: each has "
           "its own number of keys, up to kv, or its own part of packed tokens",
       .fallback = "full",
       .allowed = {"full", "ragged"}},
  };
}

std::int64_t window_of(const Problem& problem) {
  const std::string text = problem.attribute("window", "none");
  return text == "none" ? 0 : std::stoll(text);
}

double softcap_of(const Problem& problem) {
  const std::string text = problem.attribute("softcap", "none");
  return text == "none" ? 0 : static_cast<double>(finite_number(text).value_or(0));
}

bool packs_sequences(const Problem& problem) {
  return problem.attribute("sequences", "padded") == "packed";
}

Result<void> check_options(const Problem& problem) {
  if (packs_sequences(problem) && page_of(problem) > 0) {
    return bad_field("sequences", "packed", "needs keys without pages");
  }
  const std::string window = problem.attribute("window", "none");
  if (window != "none" && problem.attribute("mask", "none") != "causal") {
    return bad_field("window", window, "needs a causal mask");
  }
  return {};
}

}  // namespace greta::kernels::attention
