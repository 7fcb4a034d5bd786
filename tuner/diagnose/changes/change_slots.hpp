#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// A part of a source that may have several versions, one of which is chosen when the kernel runs.
struct ChangeSlot {
  enum class Kind {
    expression,  ///< a whole one, such as a condition or what a variable begins with
    statement,   ///< with its semicolon; not a declaration
    insertion,   ///< an empty place between two statements
    macro,       ///< the text of a macro that is an expression
  };
  Kind kind = Kind::expression;
  std::size_t start = 0, end = 0;  ///< in bytes of the source

  bool operator==(const ChangeSlot&) const = default;
};

/// Returns the slots of the functions that a kernel's entry uses; they may contain each other.
/// Those whose value has to be known to the compiler are left out as far as the text shows it.
std::vector<ChangeSlot> slots_of(std::string_view source, std::string_view entry);

}  // namespace greta::tuner
