#include "tuner/evaluate/card_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>

namespace greta {
namespace {

std::string content(int descriptor) {
  std::array<char, 512> text{};
  const auto size = pread(descriptor, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(size > 0 ? size : 0)};
}

}  // namespace

std::string CardLock::key(const DeviceInfo& device) {
  if (device.is_cpu()) return "cpu";
  if (!device.pci_address.empty()) return device.pci_address;
  return device.uuid.empty() ? device.fingerprint() : device.uuid;
}

CardLock::CardLock(const std::filesystem::path& folder, const std::string& key,
                   const std::string& about,
                   const std::function<void(const std::string& holder)>& announce,
                   const std::atomic<bool>& stop) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  descriptor_ = open((folder / (key + ".lock")).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) return;
  bool announced = false;
  while (!(held_ = flock(descriptor_, LOCK_EX | LOCK_NB) == 0) && !stop) {
    if (!announced) announce(content(descriptor_));
    announced = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  if (!held_) return;
  const auto text = fmt::format("process {} ({})", getpid(), about);
  if (ftruncate(descriptor_, 0) == 0) {
    static_cast<void>(!pwrite(descriptor_, text.data(), text.size(), 0));
  }
}

CardLock::~CardLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

CardLock::CardLock(CardLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), held_(std::exchange(other.held_, false)) {}

}  // namespace greta
