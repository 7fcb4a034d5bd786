#include "runtime/pipeline/compute/tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/compute/refuse.hpp"

namespace greta::runtime {
namespace {

constexpr std::size_t element_alignment = 16;  // the widest load of any kernel
constexpr std::int64_t most_elements = std::int64_t{1} << 62;

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> extents)
    : Shape(std::span(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const std::int64_t> extents) : rank_(extents.size()) {
  if (rank_ > most_dims) {
    refuse(fmt::format("a shape of {} dimensions: at most {}", rank_, most_dims));
  }
  std::int64_t left = most_elements;
  for (std::size_t i = 0; i < rank_; ++i) {
    const std::int64_t extent = extents[i];
    if (extent < 1 || extent > left) {
      refuse(
          fmt::format("a shape of [{}]: each extent must be at least 1, and at most 2^62 all "
                      "together",
                      fmt::join(extents, ", ")));
    }
    left /= extent;
    extents_[i] = extent;
  }
}

std::int64_t Shape::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents()) count *= extent;
  return count;
}

std::string Shape::text() const {
  return fmt::format("[{}]", fmt::join(extents(), ", "));
}

Tensor::Tensor(std::shared_ptr<Storage> storage, DType dtype, const Shape& shape,
               std::size_t offset)
    : storage_(std::move(storage)), dtype_(dtype), shape_(shape), offset_(offset) {
  std::int64_t step = 1;
  for (std::size_t i = shape_.rank(); i-- > 0;) {
    strides_[i] = step;
    step *= shape_[i];
  }
  if (!storage_) refuse("a tensor without memory");
  if (offset > storage_->bytes ||
      bytes_of(dtype, static_cast<std::size_t>(step)) > storage_->bytes - offset) {
    refuse(fmt::format("{} from byte {} on does not fit memory of {} bytes", text(), offset,
                       storage_->bytes));
  }
}

Tensor::Tensor(std::shared_ptr<Storage> storage, DType dtype, const Shape& shape,
               std::span<const std::int64_t> strides, std::size_t offset)
    : storage_(std::move(storage)), dtype_(dtype), shape_(shape), offset_(offset) {
  if (!storage_) refuse("a tensor without memory");
  std::int64_t least = 1;
  for (std::size_t i = shape_.rank(); i-- > 0;) {
    // The stride of a single index is not used.
    strides_[i] = shape_[i] == 1 ? least : strides[i];
    if (strides_[i] < least || strides_[i] > most_elements / shape_[i]) {
      refuse(fmt::format("strides [{}] of {} {}: that of dimension {} must be at least {}",
                         fmt::join(strides.first(shape_.rank()), ", "), to_string(dtype),
                         shape_.text(), i, least));
    }
    least = strides_[i] * shape_[i];
  }
  if (offset > storage_->bytes || extent_bytes() > storage_->bytes - offset) {
    refuse(fmt::format("{} from byte {} on does not fit memory of {} bytes", text(), offset,
                       storage_->bytes));
  }
}

Tensor Tensor::placeholder(DType dtype, const Shape& shape) {
  auto storage = std::make_shared<Storage>();
  storage->bytes = bytes_of(dtype, static_cast<std::size_t>(shape.elements()));
  return {std::move(storage), dtype, shape};
}

std::size_t Tensor::bytes() const {
  return bytes_of(dtype_, static_cast<std::size_t>(shape_.elements()));
}

std::size_t Tensor::extent_bytes() const {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < shape_.rank(); ++i) last += (shape_[i] - 1) * strides_[i];
  return bytes_of(dtype_, static_cast<std::size_t>(last + 1));
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> Tensor::places(const Tensor& other) const {
  if (storage_ == other.storage_) return std::pair(offset_, other.offset_);
  if (!storage_ || !other.storage_ || !(storage_->foreign || other.storage_->foreign)) return {};
  if (!storage_->buffer || !other.storage_->buffer) return {};
  return std::pair(address(), other.address());
}

