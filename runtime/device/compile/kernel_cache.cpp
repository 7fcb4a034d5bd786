#include "runtime/device/compile/kernel_cache.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/text/hash.hpp"

namespace greta::device {

namespace {

/// Every entry begins with the format's name, followed by a checksum of key and binary.
constexpr std::string_view magic = "GRETA kernel 1\n";
constexpr std::size_t checksum_bytes = 32;
constexpr std::size_t header_bytes = magic.size() + checksum_bytes;
constexpr std::uint64_t most_entry_bytes = std::uint64_t{1} << 30;

std::string checksum(const std::string& key, std::span<const std::byte> binary) {
  Hash hash;
  hash.add(key);
  hash.add(std::string_view(reinterpret_cast<const char*>(binary.data()), binary.size()));
  return hash.hex();
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

/// Writes a file that must not exist yet. Returns 0 or an errno.
int write_file(const std::filesystem::path& path, std::string_view header,
               std::span<const std::byte> binary) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return errno;
  const bool written =
      write_all(file, header) &&
      write_all(file, {reinterpret_cast<const char*>(binary.data()), binary.size()});
  const int error = written ? 0 : errno;
  if (::close(file) != 0 && error == 0) return errno;
  return error;
}

}  // namespace

KernelCache::KernelCache(std::filesystem::path directory)
    : directory_(directory.empty() ? std::move(directory) : directory / "kernels") {}

std::filesystem::path KernelCache::path(const std::string& key) const {
  return directory_ / key;
}

std::optional<std::vector<std::byte>> KernelCache::load(const std::string& key) const {
  if (directory_.empty()) return std::nullopt;
  const auto entry = read_file(path(key), most_entry_bytes);
  if (!entry) return std::nullopt;
  const std::string_view header = std::string_view(*entry).substr(0, header_bytes);
  const auto binary = std::as_bytes(std::span(*entry)).subspan(header.size());
  if (!header.starts_with(magic) || header.substr(magic.size()) != checksum(key, binary)) {
    log(LogLevel::info, "ignoring the damaged cache entry {}", path(key).string());
    return std::nullopt;
  }
  return std::vector<std::byte>(binary.begin(), binary.end());
}

void KernelCache::store(const std::string& key, std::span<const std::byte> binary) {
  if (directory_.empty()) return;
  static std::atomic<unsigned> counter{0};
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) return warn_once(error.message());
  const auto temporary =
      directory_ / fmt::format("{}.{}.{}.tmp", key, ::getpid(), counter.fetch_add(1));
  const int failed = write_file(temporary, std::string(magic) + checksum(key, binary), binary);
  if (failed == 0) std::filesystem::rename(temporary, path(key), error);
  if (failed == 0 && !error) return;
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  warn_once(failed != 0 ? std::strerror(failed) : error.message());
}

void KernelCache::warn_once(const std::string& why) {
  std::call_once(warned_, [&] {
    log(LogLevel::warning, "compiled kernels can't be kept in {}: {}", directory_.string(), why);
  });
}

}  // namespace greta::device
