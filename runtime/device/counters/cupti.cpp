#include "runtime/device/counters/cupti.hpp"

#include <fmt/format.h>

#include <utility>

#include "runtime/device/counters/counted_part.hpp"
#include "runtime/device/refusal.hpp"
#include "runtime/device/system/dynamic_library.hpp"

namespace greta::device {
namespace {

using namespace cupti;

constexpr const char* range_name = "greta";
constexpr int most_passes = 1000;  // a library that never has enough must not hang the process

Functions load(const DynamicLibrary& library) {
  Functions all;
  const auto one = [&](auto*& function, const char* name) {
    library.load(function, std::string("cupti") + name).value();
  };
  one(all.GetVersion, "GetVersion");
  one(all.GetResultString, "GetResultString");
  one(all.ProfilerInitialize, "ProfilerInitialize");
  one(all.DeviceGetChipName, "DeviceGetChipName");
  one(all.ProfilerGetCounterAvailability, "ProfilerGetCounterAvailability");
  one(all.ProfilerHostInitialize, "ProfilerHostInitialize");
  one(all.ProfilerHostDeinitialize, "ProfilerHostDeinitialize");
  one(all.ProfilerHostConfigAddMetrics, "ProfilerHostConfigAddMetrics");
  one(all.ProfilerHostGetConfigImageSize, "ProfilerHostGetConfigImageSize");
  one(all.ProfilerHostGetConfigImage, "ProfilerHostGetConfigImage");
  one(all.ProfilerHostEvaluateToGpuValues, "ProfilerHostEvaluateToGpuValues");
  one(all.RangeProfilerEnable, "RangeProfilerEnable");
  one(all.RangeProfilerDisable, "RangeProfilerDisable");
  one(all.RangeProfilerGetCounterDataSize, "RangeProfilerGetCounterDataSize");
  one(all.RangeProfilerCounterDataImageInitialize, "RangeProfilerCounterDataImageInitialize");
  one(all.RangeProfilerSetConfig, "RangeProfilerSetConfig");
  one(all.RangeProfilerStart, "RangeProfilerStart");
  one(all.RangeProfilerStop, "RangeProfilerStop");
  one(all.RangeProfilerPushRange, "RangeProfilerPushRange");
  one(all.RangeProfilerPopRange, "RangeProfilerPopRange");
  one(all.RangeProfilerDecodeData, "RangeProfilerDecodeData");
  one(all.RangeProfilerGetCounterDataInfo, "RangeProfilerGetCounterDataInfo");
  return all;
}

/// What all objects of a reader need.
struct Cupti {
  Functions call;
  CuptiTarget target;
  std::string chip;
  std::vector<std::uint8_t> availability;  ///< which counters this driver gives this process

