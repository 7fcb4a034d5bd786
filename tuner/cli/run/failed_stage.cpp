#include "tuner/cli/run/failed_stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>

#include "runtime/pipeline/llama/needs.hpp"
#include "tuner/cli/options/kept_cases.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/cli/run/explain.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

/// Returns the words of labels whose operation computes a stage, the most specific first: which of
/// them there is depends on the alternatives of the chains.
std::vector<std::string> words_of(LlamaStage stage) {
  const std::string own(to_string(stage));
  switch (stage) {
    case LlamaStage::q:
    case LlamaStage::k:
    case LlamaStage::v:
      return {own, "qkv"};
    case LlamaStage::q_rope:
    case LlamaStage::k_rope:
      return {"rope"};
    case LlamaStage::k_cache:
    case LlamaStage::v_cache:
      return {"kv_update"};
    case LlamaStage::gate:
    case LlamaStage::up:
      return {own, "gate_up"};
    case LlamaStage::attn_scores:
    case LlamaStage::attn_softmax:
      return {"attention"};
    case LlamaStage::attn_out:
      return {"residual + ffn_norm", own};  // which adds the residual to it
    case LlamaStage::ffn_out:
      return {"residual + attn_norm", own, "residual"};
    case LlamaStage::experts:
    case LlamaStage::expert_weights:
      return {"route"};
    case LlamaStage::expert_rows:
      return {"permute"};
    case LlamaStage::expert_gate:
    case LlamaStage::expert_up:
      return {own, "expert_gate_up"};
    case LlamaStage::expert_out:
      return {"expert_down"};
    case LlamaStage::expert_sum:
      return {"unpermute", "experts"};
    case LlamaStage::shared_weight:
      return {"shared_route"};
    case LlamaStage::shared_scaled:
      return {"shared_scale"};
    case LlamaStage::logits:
      return {"head"};
    default:
      return {own};
  }
}

/// Returns whether a label such as "attn_norm + qkv" has a word.
bool has_word(const std::string& name, std::string_view word) {
  const std::string spaced = " " + name + " ";
  return spaced.find(fmt::format(" {} ", word)) != std::string::npos;
}

/// Returns the operation of a pass that computes the stage.
std::optional<RecordedProblem> operation_of(Generation& generation, const StageFinding& finding,
                                            std::int64_t tokens) {
  LlamaRunner& runner = generation.runner();
  LlamaOptions options;
  options.capacity = runner.capacity();
  const std::string layer = finding.layer < 0 ? "" : fmt::format("layer {} ", finding.layer);
  const auto operations =
      llama_operations(generation.runtime(), runner.config(), runner.dtype(), options, tokens);
  for (const std::string& word : words_of(finding.stage)) {
    // The last sum with a residual is that of the second half of a layer.
    const auto found = std::find_if(operations.rbegin(), operations.rend(), [&](const auto& one) {
      return one.label.starts_with(layer) && has_word(name_of_operation(one.label), word);
    });
    if (found != operations.rend()) return *found;
  }
  return std::nullopt;
}

/// Verifies the operation on inputs of several seeds and both styles. Returns whether one failed.
bool fails_alone(WorkerEvaluator& evaluator, const Problem& problem, const Config& config,
                 double run_s) {
  TrialLimits limits;
  limits.run_s = run_s;
  for (const std::uint64_t seed : {1U, 2U}) {
    for (const InputStyle style : {InputStyle::plain, InputStyle::adversarial}) {
      limits.inputs = style;
      const Trial trial = evaluator.verify(problem, config, seed, limits);
      if (trial.ok()) continue;
      print("alone, on random inputs: {}: {}\n", to_string(*trial.failure), trial.message);
      return true;
    }
  }
  return false;
}

}  // namespace

void examine_stage(Generation& generation, const RuntimeChoice& runtime,
                   const StageFinding& finding, std::int64_t tokens,
                   const std::filesystem::path& folder) {
  const auto operation = operation_of(generation, finding, tokens);
  if (!operation) {
    print("no operation of this pass computes the stage by itself\n");
    return;
  }
  const auto answer = generation.runtime().answer(operation->problem);
  if (!answer) throw CommandError(exit_failed, answer.failure().message);
  print("{} runs {}\n  {}\n", operation->label, operation->problem.key(), answer->config.shown());
  EvaluatorOptions options;
  options.device = generation.runtime().device().info().id();
  options.cache_directory = default_cache_directory();
  options.vendor = allows(runtime.allow, "vendor");
  options.keep_failed = folder;
  options.stop = &stop_requested();
  WorkerEvaluator evaluator(worker_command(), options);
  KeptCases kept(folder);
  if (!fails_alone(evaluator, operation->problem, answer->config,
                   static_cast<double>(runtime.patience_s))) {
    print(
        "alone, its results are correct on random inputs: its error depends on the model's data, "
        "or another "
        "operation changes its operands\n");
    return;
  }
  std::fflush(stdout);
  for (const Diagnosis& one : kept.tell()) print_text("\n" + diagnosis_text(one));
}

}  // namespace greta::tuner::cli
