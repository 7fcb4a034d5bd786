#include "tuner/cli/safety.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "tuner/cli/tool.hpp"

namespace greta {

Avoided avoided_on(const DeviceInfo& device, const TunedDb& db, bool allow_unsafe) {
  const auto parts = db.unsafe(device);
  if (allow_unsafe || parts.empty()) return {};
  const Avoided avoid = avoided(parts);
  for (const auto& part : parts) {
    const auto why =
        fmt::format("{}: health check {} failed on {} with this driver ({}: {})", device.id(),
                    part.check, part.recorded_utc, part.status, part.message);
    const bool fatal = avoided({part}).device;
    if (fatal) {
      throw CommandError(exit_no_device, why + "; --allow-unsafe uses the device all the same");
    }
    const auto line = why + ", so that it is not used; --allow-unsafe does\n";
    static_cast<void>(std::fputs(line.c_str(), stderr));
  }
  return avoid;
}

}  // namespace greta
