#include "runtime/pipeline/models/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/device/result.hpp"

namespace greta {
namespace {

Error trouble(const std::filesystem::path& path, const char* what) {
  return Error(Failure{Status::io, fmt::format("{}: {}", path.string(), what), {}});
}

/// An open file; closes it at the end.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const Descriptor file(path);
  if (file.number() < 0) throw trouble(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) throw trouble(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw trouble(path, "is a folder");
  if (!S_ISREG(status.st_mode)) throw trouble(path, "is no regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  const std::byte* data = nullptr;
  if (size > 0) {
    void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
    if (mapped == MAP_FAILED) throw trouble(path, std::strerror(errno));
    data = static_cast<const std::byte*>(mapped);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, data, size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace greta
