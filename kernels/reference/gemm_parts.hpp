#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// One of several products: the rows of C that it gives, and its own reference.
struct ProductPart {
  std::string what;  ///< e.g. "group 3", for messages
  std::int64_t first = 0, rows = 0;
  std::unique_ptr<Reference> reference;  ///< of gemm, with an output of `rows` rows
};

/// Returns rows `first` to `first` + `count` - 1 of a tensor with packed rows.
HostTensor rows_of_tensor(const HostTensor& tensor, std::int64_t first, std::int64_t count);

/// Returns the reference of several products, in the order of their rows in a C of `rows` x `cols`.
/// Other rows must still have the NaN with which outputs are filled before a launch. `full`:
/// whether every element is checked.
std::unique_ptr<Reference> reference_of_parts(std::vector<ProductPart> parts, std::int64_t rows,
                                              std::int64_t cols, bool full);

}  // namespace greta::kernels
