#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/pipeline/compute/capture.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "tuner/cli/model/packing_option.hpp"
#include "tuner/cli/model/quantize_option.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/run/batch_generation.hpp"
#include "tuner/cli/run/commands.hpp"
#include "tuner/cli/run/explain.hpp"
#include "tuner/cli/run/generate.hpp"
#include "tuner/cli/run/model_trace.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

/// Checks that a file can be created, before anything runs.
void check_writable(const char* option, const std::string& file) {
  const std::filesystem::path path(file);
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  std::error_code ignored;
  const bool other =
      std::filesystem::exists(path, ignored) && !std::filesystem::is_regular_file(path, ignored);
  if (other || access(folder.c_str(), W_OK) != 0) {
    throw CommandError(exit_usage,
                       fmt::format("{} {}: {}", option, file,
                                   other ? "is not a regular file" : "can't be written"));
  }
}

void check(const GenerateOptions& options) {
  if (options.model.empty()) throw CommandError(exit_usage, "--model: is missing");
  check_exists("--model", options.model);
  if (!options.capture.empty()) check_writable("--capture", options.capture);
  if (!options.record_mix.empty()) check_writable("--record-mix", options.record_mix);
  if (!options.prompts.empty() && options.sample != "device") {
    throw CommandError(exit_usage, "--sample host: not with --prompts");
  }
  if (options.sampler.penalises() && options.sample != "device") {
    throw CommandError(exit_usage,
                       "--sample host: not with penalties, which are of draws on the device");
  }
  if (options.matrix.export_file.empty()) return;
  if (!options.matrix.wanted) throw CommandError(exit_usage, "--export: needs --matrix");
  check_csv("--export", options.matrix.export_file);
}

int explain(Generation& generation, bool json) {
  LlamaRunner& runner = generation.runner();
  auto passes = nlohmann::json::array();
  const auto show = [&](std::int64_t tokens, const PipelineGraph& pass) {
    const auto times = pass.time(runner.queue()).value();
    if (json) {
      passes.push_back(explain_json(pass, times));
      passes.back()["tokens"] = tokens;
      return;
    }
    print("{} of {}:\n", tokens > 1 ? "prefill" : "decode",
          tokens > 1 ? fmt::format("{} tokens", tokens) : "1 token");
    print_text(explain_text(pass, times) + "\n");
  };
  visit_passes(runner, generation.prompt(), show);
  if (!json) print_text(packing_table(generation.packing()));
  if (json) {
    print_json(nlohmann::json{{"format", "greta-run explain 1"},
                              {"device", generation.runtime().device().info().id()},
                              {"dtype", to_string(runner.dtype())},
                              {"packing", packing_json(generation.packing())},
                              {"passes", std::move(passes)}});
  }
  return exit_done;
}

/// Measures the problems of the prompt's last pass and of decoding in each variant.
int show_matrix(const GenerateOptions& options) {
  std::vector<MatrixRow> rows;
  MatrixChoice matrix = options.matrix;
  {
    Generation generation(options);  // whose memory is free again before anything is measured
    LlamaRunner& runner = generation.runner();
    const auto prompt = static_cast<std::int64_t>(generation.prompt().size());
    std::vector<std::int64_t> passes{runner.passes(prompt).back()};
    if (passes.front() != 1) passes.push_back(1);
    LlamaOptions llama;
    llama.capacity = runner.capacity();
    llama.sample = samples_on_device(options);
    llama.penalties = options.sampler.penalises();
    rows = matrix_rows(generation.runtime(), runner.config(), runner.dtype(), llama, passes);
    matrix.chains =
        matrix_chains(generation.runtime(), runner.config(), runner.dtype(), llama, passes);
    tell_unused_rules(generation.runtime());
  }
  matrix.json = options.json;
  matrix.seed = options.sampler.seed;
  return run_matrix(std::move(rows), options.runtime, matrix);
}

