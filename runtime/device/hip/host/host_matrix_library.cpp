#include "runtime/device/hip/host/host_matrix_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "runtime/device/hip/host/library_numbers.hpp"
#include "runtime/device/hip/host/state.hpp"
#include "runtime/device/version.hpp"

namespace greta::device::hip::host {

namespace {

constexpr hipblasStatus_t ok = 0, invalid_value = 3, failed = 6, not_supported = 7;
constexpr int most_ranked = 16;

/// Sums along K, backwards if `order` is 1, in `slices`, whose sums the workspace holds but for the
/// first. As cuBLASLt's, an algorithm has settings.
struct HostAlgorithm {
  std::uint32_t order = 0, slices = 1, reduction = reduction_none;
  std::uint32_t unused = 0;

  /// Sums have four bytes, whatever their type.
  std::uint64_t workspace_bytes(std::uint64_t elements) const {
    return (slices - 1) * elements * sizeof(float);
  }
};
struct HostResult {
  HostAlgorithm algorithm;
  std::uint64_t workspace_bytes = 0;
};
constexpr MatrixLibraryNumbers host_numbers = [] {
  MatrixLibraryNumbers numbers = hipblaslt_numbers;
  numbers.compute_i32 = 72;
  numbers.algorithm_bytes = sizeof(HostAlgorithm);
  numbers.result_bytes = sizeof(HostResult);
  numbers.scale_a = 5;
  numbers.scale_b = 6;
  numbers.scale_mode_a = 31;
  numbers.scale_mode_b = 32;
  numbers.fast_accumulation = 25;
  return numbers;
}();

struct Layout {
  int type = type_f32;
  std::uint64_t rows = 0, cols = 0;
  std::int64_t stride = 0;
  std::int32_t batch = 1;
  std::int64_t step = 0;  // elements from one matrix to the next
};
struct Description {
  int compute = host_numbers.compute_f32, scale_type = type_f32;
  int transpose_a = host_numbers.not_transposed, transpose_b = host_numbers.not_transposed;
  int epilogue = 1, bias_type = type_f32;
  const void* bias = nullptr;
  OperandScales scale_a, scale_b;
  std::int8_t fast_accumulation = 0;

  bool integers() const { return compute == host_numbers.compute_i32; }
  int sum_type() const { return integers() ? type_i32 : type_f32; }
  bool scaled() const { return scale_a.first != nullptr && scale_b.first != nullptr; }
};
struct Preference {
  std::uint64_t workspace_bytes = 0;
};

/// One call: column-major D = alpha op(A) op(B) + beta C + bias.
struct Product {
  Description description;
  Layout a_layout, b_layout, d_layout;
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
  double alpha = 1, beta = 0;
  HostAlgorithm algorithm;
  void* workspace = nullptr;

