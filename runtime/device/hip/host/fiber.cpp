#include "runtime/device/hip/host/fiber.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "runtime/device/hip/host/fiber_switch.hpp"
#include "runtime/device/hip/host/sanitizer.hpp"

namespace greta::device::hip::host {
namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Fiber Fiber::of_this_thread() {
  Fiber fiber;
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  void* low = nullptr;
  pthread_attr_getstack(&attributes, &low, &fiber.bytes_);
  pthread_attr_destroy(&attributes);
  fiber.low_ = static_cast<std::byte*>(low);
  return fiber;
}

Fiber::Fiber(std::size_t stack_bytes) : bytes_(stack_bytes) {
  void* const memory = mmap(nullptr, page_bytes() + bytes_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<std::byte*>(memory);
  low_ = memory_ + page_bytes();
  if (mprotect(memory_, page_bytes(), PROT_NONE) != 0) {
    munmap(memory_, page_bytes() + bytes_);
    throw std::bad_alloc();
  }
}

Fiber::~Fiber() {
  if (memory_ == nullptr) return;
  if (address_sanitizer().loaded()) address_sanitizer().unpoison(low_, bytes_);
  munmap(memory_, page_bytes() + bytes_);
}

Fiber::Fiber(Fiber&& other) noexcept
    : stack_pointer_(other.stack_pointer_),
      memory_(std::exchange(other.memory_, nullptr)),
      low_(other.low_),
      bytes_(other.bytes_),
      fake_stack_(other.fake_stack_) {}

void Fiber::prepare(void (*body)(void*), void* argument, unsigned color) {
  // The previous body may have been abandoned in the middle of functions.
  if (address_sanitizer().loaded()) address_sanitizer().unpoison(low_, bytes_);
  fake_stack_ = nullptr;
  stack_pointer_ = prepare_stack(low_ + bytes_ - color % 32 * 192, body, argument);
}

void Fiber::change(Fiber& from, Fiber& to) {
  if (!from.sanitized_) return greta_fiber_switch(&from.stack_pointer_, to.stack_pointer_);
  const AddressSanitizer& sanitizer = address_sanitizer();
  sanitizer.start_switch(&from.fake_stack_, to.low_, to.bytes_);
  greta_fiber_switch(&from.stack_pointer_, to.stack_pointer_);
  sanitizer.finish_switch(from.fake_stack_, nullptr, nullptr);
}

void Fiber::arrived() {
  const AddressSanitizer& sanitizer = address_sanitizer();
  if (sanitizer.loaded()) sanitizer.finish_switch(nullptr, nullptr, nullptr);
}

// Unchecked, so that AddressSanitizer has no zones around its variable: those would stay behind on
// the stack of a signal handler, where the next handler has its own variables.
__attribute__((no_sanitize("address"))) void Fiber::escape(Fiber& to) {
  const AddressSanitizer& sanitizer = address_sanitizer();
  if (sanitizer.loaded()) sanitizer.start_switch(nullptr, to.low_, to.bytes_);
  void* nobody = nullptr;
  greta_fiber_switch(&nobody, to.stack_pointer_);
  __builtin_unreachable();
}

bool Fiber::overflowed(const void* address) const {
  const auto* const at = static_cast<const std::byte*>(address);
  return memory_ != nullptr && at >= memory_ && at < low_;
}

}  // namespace greta::device::hip::host
