#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/pipeline/compute/queue.hpp"
#include "runtime/pipeline/llama/network.hpp"

namespace greta::runtime {

/// The earlier tokens of the rows of a pass, which Operations::sample() penalises. They stay in
/// device memory, LlamaMemory::history: a pass appends the tokens that it feeds, by copies on its
/// stream before it runs. Places without a token have -1.
class TokenHistory {
 public:
  /// The history has no token. With memory without one, append() does nothing.
  explicit TokenHistory(const LlamaMemory& memory);

  /// Returns the number of tokens of a row of `owner`; 0 if the row's tokens are another one's.
  std::int64_t size(std::int64_t row, std::size_t owner) const;
  /// Sets the tokens of a row from number `first` on, which is at most size(), to these, and
  /// removes what followed. The work is on the queue, and must be done before the next call. Throws
  /// Error.
  void append(Queue& queue, std::int64_t row, std::size_t owner, std::int64_t first,
              std::span<const std::int32_t> tokens);
  /// All rows' tokens are another one's.
  void disown();

 private:
  struct Row {
    std::optional<std::size_t> owner{};
    std::int64_t size = 0;
  };

  Tensor device_, staged_;
  std::vector<Row> rows_;
};

}  // namespace greta::runtime
