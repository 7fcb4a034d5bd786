#include "tuner/session/session_peaks.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/measure/ceilings.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

struct AssumedPeaks {
  double flops = 0, bytes_per_s = 0;
};
constexpr AssumedPeaks cpu_peaks{.flops = 1e12, .bytes_per_s = 1e11};
constexpr AssumedPeaks gpu_peaks{.flops = 1e15, .bytes_per_s = 1e13};

}  // namespace

SessionPeaks::SessionPeaks(const TunedDb& db, const DeviceInfo& device, DType type,
                           const Work& work)
    : known_(db.ceilings(device.fingerprint())),
      device_(device),
      type_(type),
      needed_(arithmetic_kinds(type, work)) {
  needed_.emplace_back(ceiling_copy);
}

bool SessionPeaks::is_needed(const std::string& kind) const {
  return std::find(needed_.begin(), needed_.end(), kind) != needed_.end();
}

std::vector<Ceiling> SessionPeaks::of_the_problem() const {
  const auto missing = missing_kinds(known_, device_);
  const bool lacks = std::any_of(missing.begin(), missing.end(),
                                 [this](const std::string& kind) { return is_needed(kind); });
  return lacks && !tried_ ? std::vector<Ceiling>() : known_;
}

double SessionPeaks::roof_s(const Work& work) const {
  const double known_us = roofline_us(type_, work, of_the_problem());
  if (known_us > 0) return known_us * 1e-6;
  const AssumedPeaks& peaks = device_.is_cpu() ? cpu_peaks : gpu_peaks;
  return std::max(work.flops / peaks.flops, work.bytes / peaks.bytes_per_s);
}

void SessionPeaks::measure(Evaluator& evaluator, double allowed_s,
                           const std::function<bool()>& stopped,
                           const std::function<void(const std::string&)>& announce,
                           const std::function<void(const std::vector<Ceiling>&)>& store) {
  auto missing = missing_kinds(known_, device_);
  std::stable_partition(missing.begin(), missing.end(),
                        [this](const std::string& kind) { return is_needed(kind); });
  const Stopwatch watch;
  for (std::size_t i = 0; i < missing.size() && !stopped(); ++i) {
    if (!is_needed(missing[i]) && watch.seconds() > allowed_s) break;
    announce(fmt::format("measuring peak {} of {}: {}", i + 1, missing.size(), missing[i]));
    const auto measured = evaluator.measure_ceilings({missing[i]});
    store(measured);
    update(known_, measured);
  }
  tried_ = !stopped();
}

}  // namespace greta::tuner
