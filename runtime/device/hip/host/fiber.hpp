#pragma once

#include <cstddef>

#include "runtime/device/hip/host/sanitizer.hpp"

namespace greta::device::hip::host {

/// A flow of control with a stack of its own. One OS thread runs a fiber at a time, always the
/// same. A fiber that was left may be abandoned: nothing on its stack is destroyed then.
class Fiber {
 public:
  /// The OS thread's own flow, which comes back when it is switched to.
  static Fiber of_this_thread();
  /// Owns a stack of this many bytes, below which a guard page ends the process's luck. Throws
  /// std::bad_alloc.
  explicit Fiber(std::size_t stack_bytes);
  ~Fiber();
  Fiber(Fiber&& other) noexcept;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next switch to this fiber calls body(argument), which must not return. `color` shifts the
  /// start of the stack, so that many fibers do not compete for the same lines of the cache.
  void prepare(void (*body)(void*), void* argument, unsigned color);

  /// Leaves `from`, which runs, for `to`; returns when someone switches back.
  static void change(Fiber& from, Fiber& to);
  /// To be called first in a body.
  static void arrived();
  /// Leaves for `to` for good, from a signal handler as well.
  [[noreturn]] static void escape(Fiber& to);

  /// Whether an address is in the guard page.
  bool overflowed(const void* address) const;

 private:
  Fiber() = default;

  void* stack_pointer_ = nullptr;  ///< while it does not run
  std::byte* memory_ = nullptr;  ///< of the guard page, and the stack above it; null: the thread's
  std::byte* low_ = nullptr;     ///< end of the stack
  std::size_t bytes_ = 0;        ///< of the stack
  void* fake_stack_ = nullptr;   ///< AddressSanitizer's, while it does not run
  bool sanitized_ = address_sanitizer().loaded();
};

}  // namespace greta::device::hip::host
