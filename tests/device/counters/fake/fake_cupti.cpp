// A library with CUPTI's binary interface. It counts nothing: values are those that tests set. It
// records calls, and what is wrong with them: a structure of another size, or a call out of order.

#include "tests/device/counters/fake/fake_cupti.hpp"

#include <cstring>

#include "runtime/device/counters/cupti_abi.hpp"

using namespace greta::device::cupti;

namespace {

using State = greta::test::FakeCupti;

State& state() {
  static State it;
  return it;
}

/// Begins a call: records it, checks the size, and returns what the test wants it to return.
template <typename Params>
CUptiResult begin(const char* name, const Params* params, std::size_t bytes, bool in_order = true) {
  State& it = state();
  it.calls.emplace_back(name);
  if (params->structSize != bytes || params->pPriv != nullptr) {
    it.misuse.push_back(std::string(name) + ": another size");
    return 1;
  }
  if (!in_order) {
    it.misuse.push_back(std::string(name) + ": out of order");
    return 7;
  }
  const auto found = it.results.find(name);
  return found == it.results.end() ? CUPTI_SUCCESS : found->second;
}

constexpr std::size_t image_bytes = 48;  // of availability, configuration and counters
int host_object;
[[maybe_unused]] int range_object;  // of the whole library

bool has(const char* metric) {
  return state().metrics.count(metric) > 0;
}

}  // namespace

