#include "kernels/chains/chains.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/model/problem_rules.hpp"
#include "kernels/operations.hpp"
#include "kernels/planning/byte_format_attribute.hpp"

namespace greta::kernels {
namespace {

/// What an alternative needs; nothing: it is possible for every problem.
using Needs = std::function<std::vector<Constraint>(const Problem&)>;

/// Whether an alternative is the default where it is possible. Of several, the first one is.
enum class Choice { default_choice, by_choice };

Variant alternative(std::string name, std::string summary, Choice role, Needs needs = {}) {
  const auto space = [name, needs](const Problem& problem, const DeviceInfo&) {
    return Alternative{name, {}, needs ? needs(problem) : std::vector<Constraint>{}};
  };
  const auto defaults = [name, role](const Problem&, const DeviceInfo&) {
    return role == Choice::default_choice ? std::vector<Config>{Config{name, {}}}
                                          : std::vector<Config>{};
  };
  const auto no_plan = [](const Problem&, const DeviceInfo&, const Config&) {
    return LaunchPlan{};
  };
  const auto no_divisions = [](const Problem&, const Config&) { return std::vector<Division>{}; };
  return make_variant<Problem>(std::move(name), std::move(summary), space, no_plan, defaults,
                               no_divisions);
}

/// Returns the rows of a problem, of all sequences.
std::int64_t rows_of(const Problem& problem) {
  return problem.dim("rows", problem.dim("batch", 1) * problem.dim("tokens", 1));
}

std::vector<Constraint> few_rows(const Problem& problem) {
  return {{"few_rows",
           fmt::format("the norm of a row is part of products of at most {} rows, these are {}",
                       most_fused_rows, rows_of(problem)),
           rows_of(problem) <= most_fused_rows}};
}

bool quantised_weights(const Problem& problem) {
  return problem.attribute("weights", "dense") != "dense";
}

std::vector<Constraint> dense(const Problem& problem) {
  return {
      {"dense", "a projection with quantised weights is one product", !quantised_weights(problem)}};
}

std::vector<Constraint> not_dense(const Problem& problem) {
  return {{"quantised", "the matrices are numbers", quantised_weights(problem)}};
}

bool scaled_weights(const Problem& problem) {
  return problem.attribute("scales", "none") != "none";
}

std::vector<Constraint> not_scaled(const Problem& problem) {
  return {{"scaled", "nothing decodes scaled matrices", !scaled_weights(problem)}};
}

std::vector<Constraint> only_scaled(const Problem& problem) {
  return {{"scaled", "the matrices have no scales beside 8-bit numbers", scaled_weights(problem)}};
}

std::vector<Constraint> one_matrix(const Problem& problem) {
  return {{"one_matrix", "products with fp8, or with several formats, have no epilogue",
           problem.attribute("weights", "dense") != "others"}};
}

std::vector<Constraint> prologue_and_few_rows(const Problem& problem) {
  const std::string weights = problem.attribute("weights", "dense");
  std::vector<Constraint> all = few_rows(problem);
  all.push_back(
      {"prologue",
       "products with fp8, with several formats or with reordered columns have no prologue",
       weights == "dense" || weights == "quantised"});
  return all;
}

std::vector<Attribute> weights() {
  return {{.name = "weights",
           .help = "dense: numbers; quantised: a format of quantized_gemm; ordered: such a format "
                   "with columns in another order; others: fp8, or several formats",
           .fallback = "dense",
           .allowed = {"dense", "quantised", "ordered", "others"}},
          {.name = "math",
           .help = "rounded_weights: products may round weights that are not dense",
           .fallback = "exact",
           .allowed = {"exact", "rounded_weights"},
           .permission = true}};
}

std::vector<std::pair<std::string, std::string>> attributes_of(ChainWeights weights) {
  switch (weights) {
    case ChainWeights::dense:
      return {};
    case ChainWeights::quantised:
      return {{"weights", "quantised"}};
    case ChainWeights::ordered:
      return {{"weights", "ordered"}};
    case ChainWeights::others:
      return {{"weights", "others"}};
  }
  return {};
}

Dimension extent(const char* name, const char* help) {
  return {.name = name, .help = help};
}

/// Rows as gemm has them, whose kernels for few rows are made for their number.
Dimension rows() {
  return {.name = "rows",
          .help = "tokens of all sequences",
          .at_run_time = RunTimeExtent{.exact_to = most_fused_rows}};
}

Operation chain(std::string name, std::string summary, std::vector<Dimension> dimensions,
                std::vector<Variant> alternatives, std::vector<Attribute> attributes = {}) {
  Operation chain;
  chain.name = std::move(name);
  chain.summary = std::move(summary);
  chain.dimensions = std::move(dimensions);
  chain.attributes = std::move(attributes);
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    chain.dtypes.push_back({type, type});
  }
  chain.sizes = {};
  chain.variants = std::move(alternatives);
  chain.shape = [](const Problem& problem) { return ProblemShape(problem); };
  chain.work = [](const Problem&) { return Work{}; };
  chain.tensors = [](const Problem&) { return std::vector<TensorSpec>{}; };
  chain.sources_key = "chain 1";  // a number of what its alternatives consist of
  return chain;
}

/// Returns an alternative with the norm as prologue: the default of numbers. With quantised
/// weights, not every device's kernels gain by it.
Variant fused_norm(const char* summary) {
  Variant fused = alternative("fused", summary, Choice::by_choice, prologue_and_few_rows);
  fused.defaults = [](const ProblemShape& shape, const DeviceInfo&) {
    return shape.as<Problem>().attribute("weights", "dense") == "dense"
               ? std::vector<Config>{Config{"fused", {}}}
               : std::vector<Config>{};
  };
  return fused;
}

Operation gate_up() {
  using enum Choice;
  // A launch less, of quantised weights.
  Variant gated = alternative("gated", "rmsnorm, and a product with the gate as epilogue",
                              by_choice, one_matrix);
  gated.defaults = [](const ProblemShape& shape, const DeviceInfo&) {
    const auto& problem = shape.as<Problem>();
    const bool few = rows_of(problem) <= most_fused_rows;
    const std::string weights = problem.attribute("weights", "dense");
    return few && (weights == "quantised" || weights == "ordered")
               ? std::vector<Config>{Config{"gated", {}}}
               : std::vector<Config>{};
  };
  return chain(
      "gate_up", "rmsnorm, the projections to gates and ups, and silu(gate) * up",
      {rows(), extent("hidden", "gates of a token, and as many ups"),
       extent("dim", "elements of a token")},
      {fused_norm("a product with the norm as prologue and the gate as epilogue"), std::move(gated),
       alternative("normed", "a product with the norm as prologue, and silu_mul", by_choice,
                   prologue_and_few_rows),
       alternative("parts", "rmsnorm, product, silu_mul", default_choice)},
      weights());
}

Operation qkv() {
  using enum Choice;
  return chain("qkv", "rmsnorm, and the projections to queries, keys and values",
               {rows(), extent("queries", "elements of a token's queries"),
                extent("keys", "elements of a token's keys, and of its values"),
                extent("dim", "elements of a token")},
               {fused_norm("one product with the norm as prologue"),
                alternative("parts", "rmsnorm, one product", default_choice),
                alternative("split", "rmsnorm, three products", by_choice, dense)},
               weights());
}

Operation residual_norm() {
  using enum Choice;
  return chain("residual_norm", "a projection, the residual sum, and its rmsnorm",
               {rows(), extent("dim", "elements of a token"),
                extent("inner", "elements that are projected")},
               {alternative("epilogue", "a product that adds the residual, and rmsnorm",
                            default_choice, one_matrix),
                alternative("add_norm", "a product, and add_rmsnorm", default_choice)},
               weights());
}

Operation rope_kv() {
  using enum Choice;
  // In place of two launches, or of one more than the sequences.
  const auto in_few_rows_or_sequences = [](const Problem& problem, const DeviceInfo&) {
    const bool fused = rows_of(problem) <= most_fused_rows || problem.dim("batch") > 1;
    return fused ? std::vector<Config>{Config{"fused", {}}} : std::vector<Config>{};
  };
  Variant fused = alternative("fused", "rope_append", by_choice);
  fused.defaults = [in_few_rows_or_sequences](const ProblemShape& shape, const DeviceInfo& device) {
    return in_few_rows_or_sequences(shape.as<Problem>(), device);
  };
  Dimension tokens = extent("tokens", "tokens of a sequence");
  tokens.at_run_time = RunTimeExtent{};
  Dimension batch = extent("batch", "sequences");
  batch.at_run_time = RunTimeExtent{};
  return chain(
      "rope_kv", "rotation of queries and keys, and the append of keys and values",
      {std::move(batch), std::move(tokens), extent("heads", "query heads"),
       extent("kv_heads", "KV heads"), extent("dim", "elements of a head"),
       extent("capacity", "tokens that a sequence's cache holds")},
      {std::move(fused),
       alternative("parts", "rope in place, and a kv_update for each sequence", default_choice)});
}

const Operation& experts_operation() {
  static const Operation experts = make_experts();
  return experts;
}

/// Returns the problem of the operation experts for the rows that it takes at a time.
Problem experts_problem(const Problem& chain) {
  Problem problem = chain;
  problem.op = "experts";
  problem.dims.front() = {"tokens", std::min(chain.dim("rows"), most_expert_rows)};
  return problem;
}

/// Returns whether a device has a configuration of the operation experts.
bool has_experts(const Problem& chain, const DeviceInfo& device) {
  const Problem problem = experts_problem(chain);
  if (!check_problem(experts_operation(), problem)) return false;
  try {
    static_cast<void>(experts_operation().default_config(problem, device));
  } catch (const Error&) {
    return false;
  }
  return true;
}

Operation expert_ffn() {
  using enum Choice;
  Variant fused = alternative(
      "fused", fmt::format("the operation experts, for up to {} rows at a time", most_expert_rows),
      by_choice);
  fused.space = [](const ProblemShape& shape, const DeviceInfo& device) {
    return Alternative{"fused",
                       {},
                       {{"experts", "the device has no configuration of the operation experts",
                         has_experts(shape.as<Problem>(), device)}}};
  };
  fused.defaults = [](const ProblemShape& shape, const DeviceInfo&) {
    // Of quantised matrices, measured beside products with decoded ones.
    const auto& problem = shape.as<Problem>();
    const bool few =
        rows_of(problem) <= (quantised_weights(problem) ? most_expert_rows : most_fused_rows);
    return few ? std::vector<Config>{Config{"fused", {}}} : std::vector<Config>{};
  };
  return chain(
      "expert_ffn", "the feed-forward networks of each row's experts, and their weighted sum",
      {rows(), extent("experts", "experts of the layer"), extent("top_k", "experts of a row"),
       extent("dim", "elements of a row"), extent("hidden", "gates of an expert, and as many ups")},
      {std::move(fused),
       alternative("scaled",
                   "permute, two grouped products with scaled matrices, the first with the gate as "
                   "epilogue, each after quantize, unpermute",
                   default_choice, only_scaled),
       alternative("quantised",
                   "permute, two grouped products with quantised matrices as they are, the first "
                   "with the gate as epilogue, unpermute",
                   default_choice, not_dense),
       alternative("gated",
                   "permute, a grouped product with the gate as epilogue, a grouped product, "
                   "unpermute; quantised matrices are decoded first",
                   by_choice, not_scaled),
       alternative("parts", "permute, grouped product, silu_mul, grouped product, unpermute",
                   default_choice, not_scaled)},
      experts_operation().attributes);
}

/// A step whose result is quantised. `step`: the operation that computes it by itself.
Operation quantised(const char* name, const std::string& step) {
  using enum Choice;
  Variant fused = alternative("fused", "quantize, which computes " + step + " first", by_choice);
  fused.defaults = [](const ProblemShape& shape, const DeviceInfo&) {
    const bool few = rows_of(shape.as<Problem>()) <= most_fused_rows;
    return few ? std::vector<Config>{Config{"fused", {}}} : std::vector<Config>{};
  };
  return chain(name, step + ", and the quantisation of its rows",
               {rows(), extent("cols", "elements of a row")},
               {std::move(fused), alternative("parts", step + ", quantize", default_choice)},
               {byte_format_attribute("codes"),
                {.name = "scales",
                 .help = "what shares a scale. row: a row; block: 128 elements of it; tensor: all, "
                         "by a given scale",
                 .fallback = "row",
                 .allowed = {"row", "block", "tensor"}}});
}

Problem quantised_problem(const char* name, DType dtype, const RowsToQuantise& rows) {
  Problem problem{name, dtype, dtype, {}, {{"rows", rows.rows}, {"cols", rows.cols}}};
  if (rows.format.numbers != ByteFormat::e4m3) {
    problem.attributes.emplace_back("format", std::string(to_string(rows.format.numbers)));
  }
  if (rows.format.blocks) problem.attributes.emplace_back("scales", "block");
  if (rows.format.given_input) problem.attributes.emplace_back("scales", "tensor");
  return problem;
}

}  // namespace

