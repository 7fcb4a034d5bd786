#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/dtype.hpp"
#include "runtime/device/hip/functions.hpp"
#include "runtime/device/hip/prepared_call.hpp"
#include "runtime/device/matrix_product.hpp"
#include "runtime/device/system/dynamic_library.hpp"

namespace greta::device::hip {

using hipblasStatus_t = int;

/// The functions of a library of matrix products, named after hipBLASLt's. cuBLASLt has the same
/// with the prefix cublasLt. No vendor's header is needed to build: descriptors are opaque
/// pointers, and enumerations are their numbers, which differ (MatrixLibraryNumbers).
struct MatrixLibraryFunctions {
  hipblasStatus_t (*create)(void** handle) = nullptr;
  hipblasStatus_t (*destroy)(void* handle) = nullptr;
  hipblasStatus_t (*layout_create)(void** layout, int type, std::uint64_t rows, std::uint64_t cols,
                                   std::int64_t stride) = nullptr;
  hipblasStatus_t (*layout_destroy)(void* layout) = nullptr;
  hipblasStatus_t (*layout_set)(void* layout, int attribute, const void* value,
                                std::size_t bytes) = nullptr;
  hipblasStatus_t (*desc_create)(void** desc, int compute_type, int scale_type) = nullptr;
  hipblasStatus_t (*desc_destroy)(void* desc) = nullptr;
  hipblasStatus_t (*desc_set)(void* desc, int attribute, const void* value,
                              std::size_t bytes) = nullptr;
  hipblasStatus_t (*preference_create)(void** preference) = nullptr;
  hipblasStatus_t (*preference_destroy)(void* preference) = nullptr;
  hipblasStatus_t (*preference_set)(void* preference, int attribute, const void* value,
                                    std::size_t bytes) = nullptr;
  /// Writes up to `wanted` results (MatrixLibraryNumbers::result_bytes each), the best first.
  hipblasStatus_t (*heuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d,
                               void* preference, int wanted, void* results, int* found) = nullptr;
  hipblasStatus_t (*matmul)(void* handle, void* desc, const void* alpha, const void* a,
                            void* a_layout, const void* b, void* b_layout, const void* beta,
                            const void* c, void* c_layout, void* d, void* d_layout,
                            const void* algorithm, void* workspace, std::size_t workspace_bytes,
                            hipStream_t stream) = nullptr;
  // hipBLASLt has none of these: its algorithms have no settings.
  hipblasStatus_t (*algorithm_get)(const void* algorithm, int attribute, void* value,
                                   std::size_t bytes, std::size_t* written) = nullptr;
  hipblasStatus_t (*algorithm_set)(void* algorithm, int attribute, const void* value,
                                   std::size_t bytes) = nullptr;
  /// Writes the workspace that the algorithm needs to a heuristic's result.
  hipblasStatus_t (*algorithm_check)(void* handle, void* desc, void* a, void* b, void* c, void* d,
                                     const void* algorithm, void* result) = nullptr;
};

/// The enumerators and structure sizes in which hipBLASLt and cuBLASLt differ.
struct MatrixLibraryNumbers {
  int not_transposed, transposed;  ///< hipblasOperation_t
  /// hipblasComputeType_t: sums in f32, and sums of i8 in i32; -1 if the library's are not used.
  int compute_f32, compute_i32;
  int batch_count, batch_step;  ///< hipblasLtMatrixLayoutAttribute_t
  // hipblasLtMatmulDescAttributes_t
  int transpose_a, transpose_b, epilogue, bias_pointer, bias_type;
  /// The device addresses of the operands' scales, what shares one of these (ScaleMode),
  /// and whether sums of fp8 may stay in the matrix cores' accumulators; -1 if the library's are
  /// not used.
  int scale_a, scale_b, scale_mode_a, scale_mode_b, fast_accumulation;
  /// The preference of which reductions of split-K are allowed, and the value for those in the
  /// type of the sums; -1 if the library has none.
  int reductions, reductions_in_sums;
  /// The first of four preferences for the alignment of A, B, C and D; -1 if there are none.
  int alignments;
  std::size_t algorithm_bytes;  ///< of hipblasLtMatmulAlgo_t, which begins a heuristic's result
  std::size_t result_bytes;     ///< of hipblasLtMatmulHeuristicResult_t
};

inline constexpr MatrixLibraryNumbers hipblaslt_numbers{.not_transposed = 111,
                                                        .transposed = 112,
                                                        .compute_f32 = 2,
                                                        .compute_i32 = -1,
                                                        .batch_count = 0,
                                                        .batch_step = 1,
                                                        .transpose_a = 0,
                                                        .transpose_b = 1,
                                                        .epilogue = 2,
                                                        .bias_pointer = 3,
                                                        .bias_type = 4,
                                                        .scale_a = -1,
                                                        .scale_b = -1,
                                                        .scale_mode_a = -1,
                                                        .scale_mode_b = -1,
                                                        .fast_accumulation = -1,
                                                        .reductions = -1,
                                                        .reductions_in_sums = 0,
                                                        .alignments = -1,
                                                        .algorithm_bytes = 24,
                                                        .result_bytes = 56};

/// What shares a scale of an operand: cublasLtMatmulMatrixScale_t. hipBLASLt has the same numbers.
enum class ScaleMode : std::int32_t {
  tensor = 0,
  rows = 3,     ///< a row of op(A) or a column of op(B)
  vectors = 4,  ///< 128 k of one of these
  blocks = 5,   ///< 128 k of 128 of them
};

/// Settings of an algorithm: cublasLtMatmulAlgoConfigAttributes_t.
enum class AlgorithmSetting {
  id = 0,
  tile = 1,
  slices = 2,     ///< of K
  reduction = 3,  ///< how their sums are added
  swizzling = 4,
  stages = 6,
  cluster = 8,  ///< 16 bits; the others have 32
};
inline constexpr std::uint32_t reduction_none = 0;
inline constexpr std::uint32_t reduction_in_sums = 2;  ///< in the type of the sums

/// Returns the settings of an algorithm by name: "algorithm 66, tile 128x256, stages 64x3, 1 slice,
/// cluster 2x1x1". Tiles, stages and clusters that cublasLt.h of CUDA 13.0 does not name have their
/// numbers. Settings that the library does not have are left out; empty if it has none. `sums`: the
/// type of sums.
std::string text_of_algorithm(const MatrixLibraryFunctions& functions, const void* algorithm,
                              DType sums = DType::f32);

/// An open library of matrix products. Thread-safe.
class MatrixLibrary {
 public:
  MatrixLibrary(std::string name, const MatrixLibraryFunctions& functions,
                const MatrixLibraryNumbers& numbers)
      : name_(std::move(name)), functions_(functions), numbers_(numbers) {}

