#include "runtime/device/hip/host/host_matrix_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/device/hip/host/state.hpp"
#include "runtime/device/version.hpp"

namespace greta::device::hip::host {

namespace {

constexpr hipblasStatus_t ok = 0, invalid_value = 3, failed = 6, not_supported = 7;
constexpr int most_ranked = 16;
constexpr int type_f32 = 0, type_f16 = 2, type_bf16 = 14, type_e4m3 = 28;

/// Sums along K, backwards if `order` is 1, in `slices`, whose sums the workspace holds but for the
/// first. As cuBLASLt's, an algorithm has settings.
struct HostAlgorithm {
  std::uint32_t order = 0, slices = 1, reduction = reduction_none;
  std::uint32_t unused = 0;

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
  int transpose_a = host_numbers.not_transposed, transpose_b = host_numbers.not_transposed;
  int epilogue = 1, bias_type = type_f32;
  const void* bias = nullptr;
  const float *scale_a = nullptr, *scale_b = nullptr;
  std::int32_t scale_mode_a = 0, scale_mode_b = 0;
  std::int8_t fast_accumulation = 0;

  /// Returns the factor of an element of the product.
  double scale(std::uint64_t row, std::uint64_t col) const {
    if (scale_a == nullptr) return 1;
    return static_cast<double>(scale_a[scale_mode_a == scale_mode_rows ? row : 0]) *
           static_cast<double>(scale_b[scale_mode_b == scale_mode_rows ? col : 0]);
  }
};
struct Preference {
  std::uint64_t workspace_bytes = 0;
};

double f16_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  return sign *
         (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

std::uint16_t f16_bits(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return 0x7e00;
  const double size = std::abs(value);
  if (size == 0) return sign;
  if (size >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00);
  int exponent = 0;
  std::frexp(size, &exponent);                    // size is in [2^(exponent-1), 2^exponent)
  const int step = std::max(exponent - 11, -24);  // of the last digit
  const auto digits = static_cast<int>(std::nearbyint(std::ldexp(size, -step)));
  // The leading digit of a normal number adds one to the exponent.
  return static_cast<std::uint16_t>(sign + ((step + 24) << 10) + digits);
}

std::uint16_t bf16_bits(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (std::isnan(value)) return 0x7fc0;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

std::int64_t bytes_of_type(int type) {
  return type == type_e4m3 ? 1 : type == type_f32 ? 4 : 2;
}

double e4m3_value(std::uint8_t bits) {
  const int exponent = bits >> 3 & 15, mantissa = bits & 7;
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  if (exponent == 15 && mantissa == 7) return NAN;
  return sign *
         (exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10));
}

double load(const void* from, int type, std::uint64_t at) {
  if (type == type_e4m3) return e4m3_value(static_cast<const std::uint8_t*>(from)[at]);
  if (type == type_f32) return static_cast<const float*>(from)[at];
  const std::uint16_t bits = static_cast<const std::uint16_t*>(from)[at];
  return type == type_f16 ? f16_value(bits) : std::bit_cast<float>(std::uint32_t{bits} << 16);
}

void store(void* to, int type, std::uint64_t at, double value) {
  if (type == type_f32) {
    static_cast<float*>(to)[at] = static_cast<float>(value);
  } else {
    static_cast<std::uint16_t*>(to)[at] = type == type_f16 ? f16_bits(value) : bf16_bits(value);
  }
}

/// One call: column-major D = alpha op(A) op(B) + beta C + bias.
struct Product {
  Description description;
  Layout a_layout, b_layout, d_layout;
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
  float alpha = 1, beta = 0;
  HostAlgorithm algorithm;
  float* workspace = nullptr;

  void run() const;
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
    total += load(a, a_layout.type, ta ? row * as + k : k * as + row) *
             load(b, b_layout.type, tb ? k * bs + col : col * bs + k);
  }
  return total;
}

void Product::run() const {
  const std::uint64_t depth =
      description.transpose_a == host_numbers.transposed ? a_layout.rows : a_layout.cols;
  const std::uint64_t slices = algorithm.slices, elements = d_layout.cols * d_layout.rows;
  for (std::uint64_t col = 0; col < d_layout.cols; ++col) {
    for (std::uint64_t row = 0; row < d_layout.rows; ++row) {
      const std::uint64_t at = col * static_cast<std::uint64_t>(d_layout.stride) + row;
      double total = sum(row, col, 0, depth / slices);
      for (std::uint64_t i = 1; i < slices; ++i) {
        float& slice = workspace[(i - 1) * elements + col * d_layout.rows + row];
        slice = static_cast<float>(sum(row, col, depth * i / slices, depth * (i + 1) / slices));
        total += slice;
      }
      total *= alpha * description.scale(row, col);
      if (beta != 0) total += beta * load(c, d_layout.type, at);
      if ((description.epilogue & 4) != 0)
        total += load(description.bias, description.bias_type, row);
      store(d, d_layout.type, at, total);
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
  if (attribute == host_numbers.scale_a) return copy(description.scale_a, value, bytes);
  if (attribute == host_numbers.scale_b) return copy(description.scale_b, value, bytes);
  if (attribute == host_numbers.scale_mode_a) return copy(description.scale_mode_a, value, bytes);
  if (attribute == host_numbers.scale_mode_b) return copy(description.scale_mode_b, value, bytes);
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

/// Whether the library computes the product: as cuBLASLt, fp8 only where both operands lie along k,
/// with rows of multiples of 16 bytes, scales, and sums in f32.
bool supported(const Description& description, const Layout& a, const Layout& b, const Layout& d) {
  if (a.type != type_e4m3) return description.scale_a == nullptr;
  const auto aligned = [](const Layout& layout) {
    return (layout.stride * bytes_of_type(layout.type)) % 16 == 0;
  };
  return description.transpose_a == host_numbers.transposed &&
         description.transpose_b == host_numbers.not_transposed && b.type == type_e4m3 &&
         aligned(a) && aligned(b) && aligned(d) && description.scale_a != nullptr &&
         description.scale_b != nullptr && description.fast_accumulation == 0 &&
         description.scale_mode_a == description.scale_mode_b;
}

hipblasStatus_t rank(void*, void* desc, void* a, void* b, void*, void* d, void* preference,
                     int wanted, void* results, int* found) {
  const auto& layout = *static_cast<const Layout*>(d);
  *found = 0;
  if (!supported(*static_cast<const Description*>(desc), *static_cast<const Layout*>(a),
                 *static_cast<const Layout*>(b), layout)) {
    return not_supported;
  }
  constexpr std::array<HostAlgorithm, 3> all{{{0}, {1}, {0, 2, reduction_f32}}};
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
      algorithm.reduction != (sliced ? reduction_f32 : reduction_none)) {
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
  product.alpha = *static_cast<const float*>(alpha);
  product.beta = *static_cast<const float*>(beta);
  std::memcpy(&product.algorithm, algorithm, sizeof product.algorithm);
  product.workspace = static_cast<float*>(workspace);
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
  all.desc_create = [](void** description, int, int) { return create<Description>(description); };
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
