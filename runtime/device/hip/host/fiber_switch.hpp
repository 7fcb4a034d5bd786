#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/layers.hpp"

/// Keeps the caller's registers on its stack, where *save then points, and goes on where `load`
/// was kept; returns when someone comes back.
extern "C" void greta_fiber_switch(void** save, void* load);

namespace greta::device::hip::host {

/// Makes an empty stack below `top` (a multiple of 16) such that switching to what this returns
/// calls body(argument).
void* prepare_stack(std::byte* top, void (*body)(void*), void* argument);

}  // namespace greta::device::hip::host
