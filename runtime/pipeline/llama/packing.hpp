#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/pipeline/compute/runtime.hpp"
#include "runtime/pipeline/models/llama_config.hpp"

namespace greta::runtime {

/// How the quantised matrices of a model with scales beside their weights are stored on a device.
enum class WeightsAs {
  rows,
  panels,   ///< panels of 16 rows (kernels::panel_place()), where these are whole
  measured  ///< panels where winners of all products with the matrix say that they are faster
};

/// A pass of the model whose products count, and how often it runs.
struct CountedPass {
  std::int64_t batch = 1;   ///< sequences
  std::int64_t tokens = 1;  ///< of each
  double times = 1;
};

/// The packing of matrices that are equal in all layers.
struct MatrixPacking {
  std::string name;  ///< of operations that multiply by it: "qkv", "gate_up"
  std::int64_t rows = 0, cols = 0;
  MatrixFormat format;  ///< of weights, in whatever order of columns
  int matrices = 0;
  PackingChoice choice;
};

/// Returns whether a model may have the weights of a product in panels in place of rows.
bool may_be_packed(const Problem& product);

/// Stores all matrices in panels that may have them, as `panels` of pack_matrices(). Throws Error.
std::vector<MatrixPacking> pack_in_panels(LlamaConfig& config);

/// Sets MatrixFormat::panels of a model's matrices before its weights are made. Both matrices of a
/// layer's experts have the same packing, as one operation may read both.
/// Returns what was decided, in the order of the network; nothing for rows, and for a model without
/// matrices that may have panels. With `panels` such a model is refused (`invalid_argument`).
/// Compiles nothing. Throws Error.
std::vector<MatrixPacking> pack_matrices(Runtime& runtime, LlamaConfig& config, DType dtype,
                                         std::span<const CountedPass> passes, WeightsAs how);

}  // namespace greta::runtime
