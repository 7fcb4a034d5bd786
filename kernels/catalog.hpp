#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// A set of operations with distinct names. Cheap to copy: copies share the operations, whose
/// addresses stay valid while any copy exists.
class Catalog {
 public:
  /// Returns the operations that GRETA ships.
  static Catalog built_in();
  /// Throws Error if two operations have the same name.
  explicit Catalog(std::vector<Operation> operations);

  /// Returns the operation of this name, or nullptr.
  const Operation* find(std::string_view name) const;
  /// Returns the operation of this name. Throws Error if there is none.
  const Operation& at(std::string_view name) const;

  /// Iteration is in the order of construction.
  auto begin() const { return operations_->begin(); }
  auto end() const { return operations_->end(); }
  std::size_t size() const { return operations_->size(); }

  /// Parses a problem's canonical key, in the current or an earlier spelling (Operation::renamed),
  /// and checks the problem.
  Result<Problem> read(std::string_view key) const;
  /// Returns a stored configuration as it is used today (Instance::migrate), if it is valid for the
  /// problem on this device. Fails with `constraints` and the violated constraint if it is not, and
  /// with `invalid_argument` if the operation, the problem or the configuration can't be carried
  /// over.
  Result<MigratedConfig> usable(const Problem& problem, const DeviceInfo& device,
                                const Config& stored) const;
  /// Returns whether the problem's operation is in the catalog, the problem is valid and the
  /// configuration is valid for it on this device. Configurations are not carried over.
  bool valid(const Problem& problem, const DeviceInfo& device, const Config& config) const;

 private:
  std::shared_ptr<const std::vector<Operation>> operations_;
};

}  // namespace greta::kernels
