#include "runtime/device/validation.hpp"

#include <mutex>
#include <utility>

namespace greta::device {
namespace {

struct Observed {
  std::mutex mutex;
  std::shared_ptr<const ValidationObserver> observer;
};

// Never destroyed: layers may still say something while the process exits.
Observed& observed() {
  static auto* const instance = new Observed;
  return *instance;
}

}  // namespace

void observe_validation(std::shared_ptr<const ValidationObserver> observer) {
  const std::lock_guard lock(observed().mutex);
  observed().observer = std::move(observer);
}

std::shared_ptr<const ValidationObserver> validation_observer() {
  const std::lock_guard lock(observed().mutex);
  return observed().observer;
}

}  // namespace greta::device
