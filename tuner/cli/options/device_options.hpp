#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "db/tuned_db.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/evaluate/card_lock.hpp"

/// The devices that --device names. Each function throws CommandError, with exit code 3 if there is
/// no device at all and 2 if the requested one does not exist.
namespace greta::tuner::cli {

/// Returns the devices of a list such as "hip:0,vulkan:0", each once.
std::vector<ProbedDevice> select_devices(const std::string& wanted);
/// Returns the same without those that the database in `file` forbids; see
/// tuner/tuning/device_selection.hpp.
std::vector<ProbedDevice> select_safe_devices(const std::string& wanted,
                                              const std::filesystem::path& file, bool allow_unsafe);
/// Returns the features of a device that must not be used according to the database, and reports
/// them on standard error; nothing if `allow_unsafe`.
Avoided avoided_on(const DeviceInfo& device, const TunedDb& db, bool allow_unsafe);
/// Waits until no other process measures on the cards of these devices. `tool` is this program's
/// name.
std::vector<CardLock> lock_cards(const std::vector<ProbedDevice>& devices, const std::string& tool);
/// Checks that this device and this system support kernels under sanitizers.
void check_sanitizes(const ProbedDevice& device);
/// Splits "hip:0,vulkan:0" into a list.
std::vector<std::string> names_of_devices(const std::string& wanted);
/// Returns what an API found on this machine, in the form of docs/json.md.
nlohmann::json probe_json(std::string_view backend, const Probe& probe);

}  // namespace greta::tuner::cli
