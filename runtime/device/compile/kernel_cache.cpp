#include "runtime/device/compile/kernel_cache.hpp"

#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/log.hpp"
#include "runtime/device/system/output_file.hpp"
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
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) return warn_once(error.message());
  std::string entry = std::string(magic) + checksum(key, binary);
  entry.append(reinterpret_cast<const char*>(binary.data()), binary.size());
  if (const auto done = replace_file(path(key), entry); !done) warn_once(done.failure().message);
}

void KernelCache::warn_once(const std::string& why) {
  std::call_once(warned_, [&] {
    log(LogLevel::warning, "compiled kernels can't be kept in {}: {}", directory_.string(), why);
  });
}

}  // namespace greta::device