const Catalog& chains() {
  static const Catalog all({gate_up(), qkv(), residual_norm(), rope_kv(), expert_ffn(),
                            quantised("norm_quantize", "rmsnorm"),
                            quantised("add_norm_quantize", "add_rmsnorm"),
                            quantised("silu_quantize", "silu_mul")});
  return all;
}

Catalog with_chains(const Catalog& operations) {
  std::vector<Operation> all(operations.begin(), operations.end());
  for (const Operation& chain : chains()) {
    if (operations.find(chain.name) == nullptr) all.push_back(chain);
  }
  return Catalog(std::move(all));
}

bool is_chain(std::string_view name) {
  return chains().find(name) != nullptr;
}

Problem gate_up_chain(DType dtype, std::int64_t rows, std::int64_t hidden, std::int64_t dim,
                      ChainWeights weights) {
  return {"gate_up",
          dtype,
          dtype,
          attributes_of(weights),
          {{"rows", rows}, {"hidden", hidden}, {"dim", dim}}};
}

Problem qkv_chain(DType dtype, std::int64_t rows, std::int64_t queries, std::int64_t keys,
                  std::int64_t dim, ChainWeights weights) {
  return {"qkv",
          dtype,
          dtype,
          attributes_of(weights),
          {{"rows", rows}, {"queries", queries}, {"keys", keys}, {"dim", dim}}};
}

