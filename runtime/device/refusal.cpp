#include "runtime/device/refusal.hpp"

#include <mutex>
#include <new>
#include <vector>

namespace greta::device {

Failure current_failure() {
  try {
    throw;
  } catch (const Refusal& refusal) {
    return refusal.failure();
  } catch (const Error& error) {  // code read the value of a failed Result
    return {error.status(), error.what(), {}};
  } catch (const std::bad_alloc&) {
    return {Status::out_of_memory, "out of host memory", {}};
  } catch (const std::exception& error) {
    return {Status::launch, error.what(), {}};
  }
}

void abandon(std::uint64_t handle) {
  static auto* const mutex = new std::mutex;
  static auto* const handles = new std::vector<std::uint64_t>;
  const std::lock_guard lock(*mutex);
  handles->push_back(handle);
}

}  // namespace greta::device
