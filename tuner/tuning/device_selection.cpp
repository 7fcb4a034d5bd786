#include "tuner/tuning/device_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>

#include "runtime/device/system/input_file.hpp"
#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

bool is_fatal(const UnsafePart& part) {
  return avoided({part}).device;
}

/// Returns the failed check that forbids any use of a device; nothing if there is none.
std::optional<UnsafePart> fatal_part(const DeviceInfo& device, const TunedDb& db) {
  const auto parts = db.unsafe(device);
  const auto found = std::find_if(parts.begin(), parts.end(), is_fatal);
  return found == parts.end() ? std::nullopt : std::optional(*found);
}

/// A backend on which devices that must not be used are marked unusable.
class SafeOnly final : public Backend {
 public:
  SafeOnly(Backend& backend, const TunedDb& db) : backend_(backend), db_(db) {}
  Api api() const override { return backend_.api(); }
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

/// Returns the available memory of the host as reported by the system; 0 if it reports none.
double available_host_bytes() {
  std::istringstream in(read_system_file("/proc/meminfo"));
  std::string name;
  double kilobytes = 0;
  for (std::string unit; in >> name >> kilobytes; std::getline(in, unit)) {
    if (name == "MemAvailable:") return kilobytes * 1024;
  }
  return 0;
}

/// Bytes that a problem needs: all operands on the device, the largest single one, and on the host.
struct Needs {
  double operands = 0, largest = 0, host = 0;
};

Needs needs_of(const Operation& operation, const Problem& problem, ResultsFor use) {
  Needs needs;
  for (const auto& spec : operation.tensors(problem)) {
    const auto in_memory = static_cast<double>(spec.span());
    const double bytes = bytes_of(spec.dtype, in_memory);
    needs.operands += bytes;
    needs.largest = std::max(needs.largest, bytes);
    // Inputs are kept as drawn and converted for the reference. Outputs are read back.
    needs.host += bytes + 20.0 * static_cast<double>(spec.elements());
    // A case holds an expected value and a bound for every element of memory, and a second copy of
    // them.
    const bool written = use == ResultsFor::a_case && spec.role != Role::input;
    if (written) needs.host += 32.0 * in_memory;
  }
  return needs;
}

/// Returns nothing if there is no database or it can't be read. Code that needs it reports why.
std::optional<TunedDb> look_into(const std::filesystem::path& file) {
  try {
    return TunedDb::open(file, TunedDb::Mode::read_only);
  } catch (const Error&) {
    return std::nullopt;
  }
}

Failure refusal_of(const DeviceInfo& device, const UnsafePart& part) {
  const std::string text = unsafe_text(device, part);
  return {Status::unavailable, text, {}, BadField{"allow_unsafe", "", text}};
}

bool is_group(const std::string& name) {
  return name == "all" || name.ends_with(":all");
}

/// Returns the names of the devices that a name stands for: itself, unless it is a group.
std::vector<std::string> expand(const std::string& name) {
  if (!is_group(name)) return {name};
  const std::string api = name == "all" ? "" : name.substr(0, name.find(':'));
  std::vector<DeviceInfo> found;
  for (const ProbedDevice& device : present_devices()) {
    const bool wanted = api.empty() ? !device.info.is_cpu() : api == to_string(device.info.backend);
    const bool known = std::any_of(found.begin(), found.end(), [&](const DeviceInfo& other) {
      return same_card(other, device.info);
    });
    if (device.usable && wanted && !known) found.push_back(device.info);
  }
  std::vector<std::string> names;
  for (const DeviceInfo& device : found) names.push_back(device.id());
  // Where there is none, the message is that of a single device.
  return names.empty() ? std::vector{api.empty() ? "auto" : api} : names;
}

/// Leaves out devices that must not be used, if any other is left.
void leave_out_unsafe(std::vector<ProbedDevice>& devices, const TunedDb& db,
                      TunerObserver& observer) {
  std::vector<ProbedDevice> safe;
  for (const ProbedDevice& device : devices) {
    if (!fatal_part(device.info, db)) safe.push_back(device);
  }
  if (safe.empty()) return;
  for (const ProbedDevice& device : devices) {
    if (const auto part = fatal_part(device.info, db)) {
      observer.on_unsafe(device.info, *part, nullptr);
    }
  }
  devices = std::move(safe);
}

}  // namespace

std::vector<ProbedDevice> present_devices() {
  std::vector<ProbedDevice> all;
  for (Backend* backend : backends()) {
    Probe probe = backend->probe();
    std::move(probe.devices.begin(), probe.devices.end(), std::back_inserter(all));
  }
  return all;
}