/// Compiles every kernel that a text of any length can use, with the given cache capacity, or with
/// all capacities that runs choose. Loads no weights.
int precompile(const GenerateOptions& options) {
  LlamaModel model = open_model(options.model);
  check_capacity(options, model.config, 1);
  const auto runtime = open_runtime(options.runtime);
  const DType dtype =
      run_dtype(options.runtime, model.weights.embedding.dtype, runtime->device().info());
  apply_quantisation(options.quantize, model.config);
  tell_idle_permission(options.runtime.allow, model.config, dtype);
  const std::vector<std::int64_t> capacities =
      options.capacity != 0 ? std::vector{options.capacity} : llama_capacities(model.config);
  const std::int64_t most = std::min(LlamaOptions{}.most_tokens, capacities.back());
  apply_packing(*runtime, model.config, dtype,
                passes_of_text(most, options.tokens, capacities.back()), options.runtime.packing);
  std::vector<Problem> problems;
  for (const std::int64_t capacity : capacities) {
    LlamaOptions llama;
    llama.capacity = capacity;
    llama.sample = samples_on_device(options);
    llama.penalties = options.sampler.penalises();
    for (const Problem& problem : llama_problems(*runtime, model.config, dtype, llama)) {
      if (std::find(problems.begin(), problems.end(), problem) == problems.end()) {
        problems.push_back(problem);
      }
    }
  }
  constexpr unsigned all_cores = 0;
  for (const Precompiled& one : runtime->precompile(problems, all_cores)) {
    if (one.failure) {
      throw CommandError(exit_failed, fmt::format("{}: {}", one.problem, one.failure->message));
    }
  }
  const auto& kernels = runtime->kernels();
  tell_unused_rules(*runtime);
  print("{} for caches of {} tokens: {}, {} of them new\n",
        format_count(static_cast<std::int64_t>(problems.size()), "problem"),
        fmt::join(capacities, ", "),
        format_count(static_cast<std::int64_t>(kernels.size()), "kernel"), kernels.compiled());
  return exit_done;
}

int generate(const GenerateOptions& options) {
  check(options);
  watch_device(options.runtime);
  if (!options.prompts.empty()) return generate_batch(options);
  if (options.precompile) return precompile(options);
  if (options.matrix.wanted) return show_matrix(options);
  Generation generation(options);
  if (options.explain || options.trace_layers) {
    const int code = options.explain ? explain(generation, options.json)
                                     : trace_layers(generation, options.runtime,
                                                    options.keep_failed, options.json);
    tell_unused_rules(generation.runtime());
    return code;
  }
  if (!options.capture.empty()) generation.runtime().telemetry().set({true, true});
  if (!options.trace.empty()) {
    write_model_trace(generation, options.trace, options.runtime.untuned);
  } else {
    generation.run();
  }
  generation.report();
  tell_unused_rules(generation.runtime());
  if (!options.capture.empty()) {
    write_capture(options.capture, captured(generation.runtime())).value();
  }
  return exit_done;
}

/// Adds the penalties of tokens that the text has already.
void add_penalties(CLI::App& app, SamplerOptions& sampler) {
  add_number(app, "--repetition-penalty", sampler.repetition,
             "Of tokens in the prompt or the text so far: divide logits above 0 by this, multiply "
             "others; 1: off",
             {.least = 0.01, .most = 100})
      ->capture_default_str();
  add_number(
      app, "--frequency-penalty", sampler.frequency,
      "Subtract this from a token's logit for each time that it is in the prompt or the text "
      "so far; 0: off",
      {.least = -100, .most = 100})
      ->capture_default_str();
  add_number(app, "--presence-penalty", sampler.presence,
             "Subtract this from the logits of tokens in the prompt or the text so far; 0: off",
             {.least = -100, .most = 100})
      ->capture_default_str();
}

/// Adds the options of several prompts. Returns --prompts.
CLI::Option* add_batch_options(CLI::App& app, GenerateOptions& options, CLI::Option* prompt) {
  CLI::Option* const prompts =
      app.add_option("--prompts", options.prompts,
                     "File with a prompt in each line: generate after all of them in one batch")
          ->type_name("FILE")
          ->excludes(prompt);
  add_whole_number<std::int64_t>(app, "--batch", options.batch,
                                 "With --prompts: number of sequences that are decoded at the same "
                                 "time",
                                 1, 65536)
      ->capture_default_str()
      ->needs(prompts);
  add_page_options(app, options.page, options.pages);
  for (const char* option : {"--page-size", "--pages"}) app.get_option(option)->needs(prompts);
  app.add_option("--record-mix", options.record_mix,
                 "With --prompts: write the lengths of the sequences to a file for --batch-mix")
      ->type_name("FILE")
      ->needs(prompts);
  return prompts;
}

