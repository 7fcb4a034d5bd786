#pragma once

#include <cstdint>
#include <memory>

#include "kernels/model/operation.hpp"
#include "kernels/reference/elements.hpp"

namespace greta::kernels {

/// What an output must hold, computed once and kept: tells which elements of a result need to be
/// compared, so that the others cost no more than reading them. For a type of 16 bits it takes 8
/// bytes for each element, for one of 32 bits 12.
class Screen {
 public:
  virtual ~Screen() = default;
  /// The first of the elements first … last-1 whose error may be more than `ratio` times its bound,
  /// or `last`. One that is not finite, or is not expected to be, is never passed over.
  virtual std::int64_t suspect(const HostTensor& output, std::int64_t first, std::int64_t last,
                               double ratio) const = 0;
};

/// Computes all elements, on all cores. Null where that takes more than 4 GiB or a quarter of the
/// machine's memory.
std::unique_ptr<Screen> make_screen(const ExpectedOutput& expected);

}  // namespace greta::kernels
