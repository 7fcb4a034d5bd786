#pragma once

#include <atomic>

#include "runtime/capture/call.hpp"

namespace greta::capture {

/// Most different calls that a process records. Later ones are counted, but not told apart.
inline constexpr std::uint32_t most_calls = 1 << 16;

/// A kind of call, how often it was made, and the device's time.
struct Entry {
  Call call;
  FactorValue factors[2];               ///< of the first call, where Factor::other
  std::atomic<std::uint64_t> count;     ///< calls that succeeded
  std::atomic<std::uint64_t> timed;     ///< calls whose time is known
  std::atomic<float> least_us;          ///< the least of these times, in microseconds
  std::atomic<std::uint8_t> varies[2];  ///< whether a later call had another value
  std::atomic<bool> ready;              ///< the members above can be read
};

/// Returns the entry of a kind of call, a new one at first; nullptr if the table is full.
/// Lock-free; any thread may call it.
Entry* find_entry(const Call& call, const FactorValue (&factors)[2]);
/// Counts a call of the entry that find_entry() returned. Returns whether it was the first one.
bool count_call(Entry* entry);
/// Adds the time of a call.
void add_time(Entry& entry, float us);

/// Number of entries, from 0 on. Those that are not ready are being written.
std::uint32_t entry_count();
const Entry& entry(std::uint32_t index);
/// Number of calls that found the table full.
std::uint64_t uncounted_calls();

/// Forgets all calls. No other thread may use the table: for children of fork.
void clear_calls();

}  // namespace greta::capture
