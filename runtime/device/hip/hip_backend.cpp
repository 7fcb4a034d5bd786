#include "runtime/device/hip/hip_backend.hpp"

#include <fmt/format.h>

#include <functional>
#include <mutex>
#include <utility>

#include "runtime/device/hip/hip_device.hpp"

namespace greta::device::hip {

namespace {

struct PlatformEntry {
  std::string name;
  std::function<Result<Platform>(bool counters)> open;
};

using MadeCompiler = Result<std::shared_ptr<Compiler>>;

MadeCompiler make_compiler(const Platform& platform, const OpenOptions& options) {
  auto made = platform.create_compiler(options);
  if (!made) return made.failure();
  return std::shared_ptr<Compiler>(*std::move(made));
}

/// Says whether the options name another compiler than the one that is found without them.
bool chooses_compiler(const OpenOptions& options) {
  return !options.compiler.empty() || !options.compile_helper.empty() ||
         options.sanitize != Sanitize::none ||
         options.compile_deadline != OpenOptions{}.compile_deadline;
}

/// A device that was found, and the compiler for it unless the caller chooses another.
struct FoundCard {
  std::shared_ptr<Card> card;
  std::shared_ptr<const MadeCompiler> compiler;
};

class HipBackend final : public Backend {
 public:
  HipBackend(Api api, std::vector<PlatformEntry> platforms)
      : api_(api), platforms_(std::move(platforms)) {}

  Api api() const override { return api_; }

  Probe probe() override {
    const std::lock_guard lock(mutex_);
    find_cards();
    Probe probe;
    for (const auto& [card, compiler] : cards_) {
      ProbedDevice probed = describe(*card, static_cast<int>(probe.devices.size()), *compiler);
      if (probed.usable && !*compiler) {
        probed.usable = false;
        probed.lacks_compiler = true;
        probed.reason = "no compiler for its kernels: " + compiler->failure().message;
      }
      probe.devices.push_back(std::move(probed));
    }
    probe.available = !cards_.empty();
    probe.missing = missing_;
    if (!probe.available) probe.reason = fmt::format("{}", fmt::join(missing_, "; "));
    return probe;
  }

  void prepare_counters() override {
    const std::lock_guard lock(mutex_);
    counters_ = true;
  }

  Result<std::unique_ptr<Device>> open(int index, const OpenOptions& options) override {
    const std::lock_guard lock(mutex_);
    try {
      find_cards();
      if (index < 0 || static_cast<std::size_t>(index) >= cards_.size()) {
        throw Refusal(Status::unavailable,
                      fmt::format("there is no device {}:{}", to_string(api_), index));
      }
      const auto& [card, found] = cards_[static_cast<std::size_t>(index)];
      auto compiler =
          chooses_compiler(options) || !*found ? make_compiler(card->platform(), options) : *found;
      ProbedDevice probed = describe(*card, index, compiler);
      if (!probed.usable) {
        throw Refusal(Status::unavailable,
                      fmt::format("{} is not usable: {}", probed.info.name, probed.reason));
      }
      VendorLibraries libraries = open_libraries(card->platform(), options);
      if (libraries.matrix) probed.info.matrix_library = libraries.matrix->name();
      if (libraries.attention) probed.info.attention_library = libraries.attention->name();
      auto context =
          std::make_shared<Context>(card, std::move(probed.info), options, std::move(libraries));
      return std::unique_ptr<Device>(std::make_unique<HipDevice>(
          std::move(context), std::move(compiler), options.cache_directory));
    } catch (const std::exception&) {
      return current_failure();
    }
  }

 private:
  /// Returns the vendor's libraries if they are wanted.
  static VendorLibraries open_libraries(const Platform& platform, const OpenOptions& options) {
    VendorLibraries libraries;
    const auto open = [&](auto& library, const auto& opens) {
      if (!options.vendor || !opens) return;
      if (auto opened = opens()) library = *std::move(opened);
    };
    open(libraries.matrix, platform.open_matrix_library);
    open(libraries.attention, platform.open_attention_library);
    return libraries;
  }

  void find_cards() {
    if (searched_) return;
    searched_ = true;
    for (const auto& entry : platforms_) {
      auto opened = entry.open(counters_);
      if (!opened) {
        missing_.push_back(fmt::format("{}: {}", entry.name, opened.failure().message));
        continue;
      }
      const auto platform = std::make_shared<const Platform>(std::move(opened).value());
      const auto compiler = std::make_shared<const MadeCompiler>(make_compiler(*platform, {}));
      for (int device = 0; device < platform->device_count; ++device) {
        cards_.push_back({std::make_shared<Card>(platform, device), compiler});
      }
    }
  }

  ProbedDevice describe(const Card& card, int index, const MadeCompiler& compiler) const {
    ProbedDevice probed = card.platform().describe(card.device());
    probed.info.backend = api_;
    probed.info.index = index;
    if (compiler) probed.info.compiler = (*compiler)->version();
    return probed;
  }

  Api api_;
  std::vector<PlatformEntry> platforms_;
  std::mutex mutex_;
  bool searched_ = false;
  bool counters_ = false;  ///< whether the devices' counters will be read
  std::vector<FoundCard> cards_;
  std::vector<std::string> missing_;  ///< absent platforms, and why
};

}  // namespace

std::unique_ptr<Backend> create_backend(const Libraries& libraries) {
  return std::make_unique<HipBackend>(
      Api::hip, std::vector<PlatformEntry>{
                    {"amd", [=](bool counters) { return amd_platform(libraries, counters); }},
                    {"nvidia", [=](bool /*counters*/) { return nvidia_platform(libraries); }}});
}

std::unique_ptr<Backend> create_host_backend() {
  return std::make_unique<HipBackend>(
      Api::hip_host,
      std::vector<PlatformEntry>{{"host", [](bool /*counters*/) { return host_platform(); }}});
}

}  // namespace greta::device::hip
