#pragma once

#include "db/tuned_db.hpp"

namespace greta {

/// What the database says not to use of a device, which is told on standard error; nothing where
/// `allow_unsafe`. Throws CommandError (exit code 3) where the whole device is not to be used.
Avoided avoided_on(const DeviceInfo& device, const TunedDb& db, bool allow_unsafe);

}  // namespace greta
