#include "tuner/bundle/archive.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block_bytes = 512;

Failure io_failure(const fs::path& file, int error) {
  return {
      Status::io, fmt::format("{}: can't be written: {}", file.string(), std::strerror(error)), {}};
}

Failure is_there(const fs::path& file) {
  return {Status::invalid_argument, fmt::format("{}: already exists", file.string()), {}};
}

/// The POSIX header of a file, in which numbers are octal text.
struct Header {
  std::array<char, 100> name{};
  std::array<char, 8> mode{}, uid{}, gid{};
  std::array<char, 12> size{}, time{};
  std::array<char, 8> checksum{};
  char type = '0';
  std::array<char, 100> link{};
  std::array<char, 8> magic{'u', 's', 't', 'a', 'r', '\0', '0', '0'};
  std::array<char, 32> user{}, group{};
  std::array<char, 8> major{}, minor{};
  std::array<char, 155> prefix{};
  std::array<char, 12> unused{};
};
static_assert(sizeof(Header) == block_bytes);

template <std::size_t Size>
void put_number(std::array<char, Size>& field, std::uint64_t value) {
  const std::string digits = fmt::format("{:0{}o}", value, Size - 1);
  std::copy(digits.begin(), digits.end(), field.begin());
}

/// Stores the path, split into two parts if it is long.
void put_path(Header& header, const std::string& path) {
  std::string_view name = path;
  if (name.size() > header.name.size()) {
    const auto slash = name.find('/', name.size() - header.name.size() - 1);
    if (slash == std::string_view::npos || slash > header.prefix.size()) {
      throw Error(fmt::format("{}: too long for an archive", path));
    }
    std::copy_n(name.begin(), slash, header.prefix.begin());
    name.remove_prefix(slash + 1);
  }
  std::copy(name.begin(), name.end(), header.name.begin());
}

std::string header_of(const ArchiveFile& file, std::int64_t seconds) {
  Header header;
  put_path(header, file.path);
  put_number(header.mode, 0644);
  put_number(header.uid, 0);
  put_number(header.gid, 0);
  put_number(header.size, file.contents.size());
  put_number(header.time, static_cast<std::uint64_t>(seconds));
  std::fill(header.checksum.begin(), header.checksum.end(), ' ');  // as the checksum is defined
  std::string bytes(block_bytes, '\0');
  std::memcpy(bytes.data(), &header, block_bytes);
  unsigned sum = 0;
  for (const char byte : bytes) sum += static_cast<unsigned char>(byte);
  const std::string digits = fmt::format("{:06o}", sum);
  bytes.replace(offsetof(Header, checksum), 8, digits + std::string("\0 ", 2));
  return bytes;
}

/// A file with a temporary name until it is published. It is removed if it was not published.
class Draft {
 public:
  explicit Draft(const fs::path& file) : file_(file) {
    const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
    name_ = (folder / ("." + file.filename().string() + ".XXXXXX")).string();
    descriptor_ = mkostemp(name_.data(), O_CLOEXEC);
  }
  ~Draft() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    unlink(name_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  int descriptor() const { return descriptor_; }

  /// Renames it to its final name, unless that file exists.
  Result<void> publish() const {
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(descriptor_, 0666 & ~mask) != 0 || fsync(descriptor_) != 0) {
      return io_failure(file_, errno);
    }
    if (link(name_.c_str(), file_.c_str()) == 0) return {};
    if (errno == EEXIST) return is_there(file_);
    if (renameat2(AT_FDCWD, name_.c_str(), AT_FDCWD, file_.c_str(), RENAME_NOREPLACE) == 0) {
      return {};  // file systems without links
    }
    return errno == EEXIST ? is_there(file_) : io_failure(file_, errno);
  }

 private:
  fs::path file_;
  std::string name_;
  int descriptor_ = -1;
};

/// Writes a gzip stream to a file and keeps the first error.
class GzipStream {
 public:
  explicit GzipStream(int descriptor) : stream_(gzdopen(dup(descriptor), "wb9")) {}
  ~GzipStream() {
    if (stream_ != nullptr) gzclose(stream_);
  }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  void write(std::string_view bytes) {
    while (!bytes.empty() && good_) {
      const std::string_view piece = bytes.substr(0, std::size_t{1} << 20);
      errno = 0;
      good_ = stream_ != nullptr &&
              gzwrite(stream_, piece.data(), static_cast<unsigned>(piece.size())) > 0;
      if (!good_) error_ = errno != 0 ? errno : EIO;
      bytes.remove_prefix(piece.size());
    }
  }
  /// Returns 0, or the first error.
  int finish() {
    errno = 0;
    const bool closed = stream_ != nullptr && gzclose(stream_) == Z_OK;
    stream_ = nullptr;
    if (!good_) return error_;
    return closed ? 0 : errno != 0 ? errno : EIO;
  }

 private:
  gzFile stream_;
  bool good_ = true;
  int error_ = 0;
};

}  // namespace

Result<void> check_archive(const fs::path& file) {
  std::error_code error;
  if (fs::symlink_status(file, error).type() != fs::file_type::not_found) return is_there(file);
  if (Draft(file).descriptor() < 0) return io_failure(file, errno);
  return {};
}

Result<void> write_archive(const fs::path& file, const std::vector<ArchiveFile>& files,
                           std::int64_t seconds) {
  const Draft draft(file);
  if (draft.descriptor() < 0) return io_failure(file, errno);
  GzipStream stream(draft.descriptor());
  for (const ArchiveFile& entry : files) {
    stream.write(header_of(entry, seconds));
    stream.write(entry.contents);
    const std::size_t rest = entry.contents.size() % block_bytes;
    if (rest != 0) stream.write(std::string(block_bytes - rest, '\0'));
  }
  stream.write(std::string(2 * block_bytes, '\0'));
  if (const int error = stream.finish(); error != 0) return io_failure(file, error);
  return draft.publish();
}

}  // namespace greta::tuner
