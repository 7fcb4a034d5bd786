#include "tuner/model/load_timer.hpp"

#include <set>

namespace greta::tuner::model {

LlamaOptions runner_options(const ModelLoad& load, const LlamaConfig& config) {
  LlamaOptions options;
  options.batch = load.batch;
  options.capacity = llama_capacity(config, load.tokens());
  return options;
}

LlamaBatchOptions batch_options(const ModelLoad& load, const LlamaConfig& config) {
  LlamaBatchOptions options;
  options.sequences = load.batch;
  options.capacity = llama_capacity(config, load.tokens());
  options.page = load.page;
  options.pages = load.pages;
  return options.for_model(config);
}

LlamaNeeds load_needs(Runtime& runtime, const LlamaConfig& config, DType dtype,
                      const ModelLoad& load, std::uint64_t seed, std::int64_t runners) {
  if (!load.mix) {
    return llama_needs(runtime, config, dtype, runner_options(load, config), load.prompt_tokens,
                       runners);
  }
  const LlamaBatchOptions options = batch_options(load, config);
  std::set<LlamaPassShape> shapes;
  for (const auto& [shape, count] :
       count_passes(options, requests_of(*load.mix, config.vocab, seed))) {
    shapes.insert(shape);
  }
  return llama_needs(runtime, config, dtype, options, shapes, runners);
}

std::vector<CountedPass> load_passes(const ModelLoad& load, const LlamaConfig& config,
                                     std::uint64_t seed) {
  std::vector<CountedPass> passes;
  if (!load.mix) {
    const LlamaOptions options = runner_options(load, config);
    passes.push_back({load.batch, 1, static_cast<double>(load.generated_tokens)});
    for (const std::int64_t tokens :
         llama_passes(load.prompt_tokens, options.capacity, options.most_tokens)) {
      passes.push_back({load.batch, tokens, 1});
    }
    return passes;
  }
  for (const auto& [shape, count] :
       count_passes(batch_options(load, config), requests_of(*load.mix, config.vocab, seed))) {
    passes.push_back({shape.batch, shape.tokens, static_cast<double>(count)});
  }
  return passes;
}

std::string_view to_string(ModelPhase phase) {
  switch (phase) {
    case ModelPhase::load:
      return "load";
    case ModelPhase::prompt:
      return "prompt";
    case ModelPhase::decode:
      return "decode";
  }
  return "unknown";
}

}  // namespace greta::tuner::model
