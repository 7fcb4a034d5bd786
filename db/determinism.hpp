#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "kernels/model/reference.hpp"

namespace greta::db {

/// Whether equal runs of a kernel gave equal bits. A verdict states it as a part of its method.
struct Determinism {
  int runs = 0;               ///< on the same inputs
  int busy = 0;               ///< of these on a busy device
  std::size_t differing = 0;  ///< elements whose bits differed; only of variants that declare it
  int planned = 0;            ///< runs that were planned; more than `runs` if they took too long
};

/// Returns "equal bits in 20 runs, 10 of them on a busy device" or "other bits of 3 elements, as
/// sums have no fixed order, in 20 runs, …".
std::string to_text(const Determinism& determinism);
/// Returns what a verdict's method states; nothing if the kernel was not run repeatedly.
std::optional<Determinism> determinism_of(const Verdict& verdict);
/// Returns "equal bits, 20 runs" or "3 elements differ, 20 runs"; empty if it is not known.
std::string short_text(const std::optional<Determinism>& determinism);

}  // namespace greta::db