extern "C" {

State* fake_cupti() {
  return &state();
}

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  *version = 130001;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  *text = result == 35   ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
          : result == 7  ? "CUPTI_ERROR_INVALID_OPERATION"
          : result == 26 ? "CUPTI_ERROR_HARDWARE_BUSY"
                         : nullptr;
  return *text == nullptr ? 1 : CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerInitialize(InitializeParams* params) {
  const CUptiResult result = begin("ProfilerInitialize", params, 16);
  if (result == 0) state().initialized = true;
  return result;
}

CUptiResult cuptiDeviceGetChipName(GetChipNameParams* params) {
  params->pChipName = "FAKE100";
  return begin("DeviceGetChipName", params, 32);
}

CUptiResult cuptiProfilerGetCounterAvailability(GetCounterAvailabilityParams* params) {
  const CUptiResult result =
      begin("ProfilerGetCounterAvailability", params, 40, state().initialized);
  if (result == 0 && params->pCounterAvailabilityImage != nullptr)
    std::memset(params->pCounterAvailabilityImage, 1, params->counterAvailabilityImageSize);
  params->counterAvailabilityImageSize = image_bytes;
  return result;
}

CUptiResult cuptiProfilerHostInitialize(HostInitializeParams* params) {
  const bool right = params->profilerType == 0 && std::strcmp(params->pChipName, "FAKE100") == 0 &&
                     params->pCounterAvailabilityImage[image_bytes - 1] == 1;
  const CUptiResult result = begin("ProfilerHostInitialize", params, 48, right);
  if (result != 0) return result;
  ++state().hosts;
  params->pHostObject = reinterpret_cast<HostObject>(&host_object);
  return result;
}

CUptiResult cuptiProfilerHostDeinitialize(HostObjectParams* params) {
  --state().hosts;
  return begin("ProfilerHostDeinitialize", params, 24);
}

CUptiResult cuptiProfilerHostConfigAddMetrics(ConfigAddMetricsParams* params) {
  const CUptiResult result = begin("ProfilerHostConfigAddMetrics", params, 40);
  if (result != 0) return result;
  for (std::size_t i = 0; i < params->numMetrics; ++i) {
    if (!has(params->ppMetricNames[i])) return CUPTI_ERROR_INVALID_METRIC_NAME;
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiProfilerHostGetConfigImageSize(GetConfigImageSizeParams* params) {
  params->configImageSize = image_bytes;
  return begin("ProfilerHostGetConfigImageSize", params, 32);
}

CUptiResult cuptiProfilerHostGetConfigImage(GetConfigImageParams* params) {
  std::memset(params->pConfigImage, 2, params->configImageSize);
  return begin("ProfilerHostGetConfigImage", params, 40, params->configImageSize == image_bytes);
}

CUptiResult cuptiProfilerHostEvaluateToGpuValues(EvaluateToGpuValuesParams* params) {
  const bool right =
      state().decoded && params->rangeIndex == 0 && params->pCounterDataImage[image_bytes - 1] == 3;
  const CUptiResult result = begin("ProfilerHostEvaluateToGpuValues", params, 72, right);
  if (result != 0) return result;
  for (std::size_t i = 0; i < params->numMetrics; ++i) {
    if (!has(params->ppMetricNames[i])) return CUPTI_ERROR_INVALID_METRIC_NAME;
    params->pMetricValues[i] = state().metrics[params->ppMetricNames[i]];
  }
  return CUPTI_SUCCESS;
}

#ifndef FAKE_WITHOUT_RANGES
CUptiResult cuptiRangeProfilerEnable(EnableParams* params) {
  const CUptiResult result = begin("RangeProfilerEnable", params, 32, !state().enabled);
  if (result != 0) return result;
  state().enabled = true;
  ++state().ranges;
  params->pRangeProfilerObject = reinterpret_cast<RangeObject>(&range_object);
  return result;
}
#endif

CUptiResult cuptiRangeProfilerDisable(RangeObjectParams* params) {
  State& it = state();
  const CUptiResult result = begin("RangeProfilerDisable", params, 24, it.enabled);
  --it.ranges;
  it.enabled = it.configured = it.started = it.pushed = it.decoded = false;
  it.done = 0;
  return result;
}

CUptiResult cuptiRangeProfilerGetCounterDataSize(GetCounterDataSizeParams* params) {
  params->counterDataSize = image_bytes;
  const bool right = params->maxNumOfRanges == 1 && params->maxNumRangeTreeNodes >= 1;
  return begin("RangeProfilerGetCounterDataSize", params, 64, right);
}

CUptiResult cuptiRangeProfilerCounterDataImageInitialize(CounterDataImageInitializeParams* params) {
  return begin("RangeProfilerCounterDataImageInitialize", params, 40,
               params->counterDataSize == image_bytes);
}

CUptiResult cuptiRangeProfilerSetConfig(SetConfigParams* params) {
  State& it = state();
  const bool right = it.enabled && params->pConfig[image_bytes - 1] == 2 && params->range == 2 &&
                     params->replayMode == 3 && params->maxRangesPerPass == 1 &&
                     params->numNestingLevels == 1 && params->minNestingLevel == 1;
  const CUptiResult result = begin("RangeProfilerSetConfig", params, 90, right);
  if (result != 0) return result;
  it.configured = true;
  std::memset(params->pCounterDataImage, 3, params->counterDataImageSize);
  return result;
}

CUptiResult cuptiRangeProfilerStart(RangeObjectParams* params) {
  State& it = state();
  const bool right = it.configured && !it.started && it.done < it.passes;
  const CUptiResult result = begin("RangeProfilerStart", params, 24, right);
  if (result == 0) it.started = true;
  return result;
}

CUptiResult cuptiRangeProfilerPushRange(PushRangeParams* params) {
  const bool right = state().started && !state().pushed && params->pRangeName != nullptr;
  const CUptiResult result = begin("RangeProfilerPushRange", params, 32, right);
  if (result == 0) state().pushed = true;
  return result;
}

CUptiResult cuptiRangeProfilerPopRange(RangeObjectParams* params) {
  const CUptiResult result = begin("RangeProfilerPopRange", params, 24, state().pushed);
  if (result == 0) state().pushed = false;
  return result;
}

CUptiResult cuptiRangeProfilerStop(StopParams* params) {
  State& it = state();
  const CUptiResult result = begin("RangeProfilerStop", params, 41, it.started && !it.pushed);
  if (result != 0) return result;
  it.started = false;
  params->isAllPassSubmitted = ++it.done == it.passes ? 1 : 0;
  return result;
}

CUptiResult cuptiRangeProfilerDecodeData(DecodeDataParams* params) {
  State& it = state();
  const CUptiResult result = begin("RangeProfilerDecodeData", params, 32, it.done == it.passes);
  if (result == 0) it.decoded = true;
  return result;
}

CUptiResult cuptiRangeProfilerGetCounterDataInfo(GetCounterDataInfoParams* params) {
  params->numTotalRanges = 1;
  return begin("RangeProfilerGetCounterDataInfo", params, 40, state().decoded);
}
}
