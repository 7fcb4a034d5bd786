#include "tuner/evaluate/card_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "runtime/device/system/log.hpp"

namespace greta::tuner {
namespace {

std::string content(int descriptor) {
  std::array<char, 512> text{};
  const auto size = pread(descriptor, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(size > 0 ? size : 0)};
}

/// Returns why a file or folder can't be trusted; empty if it can.
std::string distrust(const struct stat& status) {
  if (status.st_uid != geteuid() && status.st_uid != 0) return "belongs to another user";
  // Group write access is accepted: many systems give each user a private group and a matching
  // umask.
  if ((status.st_mode & S_IWOTH) != 0) return "can be written by everybody";
  return {};
}

/// Opens the lock file; returns -1 if there can be none. It is opened relative to its folder's
/// descriptor, so that the folder that was checked is the one that is used.
int open_lock(const std::filesystem::path& folder, const std::string& name) {
  const auto refuse = [&](const std::filesystem::path& path, const std::string& why) {
    log(LogLevel::warning, "no lock on the card: {}: {}", path.string(), why);
    return -1;
  };
  struct stat status {};
  const int directory = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return -1;
  const std::string doubt =
      fstat(directory, &status) != 0 ? std::strerror(errno) : distrust(status);
  if (!doubt.empty()) {
    close(directory);
    return refuse(folder, doubt);
  }
  constexpr int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int file = openat(directory, name.c_str(), flags, 0644);
  const int error = errno;
  close(directory);
  if (file < 0) {
    if (error == ELOOP) return refuse(folder / name, "is a link");
    if (error == EISDIR || error == ENXIO) return refuse(folder / name, "is not a regular file");
    return -1;
  }
  std::string why = "can't be looked at";
  if (fstat(file, &status) == 0) {
    why = !S_ISREG(status.st_mode) ? "is not a regular file" : distrust(status);
    if (why.empty() && status.st_nlink > 1) why = "has another name as well";
  }
  if (why.empty()) return file;
  close(file);
  return refuse(folder / name, why);
}

}  // namespace

std::string CardLock::key(const DeviceInfo& device) {
  if (device.is_cpu()) return "cpu";
  if (!device.card.pci_address.empty()) return device.card.pci_address;
  return device.card.uuid.empty() ? device.fingerprint() : device.card.uuid;
}

CardLock::CardLock(const std::filesystem::path& folder, const std::string& key,
                   const std::string& about,
                   const std::function<void(const std::string& holder)>& announce,
                   const std::atomic<bool>& stop) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  descriptor_ = open_lock(folder, key + ".lock");
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

}  // namespace greta::tuner
