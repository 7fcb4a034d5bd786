#include "tuner/bench/host_speed.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <thread>

#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr int attempts = 5;
constexpr int spins = 50'000;
constexpr int round_trips = 20;

}  // namespace

double spin_us() {
  double best = std::numeric_limits<double>::infinity();
  volatile std::uint64_t start = 1;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const Stopwatch watch;
    std::uint64_t value = start;
    for (int i = 0; i < spins; ++i) value = value * 6364136223846793005U + 1442695040888963407U;
    start = value;
    best = std::min(best, watch.seconds() * 1e6);
  }
  return best;
}

double wake_us() {
  std::mutex mutex;
  std::condition_variable changed;
  bool there = false;
  bool done = false;
  std::thread other([&] {
    std::unique_lock lock(mutex);
    while (!done) {
      changed.wait(lock, [&] { return there || done; });
      there = false;
      changed.notify_one();
    }
  });
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < round_trips; ++i) {
    const Stopwatch watch;
    std::unique_lock lock(mutex);
    there = true;
    changed.notify_one();
    changed.wait(lock, [&] { return !there; });
    best = std::min(best, watch.seconds() * 1e6);
  }
  {
    const std::lock_guard lock(mutex);
    done = true;
  }
  changed.notify_one();
  other.join();
  return best;
}

}  // namespace greta::tuner
