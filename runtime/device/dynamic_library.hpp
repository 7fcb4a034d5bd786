#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::device {

/// A shared library that was opened at run time. Copies share it; it is closed with the last one.
class DynamicLibrary {
 public:
  /// Opens the first of `names` that there is, each a path or a name for the system's search. Fails
  /// with `unavailable` and the loader's message on each.
  static Result<DynamicLibrary> open(const std::vector<std::string>& names);

  const std::string& name() const { return name_; }  ///< the one that was found
  /// The address of a symbol, or nullptr.
  void* find(const std::string& symbol) const;

  /// Fills a function pointer; fails with `unavailable`, naming library and symbol.
  template <typename Function>
  Result<void> load(Function*& function, const std::string& symbol) const {
    function = reinterpret_cast<Function*>(find(symbol));
    if (function != nullptr) return {};
    return Failure{Status::unavailable, name_ + " has no function " + symbol, {}};
  }

  /// Never closes the library: drivers do not survive that while their threads run.
  void keep_open() const;

 private:
  std::string name_;
  std::shared_ptr<void> handle_;
};

}  // namespace greta::device
