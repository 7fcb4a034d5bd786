#include "kernels/model/tensor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/model/parallel.hpp"
#include "kernels/model/random.hpp"
#include "runtime/device/result.hpp"

namespace greta::kernels {
namespace {

/// Returns an odd multiple of 2^-24 in (-0.5, 0.5). The distribution is symmetric and exact in f32.
/// No value rounds to 0, since 2^-24 is the smallest subnormal number of f16.
double element(std::uint64_t stream, std::size_t index) {
  constexpr std::int64_t half = std::int64_t{1} << 22;
  const auto draw = static_cast<std::int64_t>(mix64(stream + index) >> 41);  // 23 bits
  return static_cast<double>(2 * (draw - half) + 1) * 0x1p-24;
}

/// Returns the same matrix with its rows where `spec` has them.
HostTensor moved_to(HostTensor tensor, const TensorSpec& spec) {
  constexpr std::byte nan{0xFF};  // NaN in every type if all bytes have this value
  if (spec.contiguous() && tensor.spec.contiguous()) {
    tensor.spec = spec;
    return tensor;
  }
  HostTensor moved{spec, std::vector<std::byte>(spec.bytes(), nan)};
  const auto bytes = [&](std::int64_t elements) {
    return bytes_of(spec.dtype, static_cast<std::ptrdiff_t>(elements));
  };
  for (std::int64_t row = 0; row < spec.rows; ++row) {
    std::copy_n(tensor.data.begin() + bytes(tensor.spec.row_start(row)), bytes(spec.cols),
                moved.data.begin() + bytes(spec.row_start(row)));
  }
  return moved;
}

}  // namespace

std::pair<std::int64_t, std::int64_t> TensorSpec::place(std::int64_t element) const {
  const std::int64_t apart = row_stride();
  if (block_rows == 0) return {element / apart, element % apart};
  const bool between_rows = block_stride < apart;  // blocks that lie in each other's gaps
  const std::int64_t wide = between_rows ? apart : block_stride,
                     narrow = between_rows ? block_stride : apart;
  const std::int64_t outer = element / wide, inner = element % wide / narrow;
  const std::int64_t block = between_rows ? inner : outer, row = between_rows ? outer : inner;
  const bool between_blocks = row >= block_rows || block >= rows / block_rows;
  if (between_blocks) return {std::min(block * block_rows + row, rows - 1), cols};
  return {block * block_rows + row, element % wide % narrow};
}

const HostTensor& tensor_named(const std::vector<HostTensor>& tensors, std::string_view name) {
  for (const HostTensor& tensor : tensors) {
    if (tensor.spec.name == name) return tensor;
  }
  throw Error(fmt::format("there is no tensor {}", name));
}

TensorSpec packed(TensorSpec spec) {
  spec.stride = spec.block_rows = spec.block_stride = spec.offset = 0;
  return spec;
}

HostTensor packed(HostTensor tensor) {
  const TensorSpec spec = packed(tensor.spec);
  return moved_to(std::move(tensor), spec);
}

HostTensor placed(HostTensor tensor, const TensorSpec& as) {
  TensorSpec spec = tensor.spec;
  spec.stride = as.stride;
  spec.block_rows = as.block_rows;
  spec.block_stride = as.block_stride;
  spec.offset = as.offset;
  return moved_to(std::move(tensor), spec);
}

HostTensor random_tensor(const TensorSpec& spec, std::uint64_t seed) {
  constexpr std::size_t elements_worth_threads = std::size_t{1} << 20;
  const TensorSpec dense = packed(spec);
  HostTensor tensor{dense, std::vector<std::byte>(dense.bytes())};
  const std::size_t count = spec.elements();
  const std::uint64_t stream = mix64(seed);
  const auto fill = [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i) {
      store_element(spec.dtype, tensor.data.data(), i, element(stream, i));
    }
  };
  if (count < elements_worth_threads) {
    fill(0, static_cast<std::int64_t>(count));
  } else {
    parallel_parts(static_cast<std::int64_t>(count), fill);
  }
  return placed(std::move(tensor), spec);
}

}  // namespace greta::kernels
