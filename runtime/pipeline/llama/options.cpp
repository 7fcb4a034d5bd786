#include "runtime/pipeline/llama/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/compute/refuse.hpp"

namespace greta::runtime {
namespace {

constexpr std::int64_t least_pass = 16;  ///< smallest pass of more than one token
constexpr std::int64_t least_capacity = 256;

}  // namespace

LlamaOptions LlamaOptions::for_model(const LlamaConfig& config) const {
  LlamaOptions options = *this;
  if (options.capacity == 0) options.capacity = config.max_positions;
  constexpr std::int64_t most_batch = 65536;
  if (options.batch < 1 || options.batch > most_batch) {
    refuse(fmt::format("batch {}: must be between 1 and {}", options.batch, most_batch));
  }
  if (options.most_tokens < 1) {
    refuse(fmt::format("a pass of {} tokens: must be at least 1", options.most_tokens));
  }
  if (options.capacity < 1 || options.capacity > config.max_positions) {
    refuse(fmt::format("a capacity of {} tokens: must be between 1 and the model's {}",
                       options.capacity, config.max_positions));
  }
  options.most_tokens = std::min(options.most_tokens, options.capacity);
  return options;
}

std::int64_t llama_capacity(const LlamaConfig& config, std::int64_t tokens) {
  if (tokens >= config.max_positions) return config.max_positions;
  const auto rounded = std::bit_ceil(static_cast<std::uint64_t>(std::max(tokens, least_capacity)));
  return std::min(config.max_positions, static_cast<std::int64_t>(rounded));
}

std::vector<std::int64_t> llama_capacities(const LlamaConfig& config) {
  std::vector<std::int64_t> all{llama_capacity(config, 1)};
  while (all.back() < config.max_positions) {
    all.push_back(llama_capacity(config, all.back() + 1));
  }
  return all;
}

std::vector<std::int64_t> llama_pass_sizes(std::int64_t most) {
  std::vector<std::int64_t> sizes{1};
  for (std::int64_t size = least_pass; size < most; size *= 2) sizes.push_back(size);
  if (most > 1) sizes.push_back(most);
  return sizes;
}

std::vector<std::int64_t> llama_passes(std::int64_t count, std::int64_t room, std::int64_t most) {
  if (count > room) {
    throw Error(
        Failure{Status::invalid_argument,
                fmt::format("{} tokens do not fit into a cache with space for {}", count, room),
                {}});
  }
  const std::vector<std::int64_t> sizes = llama_pass_sizes(most);
  std::vector<std::int64_t> passes;
  while (count > 0) {
    auto size = std::lower_bound(sizes.begin(), sizes.end(), std::min(count, most));
    while (*size > room) --size;  // padding needs slots, too; one token always fits
    passes.push_back(*size);
    const std::int64_t fed = std::min(*size, count);
    count -= fed;
    room -= fed;
  }
  return passes;
}

}  // namespace greta::runtime
