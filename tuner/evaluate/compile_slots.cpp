#include "tuner/evaluate/compile_slots.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

#include "runtime/device/result.hpp"

namespace greta::tuner {
namespace {

constexpr std::chrono::milliseconds between_tries{2};

}  // namespace

CompileSlots::Slot::~Slot() {
  if (descriptor_ >= 0) close(descriptor_);
}

CompileSlots::Slot::Slot(Slot&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)) {}

CompileSlots::CompileSlots(int count)
    : count_(count), file_(memfd_create("compile slots", MFD_CLOEXEC)) {
  if (file_ < 0) throw Error("no memory for the locks of compilations");
  path_ = fmt::format("/proc/{}/fd/{}", getpid(), file_);
}

CompileSlots::CompileSlots(std::string path, int count) : path_(std::move(path)), count_(count) {}

CompileSlots::~CompileSlots() {
  if (file_ >= 0) close(file_);
}

// A lock belongs to an open file and not to a process, so each slot opens the file anew, and
// threads of one process exclude each other as well.
CompileSlots::Slot CompileSlots::take() const {
  const int descriptor = path_.empty() ? -1 : open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return Slot(-1);
  Slot slot(descriptor);
  for (;; std::this_thread::sleep_for(between_tries)) {
    for (int i = 0; i < count_; ++i) {
      struct flock range {};
      range.l_type = F_WRLCK;
      range.l_whence = SEEK_SET;
      range.l_start = i;
      range.l_len = 1;
      if (fcntl(descriptor, F_OFD_SETLK, &range) == 0) return slot;
    }
  }
}

}  // namespace greta::tuner
