#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "runtime/device/device_info.hpp"

namespace greta::tuner {

/// Serialises measurements on a card between processes of this user: an advisory lock on a file,
/// which the system releases when the process ends, in whatever way.
class CardLock {
 public:
  /// Returns the key of the lock: "cpu" for every device that runs on the CPU, else the card's PCI
  /// address, or its UUID or fingerprint.
  static std::string key(const DeviceInfo& device);

  /// Waits until no other process holds the key, or until `stop`. `announce` is called once with
  /// the holder's description; `about` describes this process to others. There is no lock without a
  /// writable folder. If the folder or the file belongs to another user or is writable by
  /// everybody, or if the file is a symbolic link, nothing is modified and a warning is logged.
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
