#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "runtime/device/backend.hpp"

namespace greta::tuner::cli {

/// What the database says not to use of a device, which is told on standard error; nothing where
/// `allow_unsafe`. Throws CommandError (exit code 3) where the whole device is not to be used.
Avoided avoided_on(const DeviceInfo& device, const TunedDb& db, bool allow_unsafe);

/// As select_devices, but "auto" passes over devices that are not to be used at all as the database
/// in `file` has it, unless `allow_unsafe`; that is told on standard error. Where no other device
/// is left, the first one is the answer, which avoided_on refuses. The file need not exist.
std::vector<ProbedDevice> select_safe_devices(const std::string& wanted,
                                              const std::filesystem::path& file, bool allow_unsafe);

}  // namespace greta::tuner::cli
