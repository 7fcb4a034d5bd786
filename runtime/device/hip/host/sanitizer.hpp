#pragma once

#include <cstddef>

#include "runtime/device/layers.hpp"

namespace greta::device::hip::host {

/// AddressSanitizer's runtime, if the process has it: built in, or preloaded.
struct AddressSanitizer {
  void (*start_switch)(void** fake_stack, const void* bottom, std::size_t bytes) = nullptr;
  void (*finish_switch)(void* fake_stack, const void** bottom, std::size_t* bytes) = nullptr;
  void (*poison)(const volatile void* address, std::size_t bytes) = nullptr;
  void (*unpoison)(const volatile void* address, std::size_t bytes) = nullptr;

  /// Writes the frames of a return address, one string after the other.
  void (*symbolize)(void* code, const char* form, char* text, std::size_t bytes) = nullptr;

  bool loaded() const { return start_switch != nullptr; }
};

const AddressSanitizer& address_sanitizer();

}  // namespace greta::device::hip::host
