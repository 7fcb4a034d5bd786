#include "runtime/device/system/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/device/system/log.hpp"

namespace greta::device {
namespace {

/// For scale: /proc/cpuinfo has about 2 KiB per processor, /proc/self/maps 100 bytes per mapping.
constexpr std::uint64_t most_system_bytes = std::uint64_t{64} << 20;

/// Returns the bytes of a file from its start to its current end, or stops when there are more than
/// `most`.
Result<std::string> read_from(const InputFile& file, std::uint64_t most) {
  std::string content;
  content.reserve(static_cast<std::size_t>(std::min(file.size(), most)));
  std::array<char, 65536> chunk{};
  while (content.size() <= most) {
    const ssize_t n =
        ::pread(file.descriptor(), chunk.data(), chunk.size(), static_cast<off_t>(content.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failure{Status::io, std::strerror(errno), {}};
    if (n == 0) break;
    content.append(chunk.data(), static_cast<std::size_t>(n));
  }
  return content;
}

Failure failure_of(const std::filesystem::path& path, const std::string& why) {
  return {Status::io, fmt::format("{}: {}", path.string(), why), {}};
}

}  // namespace

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: opening a FIFO that has no writer would block. Regular files ignore the flag.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    return failure_of(path, errno == ENXIO ? "is not a regular file" : std::strerror(errno));
  }
  InputFile file(path, descriptor, 0);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return file.failure(std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return file.failure("is a folder");
  if (!S_ISREG(status.st_mode)) return file.failure("is not a regular file");
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_) {}

Failure InputFile::failure(const std::string& why) const {
  return failure_of(path_, why);
}

Result<std::string> InputFile::read(std::uint64_t most_bytes) const {
  std::uint64_t bytes = size_;
  if (bytes <= most_bytes) {
    auto content = read_from(*this, most_bytes);
    if (!content) return failure(content.failure().message);
    bytes = content->size();
    if (bytes <= most_bytes) return content;
  }
  Failure large =
      failure(fmt::format("has more than the {} bytes that such a file may have", most_bytes));
  large.status = Status::invalid_argument;
  return large;
}

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t most_bytes) {
  const auto file = InputFile::open(path);
  if (!file) return file.failure();
  return file->read(most_bytes);
}

std::string read_system_file(const std::filesystem::path& path) {
  const auto file = InputFile::open(path);
  if (!file) return {};
  auto content = read_from(*file, most_system_bytes);
  if (!content) return {};
  if (content->size() > most_system_bytes) {
    log(LogLevel::warning, "{}: only its first {} bytes are read", path.string(),
        most_system_bytes);
    content->resize(most_system_bytes);
  }
  return *std::move(content);
}

}  // namespace greta::device
