#include "tuner/evaluate/compile_ahead.hpp"

namespace greta::tuner {

void CompileAhead::start(const KernelSource& source) {
  auto key = source.content_key({}, {});
  if (running_.contains(key)) return;
  running_.emplace(
      std::move(key), std::async(std::launch::async, [this, source] {
        return std::make_shared<Result<std::unique_ptr<Kernel>>>(device_.compile(source));
      }));
}

Result<std::unique_ptr<Kernel>> CompileAhead::take(const KernelSource& source) {
  const auto found = running_.find(source.content_key({}, {}));
  if (found == running_.end()) return device_.compile(source);
  auto compiled = found->second.get();
  running_.erase(found);
  return std::move(*compiled);
}

}  // namespace greta::tuner
