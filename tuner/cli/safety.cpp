#include "tuner/cli/safety.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "tuner/cli/checks.hpp"
#include "tuner/cli/tool.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

std::string failure_text(const DeviceInfo& device, const UnsafePart& part) {
  return fmt::format("{}: health check {} failed on {} with this driver ({}: {})", device.id(),
                     part.check, part.recorded_utc, part.status, part.message);
}

bool is_fatal(const UnsafePart& part) {
  return avoided({part}).device;
}

/// The failed check that forbids to use a device at all; nothing where there is none.
std::optional<UnsafePart> fatal_part(const DeviceInfo& device, const TunedDb& db) {
  const auto parts = db.unsafe(device);
  const auto found = std::find_if(parts.begin(), parts.end(), is_fatal);
  return found == parts.end() ? std::nullopt : std::optional(*found);
}

/// A backend of whose devices those that are not to be used are not usable.
class SafeOnly final : public Backend {
 public:
  SafeOnly(Backend& backend, const TunedDb& db) : backend_(backend), db_(db) {}
  std::string_view name() const override { return backend_.name(); }
  Probe probe() override {
    Probe found = backend_.probe();
    for (auto& device : found.devices) {
      device.usable = device.usable && !fatal_part(device.info, db_);
    }
    return found;
  }
  Result<std::unique_ptr<Device>> open(int index, const OpenOptions& options) override {
    return backend_.open(index, options);
  }

 private:
  Backend& backend_;
  const TunedDb& db_;
};

/// Nothing where there is no database, or where it can't be read: whoever uses it says why.
std::optional<TunedDb> look_into(const std::filesystem::path& file) {
  try {
    return TunedDb::open(file, TunedDb::Mode::read_only);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

Avoided avoided_on(const DeviceInfo& device, const TunedDb& db, bool allow_unsafe) {
  const auto parts = db.unsafe(device);
  if (allow_unsafe || parts.empty()) return {};
  for (const auto& part : parts) {
    const auto why = failure_text(device, part);
    if (is_fatal(part)) {
      throw CommandError(exit_no_device, why + "; --allow-unsafe uses the device all the same");
    }
    tell(why + ", so that it is not used; --allow-unsafe does");
  }
  return avoided(parts);
}

std::vector<ProbedDevice> select_safe_devices(const std::string& wanted,
                                              const std::filesystem::path& file,
                                              bool allow_unsafe) {
  auto best = select_devices(wanted);
  if (wanted != "auto" || allow_unsafe) return best;
  const auto db = look_into(file);
  const auto fatal = db ? fatal_part(best.front().info, *db) : std::nullopt;
  if (!fatal) return best;
  std::vector<SafeOnly> safe;
  for (Backend* backend : backends()) safe.emplace_back(*backend, *db);
  std::vector<Backend*> among;
  for (auto& backend : safe) among.push_back(&backend);
  auto next = select_device(wanted, among);
  if (!next) return best;
  tell(fmt::format("{}; {} is used instead", failure_text(best.front().info, *fatal),
                   next->info.id()));
  return {*std::move(next)};
}

}  // namespace greta::tuner::cli
