#include <fmt/format.h>

#include <memory>

#include "runtime/pipeline/compute/capture.hpp"
#include "tuner/cli/run/commands.hpp"
#include "tuner/cli/run/explain.hpp"
#include "tuner/cli/run/generate.hpp"
#include "tuner/cli/run/model_trace.hpp"

namespace greta {
namespace {

void check(const GenerateOptions& options) {
  if (options.model.empty()) throw CommandError(exit_usage, "--model is missing");
  if (options.tokens < 1) {
    throw CommandError(exit_usage, fmt::format("--tokens {}: must be at least 1", options.tokens));
  }
  options.sampler.check();
}

int explain(Generation& generation) {
  LlamaRunner& runner = generation.runner();
  const auto prompt = static_cast<std::int64_t>(generation.prompt().size());
  runner.prepare(prompt);
  const std::int64_t first = runner.passes(prompt).front();
  runner.feed(generation.prompt());
  for (const std::int64_t tokens : {first, std::int64_t{1}}) {
    const PipelineGraph& pass = runner.pass(tokens);
    const auto times = pass.time(runner.queue()).value();
    fmt::print("{} of {}:\n{}\n", tokens > 1 ? "prefill" : "decode",
               tokens > 1 ? fmt::format("{} tokens", tokens) : "1 token",
               explain_text(pass, times));
    if (first == 1) break;
  }
  return exit_done;
}

int precompile(Generation& generation) {
  LlamaRunner& runner = generation.runner();
  int passes = 0;
  for (std::int64_t tokens = 1; tokens <= runner.most_tokens();
       tokens = tokens == 1 ? 16 : 2 * tokens) {
    static_cast<void>(runner.pass(tokens));
    ++passes;
  }
  const auto& kernels = generation.runtime().kernels();
  fmt::print("{} passes of 1 to {} tokens: {} kernels, {} of them new\n", passes,
             runner.most_tokens(), kernels.size(), kernels.size() - kernels.from_cache());
  return exit_done;
}

int generate(const GenerateOptions& options) {
  check(options);
  Generation generation(options);
  if (options.precompile) return precompile(generation);
  if (options.explain) return explain(generation);
  if (options.trace_layers) return trace_layers(generation);
  if (!options.capture.empty()) generation.runtime().telemetry().set({true, true});
  if (!options.trace.empty()) {
    write_model_trace(generation, options.trace);
  } else {
    generation.run();
  }
  generation.report();
  if (!options.capture.empty()) {
    write_capture(options.capture, captured(generation.runtime())).value();
  }
  return exit_done;
}

}  // namespace

void add_generate_options(CLI::App& app, Action& action) {
  auto options = std::make_shared<GenerateOptions>();
  app.add_option("--model", options->model,
                 "A folder as Hugging Face keeps Llamas, or a checkpoint of llama2.c");
  app.add_option("--tokenizer", options->tokenizer,
                 "tokenizer.json or a tok*.bin [beside the model]");
  app.add_option("--prompt", options->prompt, "What the text begins with");
  app.add_option("--tokens", options->tokens, "Tokens to generate at most")->capture_default_str();
  app.add_option("--capacity", options->capacity,
                 "Tokens that the cache holds [prompt and --tokens]");
  app.add_option("--temperature", options->sampler.temperature, "0: always the likeliest token")
      ->capture_default_str();
  app.add_option("--top-p", options->sampler.top_p,
                 "Sample among the likeliest tokens that have this much together")
      ->capture_default_str();
  app.add_option("--seed", options->sampler.seed, "Of sampling")->capture_default_str();
  add_runtime_options(app, options->runtime);
  app.add_flag("--no-graph", options->no_graph, "Launch operations one by one");
  app.add_flag("--json", options->json, "Print ids, text and times as JSON");
  app.add_flag("--explain", options->explain,
               "Print what runs for each operation, why, and what it gains");
  app.add_flag("--precompile", options->precompile, "Compile all kernels into the cache, and end");
  app.add_flag("--trace-layers", options->trace_layers,
               "Check every stage of every layer against FP64");
  app.add_option("--trace", options->trace,
                 "Write what host and device do as a trace for Perfetto (JSON)");
  app.add_option("--capture", options->capture,
                 "Record the problems that ran, with their times, for greta-tune from-capture");
  action = [options] { return generate(*options); };
}

}  // namespace greta
