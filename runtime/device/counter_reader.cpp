#include "runtime/device/counter_reader.hpp"

namespace greta::device {

Result<std::unique_ptr<CounterReader>> open_counters(Device& device) {
  if (auto* const counters = dynamic_cast<HardwareCounters*>(&device)) {
    return counters->open_counters();
  }
  return Failure{Status::unavailable, device.info().id() + " has no hardware counters", {}};
}

}  // namespace greta::device