Result<std::vector<ProbedDevice>> select_devices(const std::vector<std::string>& names) {
  std::vector<std::string> each;
  for (const std::string& name : names) {
    const auto expanded = expand(name);
    each.insert(each.end(), expanded.begin(), expanded.end());
  }
  std::vector<ProbedDevice> devices;
  for (const std::string& name : each) {
    auto device = select_device(name);
    if (!device) {
      const auto present = present_devices();
      const bool any = std::any_of(present.begin(), present.end(),
                                   [](const ProbedDevice& one) { return one.usable; });
      if (!any) return device.failure();
      return bad_field("device", name, device.failure().message);
    }
    const bool again = std::any_of(devices.begin(), devices.end(), [&](const ProbedDevice& other) {
      return other.info.id() == device->info.id();
    });
    if (again) return bad_field("device", name, device->info.id() + " is named twice");
    devices.push_back(*std::move(device));
  }
  return devices;
}

std::string unsafe_text(const DeviceInfo& device, const UnsafePart& part) {
  return fmt::format("{}: health check {} failed on {} with this driver ({}: {})", device.id(),
                     part.check, part.recorded_utc, part.status, part.message);
}

Result<void> check_safe(const DeviceInfo& device, const std::filesystem::path& file) {
  const auto db = look_into(file);
  const auto fatal = db ? fatal_part(device, *db) : std::nullopt;
  if (fatal) return refusal_of(device, *fatal);
  return {};
}

Result<std::vector<ProbedDevice>> select_safe_devices(const std::vector<std::string>& names,
                                                      const std::filesystem::path& file,
                                                      TunerObserver& observer) {
  auto best = select_devices(names);
  if (!best) return best;
  const auto db = look_into(file);
  if (db && std::any_of(names.begin(), names.end(), is_group)) {
    leave_out_unsafe(*best, *db, observer);
    return best;
  }
  if (names.size() != 1 || names.front() != "auto") return best;
  const auto fatal = db ? fatal_part(best->front().info, *db) : std::nullopt;
  if (!fatal) return best;
  std::vector<SafeOnly> safe;
  for (Backend* backend : backends()) safe.emplace_back(*backend, *db);
  std::vector<Backend*> among;
  for (auto& backend : safe) among.push_back(&backend);
  auto next = select_device("auto", among);
  if (!next) return best;
  observer.on_unsafe(best->front().info, *fatal, &next->info);
  return std::vector{*std::move(next)};
}

Result<Avoided> avoided_on(const DeviceInfo& device, const TunedDb& db, TunerObserver& observer) {
  const auto parts = db.unsafe(device);
  for (const auto& part : parts) {
    if (is_fatal(part)) return refusal_of(device, part);
    observer.on_unsafe(device, part, nullptr);
  }
  return avoided(parts);
}

// Every process locks in the same order, which prevents deadlocks.
Result<std::vector<CardLock>> lock_cards(const std::vector<ProbedDevice>& devices,
                                         const std::filesystem::path& folder,
                                         const std::string& about, TunerObserver& observer,
                                         const std::atomic<bool>& stop) {
  std::vector<std::string> keys;
  for (const auto& device : devices) keys.push_back(CardLock::key(device.info));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<CardLock> locks;
  for (const auto& key : keys) {
    const auto announce = [&](const std::string& holder) { observer.on_wait(holder, key); };
    locks.emplace_back(folder, key, about, announce, stop);
  }
  if (stop) return Failure{Status::interrupted, "interrupted; nothing was measured", {}};
  return locks;
}

Result<void> check_fits(const Operation& operation, const Problem& problem,
                        const DeviceInfo& device, ResultsFor use) {
  const auto memory = static_cast<double>(device.memory_bytes);
  const auto allocation = static_cast<double>(device.max_allocation_bytes);
  const auto refuse = [&](double needed, const std::string& limit, double there) {
    return invalid_argument(fmt::format("{}: needs {}, {} {}", problem.key(), format_bytes(needed),
                                        limit, format_bytes(there)));
  };
  const Needs needs = needs_of(operation, problem, use);
  if (needs.operands > memory) return refuse(needs.operands, device.id() + " has", memory);
  if (allocation > 0 && needs.largest > allocation) {
    return refuse(needs.largest,
                  "for one operand, where the largest allocation on " + device.id() + " is",
                  allocation);
  }
  const bool shared = device.unified_memory || device.is_cpu();
  const double host = needs.host + (shared ? needs.operands : 0);
  const double available = available_host_bytes();
  if (available > 0 && host > available) {
    return refuse(host, "of host memory to verify results, where free are", available);
  }
  return {};
}

}  // namespace greta::tuner
