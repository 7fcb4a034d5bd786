#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// The reason why an operation of the device layer or of a candidate failed.
enum class Status {
  constraints,       ///< the template's constraints reject the configuration
  compile,           ///< the kernel compiler rejected the source
  launch,            ///< the device refused or failed the launch
  correctness,       ///< the result is outside its error bound, or a guard zone was written
  timeout,           ///< not finished before its deadline
  crash,             ///< the process that ran it ended abnormally
  out_of_memory,     ///< no memory on the device or host
  unavailable,       ///< a backend, device or feature is missing
  invalid_argument,  ///< the caller's request is not valid
  device_lost,       ///< the device must be opened again
  io,                ///< a file could not be read or written
  interrupted,       ///< somebody asked for an orderly end; of runs, never of a candidate
};

/// Returns the name of a status as written to databases and reports, e.g. "out_of_memory".
std::string_view to_string(Status status);

/// Describes what is wrong with one field of a request, as data: a command line, a C caller and a
/// file each word the error in their own way.
struct BadField {
  std::string field;   ///< name of a dimension, an attribute, "dtype", "out"
  std::string value;   ///< the given value; empty if missing
  std::string reason;  ///< "must be …"
};

/// A failed operation: its kind, a one-line message, and the full log (compiler output) if any.
struct Failure {
  Status status = Status::invalid_argument;
  std::string message;  ///< one line, no trailing newline
  std::string log;      ///< full output of the compiler or driver; may be empty
  std::optional<BadField> field{};
};

/// Returns an `invalid_argument` whose message is "FIELD VALUE: REASON".
Failure bad_field(std::string field, std::string value, std::string reason);

/// Returns an `invalid_argument` with a one-line message.
inline Failure invalid_argument(std::string message) {
  return {Status::invalid_argument, std::move(message), {}};
}

/// An error that ends the run. It is thrown only where no caller could continue.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
  explicit Error(const Failure& failure)
      : std::runtime_error(failure.message), status_(failure.status) {}
  Status status() const { return status_; }

 private:
  Status status_ = Status::invalid_argument;
};

/// A value or a Failure. Reading the value of a failed result throws Error.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Result(Failure failure) : state_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  explicit operator bool() const { return std::holds_alternative<T>(state_); }
  const Failure& failure() const { return std::get<Failure>(state_); }

  T& value() & { return checked(); }
  T&& value() && { return std::move(checked()); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  T& operator*() & { return checked(); }
  T&& operator*() && { return std::move(checked()); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }

 private:
  T& checked() {
    if (auto* failure = std::get_if<Failure>(&state_)) throw Error(*failure);
    return std::get<T>(state_);
  }
  std::variant<T, Failure> state_;
};

/// Success, or a Failure.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Failure failure)  // NOLINT(google-explicit-constructor)
      : failure_(std::move(failure)), failed_(true) {}

  explicit operator bool() const { return !failed_; }
  const Failure& failure() const { return failure_; }
  void value() const {
    if (failed_) throw Error(failure_);
  }

 private:
  Failure failure_;
  bool failed_ = false;
};

}  // namespace greta::device
