#include "runtime/device/system/fence.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace greta::device {

std::size_t Fence::page() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

Fence::Fence(std::span<std::byte> memory) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::uintptr_t first = (begin + page() - 1) / page() * page();
  const std::uintptr_t end = (begin + memory.size()) / page() * page();
  if (first >= end) return;
  const auto pages = memory.subspan(first - begin, end - first);
  if (mprotect(pages.data(), pages.size(), PROT_NONE) == 0) pages_ = pages;
}

Fence::~Fence() {
  if (closed()) mprotect(pages_.data(), pages_.size(), PROT_READ | PROT_WRITE);
}

}  // namespace greta::device
