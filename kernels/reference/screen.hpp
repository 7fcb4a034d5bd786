#pragma once

#include <cstdint>
#include <memory>

#include "kernels/model/operation.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/findings.hpp"

namespace greta::kernels {

/// Precomputed expected values and bounds of an output, which determine quickly which elements need
/// a full comparison. Takes 8 bytes per element for types of up to 16 bits and 12 bytes for others.
class Screen {
 public:
  virtual ~Screen() = default;
  /// Returns the first index in first to last - 1 whose error may exceed `ratio` times its bound,
  /// or `last`. Never skips an element that is not finite or not expected to be.
  virtual std::int64_t suspect(const HostTensor& output, std::int64_t first, std::int64_t last,
                               double ratio) const = 0;
};

/// Compares elements first to last - 1 of an output with packed rows: with a screen those that it
/// suspects, else all. Stops at Findings::plenty().
void compare_elements(const ExpectedOutput& expected, const Screen* screen,
                      const HostTensor& output, std::int64_t first, std::int64_t last,
                      Findings& part);

/// Computes all elements on all cores. Returns nullptr if that takes more than 4 GiB or a quarter
/// of the machine's memory.
std::unique_ptr<Screen> make_screen(const ExpectedOutput& expected);

}  // namespace greta::kernels
