#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "db/tuned_db.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/evaluate/card_lock.hpp"

/// The devices that --device names. Each function throws CommandError, with exit code 3 where there
/// is no device at all and 2 where the wanted one is not among those there are.
namespace greta::tuner::cli {

/// The devices of a list such as "hip:0,vulkan:0", each once.
std::vector<ProbedDevice> select_devices(const std::string& wanted);
/// The same, without those that the database in `file` forbids; see tuner/tuning/devices.hpp.
std::vector<ProbedDevice> select_safe_devices(const std::string& wanted,
                                              const std::filesystem::path& file, bool allow_unsafe);
/// What the database says not to use of a device, which is told on standard error; nothing where
/// `allow_unsafe`.
Avoided avoided_on(const DeviceInfo& device, const TunedDb& db, bool allow_unsafe);
/// Waits until no other process measures on the cards of these devices; `tool`: this program.
std::vector<CardLock> lock_cards(const std::vector<ProbedDevice>& devices, const std::string& tool);
/// Whether kernels can run under sanitizers on this device, and on this system.
void check_sanitizes(const ProbedDevice& device);
/// "hip:0,vulkan:0" as a list.
std::vector<std::string> names_of_devices(const std::string& wanted);
/// What an API found on this machine, as docs/json.md has it.
nlohmann::json probe_json(std::string_view backend, const Probe& probe);

}  // namespace greta::tuner::cli
