#pragma once

#include <atomic>

#include "runtime/capture/call.hpp"

namespace greta::capture {

/// Most different calls that a process records. Later ones are counted, but not told apart.
inline constexpr std::uint32_t most_calls = 1 << 16;

/// A kind of call and how often it was made.
struct Entry {
  Call call;
  FactorValue factors[2];               ///< of the first call, where Factor::other
  std::atomic<std::uint64_t> count;     ///< calls
  std::atomic<std::uint8_t> varies[2];  ///< whether a later call had another value
  std::atomic<bool> ready;              ///< the members above can be read
};

/// Counts a call. Lock-free; any thread may call it. Returns whether the call was the first of its
/// kind.
bool count_call(const Call& call, const FactorValue (&factors)[2]);

/// Number of entries, from 0 on. Those that are not ready are being written.
std::uint32_t entry_count();
const Entry& entry(std::uint32_t index);
/// Number of calls that found the table full.
std::uint64_t uncounted_calls();

/// Forgets all calls. No other thread may use the table: for children of fork.
void clear_calls();

}  // namespace greta::capture
