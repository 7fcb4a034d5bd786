#pragma once

#include <memory>

#include "runtime/device/counter_reader.hpp"
#include "runtime/device/vulkan/context.hpp"

namespace greta::device::vulkan {

/// Prepares a device that will be opened to count (VK_KHR_performance_query): its queue is of the
/// family with the most counters, since drivers have none on some families. Does nothing if it has
/// none at all.
void prepare_counting(PhysicalDevice& physical);

/// Opens the counters of a device that was opened after prepare_counting(). Each is named with its
/// unit, so that a driver that counts something else under a name gives no wrong figure:
///
///   Waves                    a number
///   VRAM read size [bytes]   also [cycles], [ns], [bytes/s], [Hz], [K], [W], [V], [A]
///   VALU Busy [%]            percent, up to 100
///
/// Of counters with the same name and unit, none is read. Throws Refusal, with `unavailable` and
/// the reason if there are none.
std::unique_ptr<CounterReader> open_performance_queries(const std::shared_ptr<Context>& context);

}  // namespace greta::device::vulkan