  /// Returns the library's name and version: "cuBLASLt 13.1.0".
  const std::string& name() const { return name_; }
  const MatrixLibraryFunctions& functions() const { return functions_; }
  const MatrixLibraryNumbers& numbers() const { return numbers_; }

 private:
  std::string name_;
  MatrixLibraryFunctions functions_;
  MatrixLibraryNumbers numbers_;
};

/// Opens hipBLASLt or cuBLASLt. Fails with `unavailable` and the reason.
Result<std::shared_ptr<const MatrixLibrary>> open_hipblaslt();
Result<std::shared_ptr<const MatrixLibrary>> open_cublaslt();

/// A product with the library's algorithm for it.
class PreparedProduct final : public PreparedCall {
 public:
  /// Asks the library for the algorithm, which computes K in `slices`; 0: as the library ranks it.
  /// Throws a Refusal (`constraints`) if the library does not support the product or that many
  /// slices in the product's workspace, or ranks fewer algorithms.
  PreparedProduct(std::shared_ptr<const MatrixLibrary> library, const MatrixProduct& product,
                  std::uint32_t slices = 0);
  ~PreparedProduct() override;
  PreparedProduct(const PreparedProduct&) = delete;
  PreparedProduct& operator=(const PreparedProduct&) = delete;

  void launch(std::span<const std::byte> arguments, hipStream_t stream) const override;
  /// Returns text_of_algorithm() of the algorithm.
  std::string algorithm() const override;

 private:
  void describe();
  void describe_sums();
  void describe_scales();
  void choose_algorithm();
  void set_slices(std::uint32_t slices);
  void set_address(int attribute, std::uint64_t address, Status as) const;
  void release();
  void check(hipblasStatus_t status, const char* what, Status as) const;
  bool integers() const { return product_.in == DType::i8; }

  std::shared_ptr<const MatrixLibrary> library_;
  MatrixProduct product_;
  void *handle_ = nullptr, *desc_ = nullptr;
  void *a_ = nullptr, *b_ = nullptr, *d_ = nullptr;  ///< layouts
  std::vector<std::byte> algorithm_;
  mutable std::mutex mutex_;  ///< launches set addresses in the descriptor
};

}  // namespace greta::device::hip
