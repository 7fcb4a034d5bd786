#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/device/result.hpp"
#include "runtime/device/version.hpp"
#include "runtime/pipeline/c/greta.h"

/// What the C interfaces of the runtime and of the tuner have in common.
namespace greta::runtime::c {

/// Returns this thread's last failure, or "".
const char* last_error() noexcept;
/// Stores a failure for greta_last_error() and returns its status.
greta_status fail(Status status, std::string_view message) noexcept;

/// Runs a function body that returns a Result<void>, and converts exceptions to statuses.
template <typename Body>
greta_status guarded(const Body& body) noexcept {
  try {
    const Result<void> done = body();
    return done ? GRETA_OK : fail(done.failure().status, done.failure().message);
  } catch (const Error& error) {
    return fail(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return fail(Status::out_of_memory, "no memory on the host");
  } catch (const std::exception& error) {
    static_cast<void>(fail(Status::invalid_argument, error.what()));
    return GRETA_INTERNAL;
  } catch (...) {
    static_cast<void>(fail(Status::invalid_argument, "unknown error"));
    return GRETA_INTERNAL;
  }
}

/// Throws Error (`invalid_argument`).
[[noreturn]] void refuse(std::string message);

/// Dereferences a pointer. Throws Error if it is null.
template <typename T>
T& need(T* pointer, const char* what) {
  if (pointer == nullptr) refuse(fmt::format("{} is null", what));
  return *pointer;
}

/// Reads options whose size is given by the caller's header. Fields that an older header lacks have
/// their defaults, and fields that only a newer header has must be zero. Structs grow by whole
/// multiples of their alignment, so that no new field lies in former padding.
template <typename Options>
Options read_options(const Options* given, const Options& defaults, const char* what) {
  constexpr std::size_t unit = alignof(Options), least = sizeof(std::size_t) + unit, most = 4096;
  static_assert(least <= sizeof(Options) && sizeof(Options) <= most);
  if (given == nullptr) return defaults;
  std::size_t size = 0;
  std::memcpy(&size, given, sizeof size);
  if (size < least || size > most || size % unit != 0) {
    refuse(fmt::format("{}->size is {}, but it must be sizeof the struct, {} here", what, size,
                       sizeof(Options)));
  }
  const auto* const bytes = reinterpret_cast<const char*>(given);
  if (size > sizeof(Options) &&
      std::any_of(bytes + sizeof(Options), bytes + size, [](char byte) { return byte != 0; })) {
    refuse(fmt::format("{} has something set after byte {}, which GRETA {} does not know", what,
                       sizeof(Options), version()));
  }
  Options options = defaults;
  std::memcpy(&options, given, std::min(size, sizeof options));
  return options;
}

/// Returns the enumerator with this number, counted from 0. Throws Error for other numbers.
template <typename Value>
Value choose(std::int32_t given, std::initializer_list<Value> values, const char* what) {
  if (given < 0 || static_cast<std::size_t>(given) >= values.size()) {
    refuse(fmt::format("{} is {}, which it can't be", what, given));
  }
  return values.begin()[given];
}

}  // namespace greta::runtime::c