  void run() const;
  std::uint64_t depth() const {
    return description.transpose_a == host_numbers.transposed ? a_layout.rows : a_layout.cols;
  }
  double sum(std::uint64_t row, std::uint64_t col, std::uint64_t first, std::uint64_t end) const;
};

double Product::sum(std::uint64_t row, std::uint64_t col, std::uint64_t first,
                    std::uint64_t end) const {
  const auto as = static_cast<std::uint64_t>(a_layout.stride);
  const auto bs = static_cast<std::uint64_t>(b_layout.stride);
  const bool ta = description.transpose_a == host_numbers.transposed;
  const bool tb = description.transpose_b == host_numbers.transposed;
  double total = 0;
  for (std::uint64_t i = first; i < end; ++i) {
    const std::uint64_t k = algorithm.order == 1 ? end - 1 - (i - first) : i;
    double product = load_element(a, a_layout.type, ta ? row * as + k : k * as + row) *
                     load_element(b, b_layout.type, tb ? k * bs + col : col * bs + k);
    if (description.scaled()) {
      product *= description.scale_a.at(row, k, d_layout.rows, depth()) *
                 description.scale_b.at(col, k, d_layout.cols, depth());
    }
    total += product;
  }
  return total;
}

void Product::run() const {
  const std::uint64_t depth = this->depth();
  const std::uint64_t slices = algorithm.slices, elements = d_layout.cols * d_layout.rows;
  for (std::uint64_t col = 0; col < d_layout.cols; ++col) {
    for (std::uint64_t row = 0; row < d_layout.rows; ++row) {
      const std::uint64_t at = col * static_cast<std::uint64_t>(d_layout.stride) + row;
      double total = sum(row, col, 0, depth / slices);
      for (std::uint64_t i = 1; i < slices; ++i) {
        const std::uint64_t slice = (i - 1) * elements + col * d_layout.rows + row;
        store_element(workspace, description.sum_type(), slice,
                      sum(row, col, depth * i / slices, depth * (i + 1) / slices));
        total += load_element(workspace, description.sum_type(), slice);
      }
      total *= alpha;
      if (beta != 0) total += beta * load_element(c, d_layout.type, at);
      if ((description.epilogue & 4) != 0)
        total += load_element(description.bias, description.bias_type, row);
      store_element(d, d_layout.type, at, total);
    }
  }
}

const void* matrix_of(const void* first, const Layout& layout, std::int64_t number) {
  const std::int64_t bytes = bytes_of_type(layout.type);
  return static_cast<const std::byte*>(first) + number * layout.step * bytes;
}

/// The product of a batch with this number.
Product product_of(const Product& all, std::int64_t number) {
  Product one = all;
  one.a = matrix_of(all.a, all.a_layout, number);
  one.b = matrix_of(all.b, all.b_layout, number);
  one.c = matrix_of(all.c, all.d_layout, number);
  one.d = static_cast<std::byte*>(all.d) +
          (static_cast<const std::byte*>(one.c) - static_cast<const std::byte*>(all.c));
  return one;
}

template <typename T>
hipblasStatus_t create(void** object) {
  *object = new T;
  return ok;
}
template <typename T>
hipblasStatus_t destroy(void* object) {
  delete static_cast<T*>(object);
  return ok;
}

template <typename T>
hipblasStatus_t copy(T& to, const void* value, std::size_t bytes) {
  if (bytes != sizeof to) return invalid_value;
  std::memcpy(&to, value, bytes);
  return ok;
}

hipblasStatus_t set_description(void* object, int attribute, const void* value, std::size_t bytes) {
  auto& description = *static_cast<Description*>(object);
  if (attribute == host_numbers.transpose_a) return copy(description.transpose_a, value, bytes);
  if (attribute == host_numbers.transpose_b) return copy(description.transpose_b, value, bytes);
  if (attribute == host_numbers.epilogue) return copy(description.epilogue, value, bytes);
  if (attribute == host_numbers.bias_pointer) return copy(description.bias, value, bytes);
  if (attribute == host_numbers.bias_type) return copy(description.bias_type, value, bytes);
  if (attribute == host_numbers.scale_a) return copy(description.scale_a.first, value, bytes);
  if (attribute == host_numbers.scale_b) return copy(description.scale_b.first, value, bytes);
  if (attribute == host_numbers.scale_mode_a) return copy(description.scale_a.mode, value, bytes);
  if (attribute == host_numbers.scale_mode_b) return copy(description.scale_b.mode, value, bytes);
  if (attribute == host_numbers.fast_accumulation) {
    return copy(description.fast_accumulation, value, bytes);
  }
  return invalid_value;
}

hipblasStatus_t set_layout(void* object, int attribute, const void* value, std::size_t bytes) {
  auto& layout = *static_cast<Layout*>(object);
  if (attribute == host_numbers.batch_count) return copy(layout.batch, value, bytes);
  if (attribute == host_numbers.batch_step) return copy(layout.step, value, bytes);
  return invalid_value;
}

bool lies_along_k(const Description& description) {
  return description.transpose_a == host_numbers.transposed &&
         description.transpose_b == host_numbers.not_transposed;
}

bool fours(std::uint64_t a, std::uint64_t b) {
  return a % 4 == 0 && b % 4 == 0;
}

bool aligned_scales(const Description& description) {
  const auto aligned = [](const OperandScales& scales) {
    return reinterpret_cast<std::uintptr_t>(scales.first) % 16 == 0;
  };
  return aligned(description.scale_a) && aligned(description.scale_b);
}

/// As cuBLASLt: not blocks of both operands, nor blocks of one and another scale of the other.
bool supported_scales(const Description& description, const Layout& d) {
  const OperandScales &a = description.scale_a, &b = description.scale_b;
  if (!a.of_blocks() && !b.of_blocks()) return a.mode == b.mode;
  const auto blocks = static_cast<std::int32_t>(ScaleMode::blocks);
  return a.of_blocks() && b.of_blocks() && !(a.mode == blocks && b.mode == blocks) &&
         fours(d.rows, d.cols);
}

/// As cuBLASLt: sums of integers are for int8 along k, with rows of multiples of 4 elements, and
/// have no scales.
bool supported_integers(const Description& description, const Layout& a, const Layout& b,
                        const Layout& d) {
  return lies_along_k(description) && a.type == type_i8 && b.type == type_i8 &&
         d.type == type_i32 && description.scale_type == type_i32 && !description.scaled() &&
         fours(a.rows, d.rows) && description.epilogue == 1 &&
         fours(static_cast<std::uint64_t>(a.stride), static_cast<std::uint64_t>(b.stride)) &&
         d.stride % 4 == 0;
}

/// Whether the library computes the product: as cuBLASLt, fp8 only where both operands lie along k,
/// with rows of multiples of 16 bytes, scales, and sums in f32.
bool supported(const Description& description, const Layout& a, const Layout& b, const Layout& d) {
  if (description.integers()) return supported_integers(description, a, b, d);
  if (a.type == type_i8 || d.type == type_i32) return false;
  if (a.type != type_e4m3) return !description.scaled();
  const auto aligned = [](const Layout& layout) {
    return (layout.stride * bytes_of_type(layout.type)) % 16 == 0;
  };
  return lies_along_k(description) && b.type == type_e4m3 && aligned(a) && aligned(b) &&
         aligned(d) && description.scaled() && description.fast_accumulation == 0 &&
         supported_scales(description, d);
}

hipblasStatus_t rank(void*, void* desc, void* a, void* b, void*, void* d, void* preference,
                     int wanted, void* results, int* found) {
  const auto& layout = *static_cast<const Layout*>(d);
  *found = 0;
  if (!supported(*static_cast<const Description*>(desc), *static_cast<const Layout*>(a),
                 *static_cast<const Layout*>(b), layout)) {
    return not_supported;
  }
  constexpr std::array<HostAlgorithm, 3> all{{{0}, {1}, {0, 2, reduction_in_sums}}};
  const std::uint64_t elements = layout.rows * layout.cols;
  const bool sliced =
      static_cast<Preference*>(preference)->workspace_bytes >= all.back().workspace_bytes(elements);
  *found = std::min(wanted, most_ranked);
  for (int i = 0; i < *found; ++i) {
    const HostAlgorithm& algorithm = all.at(static_cast<std::size_t>(i) % (sliced ? 3 : 2));
    static_cast<HostResult*>(results)[i] = {algorithm, algorithm.workspace_bytes(elements)};
  }
  return ok;
}

hipblasStatus_t get_setting(const void* object, int attribute, void* value, std::size_t bytes,
                            std::size_t* written) {
  const auto& algorithm = *static_cast<const HostAlgorithm*>(object);
  const auto write = [&](auto number) {
    if (bytes != sizeof number) return invalid_value;
    std::memcpy(value, &number, sizeof number);
    *written = sizeof number;
    return ok;
  };
  constexpr std::uint32_t tile_of_8x8 = 1, first_stages = 1;
  constexpr std::uint16_t one_block = 2;
  switch (static_cast<AlgorithmSetting>(attribute)) {
    case AlgorithmSetting::id:
      return write(algorithm.order);
    case AlgorithmSetting::tile:
      return write(tile_of_8x8);
    case AlgorithmSetting::slices:
      return write(algorithm.slices);
    case AlgorithmSetting::reduction:
      return write(algorithm.reduction);
    case AlgorithmSetting::stages:
      return write(first_stages);
    case AlgorithmSetting::cluster:
      return write(one_block);
    default:
      return invalid_value;
  }
}

hipblasStatus_t set_setting(void* object, int attribute, const void* value, std::size_t bytes) {
  auto& algorithm = *static_cast<HostAlgorithm*>(object);
  switch (static_cast<AlgorithmSetting>(attribute)) {
    case AlgorithmSetting::slices:
      return copy(algorithm.slices, value, bytes);
    case AlgorithmSetting::reduction:
      return copy(algorithm.reduction, value, bytes);
    default:
      return invalid_value;
  }
}

/// As cuBLASLt's, which does not know the workspace's size. Only the forward order has slices,
/// which are summed in f32, and none is empty.
hipblasStatus_t check_algorithm(void*, void* desc, void* a, void* b, void*, void* d,
                                const void* object, void* result) {
  const auto& algorithm = *static_cast<const HostAlgorithm*>(object);
  const auto& first = *static_cast<const Layout*>(a);
  const auto& layout = *static_cast<const Layout*>(d);
  const auto& description = *static_cast<const Description*>(desc);
  const std::uint64_t depth =
      description.transpose_a == host_numbers.transposed ? first.rows : first.cols;
  const bool sliced = algorithm.slices > 1;
  if (!supported(description, first, *static_cast<const Layout*>(b), layout) ||
      algorithm.slices == 0 || algorithm.slices > depth || (sliced && algorithm.order == 1) ||
      algorithm.reduction != (sliced ? reduction_in_sums : reduction_none)) {
    return not_supported;
  }
  *static_cast<HostResult*>(result) = {algorithm,
                                       algorithm.workspace_bytes(layout.rows * layout.cols)};
  return ok;
}

hipblasStatus_t multiply(void*, void* desc, const void* alpha, const void* a, void* a_layout,
                         const void* b, void* b_layout, const void* beta, const void* c, void*,
                         void* d, void* d_layout, const void* algorithm, void* workspace,
                         std::size_t, hipStream_t stream) {
  Product product;
  product.description = *static_cast<const Description*>(desc);
  product.a_layout = *static_cast<const Layout*>(a_layout);
  product.b_layout = *static_cast<const Layout*>(b_layout);
  product.d_layout = *static_cast<const Layout*>(d_layout);
  product.a = a;
  product.b = b;
  product.c = c;
  product.d = d;
  product.alpha = load_element(alpha, product.description.scale_type, 0);
  product.beta = load_element(beta, product.description.scale_type, 0);
  std::memcpy(&product.algorithm, algorithm, sizeof product.algorithm);
  product.workspace = workspace;
  if (product.description.scale_a.of_blocks() && !aligned_scales(product.description))
    return failed;
  const auto pushed = push(stream, [&product] {
    return [product](Execution& execution) {
      for (std::int64_t i = 0; i < product.d_layout.batch && !execution.over(); ++i) {
        product_of(product, i).run();
      }
    };
  });
  return pushed == hipSuccess ? ok : failed;
}

}  // namespace

Result<std::shared_ptr<const MatrixLibrary>> open_matrix_library() {
  MatrixLibraryFunctions all;
  all.create = &create<int>;
  all.destroy = &destroy<int>;
  all.layout_create = [](void** layout, int type, std::uint64_t rows, std::uint64_t cols,
                         std::int64_t stride) {
    *layout = new Layout{type, rows, cols, stride};
    return ok;
  };
  all.layout_destroy = &destroy<Layout>;
  all.layout_set = &set_layout;
  all.desc_create = [](void** description, int compute, int scale_type) {
    auto* const made = new Description;
    made->compute = compute;
    made->scale_type = scale_type;
    *description = made;
    return ok;
  };
  all.desc_destroy = &destroy<Description>;
  all.desc_set = &set_description;
  all.preference_create = &create<Preference>;
  all.preference_destroy = &destroy<Preference>;
  all.preference_set = [](void* preference, int attribute, const void* value, std::size_t bytes) {
    if (attribute != 1) return invalid_value;
    return copy(static_cast<Preference*>(preference)->workspace_bytes, value, bytes);
  };
  all.heuristic = &rank;
  all.algorithm_get = &get_setting;
  all.algorithm_set = &set_setting;
  all.algorithm_check = &check_algorithm;
  all.matmul = &multiply;
  return std::make_shared<const MatrixLibrary>(fmt::format("hip-host {}", version()), all,
                                               host_numbers);
}

}  // namespace greta::device::hip::host
