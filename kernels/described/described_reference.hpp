#pragma once

#include <functional>

#include "kernels/described/described_operation.hpp"
#include "runtime/device/device.hpp"

namespace greta::kernels {

/// Returns a device that runs reference kernels of a language. It must outlive the operation.
using ReferenceDevice = std::function<Result<Device*>(SourceLanguage)>;

/// Makes an operation whose results are checked as its description says: by a naive kernel, which
/// runs once for given inputs, or by golden files. Every element of every output is compared; NaN
/// where the reference has a number fails. Fails as make_described() does, and where the
/// description has no reference.
Result<Operation> make_verified(const Description& description, const DescribedFiles& files,
                                ReferenceDevice device);

}  // namespace greta::kernels
