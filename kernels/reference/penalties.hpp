#pragma once

#include <map>
#include <memory>
#include <vector>

#include "kernels/reference/elements.hpp"

namespace greta::kernels {

/// Logits after the penalties of the tokens in their rows' histories: with a token that occurs
/// `count` times, x / repetition if x > 0, else x * repetition; then minus frequency * count; then
/// minus presence. Error bound: 2u for the quotient, which is rounded towards 0, and u for each
/// other operation, relative to its result; and one rounding to the logits' type.
class PenalisedLogits {
 public:
  /// Reads x, penalties and history.
  explicit PenalisedLogits(const std::vector<HostTensor>& inputs);

  ExpectedOutput expected() const;
  /// Returns the expected logits, rounded to their type.
  HostTensor nearest() const;
  /// Returns whether a logit of a row may be rounded to either of two numbers of a 16-bit type
  /// within the bound, so that a draw need not be that of nearest().
  bool ambiguous(std::int64_t row) const;

 private:
  Expected element(std::int64_t row, std::int64_t col) const;

  KeptTensor x_, penalties_;
  std::vector<std::map<std::int64_t, std::int64_t>> counts_;  ///< of each row, by token
};

}  // namespace greta::kernels
