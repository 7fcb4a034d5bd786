#include "kernels/reference/gemm.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "kernels/model/random.hpp"
#include "kernels/reference/findings.hpp"
#include "kernels/reference/gemm_data.hpp"
#include "kernels/reference/screen.hpp"

namespace greta::kernels {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Puts elements of a row of op(A), from `first` on, into a row of `to`.
void put_row(const GemmData& data, std::int64_t row, std::int64_t first, Matrix& to,
             std::int64_t at) {
  const std::vector<double> values = data.a_row(row, first, to.cols());
  to.row(at) = Eigen::Map<const Eigen::RowVectorXd>(values.data(), to.cols());
}

constexpr std::int64_t freivalds_block = 256;
constexpr std::int64_t sample_block = 16;

/// Checks whole rows of C.
class RowCheck {
 public:
  RowCheck(const GemmData& data, std::vector<std::int64_t> rows) : rows_(std::move(rows)) {
    const auto count = static_cast<std::int64_t>(rows_.size());
    expected_.resize(static_cast<std::size_t>(count * data.n));
    const std::int64_t down = (count + height - 1) / height, across = (data.n + width - 1) / width;
    parallel_parts(down * across, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t tile = first; tile < last; ++tile) {
        expect_tile(data, tile / across * height, tile % across * width);
      }
    });
  }

  Findings check(const GemmData& data, const HostTensor& c) const {
    const auto compare = [&](std::int64_t first, std::int64_t last, Findings& part) {
      for (std::int64_t i = first; i < last; ++i) {
        const std::int64_t row = rows_[static_cast<std::size_t>(i)];
        for (std::int64_t j = 0; j < data.n; ++j) {
          const Expected& want = expected_[static_cast<std::size_t>(i * data.n + j)];
          const double got = c.at(static_cast<std::size_t>(row * data.n + j));
          part.compare(row, j, got, want.value, want.bound);
        }
      }
    };
    return find_in_parts(data.m, data.n, static_cast<std::int64_t>(rows_.size()), compare);
  }

  /// Prepares check_quickly(), if these are all rows of C. This object must not move afterwards.
  void make_screen(const Problem& problem, const GemmData& data) {
    all_ = {{.name = "C", .dtype = problem.out_dtype, .rows = data.m, .cols = data.n},
            [this, n = data.n](std::int64_t row, std::int64_t col) {
              return expected_[static_cast<std::size_t>(row * n + col)];
            }};
    screen_ = kernels::make_screen(all_);
  }

  /// Like check(), but mostly compares only the elements with the largest errors. Finds at least
  /// one wrong element, if there are any. Returns nothing without a screen.
  std::optional<Findings> check_quickly(const GemmData& data, const HostTensor& c) const {
    if (!screen_) return std::nullopt;
    return find_in_parts(data.m, data.n, data.m * data.n,
                         [&](std::int64_t first, std::int64_t last, Findings& part) {
                           compare_elements(all_, screen_.get(), c, first, last, part);
                         });
  }

  std::size_t count() const { return rows_.size(); }
  /// Returns the expected elements of the rows, row by row.
  const std::vector<Expected>& expected() const { return expected_; }
  std::vector<ExpectedElement> elements(std::int64_t n) const {
    std::vector<ExpectedElement> elements(expected_.size());
    const auto columns = static_cast<std::size_t>(n);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const auto row = static_cast<std::uint64_t>(rows_[i / columns]);
      elements[i] = {row * columns + i % columns, expected_[i]};
    }
    return elements;
  }

 private:
  // Tile sizes of the FP64 computation: rows, columns and elements of K.
  static constexpr std::int64_t height = 256, width = 64, depth = 1024;

  /// Sums over a tile's products and their squares.
  struct Tile {
    Matrix products, squares;
  };

  /// Computes one tile, beginning with rows_[first] and column `from` of C.
  void expect_tile(const GemmData& data, std::int64_t first, std::int64_t from) {
    const Tile tile = multiply(data, first, from);
    const Tile up = data.model.gated() ? multiply(data, first, data.n + from) : Tile{};
    for (std::int64_t i = 0; i < tile.products.rows(); ++i) {
      for (std::int64_t j = 0; j < tile.products.cols(); ++j) {
        const std::int64_t row = rows_[static_cast<std::size_t>(first + i)], col = from + j;
        const auto terms = [&](const Tile& of, std::int64_t column) {
          GemmTerms t = data.terms(row, column);
          t.product = of.products(i, j);
          t.norm = std::sqrt(of.squares(i, j));
          return t;
        };
        expected_[static_cast<std::size_t>((first + i) * data.n + col)] =
            data.model.gated() ? data.model.expect(terms(tile, col), terms(up, data.n + col))
                               : data.model.expect(terms(tile, col));
      }
    }
  }

  /// Multiplies rows from rows_[first] on by columns of B from `from` on.
  Tile multiply(const GemmData& data, std::int64_t first, std::int64_t from) const {
    const std::int64_t rows = std::min(height, static_cast<std::int64_t>(rows_.size()) - first);
    const std::int64_t cols = std::min(width, data.n - from % data.n);
    Tile tile{Matrix::Zero(rows, cols), Matrix::Zero(rows, cols)};
    for (std::int64_t k = 0; k < data.k; k += depth) {
      const std::int64_t steps = std::min(depth, data.k - k);
      Matrix a(rows, steps);
      for (std::int64_t i = 0; i < rows; ++i) {
        put_row(data, rows_[static_cast<std::size_t>(first + i)], k, a, i);
      }
      Eigen::MatrixXd b(steps, cols);
      for (std::int64_t j = 0; j < cols; ++j) data.b().read(from + j, k, steps, b.col(j).data());
      tile.products.noalias() += a * b;
      for (std::int64_t i = 0; i < rows; ++i) {
        data.a().square(rows_[static_cast<std::size_t>(first + i)], k, steps, a.row(i).data());
      }
      for (std::int64_t j = 0; j < cols; ++j) data.b().square(from + j, k, steps, b.col(j).data());
      tile.squares.noalias() += a * b;
    }
    return tile;
  }

  std::vector<std::int64_t> rows_;
  std::vector<Expected> expected_;
  ExpectedOutput all_;              ///< element() reads expected_
  std::unique_ptr<Screen> screen_;  ///< of all_
};

