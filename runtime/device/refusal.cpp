#include "runtime/device/refusal.hpp"

#include <new>

namespace greta {

Failure current_failure() {
  try {
    throw;
  } catch (const Refusal& refusal) {
    return refusal.failure();
  } catch (const Error& error) {  // the value of a failed Result was read
    return {error.status(), error.what(), {}};
  } catch (const std::bad_alloc&) {
    return {Status::out_of_memory, "out of host memory", {}};
  } catch (const std::exception& error) {
    return {Status::launch, error.what(), {}};
  }
}

}  // namespace greta