  /// Throws a Refusal that names the function, unless it succeeded.
  void check(CUptiResult result, const char* function) const {
    if (result == CUPTI_SUCCESS) return;
    const char* text = nullptr;
    const bool known = call.GetResultString(result, &text) == CUPTI_SUCCESS && text != nullptr;
    std::string why = fmt::format(
        "cupti{}: {}", function, known ? std::string(text) : fmt::format("CUPTI error {}", result));
    if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
        result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES) {
      why =
          "the driver permits counters to administrators only (ERR_NVGPUCTRPERM): run as root, or "
          "load the kernel module nvidia with NVreg_RestrictProfilingToAdminUsers=0 (" +
          why + ")";
    }
    throw Refusal(Status::unavailable, why);
  }
};

/// CUPTI's object that plans which counters are read in which pass, and computes their values.
class Host {
 public:
  explicit Host(const Cupti& cupti) : cupti_(cupti) {
    HostInitializeParams initialize{.pChipName = cupti.chip.c_str(),
                                    .pCounterAvailabilityImage = cupti.availability.data()};
    cupti.check(cupti.call.ProfilerHostInitialize(&initialize), "ProfilerHostInitialize");
    object_ = initialize.pHostObject;
  }
  ~Host() {
    HostObjectParams object{.pHostObject = object_};
    cupti_.call.ProfilerHostDeinitialize(&object);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  CUptiResult add(std::vector<const char*> names) {
    ConfigAddMetricsParams add{
        .pHostObject = object_, .ppMetricNames = names.data(), .numMetrics = names.size()};
    return cupti_.call.ProfilerHostConfigAddMetrics(&add);
  }

  std::vector<std::uint8_t> config_image() {
    GetConfigImageSizeParams size{.pHostObject = object_};
    cupti_.check(cupti_.call.ProfilerHostGetConfigImageSize(&size),
                 "ProfilerHostGetConfigImageSize");
    std::vector<std::uint8_t> image(size.configImageSize);
    GetConfigImageParams get{
        .pHostObject = object_, .configImageSize = image.size(), .pConfigImage = image.data()};
    cupti_.check(cupti_.call.ProfilerHostGetConfigImage(&get), "ProfilerHostGetConfigImage");
    return image;
  }

  std::vector<double> values(const std::vector<std::uint8_t>& counter_data,
                             std::vector<const char*> names) {
    std::vector<double> values(names.size());
    EvaluateToGpuValuesParams evaluate{.pHostObject = object_,
                                       .pCounterDataImage = counter_data.data(),
                                       .counterDataImageSize = counter_data.size(),
                                       .rangeIndex = 0,
                                       .ppMetricNames = names.data(),
                                       .numMetrics = names.size(),
                                       .pMetricValues = values.data()};
    cupti_.check(cupti_.call.ProfilerHostEvaluateToGpuValues(&evaluate),
                 "ProfilerHostEvaluateToGpuValues");
    return values;
  }

 private:
  const Cupti& cupti_;
  HostObject object_ = nullptr;
};

/// Counting on a context, from its construction to its destruction.
class Range {
 public:
  explicit Range(const Cupti& cupti) : cupti_(cupti) {
    EnableParams enable{.ctx = cupti.target.context};
    cupti.check(cupti.call.RangeProfilerEnable(&enable), "RangeProfilerEnable");
    object_ = enable.pRangeProfilerObject;
  }
  ~Range() {
    RangeObjectParams object{.pRangeProfilerObject = object_};
    cupti_.call.RangeProfilerDisable(&object);
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  void configure(std::vector<std::uint8_t> config_image, std::vector<const char*> names) {
    config_ = std::move(config_image);
    GetCounterDataSizeParams size{.pRangeProfilerObject = object_,
                                  .pMetricNames = names.data(),
                                  .numMetrics = names.size(),
                                  .maxNumOfRanges = 1,
                                  .maxNumRangeTreeNodes = 1};
    cupti_.check(cupti_.call.RangeProfilerGetCounterDataSize(&size),
                 "RangeProfilerGetCounterDataSize");
    data_.assign(size.counterDataSize, 0);
    CounterDataImageInitializeParams initialize{.pRangeProfilerObject = object_,
                                                .counterDataSize = data_.size(),
                                                .pCounterData = data_.data()};
    cupti_.check(cupti_.call.RangeProfilerCounterDataImageInitialize(&initialize),
                 "RangeProfilerCounterDataImageInitialize");
    SetConfigParams set{.pRangeProfilerObject = object_,
                        .configSize = config_.size(),
                        .pConfig = config_.data(),
                        .counterDataImageSize = data_.size(),
                        .pCounterDataImage = data_.data()};
    cupti_.check(cupti_.call.RangeProfilerSetConfig(&set), "RangeProfilerSetConfig");
  }

  /// Counts the work once, after what prepares it: a flush of the caches also writes back what
  /// CUPTI leaves in them at the start of a pass. Returns whether this was the last pass, or a
  /// failure of the work.
  Result<bool> pass(const std::function<Result<void>()>& prepare,
                    const std::function<Result<void>()>& work) {
    RangeObjectParams object{.pRangeProfilerObject = object_};
    cupti_.check(cupti_.call.RangeProfilerStart(&object), "RangeProfilerStart");
    if (auto prepared = prepare(); !prepared) return prepared.failure();
    PushRangeParams push{.pRangeProfilerObject = object_, .pRangeName = range_name};
    cupti_.check(cupti_.call.RangeProfilerPushRange(&push), "RangeProfilerPushRange");
    if (auto done = work(); !done) return done.failure();
    cupti_.check(cupti_.call.RangeProfilerPopRange(&object), "RangeProfilerPopRange");
    StopParams stop{.pRangeProfilerObject = object_};
    cupti_.check(cupti_.call.RangeProfilerStop(&stop), "RangeProfilerStop");
    return stop.isAllPassSubmitted != 0;
  }

  /// Returns the counts of all passes in CUPTI's form.
  const std::vector<std::uint8_t>& decoded() {
    DecodeDataParams decode{.pRangeProfilerObject = object_};
    cupti_.check(cupti_.call.RangeProfilerDecodeData(&decode), "RangeProfilerDecodeData");
    GetCounterDataInfoParams info{.pCounterDataImage = data_.data(),
                                  .counterDataImageSize = data_.size()};
    cupti_.check(cupti_.call.RangeProfilerGetCounterDataInfo(&info),
                 "RangeProfilerGetCounterDataInfo");
    if (info.numTotalRanges == 0) {
      throw Refusal(Status::unavailable,
                    fmt::format("cuptiRangeProfilerDecodeData: no counts of the work ({} dropped)",
                                decode.numOfRangeDropped));
    }
    return data_;
  }

 private:
  const Cupti& cupti_;
  RangeObject object_ = nullptr;
  std::vector<std::uint8_t> config_;
  std::vector<std::uint8_t> data_;
};

class CuptiReader final : public CounterReader {
 public:
  CuptiReader(Cupti cupti, std::string name)
      : cupti_(std::move(cupti)), source_{std::move(name), cupti_.chip} {}