/// Freivalds' method: each block of columns is multiplied by a vector x of random signs. The
/// kernel's errors e_j do not depend on x, so by Hoeffding's inequality |sum x_j e_j| exceeds 8
/// sqrt(sum bound_j^2) with probability at most 2 e^-32. The squared norms of a row's products add
/// up to the sum over k of a_k^2 |B_k|^2, where B_k is row k of B within the block. The bounds'
/// parts for the epilogue and the output's type are added by Minkowski's inequality. Source:
/// Freivalds, "Probabilistic machines can use less running time", IFIP 1977.
class Freivalds {
 public:
  Freivalds(const GemmData& data, std::uint64_t seed) : stream_(mix64(seed)) {
    const std::int64_t blocks = (data.n + freivalds_block - 1) / freivalds_block;
    Eigen::MatrixXd mixed = Eigen::MatrixXd::Zero(data.k, blocks), squares = mixed;
    parallel_parts(blocks, [&](std::int64_t first, std::int64_t last) {
      Eigen::VectorXd column(data.k);
      for (std::int64_t j = first * freivalds_block; j < std::min(last * freivalds_block, data.n);
           ++j) {
        data.b().read(j, 0, data.k, column.data());
        mixed.col(j / freivalds_block) += sign(j) * column;
        data.b().square(j, 0, data.k, column.data());
        squares.col(j / freivalds_block) += column;
      }
    });
    products_.resize(data.m, blocks);
    norms_.resize(data.m, blocks);
    constexpr std::int64_t height = 64;
    parallel_parts((data.m + height - 1) / height, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first * height; row < std::min(last * height, data.m);
           row += height) {
        const std::int64_t rows = std::min(height, data.m - row);
        Matrix a(rows, data.k);
        for (std::int64_t i = 0; i < rows; ++i) put_row(data, row + i, 0, a, i);
        products_.middleRows(row, rows).noalias() = a * mixed;
        for (std::int64_t i = 0; i < rows; ++i)
          data.a().square(row + i, 0, data.k, a.row(i).data());
        norms_.middleRows(row, rows) = (a * squares).cwiseSqrt();
      }
    });
  }

  /// Compares one row. If a block fails, its elements are checked individually.
  void check_row(const GemmData& data, const HostTensor& c, std::int64_t row,
                 Findings& findings) const {
    for (std::int64_t block = 0; block < products_.cols(); ++block) {
      const std::int64_t from = block * freivalds_block;
      const std::int64_t to = std::min(from + freivalds_block, data.n);
      double sum = 0, squares = 0;
      for (std::int64_t j = from; j < to; ++j) {
        const double value = c.at(static_cast<std::size_t>(row * data.n + j));
        const GemmTerms t = data.terms(row, j);
        const double kept = data.model.beta() * t.old;
        const double size =
            std::abs(value) + 2 * (std::abs(t.bias) + std::abs(t.residual) + std::abs(kept));
        sum += sign(j) * (value - t.bias - t.residual - kept);
        squares += size * size;
      }
      const auto& model = data.model;
      const double bound = 8 * (model.product_factor() * norms_(row, block) +
                                model.value_factor() * std::sqrt(squares) +
                                model.least() * std::sqrt(static_cast<double>(to - from)));
      const double want = model.alpha() * products_(row, block);
      if (std::abs(sum - want) <= bound) continue;
      findings.reject(fmt::format("row {}, columns {} to {}: the sum under random signs is {:.9g}, "
                                  "expected {:.9g} within {:.3g}",
                                  row, from, to - 1, sum, want, bound),
                      std::abs(sum - want), bound);
      for (std::int64_t j = from; j < to; ++j) {
        const Expected e = data.element(row, j);
        findings.compare(row, j, c.at(static_cast<std::size_t>(row * data.n + j)), e.value,
                         e.bound);
      }
    }
  }

 private:
  double sign(std::int64_t column) const {
    return (mix64(stream_ + static_cast<std::uint64_t>(column)) >> 63) != 0 ? -1.0 : 1.0;
  }

  std::uint64_t stream_;
  Matrix products_;  ///< A (B x): m rows, one column per block
  Matrix norms_;     ///< root of the sum of (a b)^2 over a row's elements within the block
};

