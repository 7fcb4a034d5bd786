#include "runtime/device/kernel_cache.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/device/hash.hpp"
#include "runtime/device/log.hpp"

namespace greta {

namespace {

/// The first bytes of every entry: the format's name, then a checksum over key and binary.
constexpr std::string_view magic = "GRETA kernel 1\n";
constexpr std::size_t checksum_bytes = 32;
constexpr std::size_t header_bytes = magic.size() + checksum_bytes;

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
  std::error_code ignored;
  if (directory_.empty() || !std::filesystem::is_regular_file(path(key), ignored)) {
    return std::nullopt;
  }
  std::ifstream file(path(key), std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  const std::streamoff size = file.tellg();
  if (size < static_cast<std::streamoff>(header_bytes)) return std::nullopt;
  std::array<char, header_bytes> header{};
  std::vector<std::byte> binary(static_cast<std::size_t>(size) - header_bytes);
  file.seekg(0);
  file.read(header.data(), header.size());
  file.read(reinterpret_cast<char*>(binary.data()), static_cast<std::streamsize>(binary.size()));
  if (!file) return std::nullopt;
  const std::string_view text(header.data(), header.size());
  if (!text.starts_with(magic) || text.substr(magic.size()) != checksum(key, binary)) {
    log(LogLevel::info, "ignoring the damaged cache entry {}", path(key).string());
    return std::nullopt;
  }
  return binary;
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

}  // namespace greta
