// Protects: elements that a kernel did not write are told from those where it wrote the same bits,
// in outputs of all sizes of elements; gaps between rows and tensors that are also inputs do not
// count; and rows that no correct kernel writes must keep their bits, so that any NaN will not do.
#include "tuner/evaluate/written.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/layers.hpp"
#include "tuner/evaluate/workload.hpp"

namespace greta::test::written_test {
namespace {

class AnyValue : public Reference {
 public:
  Verdict check(const std::vector<HostTensor>&) const override { return {}; }
  std::optional<std::vector<std::vector<Expected>>> expected() const override { return {}; }
};

/// Of which a correct kernel writes rows 0 and 2 only.
class EvenRows : public AnyValue {
 public:
  bool writes(std::string_view output, std::int64_t row) const override {
    return output == "y" && row % 2 == 0;
  }
};

/// Three rows of four elements, with gaps behind the first two, full of a pattern.
HostTensor filled(DType dtype, std::uint32_t pattern, Role role = Role::output) {
  HostTensor tensor{{.name = "y", .role = role, .dtype = dtype, .rows = 3, .cols = 4, .stride = 6},
                    {}};
  tensor.data.resize(tensor.spec.bytes());
  for (std::size_t i = 0; i < tensor.data.size(); ++i) {
    tensor.data[i] = static_cast<std::byte>(pattern >> 8 * (i % 4) & 0xFF);
  }
  return tensor;
}

void set(HostTensor& tensor, std::int64_t row, std::int64_t col, std::uint64_t bits) {
  const auto bytes = bytes_of(tensor.spec.dtype, std::size_t{1});
  const auto element = static_cast<std::size_t>(tensor.spec.row_start(row) + col);
  std::memcpy(tensor.data.data() + element * bytes, &bits, bytes);
}

/// Writes zeros but to two elements.
HostTensor written_but_two(HostTensor tensor) {
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t col = 0; col < 4; ++col) {
      if ((row != 1 || col != 3) && (row != 2 || col != 0)) set(tensor, row, col, 0);
    }
  }
  return tensor;
}

TEST(Written, ElementsLeftInBothRunsAreNamed) {
  for (const DType dtype : {DType::i8, DType::f16, DType::f32, DType::i32}) {
    const AnyValue reference;
    const auto found = unchanged_elements(reference, {written_but_two(filled(dtype, nan_pattern))});
    ASSERT_TRUE(found.any) << to_string(dtype);
    std::vector<bool> marks(12);
    marks[7] = marks[8] = true;
    ASSERT_EQ(found.marks.size(), 1U);
    EXPECT_EQ(found.marks[0], marks);
    HostTensor again = written_but_two(filled(dtype, finite_pattern));
    EXPECT_EQ(not_written(found, {again}),
              "element (1, 3) of y was not written, nor was another one");
    set(again, 1, 3, ~std::uint64_t{0});
    EXPECT_EQ(not_written(found, {again}), "element (2, 0) of y was not written");
    set(again, 2, 0, ~std::uint64_t{0});
    EXPECT_EQ(not_written(found, {again}), std::nullopt) << "a kernel may write these bits";
  }
}

TEST(Written, WhatIsAlsoAnInputDoesNotCount) {
  const AnyValue reference;
  EXPECT_FALSE(
      unchanged_elements(reference, {filled(DType::f32, nan_pattern, Role::input_output)}).any);
}

TEST(Written, RowsThatNobodyWritesKeepTheirBits) {
  const EvenRows reference;
  HostTensor output = filled(DType::f32, nan_pattern);
  for (std::int64_t col = 0; col < 4; ++col) {
    set(output, 0, col, 0);
    set(output, 2, col, 0);
  }
  EXPECT_EQ(written_elsewhere(reference, {output}), std::nullopt);
  EXPECT_FALSE(unchanged_elements(reference, {output}).any);
  set(output, 1, 2, 0x7FC00000);  // a NaN, but not that from before
  EXPECT_EQ(written_elsewhere(reference, {output}),
            "wrote row 1 of y, which no correct kernel writes");
  EXPECT_EQ(written_elsewhere(AnyValue(), {output}), std::nullopt);
}

TEST(Written, OutputsOfAKeptCaseShowWhatIsNotWritten) {
  const EvenRows reference;
  HostTensor output = filled(DType::f16, finite_pattern);
  output.data = filled_where_written(reference, output.spec);
  HostTensor expected = filled(DType::f16, nan_pattern);
  for (const std::int64_t row : {0, 2}) {
    for (std::int64_t col = 0; col < 4; ++col) set(expected, row, col, finite_pattern & 0xFFFF);
  }
  EXPECT_EQ(output.data, expected.data);
  std::vector<HostTensor> outputs = {filled(DType::f16, finite_pattern)};
  clear_rows_of_nobody(reference, outputs);
  EXPECT_TRUE(std::isnan(outputs[0].at(6)));
  EXPECT_FALSE(std::isnan(outputs[0].at(0)));
  EXPECT_FALSE(std::isnan(outputs[0].at(12)));
}

}  // namespace
}  // namespace greta::test::written_test