bool Tensor::contiguous() const {
  std::int64_t step = 1;
  for (std::size_t i = shape_.rank(); i-- > 0;) {
    if (shape_[i] != 1 && strides_[i] != step) return false;
    step *= shape_[i];
  }
  return true;
}

std::int64_t Tensor::row_stride(std::size_t dims) const {
  std::int64_t cols = 1, rows = 1, stride = 0;
  for (std::size_t i = shape_.rank(); i-- > dims;) {
    if (shape_[i] != 1 && strides_[i] != cols) return 0;
    cols *= shape_[i];
  }
  for (std::size_t i = std::min(dims, shape_.rank()); i-- > 0;) {
    if (shape_[i] == 1) continue;
    if (rows == 1) stride = strides_[i];
    if (strides_[i] != rows * stride) return 0;
    rows *= shape_[i];
  }
  return rows == 1 ? cols : stride;
}

Tensor Tensor::slice(std::size_t dim, std::int64_t first, std::int64_t count) const {
  if (dim >= shape_.rank() || first < 0 || count < 1 || first > shape_[dim] - count) {
    // The sum of unsigned numbers can't overflow.
    const auto end = static_cast<std::int64_t>(static_cast<std::uint64_t>(first) +
                                               static_cast<std::uint64_t>(count));
    const bool wraps = count > 0 && end < first;
    refuse(wraps
               ? fmt::format("{} indices from {} of dimension {} of {}", count, first, dim, text())
               : fmt::format("indices {} to {} of dimension {} of {}", first, end, dim, text()));
  }
  std::array<std::int64_t, Shape::most_dims> extents{};
  std::copy_n(shape_.extents().begin(), shape_.rank(), extents.begin());
  extents[dim] = count;
  Tensor part = *this;
  part.shape_ = Shape(std::span<const std::int64_t>(extents.data(), shape_.rank()));
  part.offset_ += bytes_of(dtype_, static_cast<std::size_t>(first * strides_[dim]));
  return part;
}

Tensor Tensor::reshape(const Shape& shape) const {
  if (!contiguous() || shape.elements() != shape_.elements()) {
    refuse(fmt::format("{} as {}: {}", text(), shape.text(),
                       contiguous() ? "not as many elements" : "it is not contiguous"));
  }
  return {storage_, dtype_, shape, offset_};
}

std::uint64_t Tensor::address() const {
  if (!storage_ || !storage_->buffer) {
    refuse(storage_ ? "a temporary has no address before its pipeline is finished"
                    : "a tensor without memory");
  }
  return storage_->buffer->address() + storage_->offset + offset_;
}

std::byte* Tensor::host() const {
  if (!storage_ || !storage_->buffer) return nullptr;
  std::byte* const mapped = storage_->buffer->host();
  return mapped == nullptr ? nullptr : mapped + storage_->offset + offset_;
}

bool Tensor::same_view(const Tensor& other) const {
  const auto at = places(other);
  return at && at->first == at->second && dtype_ == other.dtype_ && shape_ == other.shape_ &&
         strides_ == other.strides_;
}

bool Tensor::overlaps(const Tensor& other) const {
  const auto at = places(other);
  if (!storage_ || !at) return false;
  const auto region = [](const Tensor& tensor, std::uint64_t begin) -> Region {
    if (tensor.contiguous()) return {begin, tensor.bytes(), 0, tensor.bytes()};
    auto width = bytes_of(tensor.dtype_, static_cast<std::size_t>(tensor.shape_.last()));
    for (std::size_t dims = tensor.shape_.rank(); dims-- > 1;) {
      const auto stride = static_cast<std::size_t>(tensor.row_stride(dims));
      if (stride > 0) {
        return {begin, tensor.extent_bytes(), bytes_of(tensor.dtype_, stride), width};
      }
      width *= static_cast<std::size_t>(tensor.shape_[dims - 1]);
    }
    return {begin, tensor.extent_bytes(), 0, 0};
  };
  return overlap(region(*this, at->first), region(other, at->second));
}

