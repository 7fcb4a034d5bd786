#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::tuner {

/// A file in memory that processes share.
class SharedFile {
 public:
  SharedFile() : file_(memfd_create("changes", MFD_CLOEXEC)) {
    if (file_ < 0) throw Error("no memory for changed kernels");
  }
  ~SharedFile() { close(file_); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  /// Appends data, which get() returns.
  void put(const void* data, std::size_t bytes) const {
    const std::uint64_t size = bytes;
    if (::write(file_, &size, sizeof size) != sizeof size)
      throw Error("can't write changed kernels");
    const char* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t n = ::write(file_, from, bytes);
      if (n <= 0) throw Error("can't write changed kernels");
      from += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }
  /// Returns the next data.
  template <typename T>
  std::vector<T> get() {
    std::uint64_t size = 0;
    if (pread(file_, &size, sizeof size, at_) != sizeof size) throw Error("changed kernels lack");
    at_ += sizeof size;
    std::vector<T> read(size / sizeof(T));
    if (pread(file_, read.data(), size, at_) != static_cast<ssize_t>(size))
      throw Error("changed kernels lack");
    at_ += static_cast<off_t>(size);
    return read;
  }
  void rewind() { at_ = 0; }
  /// Whether get() has data to return.
  bool has_more() const { return at_ < lseek(file_, 0, SEEK_END); }

 private:
  int file_;
  off_t at_ = 0;
};

/// Memory that processes share, 0 at first.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes)
      : bytes_(bytes + 1),
        data_(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw Error("no memory for changed kernels");
  }
  ~SharedMemory() { munmap(data_, bytes_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  char* data() const { return static_cast<char*>(data_); }

 private:
  std::size_t bytes_;
  void* data_;
};

}  // namespace greta::tuner
