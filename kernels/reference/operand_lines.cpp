#include "kernels/reference/operand_lines.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/model/parallel.hpp"

namespace greta::kernels {
namespace {

class Rows : public OperandLines {
 public:
  explicit Rows(HostTensor matrix) : matrix_(std::move(matrix)) {}

  void read(std::int64_t line, std::int64_t first, std::int64_t count, double* to) const override {
    load_elements(matrix_.spec.dtype, matrix_.data.data(),
                  static_cast<std::size_t>(line * matrix_.spec.cols + first),
                  static_cast<std::size_t>(count), to);
  }

 private:
  HostTensor matrix_;
};

/// Returns the transpose of a packed matrix whose elements are stored as `Stored`.
template <typename Stored>
HostTensor transposed(const HostTensor& matrix) {
  const std::int64_t rows = matrix.spec.rows, cols = matrix.spec.cols;
  HostTensor result{matrix.spec, std::vector<std::byte>(matrix.data.size())};
  std::swap(result.spec.rows, result.spec.cols);
  constexpr std::int64_t block = 64;
  const auto place = [](std::int64_t i) { return i * std::ptrdiff_t{sizeof(Stored)}; };
  parallel_parts((cols + block - 1) / block, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t begin = first * block; begin < std::min(last * block, cols); begin += block) {
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t col = begin; col < std::min(begin + block, cols); ++col) {
          std::memcpy(result.data.data() + place(col * rows + row),
                      matrix.data.data() + place(row * cols + col), sizeof(Stored));
        }
      }
    }
  });
  return result;
}

}  // namespace

KeptLines rows_of(HostTensor matrix) {
  return std::make_shared<const Rows>(std::move(matrix));
}

KeptLines columns_of(const HostTensor& matrix) {
  const bool wide = bits_of(matrix.spec.dtype) == 32;
  return rows_of(wide ? transposed<std::uint32_t>(matrix) : transposed<std::uint16_t>(matrix));
}

}  // namespace greta::kernels