Problem residual_norm_chain(DType dtype, std::int64_t rows, std::int64_t dim, std::int64_t inner,
                            ChainWeights weights) {
  return {"residual_norm",
          dtype,
          dtype,
          attributes_of(weights),
          {{"rows", rows}, {"dim", dim}, {"inner", inner}}};
}

Problem with_rounded_weights(Problem chain) {
  const bool exact = chain.attribute("math", "exact") == "exact";
  if (exact && quantised_weights(chain)) {
    chain.attributes.emplace_back("math", "rounded_weights");
  }
  return chain;
}

Problem rope_kv_chain(DType dtype, const RotatedHeads& heads) {
  return {"rope_kv",
          dtype,
          dtype,
          {},
          {{"batch", heads.batch},
           {"tokens", heads.tokens},
           {"heads", heads.heads},
           {"kv_heads", heads.kv_heads},
           {"dim", heads.dim},
           {"capacity", heads.capacity}}};
}

Problem expert_ffn_chain(DType dtype, const ExpertNetworks& networks) {
  std::vector<std::pair<std::string, std::string>> attributes;
  const MatrixFormat& format = networks.gate_up;
  if (format.quantised) {
    attributes.emplace_back("weights", std::string(traits(*format.quantised).name));
    if (only_group(*format.quantised) == 0 && format.group > 0 && format.group != 128) {
      attributes.emplace_back("group", std::to_string(format.group));
    }
    if (format.zeros) attributes.emplace_back("zeros", "groups");
    if (networks.down.quantised != format.quantised) {
      attributes.emplace_back("down_weights",
                              std::string(traits(networks.down.quantised.value()).name));
    }
    if (format.panels) attributes.emplace_back("packing", "panels");
  }
  if (const auto& scaled = format.scaled) {
    if (scaled->numbers != ByteFormat::e4m3) {
      attributes.emplace_back("format", std::string(to_string(scaled->numbers)));
    }
    attributes.emplace_back("scales", scaled->blocks ? "block" : "row");
  }
  return {"expert_ffn",
          dtype,
          dtype,
          std::move(attributes),
          {{"rows", networks.rows},
           {"experts", networks.experts},
           {"top_k", networks.top_k},
           {"dim", networks.dim},
           {"hidden", networks.hidden}}};
}

Problem norm_quantize_chain(DType dtype, const RowsToQuantise& rows) {
  return quantised_problem("norm_quantize", dtype, rows);
}

Problem add_norm_quantize_chain(DType dtype, const RowsToQuantise& rows) {
  return quantised_problem("add_norm_quantize", dtype, rows);
}

Problem silu_quantize_chain(DType dtype, const RowsToQuantise& rows) {
  return quantised_problem("silu_quantize", dtype, rows);
}

}  // namespace greta::kernels
