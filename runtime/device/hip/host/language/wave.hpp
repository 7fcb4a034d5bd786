#pragma once

// What the lanes of a wave do together. All of it stands on one step: every live lane puts a value
// down, all meet, and each reads what it likes. A wave operation that some live lanes never reach
// ends the launch with a message. Lanes that have ended, or that the block never had, are read as
// bytes 0xFF: NaN, or -1.

#include "runtime/device/hip/host/language/thread.hpp"

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
    __builtin_memset(static_cast<void*>(&nothing), 0xFF, sizeof nothing);
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

/// exchange() for what is defined only when every lane of the hardware takes part.
template <typename T>
Deposits<T> exchange_all(const T& mine, Site site) {
  const auto all = exchange(mine, site);
  constexpr unsigned long long every = warpSize == 64 ? ~0ULL : 0xFFFFFFFFULL;
  if (all.lanes() != every) fail(site, "needs every lane of the wave");
  return all;
}

/// Lane `from` of the caller's group of `width` lanes; the caller itself where it is outside.
template <typename T>
T shuffle(const T& value, int from, int width, Site site) {
  const auto all = exchange(value, site);
  const int first = int(current->lane) & ~(width - 1);
  return from < first || from >= first + width ? value : all.read(unsigned(from));
}

}  // namespace greta_host

inline unsigned __lane_id() {
  return greta_host::current->lane;
}

// HIP's shuffles: `width` is a power of two, and lanes are counted within groups of that many.
template <typename T>
T __shfl(T value, int from, int width = warpSize,
         greta_host::Site site = greta_host::here("__shfl")) {
  const int first = int(__lane_id()) & ~(width - 1);
  return greta_host::shuffle(value, first + (from & (width - 1)), width, site);
}
template <typename T>
T __shfl_up(T value, unsigned by, int width = warpSize,
            greta_host::Site site = greta_host::here("__shfl_up")) {
  return greta_host::shuffle(value, int(__lane_id()) - int(by), width, site);
}
template <typename T>
T __shfl_down(T value, unsigned by, int width = warpSize,
              greta_host::Site site = greta_host::here("__shfl_down")) {
  return greta_host::shuffle(value, int(__lane_id()) + int(by), width, site);
}
template <typename T>
T __shfl_xor(T value, int mask, int width = warpSize,
             greta_host::Site site = greta_host::here("__shfl_xor")) {
  return greta_host::shuffle(value, int(__lane_id()) ^ mask, width, site);
}

/// Bit i is lane i.
inline unsigned long long __ballot(int predicate,
                                   greta_host::Site site = greta_host::here("__ballot")) {
  const auto all = greta_host::exchange(predicate != 0, site);
  unsigned long long bits = 0;
  for (unsigned lane = 0; lane < unsigned(warpSize); ++lane) {
    if (all.has(lane) && all[lane]) bits |= 1ULL << lane;
  }
  return bits;
}
inline int __any(int predicate, greta_host::Site site = greta_host::here("__any")) {
  return __ballot(predicate, site) != 0;
}
inline int __all(int predicate, greta_host::Site site = greta_host::here("__all")) {
  return __ballot(!predicate, site) == 0;
}
inline unsigned long long __activemask(greta_host::Site site = greta_host::here("__activemask")) {
  return __ballot(1, site);
}

// CUDA's forms. Their masks are not looked at: all live lanes must take part.
template <typename T>
T __shfl_sync(unsigned long long, T value, int from, int width = warpSize,
              greta_host::Site site = greta_host::here("__shfl_sync")) {
  return __shfl(value, from, width, site);
}
template <typename T>
T __shfl_up_sync(unsigned long long, T value, unsigned by, int width = warpSize,
                 greta_host::Site site = greta_host::here("__shfl_up_sync")) {
  return __shfl_up(value, by, width, site);
}
template <typename T>
T __shfl_down_sync(unsigned long long, T value, unsigned by, int width = warpSize,
                   greta_host::Site site = greta_host::here("__shfl_down_sync")) {
  return __shfl_down(value, by, width, site);
}
template <typename T>
T __shfl_xor_sync(unsigned long long, T value, int mask, int width = warpSize,
                  greta_host::Site site = greta_host::here("__shfl_xor_sync")) {
  return __shfl_xor(value, mask, width, site);
}
inline unsigned long long __ballot_sync(unsigned long long, int predicate,
                                        greta_host::Site site = greta_host::here("__ballot_sync")) {
  return __ballot(predicate, site);
}
inline int __any_sync(unsigned long long, int predicate,
                      greta_host::Site site = greta_host::here("__any_sync")) {
  return __any(predicate, site);
}
inline int __all_sync(unsigned long long, int predicate,
                      greta_host::Site site = greta_host::here("__all_sync")) {
  return __all(predicate, site);
}
/// The lanes of the wave meet, and see what each other wrote.
inline void __syncwarp(unsigned long long = ~0ULL,
                       greta_host::Site site = greta_host::here("__syncwarp")) {
  greta_host::exchange('\0', site);
}
