#include "runtime/device/hip/host/queue.hpp"

#include <thread>
#include <utility>

namespace greta::device::hip::host {

Command::Command(Launch its_launch, bool may_overlap)
    : run([its_launch](Execution& execution) { its_launch(execution, Executor::instance(), {}); }),
      launch(its_launch),
      overlaps(may_overlap) {}

void run_graph(const std::vector<Command>& commands, Execution& execution, bool turn) {
  std::size_t done = 0;  // commands that have run
  const auto run_waited_for = [&](std::size_t end) {
    for (; done < end && !execution.over(); ++done) {
      const Command& command = commands[done];
      command.launch ? command.launch(execution, Executor::for_earlier(), {})
                     : command.run(execution);
    }
  };
  for (std::size_t i = 0; i < commands.size() && !execution.over(); ++i) {
    if (!commands[i].overlaps) continue;
    turn = !turn;
    if (!turn) continue;
    std::once_flag once;
    const std::function<void()> earlier = [&] { std::call_once(once, [&] { run_waited_for(i); }); };
    commands[i].launch(execution, Executor::instance(), earlier);
    earlier();  // where no thread waited for it
    done = i + 1;
  }
  for (; done < commands.size() && !execution.over(); ++done) commands[done].run(execution);
}

void Failed::set(Fault fault) {
  const std::lock_guard lock(mutex_);
  if (failed_) return;
  fault_ = std::move(fault);
  failed_ = true;
}

Fault Failed::get() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

struct Queue::State {
  Execution execution;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Command> commands;
  bool running = false;
  bool closed = false;

  bool idle() const { return commands.empty() && !running; }
};

Queue::Queue(std::shared_ptr<Failed> failed) : state_(std::make_shared<State>()) {
  state_->execution.failed = std::move(failed);
  std::thread([state = state_] { work(state); }).detach();
}

Queue::~Queue() {
  const std::lock_guard lock(state_->mutex);
  state_->closed = true;
  state_->changed.notify_all();
}

void Queue::work(const std::shared_ptr<State>& state) {
  std::unique_lock lock(state->mutex);
  for (;;) {
    state->changed.wait(lock, [&] { return state->closed || !state->commands.empty(); });
    if (state->commands.empty()) return;
    std::optional<Command> command = std::move(state->commands.front());
    state->commands.pop_front();
    state->running = true;
    lock.unlock();
    if (!state->execution.over()) command->run(state->execution);
    command.reset();  // releases its objects before the queue is idle
    lock.lock();
    state->running = false;
    if (state->idle()) state->changed.notify_all();
  }
}

void Queue::push(Command command) {
  const std::lock_guard lock(state_->mutex);
  state_->commands.push_back(std::move(command));
  state_->changed.notify_all();
}

bool Queue::idle() const {
  const std::lock_guard lock(state_->mutex);
  return state_->idle();
}

void Queue::cancel() {
  state_->execution.cancelled = true;
}

bool Queue::wait_idle(std::chrono::nanoseconds deadline) const {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, deadline, [this] { return state_->idle(); });
}

std::uint64_t Marker::start() {
  const std::lock_guard lock(mutex_);
  return ++started_;
}

void Marker::reach(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  reached_ = number;
  time_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

std::optional<bool> Marker::reached() const {
  const std::lock_guard lock(mutex_);
  if (started_ == 0) return std::nullopt;
  return reached_ == started_;
}

std::uint64_t Marker::last() const {
  const std::lock_guard lock(mutex_);
  return started_;
}

void Marker::wait(std::uint64_t number, const Execution& execution) const {
  std::unique_lock lock(mutex_);
  // The stream that should reach it may have failed or been cancelled, which sends no notification.
  while (reached_ < number && !execution.over()) {
    changed_.wait_for(lock, std::chrono::milliseconds(5));
  }
}

std::chrono::steady_clock::time_point Marker::time() const {
  const std::lock_guard lock(mutex_);
  return time_;
}

}  // namespace greta::device::hip::host
