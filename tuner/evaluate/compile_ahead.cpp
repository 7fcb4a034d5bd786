#include "tuner/evaluate/compile_ahead.hpp"

#include <algorithm>
#include <utility>

namespace greta::tuner {

Result<std::unique_ptr<Kernel>> CompileAhead::compile(const KernelSource& source) {
  const auto slot = slots_.take();
  return device_.compile(source);
}

/// Tells those who wait that a compilation has ended, also with an exception.
class CompileAhead::Ending {
 public:
  Ending(CompileAhead& compiler, std::string key) : compiler_(compiler), key_(std::move(key)) {}
  ~Ending() {
    const std::lock_guard lock(compiler_.mutex_);
    compiler_.compiling_.erase(key_);
    compiler_.ended_.notify_all();
  }
  Ending(const Ending&) = delete;
  Ending& operator=(const Ending&) = delete;

 private:
  CompileAhead& compiler_;
  const std::string key_;
};

std::string CompileAhead::start(const KernelSource& source) {
  const auto key = source.content_key({}, {});
  if (running_.contains(key)) return key;
  {
    const std::lock_guard lock(mutex_);
    compiling_.insert(key);
  }
  try {
    running_.emplace(key, std::async(std::launch::async, [this, key, source] {
                       const Ending ending(*this, key);
                       return std::make_shared<Result<std::unique_ptr<Kernel>>>(compile(source));
                     }));
  } catch (...) {
    const Ending ending(*this, key);  // no thread could be started
    throw;
  }
  return key;
}

bool CompileAhead::compiled(const std::vector<std::string>& keys) const {
  return std::none_of(keys.begin(), keys.end(),
                      [this](const auto& key) { return compiling_.contains(key); });
}

std::size_t CompileAhead::first_compiled(const std::vector<std::vector<std::string>>& candidates) {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto found = std::find_if(candidates.begin(), candidates.end(),
                                    [this](const auto& keys) { return compiled(keys); });
    if (found != candidates.end()) return static_cast<std::size_t>(found - candidates.begin());
    ended_.wait(lock);
  }
}

Result<std::unique_ptr<Kernel>> CompileAhead::take(const KernelSource& source) {
  const auto found = running_.find(source.content_key({}, {}));
  if (found == running_.end()) return compile(source);
  auto running = std::move(found->second);
  running_.erase(found);
  const auto compiled = running.get();
  return std::move(*compiled);
}

}  // namespace greta::tuner