/// Adds how tokens are drawn.
void add_sampling_options(CLI::App& app, SamplerOptions& sampler) {
  add_number(app, "--temperature", sampler.temperature, "0: always the most likely token",
             {.least = 0})
      ->capture_default_str();
  add_whole_number<std::int64_t>(app, "--top-k", sampler.top_k,
                                 "Sample among this number of the most likely tokens; 0: among all",
                                 0, 1 << 24)
      ->capture_default_str();
  add_number(app, "--top-p", sampler.top_p,
             "Sample among the most likely tokens, up to this total probability",
             {.least = 0, .most = 1, .exclusive = true})
      ->capture_default_str();
  add_number(app, "--min-p", sampler.min_p,
             "Drop tokens below this share of the largest probability", {.least = 0, .most = 1})
      ->capture_default_str();
  add_penalties(app, sampler);
  add_seed(app, sampler.seed, "Seed of sampling");
}

/// Adds the modes, of which each excludes the others, and all but --capture exclude `prompts`.
void add_modes(CLI::App& app, GenerateOptions& options, CLI::Option* prompts) {
  std::vector<CLI::Option*> modes{
      app.add_flag("--explain", options.explain,
                   "Print each operation's configuration, its origin and speedup"),
      add_matrix_options(app, options.matrix),
      app.add_flag("--precompile", options.precompile,
                   "Compile the kernels for text of any length into the cache, and exit"),
      app.add_flag("--trace-layers", options.trace_layers,
                   "Check every stage of every layer against FP64, and diagnose the first wrong "
                   "one"),
      app.add_option("--trace", options.trace,
                     "Write a trace of host and device for Perfetto (JSON)"),
      app.add_option(
          "--capture", options.capture,
          "Record the problems that ran, with their times, for greta-tune from-capture")};
  for (CLI::Option* mode : modes) {
    if (mode->get_name() != "--capture") mode->excludes(prompts);
  }
  for (std::size_t i = 0; i < modes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) modes[i]->excludes(modes[j]);
  }
}

}  // namespace

void add_generate_options(CLI::App& app, Action& action) {
  auto options = std::make_shared<GenerateOptions>();
  app.add_option("--model", options->model,
                 "A Llama: a folder in the format of Hugging Face, a GGUF file, or a checkpoint of "
                 "llama2.c");
  app.add_option(
      "--tokenizer", options->tokenizer,
      "tokenizer.json, tokenizer.model, a tok*.bin or a GGUF file [beside or in the model]");
  auto* prompt = app.add_option("--prompt", options->prompt, "Beginning of the text");
  CLI::Option* prompts = add_batch_options(app, *options, prompt);
  constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
  add_whole_number<std::int64_t>(app, "--tokens", options->tokens,
                                 "Maximum number of tokens to generate", 1, any)
      ->capture_default_str();
  add_whole_number<std::int64_t>(app, "--capacity", options->capacity,
                                 "KV capacity in tokens [prompt and --tokens]", 1, any);
  add_sampling_options(app, options->sampler);
  add_quantize_option(app, options->quantize);
  app.add_option("--sample", options->sample,
                 "Where tokens are drawn: on the device, or on the host from a copy of all logits")
      ->check(CLI::IsMember({"device", "host"}))
      ->type_name("WHERE")
      ->capture_default_str();
  add_runtime_options(app, options->runtime);
  app.add_flag("--no-graph", options->no_graph, "Launch operations one by one");
  app.add_flag(
      "--json", options->json,
      "Print ids, text and times as JSON; also with --explain, --trace-layers and --matrix");
  add_modes(app, *options, prompts);
  app.add_option("--keep-failed", options->keep_failed,
                 "With --trace-layers: keep the kernel of the first wrong stage as a case in this "
                 "folder (docs/diagnose.md) [~/.cache/greta/failed]")
      ->type_name("DIR")
      ->needs(app.get_option("--trace-layers"));
  add_templates_option(app);
  CLI::Option* const matrix = app.get_option("--matrix");
  app.add_option("--export", options->matrix.export_file,
                 "With --matrix: append rows to a CSV file");
  app.add_flag("--no-lock", options->matrix.no_lock,
               "With --matrix: don't wait for another tool that measures on the same card")
      ->needs(matrix);
  const std::vector<CLI::Option*> of_sampling{app.get_option("--top-k"), app.get_option("--top-p"),
                                              app.get_option("--min-p")};
  action = [options, of_sampling] {
    for (const CLI::Option* const option : of_sampling) {
      if (option->count() > 0 && options->sampler.temperature <= 0)
        throw CommandError(exit_usage, option->get_name() +
                                           ": needs a --temperature above 0: without it, each "
                                           "token is the most likely one");
    }
    return generate(*options);
  };
}

}  // namespace greta::tuner::cli
