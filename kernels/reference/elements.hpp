#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// The expected elements of one output, independent of its stride.
struct ExpectedOutput {
  TensorSpec spec;
  std::function<Expected(std::int64_t row, std::int64_t col)> element;  ///< thread-safe
};

/// Checks every element of every output. An expected infinity must match exactly, and an expected
/// NaN only matches NaN. Reference::expected() lists the elements of outputs with up to 2^24
/// elements.
std::unique_ptr<Reference> elements_reference(std::vector<ExpectedOutput> outputs);

using KeptTensor = std::shared_ptr<const HostTensor>;
/// Returns a copy of the tensor of this name with packed rows. Throws Error if there is none.
KeptTensor keep_tensor(const std::vector<HostTensor>& tensors, std::string_view name);

/// Returns the expected value and bound of a value that a kernel computes within `error` in f32 and
/// stores as `type`. Rounding to nearest adds half of the type's spacing there (f32 and bf16: also
/// the smallest normal number, as devices may flush). Beyond the type's range, infinity is
/// expected. If `error` permits both sides of that limit, any number is accepted.
Expected rounded(DType type, double value, double error);
/// Returns the expected value of an element that is copied to another type: exact if that type
/// represents it, else rounded once.
Expected converted(DType from, DType to, double value);

}  // namespace greta::kernels
