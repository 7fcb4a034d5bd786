#include "tests/device/hip/fake/fake_state.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "tests/layers.hpp"

namespace greta::test {

[[gnu::init_priority(200)]] FakeHip fake;  // initialised before it is configured
thread_local int current_device = -1;
[[gnu::init_priority(200)]] std::map<const void*, Object> objects;

namespace {

std::recursive_mutex mutex;

/// Returns the error of a call according to the configured faults, or success.
int run_into_fault(const std::string& name, int number) {
  for (const FakeFault& fault : fake.faults) {
    if (fault.function != name || fault.call != number) continue;
    switch (fault.kind) {
      case FakeFault::Kind::error:
        return fault.error;
      case FakeFault::Kind::gone:
        fake.gone = true;
        [[fallthrough]];
      case FakeFault::Kind::lost:
        fake.sticking[std::max(0, current_device)] = launch_failure;
        return launch_failure;
      case FakeFault::Kind::hang:
        fake.busy = true;
        return success;
      case FakeFault::Kind::block:
        while (true) pause();
    }
  }
  return success;
}

}  // namespace

Call::Call(const char* name, bool needs_device) : name_(name), lock_(mutex) {
  const int number = ++fake.calls[name];
  if (const auto found = fake.fails.find(name); found != fake.fails.end()) error_ = found->second;
  if (error_ == success) error_ = run_into_fault(name, number);
  if (error_ != success || !needs_device) return;
  if (current_device < 0) {
    error_ = no_context;
    return;
  }
  const auto sticking = fake.sticking.find(current_device);
  if (sticking != fake.sticking.end()) error_ = sticking->second;
}

int Call::misused(const std::string& why, int error) const {
  fake.misuse.push_back(std::string(name_) + ": " + why);
  if (fake.tells_misuse) std::fprintf(stderr, "fake HIP: %s\n", fake.misuse.back().c_str());
  return error;
}

void add_object(const void* object, const char* ended_by) {
  objects[object] = {current_device, ended_by};
  ++fake.live[ended_by];
}

bool is_object(const Call& call, const void* object, const char* ended_by) {
  const auto found = objects.find(object);
  const bool there = found != objects.end() && found->second.ended_by == ended_by &&
                     found->second.device == current_device;
  if (!there) call.misused("not an object of this device that is there", invalid_handle);
  return there;
}

bool remove_object(const Call& call, const void* object, const char* ended_by) {
  if (!is_object(call, object, ended_by)) return false;
  objects.erase(object);
  --fake.live[ended_by];
  return true;
}

}  // namespace greta::test