/// Checks one random element of every 16 x 16 block.
class ElementCheck {
 public:
  ElementCheck(const GemmData& data, std::uint64_t seed) {
    const std::int64_t down = (data.m + sample_block - 1) / sample_block;
    across_ = (data.n + sample_block - 1) / sample_block;
    samples_.resize(static_cast<std::size_t>(down * across_));
    parallel_parts(down, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t block = first * across_; block < last * across_; ++block) {
        const std::uint64_t draw = mix64(mix64(seed) + static_cast<std::uint64_t>(block));
        Sample& s = samples_[static_cast<std::size_t>(block)];
        s.row = pick(block / across_ * sample_block, data.m, draw & 0xffff);
        s.col = pick(block % across_ * sample_block, data.n, draw >> 48);
        s.expected = data.element(s.row, s.col);
      }
    });
  }

  Findings check(const GemmData& data, const HostTensor& c) const {
    const auto compare = [&](std::int64_t first, std::int64_t last, Findings& part) {
      for (std::int64_t i = first; i < last; ++i) {
        const Sample& s = samples_[static_cast<std::size_t>(i)];
        part.compare(s.row, s.col, c.at(static_cast<std::size_t>(s.row * data.n + s.col)),
                     s.expected.value, s.expected.bound);
      }
    };
    return find_in_parts(data.m, data.n, static_cast<std::int64_t>(samples_.size()), compare);
  }

  void append(std::int64_t n, std::vector<ExpectedElement>& elements) const {
    for (const Sample& s : samples_) {
      elements.push_back({static_cast<std::uint64_t>(s.row * n + s.col), s.expected});
    }
  }

 private:
  struct Sample {
    std::int64_t row = 0, col = 0;
    Expected expected;
  };

  static std::int64_t pick(std::int64_t from, std::int64_t extent, std::uint64_t draw) {
    const std::int64_t size = std::min(sample_block, extent - from);
    return from + static_cast<std::int64_t>(draw % static_cast<std::uint64_t>(size));
  }

  std::int64_t across_ = 0;
  std::vector<Sample> samples_;
};

std::vector<std::int64_t> all_rows(std::int64_t m) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(m));
  for (std::int64_t i = 0; i < m; ++i) rows[static_cast<std::size_t>(i)] = i;
  return rows;
}

/// Returns the first row, the last, the first row of the last tile of common heights, and random
/// rows.
std::vector<std::int64_t> sampled_rows(std::int64_t m, std::uint64_t seed) {
  std::set<std::int64_t> rows{0, m - 1};
  for (std::int64_t tile = 16; tile <= 256; tile *= 2) rows.insert((m - 1) / tile * tile);
  std::mt19937_64 random(seed);
  while (static_cast<std::int64_t>(rows.size()) < std::min<std::int64_t>(16, m)) {
    rows.insert(static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(m))));
  }
  return {rows.begin(), rows.end()};
}

