#pragma once

// What the lanes of a wave do together. All of it stands on one step: every live lane puts a value
// down, all meet, and each reads what it likes. A wave operation that some live lanes never reach
// ends the launch with a message. Lanes that have ended, or that the block never had, are read as
// bytes 0xFF: NaN, or -1.

#include "thread.hpp"

namespace greta_host {

/// What the lanes put down; valid until this thread's next wave operation but one.
template <typename T>
class Deposits {
 public:
  Deposits(const Slot* slots, unsigned long long lanes) : slots_(slots), lanes_(lanes) {}

  unsigned long long lanes() const { return lanes_; }
  bool has(unsigned lane) const { return (lanes_ >> lane & 1) != 0; }
  /// Of a lane that took part.
  const T& operator[](unsigned lane) const {
    return *reinterpret_cast<const T*>(slots_[lane].bytes);
  }
  T read(unsigned lane) const {
    if (has(lane)) return (*this)[lane];
    T nothing;
    __builtin_memset(&nothing, 0xFF, sizeof nothing);
    return nothing;
  }

 private:
  const Slot* slots_;
  unsigned long long lanes_;
};

template <typename T>
Deposits<T> exchange(const T& mine, Site site) {
  static_assert(sizeof(T) <= slot_bytes, "a lane can hand over 128 bytes at a time");
  Thread& thread = *current;
  Slot* const slots = thread.wave->slots[thread.exchanges++ % 2];
  __builtin_memcpy(slots[thread.lane].bytes, &mine, sizeof mine);
  thread.calls->meet_wave(thread, site);
  return {slots, thread.wave->met};
}

/// exchange() for operations that are defined only when every lane of the hardware takes part.
template <typename T>
Deposits<T> exchange_all(const T& mine, Site site) {
  const auto all = exchange(mine, site);
  constexpr unsigned long long every = warpSize == 64 ? ~0ULL : 0xFFFFFFFFULL;
  if (all.lanes() != every) fail(site, "needs every lane of the wave");
  return all;
}

}  // namespace greta_host

inline unsigned __lane_id() {
  return greta_host::current->lane;
}

// HIP's shuffles: `width` is a power of two, and lanes are counted within groups of that many.
template <typename T>
T __shfl(T value, int from, int width = warpSize, GRETA_HOST_HERE) {
  const auto all = greta_host::exchange(value, greta_host::here("__shfl", file, line));
  const int lane = int(__lane_id());
  return all.read(unsigned((lane & ~(width - 1)) + (from & (width - 1))));
}

template <typename T>
T __shfl_up(T value, unsigned by, int width = warpSize, GRETA_HOST_HERE) {
  const auto all = greta_host::exchange(value, greta_host::here("__shfl_up", file, line));
  const int lane = int(__lane_id()), from = lane - int(by);
  return from < (lane & ~(width - 1)) ? value : all.read(unsigned(from));
}

template <typename T>
T __shfl_down(T value, unsigned by, int width = warpSize, GRETA_HOST_HERE) {
  const auto all = greta_host::exchange(value, greta_host::here("__shfl_down", file, line));
  const int lane = int(__lane_id()), from = lane + int(by);
  return (lane & (width - 1)) + int(by) >= width ? value : all.read(unsigned(from));
}

template <typename T>
T __shfl_xor(T value, int mask, int width = warpSize, GRETA_HOST_HERE) {
  const auto all = greta_host::exchange(value, greta_host::here("__shfl_xor", file, line));
  const int lane = int(__lane_id()), from = lane ^ mask;
  return from >= (lane & ~(width - 1)) + width ? value : all.read(unsigned(from));
}

// Bit i is lane i. The masks of CUDA's forms are not looked at: all live lanes take part.
inline unsigned long long __ballot(int predicate, GRETA_HOST_HERE) {
  const auto all = greta_host::exchange(predicate != 0, greta_host::here("__ballot", file, line));
  unsigned long long bits = 0;
  for (unsigned lane = 0; lane < unsigned(warpSize); ++lane) {
    if (all.has(lane) && all[lane]) bits |= 1ULL << lane;
  }
  return bits;
}

inline int __any(int predicate, GRETA_HOST_HERE) {
  return __ballot(predicate, file, line) != 0;
}
inline int __all(int predicate, GRETA_HOST_HERE) {
  return __ballot(!predicate, file, line) == 0;
}
inline unsigned long long __activemask(GRETA_HOST_HERE) {
  return __ballot(1, file, line);
}

/// The lanes of the wave meet, and see what each other wrote.
inline void __syncwarp(unsigned long long = ~0ULL, GRETA_HOST_HERE) {
  greta_host::exchange('\0', greta_host::here("__syncwarp", file, line));
}

template <typename T>
T __shfl_sync(unsigned long long, T value, int from, int width = warpSize, GRETA_HOST_HERE) {
  return __shfl(value, from, width, file, line);
}
template <typename T>
T __shfl_up_sync(unsigned long long, T value, unsigned by, int width = warpSize, GRETA_HOST_HERE) {
  return __shfl_up(value, by, width, file, line);
}
template <typename T>
T __shfl_down_sync(unsigned long long, T value, unsigned by, int width = warpSize,
                   GRETA_HOST_HERE) {
  return __shfl_down(value, by, width, file, line);
}
template <typename T>
T __shfl_xor_sync(unsigned long long, T value, int mask, int width = warpSize, GRETA_HOST_HERE) {
  return __shfl_xor(value, mask, width, file, line);
}
inline unsigned long long __ballot_sync(unsigned long long, int predicate, GRETA_HOST_HERE) {
  return __ballot(predicate, file, line);
}
inline int __any_sync(unsigned long long, int predicate, GRETA_HOST_HERE) {
  return __any(predicate, file, line);
}
inline int __all_sync(unsigned long long, int predicate, GRETA_HOST_HERE) {
  return __all(predicate, file, line);
}
