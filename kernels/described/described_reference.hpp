#pragma once

#include <functional>
#include <optional>

#include "kernels/described/described_operation.hpp"
#include "runtime/device/device.hpp"

namespace greta::kernels {

/// Returns a device that runs reference kernels of a language. It must outlive the operation.
using ReferenceDevice = std::function<Result<Device*>(SourceLanguage)>;

/// An operand of a problem with its shape as the description has it.
struct ShapedOperand {
  TensorSpec spec;
  std::vector<std::int64_t> shape;
};

/// Computes all elements of each output, in order, from the contents of the operands that are read.
using OutputsOf = std::function<Result<std::vector<std::vector<double>>>(
    const Problem& problem, const std::vector<ShapedOperand>& operands,
    const std::vector<HostTensor>& inputs)>;

/// A function that a program brings as the reference, in place of what the description says.
struct GivenReference {
  OutputsOf outputs;
  std::optional<Tolerance> tolerance{};  ///< empty: the description's
};

/// Makes an operation whose results are checked as its description says: by a naive kernel, which
/// runs once for given inputs, by golden files, or by the given function. Every element of every
/// output is compared; NaN where the reference has a number fails. Fails as make_described() does,
/// and where there is no reference.
Result<Operation> make_verified(const Description& description, const DescribedFiles& files,
                                ReferenceDevice device,
                                const std::optional<GivenReference>& given = {});

}  // namespace greta::kernels
