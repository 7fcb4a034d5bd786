#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/model/space.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/result.hpp"

namespace greta::kernels {

class ProblemShape;

/// A change of a variant's parameters. It carries configurations over that were stored before it.
/// A variant lists its changes in Variant::migrations, the oldest first.
struct ConfigMigration {
  enum class Kind {
    added,    ///< parameter `name` is new; `neutral` is its value in earlier configurations
    renamed,  ///< parameter `name` is now called `now`
    removed,  ///< parameter `name` has gone; only configurations in which it was `only` remain
    variant_renamed  ///< the variant was called `name`
  };
  Kind kind = Kind::added;
  std::string name;
  std::function<int(const ProblemShape&, const DeviceInfo&, const Config&)> neutral{};
  std::string now{};
  std::map<int, int> values{};  ///< of `renamed`: current values by earlier ones; empty: the same
  int only = 0;
};

/// A parameter that earlier configurations lack, and the value with which a configuration means the
/// same as before: a number, or a function of the shape, the device and the configuration.
ConfigMigration added(std::string parameter, int neutral);
ConfigMigration added(
    std::string parameter,
    std::function<int(const ProblemShape&, const DeviceInfo&, const Config&)> neutral);
/// A parameter with a new name. If its values have a new meaning, `values` translates them, and
/// configurations with other values can't be carried over. (A new meaning requires a new name: a
/// stored configuration does not tell otherwise which one it has.)
ConfigMigration renamed(std::string from, std::string to, std::map<int, int> values = {});
/// A parameter that no longer exists, and the value that means what kernels do now.
ConfigMigration removed(std::string parameter, int only);
/// The former name of the variant.
ConfigMigration formerly(std::string variant);

/// A configuration with the current parameters in the current order.
struct MigratedConfig {
  Config config;
  std::vector<std::string> changes;  ///< one text for each change: "TN=1 added"; empty: none
};

/// Carries a configuration over to a variant with these parameters. Fails with `constraints` and
/// the reason if no migration gives a parameter its value. Parameters that a migration adds and the
/// variant does not have for this language are omitted.
Result<MigratedConfig> migrated(const Alternative& today,
                                const std::vector<ConfigMigration>& migrations,
                                const ProblemShape& shape, const DeviceInfo& device,
                                const Config& stored);

}  // namespace greta::kernels
