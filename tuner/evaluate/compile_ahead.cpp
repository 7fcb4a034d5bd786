#include "tuner/evaluate/compile_ahead.hpp"

#include <algorithm>

namespace greta::tuner {

Result<std::unique_ptr<Kernel>> CompileAhead::compile(const KernelSource& source) {
  const auto slot = slots_.take();
  return device_.compile(source);
}

std::string CompileAhead::start(const KernelSource& source) {
  const auto key = source.content_key({}, {});
  if (running_.contains(key)) return key;
  {
    const std::lock_guard lock(mutex_);
    compiling_.insert(key);
  }
  running_.emplace(key, std::async(std::launch::async, [this, key, source] {
                     auto kernel =
                         std::make_shared<Result<std::unique_ptr<Kernel>>>(compile(source));
                     const std::lock_guard lock(mutex_);
                     compiling_.erase(key);
                     ended_.notify_all();
                     return kernel;
                   }));
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
  auto compiled = found->second.get();
  running_.erase(found);
  return std::move(*compiled);
}

}  // namespace greta::tuner
