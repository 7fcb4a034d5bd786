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
