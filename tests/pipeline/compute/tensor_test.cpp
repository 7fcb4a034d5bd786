// Protects: views of memory, the rejection of invalid ones, and the strides that kernels receive.
#include "runtime/pipeline/compute/tensor.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "runtime/device/result.hpp"
#include "tests/layers.hpp"

namespace greta::test::tensor_test {
namespace {

Tensor tensor(DType dtype, const Shape& shape, std::size_t offset = 0) {
  auto storage = std::make_shared<Storage>();
  storage->bytes = offset + bytes_of(dtype, static_cast<std::size_t>(shape.elements()));
  return {std::move(storage), dtype, shape, offset};
}

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_argument);
    return error.what();
  }
  return "no error";
}

TEST(Shape, RefusesWhatIsNoShape) {
  EXPECT_EQ((Shape{2, 3, 4}).elements(), 24);
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ((Shape{2, 3}).text(), "[2, 3]");
  EXPECT_EQ(error_of([] { Shape{1, 2, 3, 4, 5}; }), "a shape of 5 dimensions: at most 4");
  for (const Shape& (*make)() : {+[]() -> const Shape& {
                                   static Shape s{2, 0};
                                   return s;
                                 },
                                 +[]() -> const Shape& {
                                   static Shape s{-1};
                                   return s;
                                 },
                                 +[]() -> const Shape& {
                                   static Shape s{std::int64_t{1} << 40, std::int64_t{1} << 40};
                                   return s;
                                 }}) {
    EXPECT_NE(error_of([make] { make(); }).find("each extent must be at least 1"),
              std::string::npos);
  }
}

TEST(Tensor, SlicesAndReshapesViewTheSameMemory) {
  const Tensor whole = tensor(DType::f16, {4, 6, 8});
  EXPECT_TRUE(whole.contiguous());
  const Tensor rows = whole.slice(0, 1, 2);
  EXPECT_EQ(rows.shape(), (Shape{2, 6, 8}));
  EXPECT_EQ(rows.offset(), 96U);
  EXPECT_TRUE(rows.contiguous());
  EXPECT_EQ(rows.reshape({12, 8}).offset(), 96U);

  const Tensor columns = whole.slice(2, 4, 4);
  EXPECT_FALSE(columns.contiguous());
  EXPECT_EQ(columns.text(), "f16 [4, 6, 4] with strides [48, 8, 1]");
  EXPECT_EQ(error_of([&] { columns.reshape({96}); }),
            "f16 [4, 6, 4] with strides [48, 8, 1] as [96]: it is not contiguous");
  // A slice of one row is contiguous, whatever the strides of dimensions of extent 1.
  EXPECT_TRUE(columns.slice(0, 3, 1).slice(1, 5, 1).contiguous());

  EXPECT_EQ(error_of([&] { whole.reshape({5}); }), "f16 [4, 6, 8] as [5]: not as many elements");
  EXPECT_EQ(error_of([&] { whole.slice(0, 3, 2); }),
            "indices 3 to 5 of dimension 0 of f16 [4, 6, 8]");
  EXPECT_EQ(error_of([&] { whole.slice(3, 0, 1); }),
            "indices 0 to 1 of dimension 3 of f16 [4, 6, 8]");
  EXPECT_EQ(error_of([&] { whole.slice(0, -1, 1); }),
            "indices -1 to 0 of dimension 0 of f16 [4, 6, 8]");
  EXPECT_EQ(error_of([&] { whole.slice(0, 2, std::numeric_limits<std::int64_t>::max()); }),
            "9223372036854775807 indices from 2 of dimension 0 of f16 [4, 6, 8]");
  EXPECT_EQ(error_of([&] {
              Tensor(whole.storage(), DType::f32, {4, 6, 8});
            }),
            "f32 [4, 6, 8] from byte 0 on does not fit memory of 384 bytes");
  EXPECT_NE(error_of([&] { static_cast<void>(whole.address()); }), "no error");
}

TEST(Tensor, KnowsWhatItOverlaps) {
  const Tensor whole = tensor(DType::f32, {4, 8});
  const Tensor first = whole.slice(0, 0, 2), second = whole.slice(0, 2, 2);
  EXPECT_TRUE(whole.overlaps(first));
  EXPECT_TRUE(second.overlaps(whole));
  EXPECT_FALSE(first.overlaps(second));
  EXPECT_FALSE(first.overlaps(tensor(DType::f32, {4, 8})));
  EXPECT_TRUE(first.same_view(whole.slice(0, 0, 2)));
  EXPECT_FALSE(first.same_view(first.reshape({16})));
}

TEST(Tensor, KnowsHowFarApartItsRowsAre) {
  const Tensor whole = tensor(DType::f16, {4, 6, 8});
  EXPECT_EQ(whole.row_stride(2), 8);
  EXPECT_EQ(whole.row_stride(1), 48);
  const Tensor columns = whole.slice(2, 0, 4);
  EXPECT_EQ(columns.row_stride(2), 8);
  EXPECT_EQ(columns.row_stride(1), 0);  // a row is not packed
  EXPECT_EQ(columns.slice(1, 2, 1).row_stride(2), 48);
  EXPECT_EQ(whole.slice(1, 0, 3).row_stride(2), 0);  // rows are not evenly spaced
  EXPECT_EQ(whole.slice(1, 0, 3).row_stride(1), 48);
  EXPECT_EQ(columns.slice(0, 1, 1).slice(1, 5, 1).row_stride(2), 4);
}

