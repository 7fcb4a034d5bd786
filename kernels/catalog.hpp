#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// A set of operations, each with a name of its own. A value that is cheap to copy: copies share
/// the operations, which stay where they are as long as one of them lives.
class Catalog {
 public:
  /// Those that GRETA ships.
  static Catalog built_in();
  /// Throws Error where two have the same name.
  explicit Catalog(std::vector<Operation> operations);

  /// The operation of this name, or nullptr.
  const Operation* find(std::string_view name) const;
  /// The same; throws Error where there is none.
  const Operation& at(std::string_view name) const;

  /// The operations, in their order.
  auto begin() const { return operations_->begin(); }
  auto end() const { return operations_->end(); }
  std::size_t size() const { return operations_->size(); }

  /// Reads a problem's canonical key, in today's spelling or an earlier one (Operation::renamed),
  /// and checks it.
  Result<Problem> read(std::string_view key) const;
  /// Whether the problem is one of an operation that is here, and the configuration valid for it on
  /// this device.
  bool valid(const Problem& problem, const DeviceInfo& device, const Config& config) const;

 private:
  std::shared_ptr<const std::vector<Operation>> operations_;
};

}  // namespace greta::kernels
