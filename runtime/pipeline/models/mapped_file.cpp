#include "runtime/pipeline/models/mapped_file.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "runtime/device/result.hpp"
#include "runtime/device/system/input_file.hpp"

namespace greta::runtime {

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path,
                                                   std::uint64_t most_bytes) {
  const auto refuse = [&](Status status, const std::string& why) {
    throw Error(Failure{status, fmt::format("{}: {}", path.string(), why), {}});
  };
  const InputFile file = InputFile::open(path).value();
  if (file.size() > most_bytes) {
    refuse(Status::invalid_argument,
           fmt::format("has {} bytes; such a file may have {} at most", file.size(), most_bytes));
  }
  const auto size = static_cast<std::size_t>(file.size());
  const std::byte* data = nullptr;
  if (size > 0) {
    void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
    if (mapped == MAP_FAILED) refuse(Status::io, std::strerror(errno));
    data = static_cast<const std::byte*>(mapped);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(path, data, size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace greta::runtime
