#include "runtime/device/hip/matrix_library.hpp"

#include <fmt/format.h>

#include <cstring>
#include <tuple>
#include <utility>

#include "runtime/device/refusal.hpp"

namespace greta::device::hip {

namespace {

// Both libraries have the same numbers for these.
constexpr int epilogue_bias = 4;
constexpr int preference_workspace = 1;
constexpr int real_f32 = 0, real_f16 = 2, real_i8 = 3, real_i32 = 10, real_bf16 = 14,
              real_e4m3 = 28;

constexpr MatrixLibraryNumbers cublaslt_numbers{.not_transposed = 0,
                                                .transposed = 1,
                                                .compute_f32 = 68,
                                                .compute_i32 = 72,
                                                .batch_count = 5,
                                                .batch_step = 6,
                                                .transpose_a = 3,
                                                .transpose_b = 4,
                                                .epilogue = 7,
                                                .bias_pointer = 8,
                                                .bias_type = 26,
                                                .scale_a = 17,
                                                .scale_b = 18,
                                                .scale_mode_a = 31,
                                                .scale_mode_b = 32,
                                                .fast_accumulation = 25,
                                                .reductions = 3,
                                                .reductions_in_sums = 2,
                                                .alignments = 5,
                                                .algorithm_bytes = 64,
                                                .result_bytes = 96};

int type_number(DType type) {
  switch (type) {
    case DType::f32:
      return real_f32;
    case DType::f16:
      return real_f16;
    case DType::bf16:
      return real_bf16;
    case DType::u8:
      return real_e4m3;
    case DType::i8:
      return real_i8;
    case DType::i32:
      return real_i32;
    default:
      throw Refusal(Status::compile, fmt::format("no matrix products of {}", to_string(type)));
  }
}

/// Loads a library's functions, whose names begin with `prefix`.
MatrixLibraryFunctions load(const DynamicLibrary& library, const std::string& prefix) {
  MatrixLibraryFunctions all;
  const auto one = [&](auto*& function, const char* name) {
    library.load(function, prefix + name).value();
  };
  one(all.create, "Create");
  one(all.destroy, "Destroy");
  one(all.layout_create, "MatrixLayoutCreate");
  one(all.layout_destroy, "MatrixLayoutDestroy");
  one(all.layout_set, "MatrixLayoutSetAttribute");
  one(all.desc_create, "MatmulDescCreate");
  one(all.desc_destroy, "MatmulDescDestroy");
  one(all.desc_set, "MatmulDescSetAttribute");
  one(all.preference_create, "MatmulPreferenceCreate");
  one(all.preference_destroy, "MatmulPreferenceDestroy");
  one(all.preference_set, "MatmulPreferenceSetAttribute");
  one(all.heuristic, "MatmulAlgoGetHeuristic");
  one(all.matmul, "Matmul");
  if (prefix != "cublasLt") return all;
  one(all.algorithm_get, "MatmulAlgoConfigGetAttribute");
  one(all.algorithm_set, "MatmulAlgoConfigSetAttribute");
  one(all.algorithm_check, "MatmulAlgoCheck");
  return all;
}

std::string version_text(std::uint64_t version, std::uint64_t major) {
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

template <typename Open>
Result<std::shared_ptr<const MatrixLibrary>> opened(Open open) {
  try {
    return std::shared_ptr<const MatrixLibrary>(open());
  } catch (const std::exception&) {
    return current_failure();
  }
}

}  // namespace

Result<std::shared_ptr<const MatrixLibrary>> open_cublaslt() {
  return opened([] {
    const auto library =
        DynamicLibrary::open({"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"}).value();
    std::size_t (*version)() = nullptr;
    library.load(version, "cublasLtGetVersion").value();
    const auto functions = load(library, "cublasLt");
    library.keep_open();
    return std::make_shared<MatrixLibrary>("cuBLASLt " + version_text(version(), 10000), functions,
                                           cublaslt_numbers);
  });
}

Result<std::shared_ptr<const MatrixLibrary>> open_hipblaslt() {
  return opened([] {
    const auto library =
        DynamicLibrary::open({"libhipblaslt.so.1", "libhipblaslt.so.0", "libhipblaslt.so"}).value();
    hipblasStatus_t (*version)(void* handle, int* value) = nullptr;
    library.load(version, "hipblasLtGetVersion").value();
    const auto functions = load(library, "hipblasLt");
    library.keep_open();
    int value = 0;
    void* handle = nullptr;
    if (functions.create(&handle) == 0) {
      if (version(handle, &value) != 0) value = 0;
      functions.destroy(handle);
    }
    return std::make_shared<MatrixLibrary>(
        "hipBLASLt " + version_text(static_cast<std::uint64_t>(value), 100000), functions,
        hipblaslt_numbers);
  });
}

void PreparedProduct::check(hipblasStatus_t status, const char* what, Status as) const {
  if (status == 0) return;
  throw Refusal(as, fmt::format("{}: {} fails with status {} for {}", library_->name(), what,
                                status, product_.text()));
}

PreparedProduct::PreparedProduct(std::shared_ptr<const MatrixLibrary> library,
                                 const MatrixProduct& product, std::uint32_t slices)
    : library_(std::move(library)), product_(product) {
  try {
    check(library_->functions().create(&handle_), "Create", Status::unavailable);
    describe();
    choose_algorithm();
    if (slices > 0) set_slices(slices);
  } catch (...) {
    release();
    throw;
  }
}

PreparedProduct::~PreparedProduct() {
  release();
}

void PreparedProduct::release() {
  const auto& f = library_->functions();
  for (void* layout : {a_, b_, d_}) {
    if (layout != nullptr) f.layout_destroy(layout);
  }
  if (desc_ != nullptr) f.desc_destroy(desc_);
  if (handle_ != nullptr) f.destroy(handle_);
}

// The libraries' matrices are column-major: a row-major matrix is its transpose to them. So they
// compute the transpose of D, op(B)' op(A)', with B as their first operand.
void PreparedProduct::describe() {
  describe_sums();
  const auto& f = library_->functions();
  const MatrixLibraryNumbers& numbers = library_->numbers();
  const auto layout_set = [&](void* layout, int attribute, auto value) {
    check(f.layout_set(layout, attribute, &value, sizeof value), "MatrixLayoutSetAttribute",
          Status::compile);
  };
  const auto layout = [&](void*& made, DType type, std::uint64_t rows, std::uint64_t cols,
                          std::uint64_t stride, std::uint64_t step) {
    const auto apart = static_cast<std::int64_t>(stride > 0 ? stride : cols);
    check(f.layout_create(&made, type_number(type), cols, rows, apart), "MatrixLayoutCreate",
          Status::compile);
    if (product_.batch == 1) return;
    layout_set(made, numbers.batch_count, static_cast<std::int32_t>(product_.batch));
    layout_set(made, numbers.batch_step, static_cast<std::int64_t>(step));
  };
  const auto& [m, n, k] = std::tie(product_.m, product_.n, product_.k);
  layout(a_, product_.in, product_.transposed_a ? k : m, product_.transposed_a ? m : k,
         product_.lda, product_.a_step);
  layout(b_, product_.in, product_.transposed_b ? n : k, product_.transposed_b ? k : n,
         product_.ldb, product_.b_step);
  layout(d_, product_.out, m, n, product_.ldd, product_.d_step);
  const auto set = [&](int attribute, int value) {
    check(f.desc_set(desc_, attribute, &value, sizeof value), "MatmulDescSetAttribute",
          Status::compile);
  };
  const auto operation = [&](bool transposed) {
    return transposed ? numbers.transposed : numbers.not_transposed;
  };
  set(numbers.transpose_a, operation(product_.transposed_b));
  set(numbers.transpose_b, operation(product_.transposed_a));
  if (product_.bias) {
    set(numbers.epilogue, epilogue_bias);
    set(numbers.bias_type, type_number(product_.out));
  }
  describe_scales();
}

void PreparedProduct::describe_sums() {
  const MatrixLibraryNumbers& numbers = library_->numbers();
  if (product_.in == DType::i32 || integers() != (product_.out == DType::i32)) {
    throw Refusal(Status::compile, "no matrix products of i32 but sums of products of i8");
  }
  if (integers() && (product_.alpha != 1 || product_.beta != 0 || product_.bias)) {
    throw Refusal(Status::compile, "sums of products of i8 have no factors and no addends");
  }
  const int compute = integers() ? numbers.compute_i32 : numbers.compute_f32;
  if (compute < 0) {
    throw Refusal(Status::constraints,
                  fmt::format("{} is not used for products of i8", library_->name()));
  }
  check(library_->functions().desc_create(&desc_, compute, integers() ? real_i32 : real_f32),
        "MatmulDescCreate", Status::compile);
}

void PreparedProduct::describe_scales() {
  const MatrixLibraryNumbers& numbers = library_->numbers();
  if (product_.scales == MatrixScales::none) {
    if (product_.in != DType::u8) return;
    throw Refusal(Status::compile, "products of fp8 have scales");
  }
  if (numbers.scale_a < 0) {
    throw Refusal(Status::constraints,
                  fmt::format("{} is not used for scaled products", library_->name()));
  }
  const auto set = [&](int attribute, auto value) {
    // Older libraries know fewer attributes.
    check(library_->functions().desc_set(desc_, attribute, &value, sizeof value),
          "MatmulDescSetAttribute", Status::constraints);
  };
  // Sums that stay in the accumulators of matrix cores would not keep the bound of the error.
  set(numbers.fast_accumulation, std::int8_t{0});
  const auto set_modes = [&](ScaleMode of_a, ScaleMode of_b) {  // B is the first operand
    set(numbers.scale_mode_a, static_cast<std::int32_t>(of_b));
    set(numbers.scale_mode_b, static_cast<std::int32_t>(of_a));
  };
  if (product_.scales == MatrixScales::row) set_modes(ScaleMode::rows, ScaleMode::rows);
  if (product_.scales == MatrixScales::block) set_modes(ScaleMode::vectors, ScaleMode::blocks);
  // Launches set the addresses. The ranking may depend on whether there are some.
  constexpr std::uint64_t some_address = 256;
  set_address(numbers.scale_a, some_address, Status::constraints);
  set_address(numbers.scale_b, some_address, Status::constraints);
}

void PreparedProduct::set_address(int attribute, std::uint64_t address, Status as) const {
  void* const pointer = reinterpret_cast<void*>(address);
  check(library_->functions().desc_set(desc_, attribute, &pointer, sizeof pointer),
        "MatmulDescSetAttribute", as);
}

void PreparedProduct::choose_algorithm() {
  const auto& f = library_->functions();
  const MatrixLibraryNumbers& numbers = library_->numbers();
  void* preference = nullptr;
  check(f.preference_create(&preference), "MatmulPreferenceCreate", Status::compile);
  const std::shared_ptr<void> owner(preference, f.preference_destroy);
  const auto set = [&](int attribute, auto value) {
    check(f.preference_set(preference, attribute, &value, sizeof value),
          "MatmulPreferenceSetAttribute", Status::compile);
  };
  set(preference_workspace, product_.workspace_bytes);
  // Sums of slices in f16 would not keep the bound of the error.
  if (numbers.reductions >= 0) {
    set(numbers.reductions, static_cast<std::uint32_t>(numbers.reductions_in_sums));
  }
  for (int operand = 0; numbers.alignments >= 0 && operand < 4; ++operand) {
    set(numbers.alignments + operand, product_.alignment);
  }
  const int wanted = static_cast<int>(product_.rank) + 1;
  std::vector<std::byte> results(numbers.result_bytes * static_cast<std::size_t>(wanted));
  int found = 0;
  const auto status =
      f.heuristic(handle_, desc_, b_, a_, d_, d_, preference, wanted, results.data(), &found);
  if (status != 0 || found < wanted) {
    throw Refusal(Status::constraints,
                  found == 0 ? fmt::format("{} has no algorithm for this product (status {})",
                                           library_->name(), status)
                             : fmt::format("{} ranks {} algorithms for this product",
                                           library_->name(), found));
  }
  const auto first =
      results.begin() + static_cast<std::ptrdiff_t>(numbers.result_bytes * product_.rank);
  algorithm_.assign(first, first + static_cast<std::ptrdiff_t>(numbers.algorithm_bytes));
}

void PreparedProduct::set_slices(std::uint32_t slices) {
  const auto& f = library_->functions();
  if (f.algorithm_set == nullptr || f.algorithm_check == nullptr) {
    throw Refusal(Status::constraints,
                  fmt::format("{}: its algorithms have no settings", library_->name()));
  }
  const auto set = [&](AlgorithmSetting setting, std::uint32_t value) {
    check(f.algorithm_set(algorithm_.data(), static_cast<int>(setting), &value, sizeof value),
          "MatmulAlgoConfigSetAttribute", Status::constraints);
  };
  set(AlgorithmSetting::slices, slices);
  // Sums of slices in f16 would not keep the bound of the error.
  set(AlgorithmSetting::reduction, slices > 1 ? reduction_in_sums : reduction_none);
  const MatrixLibraryNumbers& numbers = library_->numbers();
  std::vector<std::byte> result(numbers.result_bytes);
  check(f.algorithm_check(handle_, desc_, b_, a_, d_, d_, algorithm_.data(), result.data()),
        "MatmulAlgoCheck", Status::constraints);
  std::size_t needed = 0;  // what follows the algorithm
  std::memcpy(&needed, result.data() + numbers.algorithm_bytes, sizeof needed);
  if (needed > product_.workspace_bytes) {
    throw Refusal(Status::constraints, fmt::format("{}: {} slices of K need {} bytes of workspace",
                                                   library_->name(), slices, needed));
  }
}

std::string PreparedProduct::algorithm() const {
  return text_of_algorithm(library_->functions(), algorithm_.data(),
                           integers() ? DType::i32 : DType::f32);
}

void PreparedProduct::launch(std::span<const std::byte> arguments, hipStream_t stream) const {
  MatrixProductArguments at;
  std::memcpy(&at, arguments.data(), sizeof at);
  const auto pointer = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
  const auto& f = library_->functions();
  const std::lock_guard lock(mutex_);
  const MatrixLibraryNumbers& numbers = library_->numbers();
  if (product_.bias) set_address(numbers.bias_pointer, at.bias, Status::launch);
  if (product_.scales != MatrixScales::none) {
    set_address(numbers.scale_a, at.scales_b, Status::launch);  // B is the first operand
    set_address(numbers.scale_b, at.scales_a, Status::launch);
  }
  constexpr std::int32_t one = 1, zero = 0;  // factors are of the type of the sums
  const void* const alpha = integers() ? static_cast<const void*>(&one) : &product_.alpha;
  const void* const beta = integers() ? static_cast<const void*>(&zero) : &product_.beta;
  check(f.matmul(handle_, desc_, alpha, pointer(at.b), b_, pointer(at.a), a_, beta, pointer(at.c),
                 d_, pointer(at.d), d_, algorithm_.data(), pointer(at.workspace),
                 product_.workspace_bytes, stream),
        "Matmul", Status::launch);
}

}  // namespace greta::device::hip
