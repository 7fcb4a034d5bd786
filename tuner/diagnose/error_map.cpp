#include "tuner/diagnose/error_map.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/model/expression.hpp"
#include "tuner/compile/case_files.hpp"
#include "tuner/diagnose/png.hpp"
#include "tuner/diagnose/where.hpp"

namespace greta::tuner {
namespace {

/// A number of elements of an output that are shown as one.
struct Block {
  std::size_t all = 0, wrong = 0, nan = 0, varying = 0, unwritten = 0;
  double worst = 0;  ///< error divided by bound
};

Block block_of(const ExaminedOutput& output, std::int64_t row, std::int64_t rows, std::int64_t col,
               std::int64_t cols) {
  Block block;
  for (std::int64_t r = row; r < std::min(row + rows, output.spec.rows); ++r) {
    for (std::int64_t c = col; c < std::min(col + cols, output.spec.cols); ++c) {
      const auto i = static_cast<std::size_t>(r * output.spec.cols + c);
      ++block.all;
      block.varying += output.varies[i] != 0 ? 1 : 0;
      block.unwritten += output.unwritten[i] != 0 ? 1 : 0;
      if (output.wrong[i] == 0) continue;
      ++block.wrong;
      block.nan += std::isnan(output.got[i]) ? 1 : 0;
      const double error = std::abs(output.got[i] - output.want[i].value);
      const double ratio = error / std::max(output.want[i].bound, 1e-300);
      block.worst = std::max(block.worst, std::isfinite(ratio) ? ratio : 1e300);
    }
  }
  return block;
}

char letter_of(const Block& block) {
  if (block.varying > 0) return '~';
  if (block.unwritten > 0) return '_';
  if (block.nan > 0) return 'N';
  if (block.wrong == 0) return '.';
  return block.wrong == block.all ? '#' : ':';
}

Pixel colour_of(const Block& block) {
  if (block.varying > 0) return {255, 210, 0};
  if (block.unwritten > 0) return {60, 120, 255};
  if (block.nan > 0) return {200, 60, 255};
  if (block.wrong == 0) return {225, 225, 225};
  const double bright = std::clamp(std::log10(block.worst) / 6, 0.0, 1.0);
  return {static_cast<std::uint8_t>(130 + 125 * bright), 20, 20};
}

}  // namespace

std::string error_map(const ExaminedOutput& output) {
  constexpr std::int64_t most_across = 64, most_down = 24;
  const std::int64_t rows = ceil_div(output.spec.rows, most_down);
  const std::int64_t cols = ceil_div(output.spec.cols, most_across);
  std::string text;
  for (std::int64_t row = 0; row < output.spec.rows; row += rows) {
    text += "  ";
    for (std::int64_t col = 0; col < output.spec.cols; col += cols)
      text += letter_of(block_of(output, row, rows, col, cols));
    text += '\n';
  }
  return text;
}

void write_error_image(const Evidence& evidence, const ExaminedOutput& output,
                       const std::filesystem::path& file) {
  constexpr std::int64_t most_blocks = 1024, wanted = 512, widest = 16;
  const Pixel border{90, 140, 90};
  const TensorSpec& spec = output.spec;
  const std::int64_t rows = ceil_div(spec.rows, most_blocks),
                     cols = ceil_div(spec.cols, most_blocks);
  const std::int64_t down = ceil_div(spec.rows, rows), across = ceil_div(spec.cols, cols);
  const std::int64_t side = std::clamp<std::int64_t>(wanted / std::max(down, across), 1, widest);
  const std::int64_t tall = part_of(evidence.failed(), spec.rows);
  const std::int64_t wide = part_of(evidence.failed(), spec.cols);
  Image image(static_cast<std::size_t>(across * side), static_cast<std::size_t>(down * side), {});
  for (std::int64_t y = 0; y < down * side; ++y) {
    for (std::int64_t x = 0; x < across * side; ++x) {
      const std::int64_t row = y / side * rows, col = x / side * cols;
      const bool on_border = side > 2 && ((y % side == 0 && tall > 0 && row % tall == 0) ||
                                          (x % side == 0 && wide > 0 && col % wide == 0));
      image.at(static_cast<std::size_t>(x), static_cast<std::size_t>(y)) =
          on_border ? border : colour_of(block_of(output, row, rows, col, cols));
    }
  }
  const std::string bytes = png(image);
  write_bytes(file, bytes.data(), bytes.size());
}

}  // namespace greta::tuner
