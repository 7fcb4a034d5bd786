#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::device {

/// A shared library that is opened at run time. Copies share one handle; the library is closed with
/// the last copy.
class DynamicLibrary {
 public:
  /// Opens the first of `names` that exists. Each is a path or a name for the system's library
  /// search. Fails with `unavailable` and the loader's message for each name.
  static Result<DynamicLibrary> open(const std::vector<std::string>& names);

  const std::string& name() const { return name_; }  ///< the name that was found
  /// Returns the address of a symbol, or nullptr.
  void* find(const std::string& symbol) const;

  /// Sets a function pointer. Fails with `unavailable` and a message that names the library and the
  /// symbol.
  template <typename Function>
  Result<void> load(Function*& function, const std::string& symbol) const {
    load_optional(function, symbol);
    if (function != nullptr) return {};
    return Failure{Status::unavailable, name_ + " has no function " + symbol, {}};
  }

  /// Sets a function pointer; to nullptr if the library has no such function.
  template <typename Function>
  void load_optional(Function*& function, const std::string& symbol) const {
    function = reinterpret_cast<Function*>(find(symbol));
  }

  /// Keeps the library open until the process ends: drivers do not survive being closed while their
  /// threads run.
  void keep_open() const;

 private:
  std::string name_;
  std::shared_ptr<void> handle_;
};

}  // namespace greta::device
