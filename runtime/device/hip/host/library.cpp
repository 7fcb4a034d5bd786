#include "runtime/device/hip/host/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/device/hip/host/sanitizer.hpp"

namespace greta::device::hip::host {
namespace {

/// Returns a path to an open file that no other call returns, because the loader identifies
/// libraries by path and descriptors are reused. A serial number is encoded in slashes and dots,
/// which do not change the target.
std::string unique_path(int file) {
  static std::atomic<unsigned> serial{0};
  std::string path = "/proc/self";
  for (unsigned n = ++serial; n != 0; n /= 2) path += n % 2 == 0 ? "/" : "/.";
  return fmt::format("{}/fd/{}", path, file);
}

bool write_all(int file, const std::vector<std::byte>& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t n = write(file, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

Failure unavailable(std::string why) {
  return {Status::unavailable, std::move(why), {}};
}

}  // namespace

Result<std::shared_ptr<Library>> Library::load(std::vector<std::byte> image) {
  const std::shared_ptr<Library> library(new Library);
  library->image_ = std::move(image);
  library->summary_ = summarise(library->image_);
  if (library->summary_.sanitized && !address_sanitizer().loaded()) {
    return unavailable("the kernel was built with AddressSanitizer, which this process lacks");
  }
  const auto first = library->copy(0);
  if (!first) return first.failure();
  library->entry_ = *first;
  return library;
}

Library::~Library() {
  for (const auto& copy : copies_) {
    // Another library may be loaded to the same address.
    if (copy.entry != nullptr && address_sanitizer().loaded()) {
      address_sanitizer().unpoison(copy.entry->dynamic, copy.entry->dynamic_bytes);
    }
    if (copy.handle != nullptr) dlclose(copy.handle);
    if (copy.file >= 0) close(copy.file);
  }
}

Result<const greta_host::Entry*> Library::copy(unsigned worker) {
  const std::lock_guard lock(mutex_);
  if (copies_.size() <= worker) copies_.resize(worker + 1);
  Copy& copy = copies_[worker];
  if (copy.entry == nullptr) {
    auto loaded = load_copy();
    if (!loaded) return loaded.failure();
    copy = *loaded;
  }
  if (worker > 0) {
    for (const ElfVariable& constant : summary_.constants) {
      std::memcpy(copy.base + constant.at, copies_.front().base + constant.at, constant.bytes);
    }
  }
  return copy.entry;
}

std::span<std::byte> Library::constant(std::string_view name) const {
  for (const ElfVariable& constant : summary_.constants) {
    if (constant.name == name) return {copies_.front().base + constant.at, constant.bytes};
  }
  return {};
}

Result<Library::Copy> Library::load_copy() const {
  Copy copy;
  copy.file = memfd_create("hip-host", MFD_CLOEXEC);
  if (copy.file < 0 || !write_all(copy.file, image_)) {
    const int error = errno;
    if (copy.file >= 0) close(copy.file);
    return unavailable(fmt::format("no memory for a kernel's library: {}", std::strerror(error)));
  }
  copy.handle = dlopen(unique_path(copy.file).c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string why = copy.handle == nullptr ? dlerror() : "it has no greta_host_entry";
  if (!summary_.symbolized) close(std::exchange(copy.file, -1));
  if (copy.handle != nullptr) {
    copy.entry = static_cast<const greta_host::Entry*>(dlsym(copy.handle, "greta_host_entry"));
  }
  link_map* map = nullptr;
  if (copy.entry != nullptr && dlinfo(copy.handle, RTLD_DI_LINKMAP, &map) == 0) {
    copy.base = reinterpret_cast<std::byte*>(map->l_addr);
    return copy;
  }
  if (copy.handle != nullptr) dlclose(copy.handle);
  if (copy.file >= 0) close(copy.file);
  return unavailable("a kernel's library can't be loaded: " + why);
}

}  // namespace greta::device::hip::host
