#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "kernels/model/tensor.hpp"
#include "runtime/device/device.hpp"
#include "runtime/device/dtype.hpp"

namespace greta::runtime {

/// The extents of a tensor: up to four dimensions, the last one innermost.
class Shape {
 public:
  static constexpr std::size_t most_dims = 4;

  Shape() = default;
  /// Throws Error for more than four dimensions, an extent below 1, or more than 2^62 elements.
  Shape(std::initializer_list<std::int64_t> extents);
  explicit Shape(std::span<const std::int64_t> extents);

  std::size_t rank() const { return rank_; }
  /// Returns the extent of dimension `dim` < rank().
  std::int64_t operator[](std::size_t dim) const { return extents_[dim]; }
  /// Returns the extent of the innermost dimension; 1 if there are no dimensions.
  std::int64_t last() const { return rank_ == 0 ? 1 : extents_[rank_ - 1]; }
  /// Returns the product of all extents; 1 if there are no dimensions.
  std::int64_t elements() const;
  std::span<const std::int64_t> extents() const { return {extents_.data(), rank_}; }
  std::string text() const;  ///< e.g. "[2, 4096]"

  bool operator==(const Shape&) const = default;

 private:
  std::size_t rank_ = 0;
  std::array<std::int64_t, most_dims> extents_{};
};

/// Memory that tensors view: a part of a buffer, or a temporary of a pipeline, which has no buffer
/// before the pipeline is finished. Shared by tensors and graphs; freed with the last of them.
struct Storage {
  std::shared_ptr<const void> owner;  ///< of another library's memory; released after all use
  std::shared_ptr<Buffer> buffer;  ///< null: a temporary without an address yet, or a placeholder
  std::size_t offset = 0;          ///< of byte 0 within the buffer
  std::size_t bytes = 0;
  /// Number of the recording that owns the temporary. 0: not a temporary.
  std::uint64_t pipeline = 0;
  std::uint64_t kept_by = 0;  ///< number of the last batch of work that keeps it alive
  bool foreign = false;       ///< another library's memory, of which there may be several storages
};

/// A view of device memory: element type, shape and strides. Cheap to copy; copies view the same
/// memory. slice() and reshape() return views and throw Error for invalid ranges or shapes.
class Tensor {
 public:
  /// An empty tensor, which represents an omitted optional operand.
  Tensor() = default;
  /// Creates a packed row-major view from byte `offset` of the storage. Throws Error if it exceeds
  /// the storage.
  Tensor(std::shared_ptr<Storage> storage, DType dtype, const Shape& shape, std::size_t offset = 0);

  /// Creates a view with these strides in elements. Throws Error unless each one is at least the
  /// next one's extent times its stride, as in parts of a row-major tensor.
  Tensor(std::shared_ptr<Storage> storage, DType dtype, const Shape& shape,
         std::span<const std::int64_t> strides, std::size_t offset);

  /// Creates a packed tensor without memory, for computing memory requirements.
  static Tensor placeholder(DType dtype, const Shape& shape);

  explicit operator bool() const { return storage_ != nullptr; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  /// Returns the distance in elements between indices of dimension `dim`.
  std::int64_t stride(std::size_t dim) const { return strides_[dim]; }
  /// Returns the size of the elements when packed.
  std::size_t bytes() const;
  /// Returns the offset of the first element in the storage in bytes.
  std::size_t offset() const { return offset_; }
  const std::shared_ptr<Storage>& storage() const { return storage_; }
  /// Returns the offset of the first element in the memory that the storage is a part of, in bytes.
  std::size_t place() const;
  /// Returns whether the elements are packed and row-major, as most kernels require.
  bool contiguous() const;
  /// Returns the row stride in elements if the first `dims` dimensions are merged into rows.
  /// Returns the length of a row if there is only one. Returns 0 if the stride is not constant or
  /// rows are not packed.
  std::int64_t row_stride(std::size_t dims) const;

  /// Returns the view of indices [first, first + count) of one dimension.
  Tensor slice(std::size_t dim, std::int64_t first, std::int64_t count) const;
  /// Returns a view with other extents and the same elements in order. Requires a contiguous
  /// tensor.
  Tensor reshape(const Shape& shape) const;

  /// Returns the device address of the first element. Throws Error for a temporary without an
  /// address.
  std::uint64_t address() const;
  /// Returns the host pointer to the first element, or nullptr if the memory is not host-visible.
  std::byte* host() const;
  /// Returns whether both view the same elements.
  bool same_view(const Tensor& other) const;
  /// Returns whether both views may share an element. Exact for contiguous tensors and for parts of
  /// one matrix.
  bool overlaps(const Tensor& other) const;

  std::string text() const;  ///< e.g. "f16 [2, 4096]", with strides if not contiguous

 private:
  /// Returns the number of bytes from the first element to the end of the last one.
  std::size_t extent_bytes() const;
  /// Returns where the first elements of both are in memory that both may share: offsets in one
  /// storage, or addresses if one of them is in another library's memory. Empty: they share none.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> places(const Tensor& other) const;

  std::shared_ptr<Storage> storage_;
  DType dtype_ = DType::f32;
  Shape shape_;
  std::array<std::int64_t, Shape::most_dims> strides_{};
  std::size_t offset_ = 0;
};

/// The bytes of a tensor: rows of `width` bytes, `stride` apart. A packed tensor is a single row,
/// with stride 0. Width 0: the distance of rows is not constant.
struct Region {
  std::uint64_t begin = 0;
  std::size_t bytes = 0;  ///< from the first byte to the end of the last one
  std::size_t stride = 0, width = 0;
};

/// Returns whether both may share a byte. Exact for packed regions and for columns of one matrix.
bool overlap(const Region& one, const Region& other);

/// Returns the alignment of the widest load of elements of this type, in bytes.
std::size_t alignment_of(DType dtype);
/// Returns the alignment that kernels require of an operand: its own or that of its type's widest
/// load, or what its offset leaves of it.
std::size_t alignment_of(const TensorSpec& operand);

/// Creates a packed tensor.
using TensorMaker = std::function<Tensor(DType, const Shape&, Memory)>;

/// Returns why a tensor can't be this operand, as one line that states the requirements, or an
/// empty string if it can. The type and the row stride must match, and merged dimensions must give
/// the operand's rows and columns, in this order. The first element must be aligned as
/// alignment_of() says.
std::string why_not(const Tensor& tensor, const TensorSpec& operand);

}  // namespace greta::runtime
