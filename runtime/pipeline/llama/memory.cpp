#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <span>
#include <vector>

#include "runtime/pipeline/llama/network.hpp"

namespace greta::runtime {

LlamaInputs::LlamaInputs(const Tensor& memory, const LlamaPassShape& shape)
    : all(memory.slice(0, 0, shape.inputs())) {
  std::int64_t first = 0;
  const auto next = [&](std::int64_t count) {
    first += count;
    return all.slice(0, first - count, count);
  };
  ids = next(shape.rows());
  positions = next(shape.rows());
  slot = next(shape.batch);
  lengths = next(shape.batch);
  last = next(shape.batch);
  seeds = next(3 * shape.batch).reshape({shape.batch, 3});
  if (shape.pages > 0) {
    block_table = next(shape.pages * shape.batch).reshape({shape.batch, shape.pages});
  }
}

std::uint64_t cache_bytes(const LlamaConfig& config, DType dtype, std::int64_t batch,
                          std::int64_t capacity) {
  const double elements = 2 * static_cast<double>(config.layers) * static_cast<double>(batch) *
                          static_cast<double>(capacity) * static_cast<double>(config.kv_dim());
  const double bytes = bytes_of(dtype, elements);
  // Integers up to 2^53 are exact; larger sizes fit no device.
  return bytes < 0x1p63 ? static_cast<std::uint64_t>(bytes) : std::uint64_t{1} << 63U;
}

LlamaMemorySizes LlamaMemorySizes::of(const LlamaConfig& config, const LlamaOptions& options) {
  const LlamaPassShape largest{options.batch, options.most_tokens};
  return {.cache = {options.batch, config.kv_heads, options.capacity, config.head_dim},
          .capacity = options.capacity,
          .sequences = options.batch,
          .rows = largest.rows(),
          .inputs = largest.inputs(),
          .sample = options.sample,
          .penalties = options.penalties};
}

LlamaMemory make_memory(LlamaDeviceWeights& weights, const LlamaMemorySizes& sizes,
                        const TensorMaker& make) {
  const LlamaConfig& config = weights.config;
  const DType dtype = weights.dtype;
  LlamaMemory memory;
  memory.capacity = sizes.capacity;
  memory.page = sizes.page;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    memory.keys.push_back(make(dtype, sizes.cache, Memory::device));
    memory.values.push_back(make(dtype, sizes.cache, Memory::device));
  }
  memory.rope_table = make(DType::f32, {sizes.capacity, config.head_dim}, Memory::device);
  memory.inputs = make(DType::i32, {sizes.inputs}, Memory::device);
  memory.staged_inputs = make(DType::i32, {sizes.inputs}, Memory::staging);
  if (config.qkv_bias || config.out_bias || config.mlp_bias)
    memory.zeros = make(DType::i32, {sizes.rows}, Memory::device);
  if (config.experts.shared_hidden_dim > 0) {
    memory.numbers = make(DType::i32, {sizes.rows}, Memory::device);
  }
  if (config.formats.given_inputs()) {
    const std::int64_t most = sizes.rows * std::max<std::int64_t>(1, config.experts.top_k);
    memory.ones = make(DType::f32, {most, 1}, Memory::device);
    set_ones(weights, memory.ones);
  }
  memory.logits = make(DType::f32, {sizes.sequences, config.vocab}, Memory::device);
  if (sizes.sample) memory.settings = make(DType::f32, {sizes.sequences, 4}, Memory::device);
  if (sizes.sample && sizes.penalties) {
    memory.penalties = make(DType::f32, {sizes.sequences, 3}, Memory::device);
    memory.history = make(DType::i32, {sizes.sequences, sizes.capacity}, Memory::device);
    memory.staged_history = make(DType::i32, {sizes.sequences, sizes.capacity}, Memory::staging);
  }
  memory.likeliest = make(DType::i32, {sizes.sequences}, Memory::staging);
  return memory;
}

namespace {

/// Uploads the same numbers to each row of a matrix.
void upload_rows(Runtime& runtime, const Tensor& to, std::initializer_list<double> row) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < to.shape()[0]; ++i) {
    for (const double value : row) all.push_back(static_cast<float>(value));
  }
  runtime.upload(to, std::as_bytes(std::span(all))).value();
}

}  // namespace

LlamaMemory allocate_memory(Runtime& runtime, LlamaDeviceWeights& weights,
                            const LlamaMemorySizes& sizes) {
  LlamaMemory memory = make_memory(weights, sizes, runtime.maker());
  const std::vector<float> table = rope_table(weights.config, sizes.capacity);
  runtime.upload(memory.rope_table, std::as_bytes(std::span(table))).value();
  if (memory.zeros) runtime.clear(memory.zeros).value();
  // A vendor's library may multiply values past a sequence's length by zero.
  for (const Tensor& values : memory.values) runtime.clear(values).value();
  if (memory.numbers) {
    std::vector<std::int32_t> numbers(static_cast<std::size_t>(sizes.rows));
    std::iota(numbers.begin(), numbers.end(), 0);
    runtime.upload(memory.numbers, std::as_bytes(std::span(numbers))).value();
  }
  if (memory.ones) upload_rows(runtime, memory.ones, {1});
  if (memory.history) {
    const std::vector<std::int32_t> none(static_cast<std::size_t>(sizes.sequences * sizes.capacity),
                                         -1);
    runtime.upload(memory.history, std::as_bytes(std::span(none))).value();
  }
  return memory;
}

void set_sampling(Runtime& runtime, const LlamaMemory& memory, const SamplerOptions& options) {
  options.check();
  if (!memory.settings) throw Error("LlamaOptions::sample is not set");
  if (options.penalises() && !memory.penalties) throw Error("LlamaOptions::penalties is not set");
  upload_rows(
      runtime, memory.settings,
      {options.temperature, static_cast<double>(options.top_k), options.top_p, options.min_p});
  if (!memory.penalties) return;
  upload_rows(runtime, memory.penalties, {options.repetition, options.frequency, options.presence});
}

}  // namespace greta::runtime