class GemmReference : public Reference {
 public:
  GemmReference(const Problem& problem, const std::vector<HostTensor>& inputs,
                ProductOperands operands, std::uint64_t seed)
      : data_(problem, inputs, std::move(operands)),
        full_(gemm_fully_checked(problem)),
        rows_(data_, full_ ? all_rows(data_.m) : sampled_rows(data_.m, seed)) {
    if (full_) {
      rows_.make_screen(problem, data_);
      return;
    }
    if (data_.model.linear()) {
      freivalds_ = std::make_unique<Freivalds>(data_, seed);
    } else {
      elements_ = std::make_unique<ElementCheck>(data_, seed);
    }
  }

  Verdict check(const std::vector<HostTensor>& outputs) const override {
    const HostTensor& c = tensor_named(outputs, "C");
    if (!c.spec.contiguous() && c.data.size() == c.spec.bytes()) return check({packed(c)});
    if (c.spec.rows != data_.m || c.spec.cols != data_.n || c.data.size() != c.spec.bytes()) {
      Findings none(data_.m, data_.n);
      none.reject(fmt::format("the output is not {} x {}", data_.m, data_.n), 1e300, 0);
      return none.verdict(method());
    }
    if (const auto quick = rows_.check_quickly(data_, c); quick && quick->passed()) {
      return quick->verdict(method());
    }
    const auto look = [&](std::int64_t first, std::int64_t last, Findings& part) {
      if (data_.finite()) part.scan(c, first, last);
      for (std::int64_t row = first; freivalds_ && row < last; ++row) {
        if (!part.finite() || part.plenty()) break;
        freivalds_->check_row(data_, c, row, part);
      }
    };
    Findings all = find_in_parts(data_.m, data_.n, data_.m, look);
    if (!all.finite()) return all.verdict(method());
    all.merge(rows_.check(data_, c));
    if (elements_) all.merge(elements_->check(data_, c));
    return all.verdict(method());
  }

  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    if (!full_) return std::nullopt;
    return std::vector<std::vector<Expected>>{rows_.expected()};
  }

  std::vector<std::vector<ExpectedElement>> sample(std::size_t most) const override {
    std::vector<ExpectedElement> elements = rows_.elements(data_.n);
    if (elements_) elements_->append(data_.n, elements);
    std::sort(elements.begin(), elements.end(),
              [](const auto& a, const auto& b) { return a.index < b.index; });
    std::vector<ExpectedElement> kept;
    for (const std::size_t i : spread_indices(elements.size(), most)) kept.push_back(elements[i]);
    return {std::move(kept)};
  }

 private:
  std::string method() const {
    if (full_) return "full";
    if (freivalds_) {
      return fmt::format("{} rows in full, Freivalds over all columns", rows_.count());
    }
    return fmt::format(
        "{} rows in full, one random element of every 16 x 16 block (the activation or the norm "
        "hides the rest)",
        rows_.count());
  }

  GemmData data_;
  bool full_;
  RowCheck rows_;
  std::unique_ptr<Freivalds> freivalds_;
  std::unique_ptr<ElementCheck> elements_;
};

}  // namespace

bool gemm_fully_checked(const Problem& problem) {
  const auto extent = [&](const char* name) { return static_cast<double>(problem.dim(name)); };
  const double m = extent("m"), n = extent("n"), k = extent("k");
  const auto batch = static_cast<double>(problem.dim("batch", 1));
  return batch * m * n * k <= 0x1p31 && batch * m * n <= 0x1p24 && batch * (m + n) * k <= 0x1p28;
}

std::unique_ptr<Reference> gemm_reference(const Problem& problem,
                                          const std::vector<HostTensor>& inputs,
                                          std::uint64_t seed) {
  if (problem.dim("batch", 1) > 1) return gemm_batch_reference(problem, inputs, seed);
  return product_reference(problem, inputs, gemm_operands(problem, inputs), seed);
}

std::unique_ptr<Reference> product_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs,
                                             ProductOperands operands, std::uint64_t seed) {
  return std::make_unique<GemmReference>(problem, inputs, std::move(operands), seed);
}

Problem plain_product(const Problem& problem, DType in) {
  Problem plain{"gemm", in, problem.out_dtype, {}, {}};
  plain.attributes.emplace_back("layout", "nt");
  for (const char* name : {"m", "n", "k"}) plain.dims.emplace_back(name, problem.dim(name));
  return plain;
}

}  // namespace greta::kernels
