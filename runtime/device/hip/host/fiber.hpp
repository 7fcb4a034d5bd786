#pragma once

#include <cstddef>

#include "runtime/device/hip/host/sanitizer.hpp"

namespace greta::device::hip::host {

/// A flow of control with its own stack. A fiber runs on one OS thread, always the same one. A
/// fiber may be abandoned while it is not running; in that case no destructors run for its stack.
class Fiber {
 public:
  /// Returns the OS thread's own flow of control, which continues when it is switched to.
  static Fiber of_this_thread();
  /// Allocates a stack of this many bytes with a guard page below it. Throws std::bad_alloc.
  explicit Fiber(std::size_t stack_bytes);
  ~Fiber();
  Fiber(Fiber&& other) noexcept;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Prepares the fiber so that the next switch to it calls body(argument), which must not return.
  /// `color` shifts the start of the stack, so that many fibers do not compete for the same cache
  /// lines.
  void prepare(void (*body)(void*), void* argument, unsigned color);

  /// Switches from `from`, which is running, to `to`. Returns when another fiber switches back.
  static void change(Fiber& from, Fiber& to);
  /// A body must call this first.
  static void arrived();
  /// Switches to `to` without a way back. It may be called in a signal handler.
  [[noreturn]] static void escape(Fiber& to);

  /// Whether an address is in the guard page.
  bool overflowed(const void* address) const;

 private:
  Fiber() = default;

  void* stack_pointer_ = nullptr;  ///< while the fiber is not running
  std::byte* memory_ = nullptr;    ///< guard page and the stack above it; null: the OS thread's
  std::byte* low_ = nullptr;       ///< lowest address of the stack
  std::size_t bytes_ = 0;          ///< size of the stack
  void* fake_stack_ = nullptr;     ///< AddressSanitizer's, while not running
  bool sanitized_ = address_sanitizer().loaded();
};

}  // namespace greta::device::hip::host
