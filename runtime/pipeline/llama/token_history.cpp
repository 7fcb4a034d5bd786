#include "runtime/pipeline/llama/token_history.hpp"

#include <algorithm>

namespace greta::runtime {

TokenHistory::TokenHistory(const LlamaMemory& memory)
    : device_(memory.history), staged_(memory.staged_history) {
  if (device_) rows_.resize(static_cast<std::size_t>(device_.shape()[0]));
}

std::int64_t TokenHistory::size(std::int64_t row, std::size_t owner) const {
  if (!device_) return 0;
  const Row& now = rows_.at(static_cast<std::size_t>(row));
  return now.owner == owner ? now.size : 0;
}

void TokenHistory::disown() {
  for (Row& row : rows_) row.owner.reset();
}

void TokenHistory::append(Queue& queue, std::int64_t row, std::size_t owner, std::int64_t first,
                          std::span<const std::int32_t> tokens) {
  if (!device_) return;
  Row& now = rows_.at(static_cast<std::size_t>(row));
  const std::int64_t most = device_.shape()[1];
  const auto end = first + static_cast<std::int64_t>(tokens.size());
  auto* const host = reinterpret_cast<std::int32_t*>(staged_.host()) + row * most;
  std::copy(tokens.begin(), tokens.end(), host + first);
  // What another sequence, or this one before it was reset, had in the places after the last token.
  const std::int64_t last = std::max(now.size, end);
  std::fill(host + end, host + last, -1);
  now = {owner, end};
  const auto part = [&](const Tensor& all) {
    return all.slice(0, row, 1).slice(1, first, last - first);
  };
  queue.copy(part(device_), part(staged_)).value();
}

}  // namespace greta::runtime