bool overlap(const Region& one, const Region& other) {
  if (one.begin >= other.begin + other.bytes || other.begin >= one.begin + one.bytes) return false;
  // Columns of one matrix occupy disjoint ranges of each row.
  if (one.width == 0 || other.width == 0) return true;
  const std::size_t stride = std::max(one.stride, other.stride);
  const bool alike = one.stride == other.stride || one.stride == 0 || other.stride == 0;
  if (stride == 0 || !alike) return true;
  const std::size_t apart = (other.begin % stride + stride - one.begin % stride) % stride;
  return apart < one.width || apart + other.width > stride;
}

std::size_t alignment_of(DType dtype) {
  // Bytes are quantised weights, which kernels load 16 at a time.
  return is_floating(dtype) || dtype == DType::u8 ? element_alignment : 4;
}

std::size_t alignment_of(const TensorSpec& operand) {
  const auto offset = bytes_of(operand.dtype, static_cast<std::size_t>(operand.offset));
  const auto widest = operand.alignment > 0 ? static_cast<std::size_t>(operand.alignment)
                                            : alignment_of(operand.dtype);
  return std::size_t{1} << std::countr_zero(offset | widest);
}

std::size_t Tensor::place() const {
  return (storage_->buffer ? storage_->offset : 0) + offset_;
}

std::string Tensor::text() const {
  if (!storage_) return "no tensor";
  std::string text = fmt::format("{} {}", to_string(dtype_), shape_.text());
  if (contiguous()) return text;
  return text + fmt::format(" with strides [{}]",
                            fmt::join(strides_.begin(), strides_.begin() + shape_.rank(), ", "));
}

std::string why_not(const Tensor& tensor, const TensorSpec& operand) {
  const auto takes = [&](std::string_view but) {
    return fmt::format("{} is {}, but it must be {} of {} x {}{}", operand.name, tensor.text(),
                       to_string(operand.dtype), operand.rows, operand.cols, but);
  };
  if (!tensor) return fmt::format("{} is missing", operand.name);
  if (tensor.dtype() != operand.dtype) return takes("");
  if (operand.pool) {
    TensorSpec own = operand;
    own.pool = false;
    own.rows = 1;
    for (std::size_t i = 0; i + 1 < tensor.shape().rank(); ++i) own.rows *= tensor.shape()[i];
    return why_not(tensor, own);
  }
  if (operand.block_rows > 0) {  // matrices of a batch
    TensorSpec one = operand;
    one.block_rows = one.block_stride = 0;
    one.rows = operand.block_rows;
    const bool blocks = tensor.shape().rank() > 1 && tensor.shape()[0] * one.rows == operand.rows;
    if (!blocks || tensor.stride(0) != operand.block_stride) {
      return takes(fmt::format(", its matrices {} apart", operand.block_stride));
    }
    return why_not(tensor.slice(0, 0, 1), one);
  }
  std::int64_t rows = 1;
  std::size_t dim = 0;
  const Shape& shape = tensor.shape();
  while (dim < shape.rank() && rows < operand.rows) rows *= shape[dim++];
  std::int64_t cols = 1;
  for (std::size_t i = dim; i < shape.rank(); ++i) cols *= shape[i];
  if (rows != operand.rows || cols != operand.cols) return takes("");
  const std::int64_t stride = tensor.row_stride(dim), wanted = operand.row_stride();
  if (rows > 1 && wanted != cols && stride != wanted) {
    return takes(fmt::format(", its rows {} apart", wanted));
  }
  if (stride != (rows > 1 ? wanted : cols)) return takes(", contiguous");
  const std::size_t alignment = alignment_of(operand);
  if (tensor.place() % alignment != 0) {
    return fmt::format("{} begins at byte {} of its memory, but it must be at a multiple of {}",
                       operand.name, tensor.place(), alignment);
  }
  return {};
}

}  // namespace greta::runtime
