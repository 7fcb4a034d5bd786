#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// What one output of an operation must hold, element by element, wherever its rows lie.
struct ExpectedOutput {
  TensorSpec spec;
  std::function<Expected(std::int64_t row, std::int64_t col)> element;  ///< thread-safe
};

/// Judges every element of every output, however many there are, by itself alone. An expected
/// infinity must be met exactly, and where NaN is expected nothing else passes.
/// Reference::expected() lists them up to 2^24 elements of an output.
std::unique_ptr<Reference> elements_reference(std::vector<ExpectedOutput> outputs);

using KeptTensor = std::shared_ptr<const HostTensor>;
/// A copy of the tensor of this name, its rows packed; throws Error when there is none.
KeptTensor keep_tensor(const std::vector<HostTensor>& tensors, std::string_view name);

/// A value that a kernel knows within `error` in f32, stored as another type: rounding to nearest
/// adds half of the distance between the type's numbers there (f32 and bf16: and the smallest
/// normal one, as devices may flush). Beyond the type's range infinity is expected; where `error`
/// leaves open on which side of that limit the value is, any number is right.
Expected rounded(DType type, double value, double error);
/// A value that is copied from a tensor of one type to one of another: exact where the other type
/// has the value, else rounded once.
Expected converted(DType from, DType to, double value);

}  // namespace greta::kernels
