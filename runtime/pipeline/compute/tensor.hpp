#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "kernels/model/tensor.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/dtype.hpp"

namespace greta::runtime {

/// Extents of a tensor, up to four dimensions, the last one the innermost.
class Shape {
 public:
  static constexpr std::size_t most_dims = 4;

  Shape() = default;
  /// Throws Error for more than four dimensions, for an extent below 1, and for more than 2^62
  /// elements.
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  std::size_t rank() const { return rank_; }
  /// Extent of dimension `dim` < rank().
  std::int64_t operator[](std::size_t dim) const { return extents_[dim]; }
  /// Of the innermost dimension; 1 where there is none.
  std::int64_t last() const { return rank_ == 0 ? 1 : extents_[rank_ - 1]; }
  /// Of all dimensions together; 1 for no dimensions.
  std::int64_t elements() const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), rank_}; }
  std::string text() const;  ///< "[2, 4096]"

  bool operator==(const Shape&) const = default;

 private:
  std::size_t rank_ = 0;
  std::array<std::int64_t, most_dims> extents_{};
};

/// Memory that tensors view: a buffer's, or a temporary of a pipeline, which has no buffer before
/// the pipeline is finished. Tensors and recorded graphs share it; it goes with the last of them.
struct Storage {
  std::shared_ptr<Buffer> buffer;  ///< null: a temporary that has no place yet, or a placeholder
  std::size_t offset = 0;          ///< of byte 0 within the buffer
  std::size_t bytes = 0;
  std::uint64_t pipeline = 0;  ///< number of the recording whose temporary it is; 0: nobody's
  std::uint64_t kept_by = 0;   ///< the last batch of work that was told to keep it
};

/// A view of device memory: element type, shape and strides. Cheap to copy; copies view the same
/// memory. Views are taken by slice() and reshape(), which throw Error for what is not there.
class Tensor {
 public:
  /// No tensor: what an optional operand is that is not given.
  Tensor() = default;
  /// Packed and row-major, from byte `offset` of the storage. Throws Error where that does not hold
  /// it.
  Tensor(std::shared_ptr<Storage> storage, DType dtype, const Shape& shape, std::size_t offset = 0);

  /// A packed tensor that has no memory: to find out what work on such tensors takes.
  static Tensor placeholder(DType dtype, const Shape& shape);

  explicit operator bool() const { return storage_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  /// Elements from one index of dimension `dim` to the next.
  std::int64_t stride(std::size_t dim) const { return strides_[dim]; }
  /// Bytes of the elements, packed.
  std::size_t bytes() const;
  /// From the storage's byte 0 to the first element.
  std::size_t offset() const { return offset_; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  /// Whether the elements lie packed and row-major, as kernels take operands.
  bool contiguous() const;
  /// Elements from one row to the next, where the first `dims` dimensions count rows; as many as a
  /// row has where there is one. 0 where rows are not evenly apart, or not packed in themselves.
  std::int64_t row_stride(std::size_t dims) const;

  /// Indices [first, first + count) of one dimension.
  Tensor slice(std::size_t dim, std::int64_t first, std::int64_t count) const;
  /// The same elements in the same order by other extents. Only of a contiguous tensor.
  Tensor reshape(const Shape& shape) const;

  /// Device address of the first element. Throws Error for a temporary that has no place yet.
  std::uint64_t address() const;
  /// The first element, where the host can reach the memory; else nullptr.
  std::byte* host() const;
  /// Whether both view the very same elements.
  bool same_view(const Tensor& other) const;
  /// Whether an element of one may be an element of the other. Exact for contiguous tensors, and
  /// for parts of one matrix.
  bool overlaps(const Tensor& other) const;

  std::string text() const;  ///< "f16 [2, 4096]", with its strides where it is not contiguous

 private:
  std::shared_ptr<Storage> storage_;
  DType dtype_ = DType::f32;
  Shape shape_;
  std::array<std::int64_t, Shape::most_dims> strides_{};
  std::size_t offset_ = 0;
};

/// Gives a fresh packed tensor, somewhere.
using TensorMaker = std::function<Tensor(DType, const Shape&, Memory)>;

/// Why an operation can't take a tensor as this operand, in one line that says what it takes;
/// empty where it can: of the operand's type, its rows as far apart, and with dimensions that are
/// its rows and columns, in this order, when merged. Elements other than i32 begin at multiples of
/// 16 bytes.
std::string why_not(const Tensor& tensor, const TensorSpec& operand);

}  // namespace greta::runtime