TEST(Tensor, ColumnsOfOneMatrixDontOverlap) {
  const Tensor whole = tensor(DType::f32, {4, 12});
  const Tensor q = whole.slice(1, 0, 6), k = whole.slice(1, 6, 4), v = whole.slice(1, 10, 2);
  for (const auto& [a, b] : {std::pair(q, k), std::pair(k, v), std::pair(v, q.slice(0, 1, 3))}) {
    EXPECT_FALSE(a.overlaps(b));
    EXPECT_FALSE(b.overlaps(a));
    EXPECT_TRUE(whole.overlaps(a));
    EXPECT_TRUE(a.overlaps(whole));
  }
  const Tensor middle = whole.slice(1, 5, 2).slice(0, 2, 2);
  for (const Tensor& a : {q, k}) {
    EXPECT_TRUE(a.overlaps(middle));
    EXPECT_TRUE(middle.overlaps(a));
  }
  EXPECT_FALSE(v.overlaps(middle));
  const Tensor heads = tensor(DType::f16, {5, 8, 4});  // by token
  const Tensor queries = heads.slice(1, 0, 4), keys = heads.slice(1, 4, 2);
  EXPECT_FALSE(queries.overlaps(keys));
  EXPECT_FALSE(keys.overlaps(queries));
  EXPECT_TRUE(heads.slice(1, 3, 2).overlaps(queries));
  EXPECT_TRUE(heads.slice(1, 3, 2).overlaps(keys));
  EXPECT_TRUE(heads.slice(2, 0, 2).overlaps(keys));
}

/// Returns every part of a 3 x 5 matrix with a mask of its elements.
std::vector<std::pair<Tensor, unsigned>> parts_of_a_matrix() {
  std::vector<std::pair<Tensor, unsigned>> parts;
  const Tensor whole = tensor(DType::f32, {3, 5});
  for (const std::int64_t row : {0, 1, 2}) {
    for (std::int64_t rows = 1; rows <= 3 - row; ++rows) {
      for (const std::int64_t col : {0, 1, 2, 3, 4}) {
        for (std::int64_t cols = 1; cols <= 5 - col; ++cols) {
          unsigned elements = 0;
          for (std::int64_t i = row; i < row + rows; ++i) {
            elements |= ((1U << cols) - 1) << (i * 5 + col);
          }
          parts.emplace_back(whole.slice(0, row, rows).slice(1, col, cols), elements);
        }
      }
    }
  }
  return parts;
}

TEST(Tensor, PartsOfOneMatrixOverlapWhereTheyShareAnElement) {
  const auto parts = parts_of_a_matrix();
  ASSERT_EQ(parts.size(), 90U);
  for (const auto& [a, of_a] : parts) {
    for (const auto& [b, of_b] : parts) {
      EXPECT_EQ(a.overlaps(b), (of_a & of_b) != 0)
          << a.text() << " at byte " << a.offset() << ", " << b.text() << " at " << b.offset();
    }
  }
}

TEST(Tensor, KernelsTakePackedRowsOfTheirType) {
  const TensorSpec operand{"A", Role::input, DType::f16, 6, 8};
  for (const Shape& shape : {Shape{6, 8}, Shape{2, 3, 8}, Shape{6, 2, 4}, Shape{1, 6, 1, 8}}) {
    EXPECT_EQ(why_not(tensor(DType::f16, shape), operand), "") << shape.text();
  }
  EXPECT_EQ(why_not(tensor(DType::f16, {6}), {"index", Role::output, DType::f16, 6, 1}), "");
  EXPECT_EQ(why_not(tensor(DType::f16, {6}), {"bias", Role::input, DType::f16, 1, 6}), "");
  EXPECT_EQ(why_not(tensor(DType::f16, {8, 6}), operand),
            "A is f16 [8, 6], but it must be f16 of 6 x 8");
  EXPECT_EQ(why_not(tensor(DType::f16, {4, 12}), operand),
            "A is f16 [4, 12], but it must be f16 of 6 x 8");
  EXPECT_EQ(why_not(tensor(DType::f32, {6, 8}), operand),
            "A is f32 [6, 8], but it must be f16 of 6 x 8");
  EXPECT_EQ(why_not(tensor(DType::f16, {6, 16}).slice(1, 0, 8), operand),
            "A is f16 [6, 8] with strides [16, 1], but it must be f16 of 6 x 8, contiguous");
  const TensorSpec apart{"A", Role::input, DType::f16, 6, 8, 16};
  EXPECT_EQ(why_not(tensor(DType::f16, {6, 16}).slice(1, 0, 8), apart), "");
  EXPECT_EQ(why_not(tensor(DType::f16, {6, 8}), apart),
            "A is f16 [6, 8], but it must be f16 of 6 x 8, its rows 16 apart");
  EXPECT_EQ(why_not({}, operand), "A is missing");
  EXPECT_EQ(why_not(tensor(DType::f16, {6, 8}, 8), operand),
            "A begins at byte 8 of its memory, but it must be at a multiple of 16");
  // Quantised weights are loaded 16 bytes at a time; positions one by one.
  EXPECT_EQ(alignment_of(DType::u8), 16U);
  EXPECT_EQ(alignment_of(DType::i32), 4U);
  EXPECT_EQ(why_not(tensor(DType::i32, {1}, 4), {"ids", Role::input, DType::i32, 1, 1}), "");
}

}  // namespace
}  // namespace greta::test::tensor_test
