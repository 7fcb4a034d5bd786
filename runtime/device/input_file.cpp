#include "runtime/device/input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace greta {
namespace {

constexpr std::uint64_t most_system_bytes = std::uint64_t{1} << 20;

Failure failure_of(const std::filesystem::path& path, const std::string& why) {
  return {Status::io, fmt::format("{}: {}", path.string(), why), {}};
}

}  // namespace

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  // O_NONBLOCK: a FIFO that nobody writes to would wait; regular files take no notice of it.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    return failure_of(path, errno == ENXIO ? "is no regular file" : std::strerror(errno));
  }
  InputFile file(path, descriptor, 0);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) return file.failure(std::strerror(errno));
  if (S_ISDIR(status.st_mode)) return file.failure("is a folder");
  if (!S_ISREG(status.st_mode)) return file.failure("is no regular file");
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
  const auto too_large = [&] {
    return failure(fmt::format("has more than the {} bytes that such a file may have", most_bytes));
  };
  if (size_ > most_bytes) return too_large();
  std::string content;
  content.reserve(static_cast<std::size_t>(size_));
  std::array<char, 65536> chunk{};
  while (true) {  // to its end, wherever it is by now
    const ssize_t n =
        ::pread(descriptor_, chunk.data(), chunk.size(), static_cast<off_t>(content.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failure(std::strerror(errno));
    if (n == 0) return content;
    content.append(chunk.data(), static_cast<std::size_t>(n));
    if (content.size() > most_bytes) return too_large();
  }
}

Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t most_bytes) {
  const auto file = InputFile::open(path);
  if (!file) return file.failure();
  return file->read(most_bytes);
}

std::string read_system_file(const std::filesystem::path& path) {
  auto content = read_file(path, most_system_bytes);
  return content ? *std::move(content) : std::string();
}

}  // namespace greta
