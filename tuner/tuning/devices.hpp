#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/evaluate/card_lock.hpp"
#include "tuner/tuning/observer.hpp"

/// The devices that are tuned on: which they are, whether they may be used, and who else uses them.
namespace greta::tuner {

/// Every device of this machine, usable or not.
std::vector<ProbedDevice> present_devices();

/// The devices that these names stand for: "auto", an id such as "vulkan:0", or a part of a name.
/// Fails with `unavailable` where no usable device is there at all, else on field "device": for a
/// name that no device has, and for a device that is named twice.
Result<std::vector<ProbedDevice>> select_devices(const std::vector<std::string>& names);

/// The same, but "auto" alone passes over devices that are not to be used at all, as the database
/// in `file` says, and tells the observer. Where no other device is left, the first one is the
/// answer, which avoided_on() refuses. The file need not exist.
Result<std::vector<ProbedDevice>> select_safe_devices(const std::vector<std::string>& names,
                                                      const std::filesystem::path& file,
                                                      TunerObserver& observer);

/// The features of a device that are not to be used, as the database says; the observer is told.
/// Fails with `unavailable`, on the field "allow_unsafe", where the whole device is not to be used.
Result<Avoided> avoided_on(const DeviceInfo& device, const TunedDb& db, TunerObserver& observer);

/// "vulkan:0: health check f16 failed on 2026-… with this driver (correctness: …)".
std::string unsafe_text(const DeviceInfo& device, const UnsafePart& part);

/// Waits until no other process measures on the cards of these devices. `folder`: of the locks;
/// `about`: what others are told about this process. Fails with `interrupted` on `stop`.
Result<std::vector<CardLock>> lock_cards(const std::vector<ProbedDevice>& devices,
                                         const std::filesystem::path& folder,
                                         const std::string& about, TunerObserver& observer,
                                         const std::atomic<bool>& stop);

/// What results are needed for: to be verified, or also to be written down as a case.
enum class ResultsFor { verification, a_case };

/// Whether a problem fits a device's memory, and the host's, where results are verified.
Result<void> check_fits(const Operation& operation, const Problem& problem,
                        const DeviceInfo& device, ResultsFor use = ResultsFor::verification);

}  // namespace greta::tuner
