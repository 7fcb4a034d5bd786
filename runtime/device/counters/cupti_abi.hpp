#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/layers.hpp"

/// The part of CUPTI's binary interface (12.6 to 13) that GRETA uses, so that no header of NVIDIA's
/// is needed to build. Each call takes one structure, which begins with its size up to the end of
/// its last field. Names of functions, fields and enumerators are CUPTI's.
namespace greta::device::cupti {

using CUptiResult = int;
inline constexpr CUptiResult CUPTI_SUCCESS = 0;
inline constexpr CUptiResult CUPTI_ERROR_INVALID_METRIC_NAME = 17;
inline constexpr CUptiResult CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35;
inline constexpr CUptiResult CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES = 40;

inline constexpr int CUPTI_PROFILER_TYPE_RANGE_PROFILER = 0;
inline constexpr int CUPTI_UserRange = 2;   ///< counts between push and pop
inline constexpr int CUPTI_UserReplay = 3;  ///< the caller repeats the work for each pass

using Context = struct CudaContext*;
using HostObject = struct CUpti_Profiler_Host_Object*;
using RangeObject = struct CUpti_RangeProfiler_Object*;

struct InitializeParams {
  std::size_t structSize = 16;
  void* pPriv = nullptr;
};
static_assert(sizeof(InitializeParams) == 16);

struct GetChipNameParams {
  std::size_t structSize = 32;
  void* pPriv = nullptr;
  std::size_t deviceIndex = 0;
  const char* pChipName = nullptr;  ///< out
};
static_assert(sizeof(GetChipNameParams) == 32);

struct GetCounterAvailabilityParams {
  std::size_t structSize = 40;
  void* pPriv = nullptr;
  Context ctx = nullptr;
  std::size_t counterAvailabilityImageSize = 0;  ///< in and out
  std::uint8_t* pCounterAvailabilityImage = nullptr;
};
static_assert(sizeof(GetCounterAvailabilityParams) == 40);

struct HostInitializeParams {
  std::size_t structSize = 48;
  void* pPriv = nullptr;
  int profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  const char* pChipName = nullptr;
  const std::uint8_t* pCounterAvailabilityImage = nullptr;
  HostObject pHostObject = nullptr;  ///< out
};
static_assert(sizeof(HostInitializeParams) == 48 &&
              offsetof(HostInitializeParams, pChipName) == 24);

struct HostObjectParams {  ///< of cuptiProfilerHostDeinitialize
  std::size_t structSize = 24;
  void* pPriv = nullptr;
  HostObject pHostObject = nullptr;
};
static_assert(sizeof(HostObjectParams) == 24);

struct ConfigAddMetricsParams {
  std::size_t structSize = 40;
  void* pPriv = nullptr;
  HostObject pHostObject = nullptr;
  const char** ppMetricNames = nullptr;
  std::size_t numMetrics = 0;
};
static_assert(sizeof(ConfigAddMetricsParams) == 40);

struct GetConfigImageSizeParams {
  std::size_t structSize = 32;
  void* pPriv = nullptr;
  HostObject pHostObject = nullptr;
  std::size_t configImageSize = 0;  ///< out
};
static_assert(sizeof(GetConfigImageSizeParams) == 32);

struct GetConfigImageParams {
  std::size_t structSize = 40;
  void* pPriv = nullptr;
  HostObject pHostObject = nullptr;
  std::size_t configImageSize = 0;
  std::uint8_t* pConfigImage = nullptr;
};
static_assert(sizeof(GetConfigImageParams) == 40);

struct EvaluateToGpuValuesParams {
  std::size_t structSize = 72;
  void* pPriv = nullptr;
  HostObject pHostObject = nullptr;
  const std::uint8_t* pCounterDataImage = nullptr;
  std::size_t counterDataImageSize = 0;
  std::size_t rangeIndex = 0;
  const char** ppMetricNames = nullptr;
  std::size_t numMetrics = 0;
  double* pMetricValues = nullptr;
};
static_assert(sizeof(EvaluateToGpuValuesParams) == 72);

struct EnableParams {
  std::size_t structSize = 32;
  void* pPriv = nullptr;
  Context ctx = nullptr;
  RangeObject pRangeProfilerObject = nullptr;  ///< out
};
static_assert(sizeof(EnableParams) == 32);

struct RangeObjectParams {  ///< of cuptiRangeProfilerDisable, …Start and …PopRange
  std::size_t structSize = 24;
  void* pPriv = nullptr;
  RangeObject pRangeProfilerObject = nullptr;
};
static_assert(sizeof(RangeObjectParams) == 24);

struct GetCounterDataSizeParams {
  std::size_t structSize = 64;
  void* pPriv = nullptr;
  RangeObject pRangeProfilerObject = nullptr;
  const char** pMetricNames = nullptr;
  std::size_t numMetrics = 0;
  std::size_t maxNumOfRanges = 0;
  std::uint32_t maxNumRangeTreeNodes = 0;
  std::size_t counterDataSize = 0;  ///< out
};
static_assert(sizeof(GetCounterDataSizeParams) == 64 &&
              offsetof(GetCounterDataSizeParams, counterDataSize) == 56);

struct CounterDataImageInitializeParams {
  std::size_t structSize = 40;
  void* pPriv = nullptr;
  RangeObject pRangeProfilerObject = nullptr;
  std::size_t counterDataSize = 0;
  std::uint8_t* pCounterData = nullptr;
};
static_assert(sizeof(CounterDataImageInitializeParams) == 40);

struct SetConfigParams {
  std::size_t structSize = 90;
  void* pPriv = nullptr;
  RangeObject pRangeProfilerObject = nullptr;
  std::size_t configSize = 0;
  const std::uint8_t* pConfig = nullptr;
  std::size_t counterDataImageSize = 0;
  std::uint8_t* pCounterDataImage = nullptr;
  int range = CUPTI_UserRange;
  int replayMode = CUPTI_UserReplay;
  std::size_t maxRangesPerPass = 1;
  std::uint16_t numNestingLevels = 1;
  std::uint16_t minNestingLevel = 1;
  std::size_t passIndex = 0;
  std::uint16_t targetNestingLevel = 1;
};
static_assert(offsetof(SetConfigParams, numNestingLevels) == 72 &&
              offsetof(SetConfigParams, passIndex) == 80 &&
              offsetof(SetConfigParams, targetNestingLevel) == 88);

struct StopParams {
  std::size_t structSize = 41;
  void* pPriv = nullptr;
  RangeObject pRangeProfilerObject = nullptr;
  std::size_t passIndex = 0;
  std::size_t targetNestingLevel = 0;
  std::uint8_t isAllPassSubmitted = 0;
};
static_assert(offsetof(StopParams, isAllPassSubmitted) == 40);

struct PushRangeParams {
  std::size_t structSize = 32;
  void* pPriv = nullptr;
  RangeObject pRangeProfilerObject = nullptr;
  const char* pRangeName = nullptr;
};
static_assert(sizeof(PushRangeParams) == 32);

struct DecodeDataParams {
  std::size_t structSize = 32;
  void* pPriv = nullptr;
  RangeObject pRangeProfilerObject = nullptr;
  std::size_t numOfRangeDropped = 0;  ///< out
};
static_assert(sizeof(DecodeDataParams) == 32);

struct GetCounterDataInfoParams {
  std::size_t structSize = 40;
  void* pPriv = nullptr;
  const std::uint8_t* pCounterDataImage = nullptr;
  std::size_t counterDataImageSize = 0;
  std::size_t numTotalRanges = 0;  ///< out
};
static_assert(sizeof(GetCounterDataInfoParams) == 40);

/// CUPTI's functions, named without their prefix "cupti".
struct Functions {
  CUptiResult (*GetVersion)(std::uint32_t* version) = nullptr;
  CUptiResult (*GetResultString)(CUptiResult result, const char** text) = nullptr;
  CUptiResult (*ProfilerInitialize)(InitializeParams*) = nullptr;
  CUptiResult (*DeviceGetChipName)(GetChipNameParams*) = nullptr;
  CUptiResult (*ProfilerGetCounterAvailability)(GetCounterAvailabilityParams*) = nullptr;
  CUptiResult (*ProfilerHostInitialize)(HostInitializeParams*) = nullptr;
  CUptiResult (*ProfilerHostDeinitialize)(HostObjectParams*) = nullptr;
  CUptiResult (*ProfilerHostConfigAddMetrics)(ConfigAddMetricsParams*) = nullptr;
  CUptiResult (*ProfilerHostGetConfigImageSize)(GetConfigImageSizeParams*) = nullptr;
  CUptiResult (*ProfilerHostGetConfigImage)(GetConfigImageParams*) = nullptr;
  CUptiResult (*ProfilerHostEvaluateToGpuValues)(EvaluateToGpuValuesParams*) = nullptr;
  CUptiResult (*RangeProfilerEnable)(EnableParams*) = nullptr;
  CUptiResult (*RangeProfilerDisable)(RangeObjectParams*) = nullptr;
  CUptiResult (*RangeProfilerGetCounterDataSize)(GetCounterDataSizeParams*) = nullptr;
  CUptiResult (*RangeProfilerCounterDataImageInitialize)(CounterDataImageInitializeParams*) =
      nullptr;
  CUptiResult (*RangeProfilerSetConfig)(SetConfigParams*) = nullptr;
  CUptiResult (*RangeProfilerStart)(RangeObjectParams*) = nullptr;
  CUptiResult (*RangeProfilerStop)(StopParams*) = nullptr;
  CUptiResult (*RangeProfilerPushRange)(PushRangeParams*) = nullptr;
  CUptiResult (*RangeProfilerPopRange)(RangeObjectParams*) = nullptr;
  CUptiResult (*RangeProfilerDecodeData)(DecodeDataParams*) = nullptr;
  CUptiResult (*RangeProfilerGetCounterDataInfo)(GetCounterDataInfoParams*) = nullptr;
};

}  // namespace greta::device::cupti
