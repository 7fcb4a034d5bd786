#include "kernels/reference/dequantized.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/model/block_formats.hpp"
#include "kernels/model/parallel.hpp"

namespace greta::kernels {
namespace {

/// Writes codes, or integers without their zero point, of a row from number `first` on.
void read_integers(const QuantizedMatrix& matrix, std::int64_t r, std::int64_t first,
                   std::int64_t count, double* to) {
  const std::byte* const row =
      matrix.integers->data.data() + r * row_bytes(matrix.format, matrix.k);
  if (traits(matrix.format).bits == 4) {
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = std::to_integer<int>(row[(first + i) / 2]) >> ((first + i) % 2 == 1 ? 4 : 0) & 15;
    }
  } else {
    const DType type = matrix.zeros != nullptr ? DType::u8 : DType::i8;
    load_elements(type, row, static_cast<std::size_t>(first), static_cast<std::size_t>(count), to);
  }
}

/// Writes weights of one group, exactly.
void read_group(const QuantizedMatrix& matrix, std::int64_t r, std::int64_t first,
                std::int64_t count, double* to) {
  read_integers(matrix, r, first, count, to);
  const auto group = static_cast<std::size_t>(r * (matrix.k / matrix.group) + first / matrix.group);
  if (matrix.format == WeightFormat::mxfp4) {
    const double scale = e8m0_value(static_cast<int>(matrix.scales->at(group)));
    for (std::int64_t i = 0; i < count; ++i) to[i] = e2m1_value(static_cast<int>(to[i])) * scale;
    return;
  }
  const double implied = matrix.format == WeightFormat::int4 ? 8 : 0;
  const double zero = matrix.zeros != nullptr ? matrix.zeros->at(group) : implied;
  const double scale = matrix.scales->at(group);
  for (std::int64_t i = 0; i < count; ++i) to[i] = (to[i] - zero) * scale;
}

/// Writes the weights of blocks.
void decode_part(const QuantizedMatrix& matrix, const std::byte* row, std::int64_t first,
                 std::int64_t count, double* to) {
  const std::int64_t block = block_weights(matrix.format);
  const std::int64_t begin = first / block, end = (first + count + block - 1) / block;
  std::vector<double> values(static_cast<std::size_t>((end - begin) * block));
  decode_blocks(*traits(matrix.format).blocks, row + begin * block_bytes(matrix.format),
                static_cast<std::size_t>(end - begin), values.data());
  std::copy_n(values.begin() + (first - begin * block), count, to);
}

class DequantizedRows : public OperandLines {
 public:
  DequantizedRows(QuantizedMatrix matrix, HostTensor integers, HostTensor scales, HostTensor zeros)
      : integers_(std::move(integers)),
        scales_(std::move(scales)),
        zeros_(std::move(zeros)),
        matrix_(matrix) {
    matrix_.integers = &integers_;
    matrix_.scales = scales_.data.empty() ? nullptr : &scales_;
    matrix_.zeros = zeros_.data.empty() ? nullptr : &zeros_;
  }
  DequantizedRows(const DequantizedRows&) = delete;
  DequantizedRows& operator=(const DequantizedRows&) = delete;

  void read(std::int64_t line, std::int64_t first, std::int64_t count, double* to) const override {
    dequantize(matrix_, line, first, count, to);
  }

 private:
  HostTensor integers_, scales_, zeros_;
  QuantizedMatrix matrix_;  ///< refers to these
};

}  // namespace

double weight_of_group(const QuantizedMatrix& matrix, std::int64_t r, std::int64_t i) {
  double weight = 0;
  read_group(matrix, r, i, 1, &weight);
  return weight;
}

void dequantize(const QuantizedMatrix& matrix, std::int64_t r, std::int64_t first,
                std::int64_t count, double* to) {
  if (in_blocks(matrix.format)) {
    decode_part(matrix, matrix.integers->data.data() + r * row_bytes(matrix.format, matrix.k),
                first, count, to);
  } else {
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t rest = matrix.group - (first + i) % matrix.group;
      const std::int64_t part = std::min(rest, count - i);
      read_group(matrix, r, first + i, part, to + i);
      i += part;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<double>(static_cast<float>(to[i]));
}

std::vector<float> dequantized(const QuantizedMatrix& matrix) {
  std::vector<float> weights(static_cast<std::size_t>(matrix.rows * matrix.k));
  parallel_parts(matrix.rows, [&](std::int64_t first, std::int64_t last) {
    std::vector<double> values(static_cast<std::size_t>(matrix.k));
    for (std::int64_t r = first; r < last; ++r) {
      dequantize(matrix, r, 0, matrix.k, values.data());
      std::copy(values.begin(), values.end(), weights.begin() + r * matrix.k);
    }
  });
  return weights;
}

KeptLines dequantized_rows(QuantizedMatrix matrix, HostTensor integers, HostTensor scales,
                           HostTensor zeros) {
  return std::make_shared<const DequantizedRows>(matrix, std::move(integers), std::move(scales),
                                                 std::move(zeros));
}

}  // namespace greta::kernels
