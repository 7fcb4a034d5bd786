#include "tests/db/lookup/allocations.hpp"

#include <cstdlib>
#include <new>

#include "tests/layers.hpp"

namespace {

thread_local std::size_t count = 0;

}  // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++count;
  return std::malloc(size);
}
void* operator new(std::size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace greta::test {

std::size_t allocations() {
  return count;
}

}  // namespace greta::test
