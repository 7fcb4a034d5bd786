#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/layers.hpp"

/// Saves the caller's registers on its stack, stores the stack pointer in *save, and resumes the
/// flow of control that was saved as `load`. Returns when another switch resumes the caller.
extern "C" void greta_fiber_switch(void** save, void* load);

namespace greta::device::hip::host {

/// Prepares an empty stack below `top` (a multiple of 16). Switching to the returned pointer calls
/// body(argument).
void* prepare_stack(std::byte* top, void (*body)(void*), void* argument);

}  // namespace greta::device::hip::host
