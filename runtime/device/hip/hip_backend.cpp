#include "runtime/device/hip/hip_backend.hpp"

#include <fmt/format.h>

#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/device/hip/hip_device.hpp"

namespace greta::hip {

namespace {

using OpenPlatform = std::function<Result<Platform>()>;

class HipBackend final : public Backend {
 public:
  HipBackend(std::string name, std::vector<OpenPlatform> platforms)
      : name_(std::move(name)), platforms_(std::move(platforms)) {}

  std::string_view name() const override { return name_; }

  Probe probe() override {
    const std::lock_guard lock(mutex_);
    find_cards();
    Probe probe;
    for (std::size_t index = 0; index < cards_.size(); ++index) {
      probe.devices.push_back(describe(index));
    }
    probe.available = !cards_.empty();
    if (!probe.available) probe.reason = absent_;
    return probe;
  }

  Result<std::unique_ptr<Device>> open(int index, const OpenOptions& options) override {
    const std::lock_guard lock(mutex_);
    try {
      find_cards();
      if (index < 0 || static_cast<std::size_t>(index) >= cards_.size()) {
        throw Refusal(Status::unavailable, fmt::format("there is no device {}:{}", name_, index));
      }
      const auto& card = cards_[static_cast<std::size_t>(index)];
      ProbedDevice probed = card->platform().describe(card->device());
      if (!probed.usable) {
        throw Refusal(Status::unavailable,
                      fmt::format("{} is not usable: {}", probed.info.name, probed.reason));
      }
      // Without a compiler there is still load().
      auto compiler = card->platform().create_compiler(options);
      identify(probed.info, index, compiler);
      auto context = std::make_shared<Context>(card, std::move(probed.info), options);
      return std::unique_ptr<Device>(std::make_unique<HipDevice>(
          std::move(context), std::move(compiler), options.cache_directory));
    } catch (const std::exception&) {
      return current_failure();
    }
  }

 private:
  void find_cards() {
    if (searched_) return;
    searched_ = true;
    for (const auto& open_platform : platforms_) {
      auto platform = open_platform();
      if (!platform) {
        absent_ += (absent_.empty() ? "" : "; ") + platform.failure().message;
        continue;
      }
      const auto shared = std::make_shared<const Platform>(std::move(platform).value());
      for (int device = 0; device < shared->device_count; ++device) {
        cards_.push_back(std::make_shared<Card>(shared, device));
      }
    }
  }

  ProbedDevice describe(std::size_t index) const {
    const Platform& platform = cards_[index]->platform();
    ProbedDevice probed = platform.describe(cards_[index]->device());
    const auto compiler = platform.create_compiler({});
    identify(probed.info, static_cast<int>(index), compiler);
    if (!compiler && probed.usable) {
      probed.usable = false;
      probed.reason = "no compiler for its kernels: " + compiler.failure().message;
    }
    return probed;
  }

  void identify(DeviceInfo& info, int index,
                const Result<std::unique_ptr<Compiler>>& compiler) const {
    info.backend = name_;
    info.index = index;
    if (compiler) info.compiler = (*compiler)->version();
  }

  std::string name_;
  std::vector<OpenPlatform> platforms_;
  std::mutex mutex_;
  bool searched_ = false;
  std::vector<std::shared_ptr<Card>> cards_;
  std::string absent_;  ///< why platforms are not there
};

}  // namespace

std::unique_ptr<Backend> create_backend(const Libraries& libraries) {
  return std::make_unique<HipBackend>(
      "hip", std::vector<OpenPlatform>{[=] { return amd_platform(libraries.amd); },
                                       [=] { return nvidia_platform(libraries.nvidia); }});
}

std::unique_ptr<Backend> create_host_backend() {
  return std::make_unique<HipBackend>("hip-host", std::vector<OpenPlatform>{host_platform});
}

}  // namespace greta::hip
