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

/// Selection of the devices to tune on, their safety, and their locks.
namespace greta::tuner {

/// Returns every device of this machine, usable or not.
std::vector<ProbedDevice> present_devices();

/// Returns the devices with these names: "auto", "all" (every GPU once, through its first API;
/// where there is none, as "auto"), "vulkan:all" (every usable device of an API), or another name
/// of select_device(). Fails with `unavailable` if there is no usable device at all. Fails on field
/// "device" for a name that no device has and for a device that is named twice.
Result<std::vector<ProbedDevice>> select_devices(const std::vector<std::string>& names);

/// Like select_devices(), but "auto" alone, "all" and "vulkan:all" skip devices that must not be
/// used according to the database in `file`, and notify the observer. If no other device is left,
/// the first one is returned, which avoided_on() rejects. The file need not exist.
Result<std::vector<ProbedDevice>> select_safe_devices(const std::vector<std::string>& names,
                                                      const std::filesystem::path& file,
                                                      TunerObserver& observer);

/// Returns the features of a device that must not be used according to the database, and notifies
/// the observer. Fails with `unavailable` on the field "allow_unsafe" if the whole device must not
/// be used.
Result<Avoided> avoided_on(const DeviceInfo& device, const TunedDb& db, TunerObserver& observer);

/// Fails likewise if the database in `file`, which need not exist, says so of the whole device.
Result<void> check_safe(const DeviceInfo& device, const std::filesystem::path& file);

/// Returns "vulkan:0: health check f16 failed on 2026-… with this driver (correctness: …)".
std::string unsafe_text(const DeviceInfo& device, const UnsafePart& part);

/// Waits until no other process measures on the cards of these devices. `folder` holds the lock
/// files; `about` describes this process to others. Fails with `interrupted` on `stop`.
Result<std::vector<CardLock>> lock_cards(const std::vector<ProbedDevice>& devices,
                                         const std::filesystem::path& folder,
                                         const std::string& about, TunerObserver& observer,
                                         const std::atomic<bool>& stop);

/// The purpose of results: verification only, or also to be written as a case.
enum class ResultsFor { verification, a_case };

/// Checks that a problem fits the device's memory, and the host's for the verification of results.
Result<void> check_fits(const Operation& operation, const Problem& problem,
                        const DeviceInfo& device, ResultsFor use = ResultsFor::verification);

}  // namespace greta::tuner
