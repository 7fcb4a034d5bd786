#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "runtime/device/hip/host/block_state.hpp"

namespace greta::device::hip::host {

std::string BlockRunner::describe(State state) const {
  const Thread* first = nullptr;
  unsigned number = 0;
  for (unsigned i = 0; i < count_; ++i) {
    if (threads_[i].state != state) continue;
    if (first == nullptr) first = &threads_[i];
    ++number;
  }
  if (first == nullptr) return {};
  const std::string threads =
      number == 1 ? fmt::format("; thread {} ", text(first->index))
                  : fmt::format("; {} threads, the first of them {}, ", number, text(first->index));
  if (state == State::ended) return threads + (number == 1 ? "has ended" : "have ended");
  return threads + (number == 1 ? "waits in " : "wait in ") + text(first->site);
}

Fault BlockRunner::stuck() const {
  return {false, fmt::format("no thread of block {} can go on{}{}{}", text(threads_[0].block),
                             describe(State::at_barrier), describe(State::in_wave),
                             describe(State::ended))};
}

unsigned BlockRunner::number(const Thread& thread) const {
  return static_cast<unsigned>(&thread - threads_.data());
}

void BlockRunner::access(greta_host::Thread& thread, const void* at, unsigned bytes,
                         greta_host::Access access, const void* code) {
  BlockRunner& runner = *self(thread).runner;
  const Outside outside(runner);
  runner.check(runner.races_->access(runner.number(self(thread)), at, bytes, access, code));
}

void BlockRunner::fence(greta_host::Thread& thread) {
  BlockRunner& runner = *self(thread).runner;
  runner.races_->fence(runner.number(self(thread)));
}

void BlockRunner::call(greta_host::Thread& thread, const void* code) {
  BlockRunner& runner = *self(thread).runner;
  const Outside outside(runner);
  runner.races_->call(runner.number(self(thread)), code);
}

void BlockRunner::check(const std::optional<Race>& race) {
  if (!race) return;
  static std::mutex first;  // never unlocked: the process ends
  first.lock();
  const std::string report =
      race_report(*race, launch_->block, launch_->wave_size, *entry_, *launch_->summary);
  [[maybe_unused]] const auto written = write(STDERR_FILENO, report.data(), report.size());
  in_kernel_ = 1;  // for report()
  std::abort();
}

void BlockRunner::report() const {
  if (in_kernel_ == 0) return;
  const auto& [x, y, z] = current_->index;
  const auto& [bx, by, bz] = current_->block;
  std::array<char, 200> line{};
  const int bytes =
      std::snprintf(line.data(), line.size(),
                    "hip-host: it was thread (%u,%u,%u) of block (%u,%u,%u) of the kernel %s\n", x,
                    y, z, bx, by, bz, entry_->name);
  const auto size = std::min(line.size() - 1, static_cast<std::size_t>(std::max(bytes, 0)));
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line.data(), size);
}

Fault BlockRunner::interruption() const {
  const std::string who =
      fmt::format("thread {} of block {}", text(current_->index), text(current_->block));
  if (signal_ == SIGURG) return {false, "stopped while running " + who};
  if (current_->fiber->overflowed(signal_address_)) {
    return {true,
            fmt::format("{} needs more than {} KiB of private memory", who, stack_bytes >> 10)};
  }
  if (signal_ == SIGFPE) return {true, "an integer division by zero by " + who};
  if (signal_ == SIGILL) return {true, "an illegal instruction or unreachable code in " + who};
  return {true, fmt::format("an access to the illegal address {} by {}", signal_address_, who)};
}

}  // namespace greta::device::hip::host
