#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/pipeline/llama/packing.hpp"
#include "runtime/pipeline/llama/runner.hpp"
#include "runtime/pipeline/llama/sampler.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"
#include "tuner/cli/model/model_options.hpp"
#include "tuner/cli/run/matrix.hpp"

namespace greta::tuner::cli {

/// What is reported of logits that are NaN or infinite.
inline constexpr auto invalid_logits =
    "the model's logits are not finite: weights or intermediate results are invalid; "
    "--trace-layers locates the error";

struct GenerateOptions {
  RuntimeChoice runtime;
  std::string model, tokenizer;
  std::string quantize;  ///< of --quantize
  std::string prompt;
  std::string prompts;     ///< file of --prompts; empty: one prompt
  std::string record_mix;  ///< with it: file that receives the lengths; empty: none
  std::int64_t batch = 8;  ///< with it: sequences that are decoded at the same time
  std::int64_t page = 64;  ///< with it: tokens of a page of the caches
  std::int64_t pages = 0;  ///< with it: pages of all sequences; 0: room for the longest ones
  std::int64_t tokens = 128;
  std::int64_t capacity = 0;
  SamplerOptions sampler;
  std::string sample = "device";  ///< where tokens are drawn: device or host
  bool no_graph = false, json = false;
  bool explain = false, precompile = false, trace_layers = false;
  MatrixChoice matrix;
  std::string trace, capture;
  std::filesystem::path keep_failed;
};

/// Returns the passes of a text after a prompt, for --packing.
std::vector<CountedPass> passes_of_text(std::int64_t prompt_tokens, std::int64_t tokens,
                                        std::int64_t capacity);

/// Returns whether the passes of the network draw tokens.
bool samples_on_device(const GenerateOptions& options);

/// Throws CommandError unless --capacity is between the prompt's length and the model's maximum.
void check_capacity(const GenerateOptions& options, const LlamaConfig& config,
                    std::int64_t prompt_tokens);

/// A model on a device, with its tokenizer and a prompt. All input is checked before the device is
/// opened.
class Generation {
 public:
  /// Throws CommandError and Error.
  explicit Generation(const GenerateOptions& options);

  Runtime& runtime() { return *runtime_; }
  LlamaRunner& runner() { return *runner_; }
  const LlamaModel& model() const { return model_; }
  /// Returns how the model's matrices are packed (--packing).
  const std::vector<MatrixPacking>& packing() const { return packing_; }
  const std::vector<std::int32_t>& prompt() const { return prompt_; }
  /// Returns the maximum number of tokens after the prompt: the requested number, limited by the
  /// capacity.
  std::int64_t room() const;

  /// Feeds the prompt and generates. Writes text to standard output as it is generated.
  void run();
  /// Writes the text, or a JSON report with --json, and the times.
  void report() const;

 private:
  void encode_prompt();
  std::int64_t wanted_capacity() const;
  std::int32_t next(Sampler& sampler) const;
  bool ends(std::int32_t id) const;

  GenerateOptions options_;
  LlamaModel model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<std::int32_t> prompt_;
  std::unique_ptr<Runtime> runtime_;
  std::vector<MatrixPacking> packing_;
  std::unique_ptr<LlamaRunner> runner_;
  std::vector<std::int32_t> generated_;
  std::string text_;
  double prompt_s_ = 0, decode_s_ = 0;
};

}  // namespace greta::tuner::cli
