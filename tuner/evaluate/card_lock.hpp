#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "runtime/device/device_info.hpp"

namespace greta::tuner {

/// Keeps other tuners of this user off a card while one measures there: an advisory lock on a file,
/// which the system gives back when the process ends, however it ends.
class CardLock {
 public:
  /// What a device is measured beside: "cpu" for everything that runs there, else the card's PCI
  /// address, or what stands for it.
  static std::string key(const DeviceInfo& device);

  /// Waits until no other process holds the key, or until `stop`. `announce` is told once whom it
  /// waits for; `about` is what others are told about this one. Without a folder of this user's own
  /// that can be written there is no lock: where everybody may write to the folder or to the file,
  /// where either is somebody else's, and where a link is in the file's place, nothing is touched,
  /// and a warning is logged.
  CardLock(const std::filesystem::path& folder, const std::string& key, const std::string& about,
           const std::function<void(const std::string& holder)>& announce,
           const std::atomic<bool>& stop);
  ~CardLock();
  CardLock(CardLock&& other) noexcept;
  CardLock& operator=(CardLock&&) = delete;

  bool held() const { return held_; }

 private:
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace greta::tuner
