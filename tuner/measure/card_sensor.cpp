#include "tuner/measure/card_sensor.hpp"

#include <map>
#include <mutex>

namespace greta::tuner {

CardSensor* card_sensor(const std::string& pci_address) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<CardSensor>> known;
  if (pci_address.empty()) return nullptr;
  const std::lock_guard lock(mutex);
  const auto [found, is_new] = known.try_emplace(pci_address);
  if (is_new) {
    for (const auto open : {open_nvml, open_amd_smi, open_rocm_smi}) {
      found->second = open(pci_address);
      if (found->second) break;
    }
  }
  return found->second.get();
}

}  // namespace greta::tuner
