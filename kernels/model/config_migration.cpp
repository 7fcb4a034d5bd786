#include "kernels/model/config_migration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace greta::kernels {
namespace {

auto find_value(Config& config, std::string_view name) {
  return std::find_if(config.values.begin(), config.values.end(),
                      [&](const auto& value) { return value.first == name; });
}

bool has_parameter(const Alternative& today, std::string_view name) {
  return std::any_of(today.parameters.begin(), today.parameters.end(),
                     [&](const Parameter& parameter) { return parameter.name == name; });
}

bool has_its_form(const Alternative& today, const Config& config) {
  return config.variant == today.variant &&
         std::equal(config.values.begin(), config.values.end(), today.parameters.begin(),
                    today.parameters.end(), [](const auto& value, const Parameter& parameter) {
                      return value.first == parameter.name;
                    });
}

/// Applies the migrations of a variant to one configuration.
class Carrier {
 public:
  Carrier(const Alternative& today, Config stored)
      : today_(today), stored_(stored), config_(std::move(stored)) {}

  void apply(const ConfigMigration& step, const ProblemShape& shape, const DeviceInfo& device) {
    switch (step.kind) {
      case ConfigMigration::Kind::added:
        if (config_.has(step.name)) return;
        config_.values.emplace_back(step.name, step.neutral(shape, device, config_));
        added_.insert(step.name);
        return;
      case ConfigMigration::Kind::renamed:
        return rename(step);
      case ConfigMigration::Kind::removed:
        return remove(step);
      case ConfigMigration::Kind::variant_renamed:
        if (config_.variant != step.name) return;
        config_.variant = today_.variant;
        changes_.push_back(fmt::format("variant {} renamed {}", step.name, today_.variant));
        return;
    }
  }

  Result<MigratedConfig> finish() {
    if (!refusal_.empty()) return fail(refusal_);
    MigratedConfig done{{today_.variant, {}, today_.words}, std::move(changes_)};
    for (const Parameter& parameter : today_.parameters) {
      const auto value = find_value(config_, parameter.name);
      if (value == config_.values.end()) {
        return fail(
            fmt::format("it has no value of {}, and no migration gives one", parameter.name));
      }
      done.config.values.push_back(*value);
      if (added_.contains(parameter.name)) {
        done.changes.push_back(fmt::format("{}={} added", value->first, value->second));
      }
    }
    for (const auto& [name, value] : config_.values) {
      if (has_parameter(today_, name) || added_.contains(name)) continue;
      return fail(fmt::format("{} has no parameter {} any more", today_.variant, name));
    }
    if (done.changes.empty()) done.changes.emplace_back("parameters in another order");
    return done;
  }

 private:
  Failure fail(const std::string& why) const {
    return Failure{Status::constraints,
                   fmt::format("\"{}\" can't be carried over: {}", stored_.text(), why),
                   {}};
  }

  void rename(const ConfigMigration& step) {
    const auto found = find_value(config_, step.name);
    if (found == config_.values.end() || config_.has(step.now)) return;
    int value = found->second;
    if (!step.values.empty()) {
      const auto translated = step.values.find(value);
      if (translated == step.values.end()) {
        refusal_ = fmt::format("no value of {} means what {}={} meant", step.now, step.name, value);
        return;
      }
      value = translated->second;
    }
    const bool was_added = added_.erase(step.name) > 0;
    if (was_added) added_.insert(step.now);
    if (!was_added) {
      changes_.push_back(
          fmt::format("{}={} is now {}={}", step.name, found->second, step.now, value));
    }
    *found = {step.now, value};
  }

  void remove(const ConfigMigration& step) {
    const auto found = find_value(config_, step.name);
    if (found == config_.values.end() || has_parameter(today_, step.name)) return;
    if (found->second != step.only) {
      refusal_ = fmt::format("{}={} was removed; kernels now do what {}={} did", step.name,
                             found->second, step.name, step.only);
      return;
    }
    if (added_.erase(step.name) == 0) {
      changes_.push_back(fmt::format("{}={} removed", step.name, step.only));
    }
    config_.values.erase(found);
  }

  const Alternative& today_;
  Config stored_, config_;
  std::set<std::string, std::less<>> added_;
  std::vector<std::string> changes_;
  std::string refusal_;
};

}  // namespace

ConfigMigration added(std::string parameter, int neutral) {
  return added(std::move(parameter), [neutral](const ProblemShape&, const DeviceInfo&,
                                               const Config&) { return neutral; });
}

ConfigMigration added(
    std::string parameter,
    std::function<int(const ProblemShape&, const DeviceInfo&, const Config&)> neutral) {
  return {.kind = ConfigMigration::Kind::added,
          .name = std::move(parameter),
          .neutral = std::move(neutral)};
}

ConfigMigration renamed(std::string from, std::string to, std::map<int, int> values) {
  return {.kind = ConfigMigration::Kind::renamed,
          .name = std::move(from),
          .now = std::move(to),
          .values = std::move(values)};
}

ConfigMigration removed(std::string parameter, int only) {
  return {.kind = ConfigMigration::Kind::removed, .name = std::move(parameter), .only = only};
}

ConfigMigration formerly(std::string variant) {
  return {.kind = ConfigMigration::Kind::variant_renamed, .name = std::move(variant)};
}

Result<MigratedConfig> migrated(const Alternative& today,
                                const std::vector<ConfigMigration>& migrations,
                                const ProblemShape& shape, const DeviceInfo& device,
                                const Config& stored) {
  if (has_its_form(today, stored)) {
    return MigratedConfig{{stored.variant, stored.values, today.words}, {}};
  }
  Carrier carrier(today, stored);
  try {
    for (const ConfigMigration& step : migrations) carrier.apply(step, shape, device);
  } catch (const Error& error) {  // a neutral value depends on a parameter that is not there
    return Failure{Status::constraints, error.what(), {}};
  }
  return carrier.finish();
}

}  // namespace greta::kernels
