#include "runtime/pipeline/llama/needs.hpp"

#include <fmt/format.h>

#include <set>
#include <unordered_set>
#include <utility>

#include "runtime/pipeline/compute/pipeline.hpp"
#include "runtime/pipeline/llama/network.hpp"

namespace greta::runtime {
namespace {

/// Allocation granularity of devices in bytes.
constexpr std::uint64_t unit = 256;

std::uint64_t rounded(std::uint64_t bytes) {
  return (bytes + unit - 1) / unit * unit;
}

/// Creates tensors without memory and adds up their sizes.
class Counter {
 public:
  TensorMaker maker() {
    return [this](DType dtype, const Shape& shape, Memory) {
      Tensor tensor = Tensor::placeholder(dtype, shape);
      bytes_ += rounded(tensor.bytes());
      return tensor;
    };
  }
  /// Returns the bytes since the last call.
  std::uint64_t take() { return std::exchange(bytes_, 0); }

 private:
  std::uint64_t bytes_ = 0;
};

double gib(std::uint64_t bytes) {
  return static_cast<double>(bytes) / 0x1p30;
}

/// Adds the memory of sequences, which has this size in all, and of passes.
void count_memory(Runtime& runtime, LlamaNeeds& needs, const LlamaDeviceWeights& weights,
                  const LlamaMemory& memory, const std::set<LlamaPassShape>& shapes,
                  std::uint64_t all) {
  needs.caches = 0;
  for (std::size_t i = 0; i < memory.keys.size(); ++i) {
    needs.caches += rounded(memory.keys[i].bytes()) + rounded(memory.values[i].bytes());
  }
  needs.buffers = all - needs.caches;
  for (const LlamaPassShape& shape : shapes) {
    Pipeline pipeline(runtime);
    record_llama(pipeline, weights, memory, shape);
    const PipelineMemory pass = pipeline.memory().value();
    needs.passes += rounded(pass.arena) + rounded(pass.workspace);
  }
}

struct Caches {
  std::int64_t count, length;  ///< of caches, and in tokens
  std::int64_t tokens;         ///< that a message names
};

LlamaNeeds needs_of(Runtime& runtime, const LlamaConfig& config, DType dtype, Caches caches,
                    const LlamaMemorySizes& sizes, const std::set<LlamaPassShape>& shapes,
                    std::int64_t runners) {
  LlamaNeeds needs;
  needs.runners = runners;
  needs.capacity = caches.tokens;
  needs.weights = weight_bytes(config, dtype);
  needs.caches = cache_bytes(config, dtype, caches.count, caches.length);
  if (needs.total() > runtime.device().info().memory_bytes) return needs;
  Counter counter;
  LlamaDeviceWeights weights = make_weights(config, dtype, counter.maker());
  needs.weights = counter.take();
  needs.repacking = rounded(repacking_bytes(weights));
  const LlamaMemory memory = make_memory(weights, sizes, counter.maker());
  count_memory(runtime, needs, weights, memory, shapes, counter.take());
  return needs;
}

}  // namespace

void LlamaNeeds::check(const DeviceInfo& device) const {
  if (total() <= device.memory_bytes) return;
  std::string shared = runners == 1 ? "" : fmt::format(", these {} times", runners);
  if (repacking > 0) shared += fmt::format("; or while panels are made {:.2f}", gib(repacking));
  throw Error(Failure{
      Status::out_of_memory,
      fmt::format("the model does not fit {}: it needs {:.2f} GiB (weights {:.2f}; caches of {} "
                  "tokens {:.2f}, passes {:.2f}, inputs and outputs {:.2f}{}), of {:.2f} GiB",
                  device.id(), gib(total()), gib(weights), capacity, gib(caches), gib(passes),
                  gib(buffers), shared, gib(device.memory_bytes)),
      {}});
}

LlamaNeeds llama_needs(Runtime& runtime, const LlamaConfig& config, DType dtype,
                       const LlamaOptions& given, std::int64_t prompt_tokens,
                       std::int64_t runners) {
  const LlamaOptions options = given.for_model(config);
  std::set<LlamaPassShape> shapes{{options.batch, 1}};
  for (const std::int64_t tokens :
       llama_passes(prompt_tokens, options.capacity, options.most_tokens)) {
    shapes.insert({options.batch, tokens});
  }
  return needs_of(runtime, config, dtype, {options.batch, options.capacity, options.capacity},
                  LlamaMemorySizes::of(config, options), shapes, runners);
}

LlamaNeeds llama_needs(Runtime& runtime, const LlamaConfig& config, DType dtype,
                       const LlamaBatchOptions& given, const std::set<LlamaPassShape>& shapes,
                       std::int64_t runners) {
  const LlamaBatchOptions options = given.for_model(config);
  return needs_of(runtime, config, dtype,
                  {options.pages, options.page, options.pages * options.page},
                  batch_memory_sizes(config, options), shapes, runners);
}

namespace {

/// Records a pass of placeholders.
Pipeline recorded_pass(Runtime& runtime, const LlamaConfig& config, DType dtype,
                       const LlamaOptions& given, std::int64_t tokens) {
  const LlamaOptions options = given.for_model(config);
  Counter counter;
  LlamaDeviceWeights weights = make_weights(config, dtype, counter.maker());
  const LlamaMemory memory =
      make_memory(weights, LlamaMemorySizes::of(config, options), counter.maker());
  Pipeline pipeline(runtime);
  record_llama(pipeline, weights, memory, {options.batch, tokens});
  return pipeline;
}

}  // namespace

std::vector<RecordedProblem> llama_operations(Runtime& runtime, const LlamaConfig& config,
                                              DType dtype, const LlamaOptions& options,
                                              std::int64_t tokens) {
  return recorded_pass(runtime, config, dtype, options, tokens).recorded();
}

std::vector<ChosenChain> llama_chains(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                      const LlamaOptions& options, std::int64_t tokens) {
  return recorded_pass(runtime, config, dtype, options, tokens).chains();
}

std::vector<Problem> llama_problems(Runtime& runtime, const LlamaConfig& config, DType dtype,
                                    const LlamaOptions& given) {
  const LlamaOptions options = given.for_model(config);
  Counter counter;
  LlamaDeviceWeights weights = make_weights(config, dtype, counter.maker());
  const LlamaMemory memory =
      make_memory(weights, LlamaMemorySizes::of(config, options), counter.maker());
  std::vector<Problem> all;
  std::unordered_set<Problem, ProblemHash> seen;
  for (const std::int64_t tokens : llama_pass_sizes(options.most_tokens)) {
    Pipeline pipeline(runtime);
    record_llama(pipeline, weights, memory, {options.batch, tokens});
    for (Problem& problem : pipeline.problems()) {
      if (seen.insert(problem).second) all.push_back(std::move(problem));
    }
  }
  return all;
}

}  // namespace greta::runtime