  const CounterSource& source() const override { return source_; }

  Result<CounterReading> read(const std::vector<std::string>& names,
                              const CountedWork& work) override {
    try {
      cupti_.target.enter();
      return counted(names, work);
    } catch (const std::exception&) {
      return current_failure();
    }
  }

 private:
  /// Returns those of the names that this chip has.
  std::vector<const char*> present(const std::vector<std::string>& names) const {
    std::vector<const char*> found;
    for (const std::string& name : names) {
      if (name.find("__") == std::string::npos) continue;  // of another source
      Host host(cupti_);
      const CUptiResult added = host.add({name.c_str()});
      if (added == CUPTI_SUCCESS) {
        found.push_back(name.c_str());
      } else if (added != CUPTI_ERROR_INVALID_METRIC_NAME && added != invalid_parameter) {
        cupti_.check(added, "ProfilerHostConfigAddMetrics");
      }
    }
    return found;
  }

  Result<CounterReading> counted(const std::vector<std::string>& names, const CountedWork& work) {
    const auto wanted = present(names);
    if (wanted.empty()) {
      return Failure{Status::unavailable,
                     fmt::format("{} knows none of the counters of {}", source_.name, cupti_.chip),
                     {}};
    }
    Host host(cupti_);
    cupti_.check(host.add(wanted), "ProfilerHostConfigAddMetrics");
    Range range(cupti_);
    range.configure(host.config_image(), wanted);
    CounterReading reading{.source = source_, .values = {}, .passes = 0};
    for (bool last = false; !last;) {
      const auto pass = range.pass([&] { return run_part(work, work.prepare); },
                                   [&] { return run_part(work, work.record); });
      if (!pass) return pass.failure();
      last = *pass;
      if (++reading.passes == most_passes && !last) {
        return Failure{Status::unavailable,
                       fmt::format("cuptiRangeProfilerStop: more than {} passes", most_passes),
                       {}};
      }
    }
    const auto values = host.values(range.decoded(), wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) reading.values[wanted[i]] = values[i];
    return reading;
  }

  // Of a name whose beginning is a metric and whose end is none.
  static constexpr CUptiResult invalid_parameter = 1;

  Cupti cupti_;
  CounterSource source_;
};

void learn_chip(Cupti& cupti) {
  GetChipNameParams chip{.deviceIndex = cupti.target.device};
  cupti.check(cupti.call.DeviceGetChipName(&chip), "DeviceGetChipName");
  cupti.chip = chip.pChipName;
  GetCounterAvailabilityParams availability{.ctx = cupti.target.context};
  cupti.check(cupti.call.ProfilerGetCounterAvailability(&availability),
              "ProfilerGetCounterAvailability");
  cupti.availability.resize(availability.counterAvailabilityImageSize);
  availability.pCounterAvailabilityImage = cupti.availability.data();
  cupti.check(cupti.call.ProfilerGetCounterAvailability(&availability),
              "ProfilerGetCounterAvailability");
}

/// CUPTI's numbers: 130001 is of CUDA 13.0, 26 of 12.6.
std::string version_text(std::uint32_t version) {
  return version < 10000 ? fmt::format("CUPTI of version {}", version)
                         : fmt::format("CUPTI {}.{}", version / 10000, version % 10000 / 100);
}

}  // namespace

std::vector<std::string> CuptiTarget::default_libraries() {
  std::vector<std::string> names;
  for (const char* folder :
       {"", "/usr/local/cuda/lib64/", "/usr/local/cuda/targets/x86_64-linux/lib/",
        "/usr/local/cuda/targets/sbsa-linux/lib/", "/usr/local/cuda/extras/CUPTI/lib64/"}) {
    for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
      names.push_back(std::string(folder) + name);
    }
  }
  return names;
}

Result<std::unique_ptr<CounterReader>> open_cupti(CuptiTarget target) {
  try {
    auto library = DynamicLibrary::open(target.libraries);
    if (!library) {
      return Failure{Status::unavailable,
                     "there is no CUPTI, which reads the counters of NVIDIA GPUs: neither "
                     "libcupti.so.13 nor libcupti.so.12 was found, also not in /usr/local/cuda",
                     library.failure().message};
    }
    Cupti cupti{load(*library), std::move(target), {}, {}};
    library->keep_open();
    cupti.target.enter();
    std::uint32_t version = 0;
    cupti.check(cupti.call.GetVersion(&version), "GetVersion");
    InitializeParams initialize;
    cupti.check(cupti.call.ProfilerInitialize(&initialize), "ProfilerInitialize");
    learn_chip(cupti);
    return std::unique_ptr<CounterReader>(
        std::make_unique<CuptiReader>(std::move(cupti), version_text(version)));
  } catch (const std::exception&) {
    return current_failure();
  }
}

}  // namespace greta::device
