#include "tuner/cli/run/failed_stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "runtime/pipeline/llama/needs.hpp"
#include "tuner/cli/options/kept_cases.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/tool.hpp"
#include "tuner/cli/run/explain.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"

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

/// Returns the operation of a pass that computes the stage, and after it those that prepare its
/// operands; none if no operation does it by itself.
std::vector<RecordedProblem> operations_of(Generation& generation, const StageFinding& finding,
                                           std::int64_t tokens) {
  LlamaRunner& runner = generation.runner();
  LlamaOptions options;
  options.capacity = runner.capacity();
  const std::string layer = finding.layer < 0 ? "" : fmt::format("layer {} ", finding.layer);
  const auto operations =
      llama_operations(generation.runtime(), runner.config(), runner.dtype(), options, tokens);
  const auto prepares = [](const RecordedProblem& one) {
    return one.problem.op == "gather_columns" || one.problem.op == "dequantize";
  };
  for (const std::string& word : words_of(finding.stage)) {
    // The last sum with a residual is that of the second half of a layer.
    const auto found = std::find_if(operations.rbegin(), operations.rend(), [&](const auto& one) {
      return !prepares(one) && one.label.starts_with(layer) &&
             has_word(name_of_operation(one.label), word);
    });
    if (found == operations.rend()) continue;
    std::vector<RecordedProblem> list{*found};
    // Those before it, up to the operation before.
    for (auto one = found + 1; one != operations.rend() && prepares(*one); ++one) {
      list.push_back(*one);
    }
    return list;
  }
  return {};
}

/// Verifies the operation on inputs of several seeds and both styles. Returns the first failure, or
/// nothing.
std::string failure_alone(WorkerEvaluator& evaluator, const Problem& problem, const Config& config,
                          double run_s) {
  TrialLimits limits;
  limits.run_s = run_s;
  for (const std::uint64_t seed : {1U, 2U}) {
    for (const InputStyle style : {InputStyle::plain, InputStyle::adversarial}) {
      limits.inputs = style;
      const Trial trial = evaluator.verify(problem, config, seed, limits);
      if (!trial.ok()) return fmt::format("{}: {}", to_string(*trial.failure), trial.message);
    }
  }
  return {};
}

}  // namespace

StageExamination examine_stage(Generation& generation, const RuntimeChoice& runtime,
                               const StageFinding& finding, std::int64_t tokens,
                               const std::filesystem::path& folder) {
  StageExamination all;
  EvaluatorOptions options;
  options.device = generation.runtime().device().info().id();
  options.cache_directory = default_cache_directory();
  options.vendor = allows(runtime.allow, "vendor");
  options.keep_failed = folder;
  options.stop = &stop_requested();
  for (const RecordedProblem& operation : operations_of(generation, finding, tokens)) {
    const auto answer = generation.runtime().answer(operation.problem);
    if (!answer) throw CommandError(exit_failed, answer.failure().message);
    ExaminedOperation& one = all.emplace_back(
        ExaminedOperation{operation.label, operation.problem.key(), answer->config.shown()});
    WorkerEvaluator evaluator(worker_command(), options);
    KeptCases kept(folder);
    one.failure = failure_alone(evaluator, operation.problem, answer->config,
                                static_cast<double>(runtime.patience_s));
    if (one.failure.empty()) continue;
    one.diagnoses = kept.tell();
    break;
  }
  return all;
}

std::string text_of(const StageExamination& examination) {
  if (examination.empty()) return "no operation of this pass computes the stage by itself\n";
  std::string text;
  for (const ExaminedOperation& one : examination) {
    text += fmt::format("{} runs {}\n  {}\n", one.label, one.problem, one.config);
    if (!one.failure.empty()) {
      text += fmt::format("alone, on random inputs: {}\n", one.failure);
    }
    for (const Diagnosis& diagnosis : one.diagnoses) text += "\n" + diagnosis_text(diagnosis);
  }
  if (examination.back().failure.empty()) {
    text +=
        "alone, results are correct on random inputs: the error depends on the model's data, or "
        "another operation changes operands\n";
  }
  return text;
}

nlohmann::json json_of(const StageExamination& examination) {
  auto list = nlohmann::json::array();
  for (const ExaminedOperation& one : examination) {
    auto diagnoses = nlohmann::json::array();
    for (const Diagnosis& diagnosis : one.diagnoses) {
      diagnoses.push_back(nlohmann::json::parse(diagnosis_json(diagnosis).dump()));
    }
    list.push_back(
        {{"operation", one.label},
         {"problem", one.problem},
         {"config", one.config},
         {"failure", one.failure.empty() ? nlohmann::json() : nlohmann::json(one.failure)},
         {"diagnoses", std::move(diagnoses)}});
  }
  return list;
}

}  // namespace greta::tuner::cli
