#include "runtime/device/hip/hip_backend.hpp"

#include <fmt/format.h>

#include <functional>
#include <mutex>
#include <utility>

#include "runtime/device/hip/hip_device.hpp"

namespace greta::hip {

namespace {

using OpenPlatform = std::function<Result<Platform>()>;

using MadeCompiler = Result<std::unique_ptr<Compiler>>;

/// A device that was found, and what compiles for it unless somebody wants another.
struct FoundCard {
  std::shared_ptr<Card> card;
  std::shared_ptr<const MadeCompiler> compiler;
};

class HipBackend final : public Backend {
 public:
  HipBackend(std::string name, std::vector<OpenPlatform> platforms)
      : name_(std::move(name)), platforms_(std::move(platforms)) {}

  std::string_view name() const override { return name_; }

  Probe probe() override {
    const std::lock_guard lock(mutex_);
    find_cards();
    Probe probe;
    for (const auto& [card, compiler] : cards_) {
      ProbedDevice probed = describe(*card, static_cast<int>(probe.devices.size()), *compiler);
      if (probed.usable && !*compiler) {
        probed.usable = false;
        probed.reason = "no compiler for its kernels: " + compiler->failure().message;
      }
      probe.devices.push_back(std::move(probed));
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
      const auto& card = cards_[static_cast<std::size_t>(index)].card;
      auto compiler = card->platform().create_compiler(options);
      ProbedDevice probed = describe(*card, index, compiler);
      if (!probed.usable) {
        throw Refusal(Status::unavailable,
                      fmt::format("{} is not usable: {}", probed.info.name, probed.reason));
      }
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
      auto opened = open_platform();
      if (!opened) {
        absent_ += (absent_.empty() ? "" : "; ") + opened.failure().message;
        continue;
      }
      const auto platform = std::make_shared<const Platform>(std::move(opened).value());
      const auto compiler = std::make_shared<const MadeCompiler>(platform->create_compiler({}));
      for (int device = 0; device < platform->device_count; ++device) {
        cards_.push_back({std::make_shared<Card>(platform, device), compiler});
      }
    }
  }

  ProbedDevice describe(const Card& card, int index, const MadeCompiler& compiler) const {
    ProbedDevice probed = card.platform().describe(card.device());
    probed.info.backend = name_;
    probed.info.index = index;
    if (compiler) probed.info.compiler = (*compiler)->version();
    return probed;
  }

  std::string name_;
  std::vector<OpenPlatform> platforms_;
  std::mutex mutex_;
  bool searched_ = false;
  std::vector<FoundCard> cards_;
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
