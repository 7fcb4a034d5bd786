#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "kernels/model/random.hpp"
#include "kernels/reference/attention_inputs.hpp"
#include "kernels/reference/findings.hpp"
#include "kernels/reference/gemm_error.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/reference/roundoff.hpp"

namespace greta::kernels {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Row = Eigen::Array<double, 1, Eigen::Dynamic>;

using reference::slack;
using reference::u;

/// Returns the first query, the last, those at the edge of the last tile of common heights, and
/// random ones.
std::vector<std::int64_t> sampled_queries(std::int64_t queries, std::uint64_t seed) {
  std::set<std::int64_t> list{0, queries - 1};
  for (std::int64_t tile = 16; tile <= 256; tile *= 2) {
    const std::int64_t edge = (queries - 1) / tile * tile;
    list.insert(edge);
    list.insert(std::max<std::int64_t>(0, edge - 1));
  }
  std::mt19937_64 random(seed);
  while (static_cast<std::int64_t>(list.size()) < std::min<std::int64_t>(16, queries)) {
    list.insert(
        static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(queries))));
  }
  return {list.begin(), list.end()};
}

std::vector<std::int64_t> all_queries(std::int64_t queries) {
  std::vector<std::int64_t> list(static_cast<std::size_t>(queries));
  for (std::int64_t i = 0; i < queries; ++i) list[static_cast<std::size_t>(i)] = i;
  return list;
}

/// Loads `count` rows of `cols` elements of a tensor, beginning with row `first`.
Matrix load_rows(const HostTensor& from, std::int64_t first, std::int64_t count,
                 std::int64_t cols) {
  Matrix to(count, cols);
  for (std::int64_t i = 0; i < count * cols; ++i) {
    to.data()[i] = from.at(static_cast<std::size_t>(first * cols + i));
  }
  return to;
}

/// Loads `count` keys or values, beginning with key `first`.
Matrix load_keys(const Attention& a, const HostTensor& from, std::int64_t sequence,
                 std::int64_t kv_head, std::int64_t first, std::int64_t count) {
  const std::int64_t cols = from.spec.cols;
  if (a.page == 0 && !a.packs) {
    return load_rows(from, a.key_row(sequence, kv_head, first), count, cols);
  }
  Matrix to(count, cols);
  for (std::int64_t i = 0, run = 0; i < count; i += run) {
    run = a.packs ? 1 : std::min(count - i, a.page - (first + i) % a.page);
    to.middleRows(i, run) = load_rows(from, a.key_row(sequence, kv_head, first + i), run, cols);
  }
  return to;
}

/// Computes the expected outputs of queries that share a KV head.
class Group {
 public:
  /// `list` contains (query, head) pairs.
  Group(const Attention& a, std::int64_t sequence, std::int64_t kv_head,
        std::vector<std::pair<std::int64_t, std::int64_t>> list)
      : a_(a), sequence_(sequence), kv_head_(kv_head), list_(std::move(list)) {}

  /// Computes the outputs `to` of these rows, and their log-sum-exps.
  void expect(std::vector<Expected>& to, std::vector<Expected>& lse,
              const std::map<std::int64_t, std::size_t>& places) {
    score();
    sums_.resize(list_.size());
    for (std::int64_t i = 0; i < count(); ++i) weigh(i);
    add();
    for (std::int64_t i = 0; i < count(); ++i) {
      const auto [query, head] = list_[static_cast<std::size_t>(i)];
      const std::size_t at = places.at(a_.row(sequence_, query, head));
      lse[at] = judge_sum(i);
      for (std::int64_t d = 0; d < a_.v_dim; ++d) {
        to[at * static_cast<std::size_t>(a_.v_dim) + static_cast<std::size_t>(d)] = judge(i, d);
      }
    }
  }

 private:
  static constexpr std::int64_t together = 512;  // number of keys converted to FP64 at a time

  std::int64_t count() const { return static_cast<std::int64_t>(list_.size()); }
  std::int64_t visible(std::int64_t i) const {
    return a_.visible(sequence_, list_[static_cast<std::size_t>(i)].first);
  }
  std::int64_t first_visible(std::int64_t i) const {
    return a_.first_visible(sequence_, list_[static_cast<std::size_t>(i)].first);
  }
  double sink(std::int64_t i) const {
    const auto head = static_cast<std::size_t>(list_[static_cast<std::size_t>(i)].second);
    return a_.sinks == nullptr ? -std::numeric_limits<double>::infinity() : a_.sinks->at(head);
  }

  /// Computes the scores and the norms of their products.
  void score() {
    Matrix q(count(), a_.dim);
    std::int64_t keys = 0;
    for (std::int64_t i = 0; i < count(); ++i) {
      const auto [query, head] = list_[static_cast<std::size_t>(i)];
      q.row(i) = load_rows(a_.q, a_.row(sequence_, query, head), 1, a_.dim);
      keys = std::max(keys, visible(i));
    }
    weights_.resize(count(), keys);
    errors_.resize(count(), keys);
    const Matrix squares = q.cwiseAbs2();
    for (std::int64_t j = 0; j < keys; j += together) {
      const std::int64_t some = std::min(together, keys - j);
      Matrix k = load_keys(a_, a_.k, sequence_, kv_head_, j, some);
      weights_.middleCols(j, some).noalias() = q * k.transpose();
      k = k.cwiseAbs2();
      errors_.middleCols(j, some).noalias() = squares * k.transpose();
    }
  }

  /// Converts scores and norms to weights, and to weights times their relative errors.
  void weigh(std::int64_t i) {
    const std::int64_t first = first_visible(i), n = visible(i) - first;
    Row s = a_.scale * weights_.row(i).segment(first, n).array();
    Row e = std::abs(a_.scale) * dot_product_error(a_.dim) *
            errors_.row(i).segment(first, n).array().sqrt();
    weights_.row(i).setZero();
    errors_.row(i).setZero();
    const double sink = this->sink(i);
    Sum& sum = sums_[static_cast<std::size_t>(i)];
    const bool sinks = std::isfinite(sink);
    if (n == 0 && !sinks) return;
    if (a_.cap > 0) {
      e += 3 * u * s.abs() + 16 * u * a_.cap;
      s = a_.cap * (s / a_.cap).tanh();
    }
    if (!hide(i, first, s)) return;
    sum.most = n == 0 ? sink : std::max(s.maxCoeff(), sink);
    const Row p = (s - sum.most).exp();
    e += 3 * u * s.abs() + error_of_power(s, sum.most);
    if (traits(a_.in).keeps_subnormals) e += (p < smallest_normal(a_.in)).cast<double>();
    sum.total = p.sum();
    if (sinks) {
      // The outputs are multiplied by a power of 2 that may be flushed to zero.
      e += (p < 0x1p-120).cast<double>();
      const Row one = Row::Constant(1, sink);
      const double added = std::exp(sink - sum.most);
      sum.total += added;
      sum.error = added / sum.total * (3 * u * std::abs(sink) + error_of_power(one, sum.most)(0));
    }
    if (a_.tree != nullptr) e = s.isFinite().select(e, Row::Zero(n));
    weights_.row(i).segment(first, n) = p / sum.total;
    errors_.row(i).segment(first, n) = e * p / sum.total;
    sum.error += errors_.row(i).sum();
  }

  /// Gives hidden keys no weight. Returns whether others are left.
  bool hide(std::int64_t i, std::int64_t first, Row& s) const {
    if (a_.tree == nullptr) return true;  // not with sinks
    const std::int64_t query = list_[static_cast<std::size_t>(i)].first;
    bool some = false;
    for (std::int64_t j = 0; j < s.size(); ++j) {
      const bool seen = a_.attends(sequence_, query, first + j);
      some = some || seen;
      if (!seen) s(j) = -std::numeric_limits<double>::infinity();
    }
    return some;
  }

  /// Returns the relative errors of exp(s - most), computed as a power of 2.
  static Row error_of_power(const Row& s, double most) {
    return 3 * u * std::abs(most) + 4 * u * (3 + 2 * std::log2(std::exp(1.0)) * (most - s)) +
           16 * u;
  }

  void add() {
    values_ = Matrix::Zero(count(), a_.v_dim);
    squares_ = spread_ = values_;
    for (std::int64_t j = 0; j < weights_.cols(); j += together) {
      const std::int64_t some = std::min<std::int64_t>(together, weights_.cols() - j);
      const Matrix v = load_keys(a_, a_.v, sequence_, kv_head_, j, some).leftCols(a_.v_dim);
      const auto w = weights_.middleCols(j, some);
      values_.noalias() += w * v;
      squares_.noalias() += w.cwiseAbs2() * v.cwiseAbs2();
      spread_.noalias() += errors_.middleCols(j, some) * v.cwiseAbs();
    }
  }

  Expected judge(std::int64_t i, std::int64_t d) const {
    const double o = values_(i, d), size = std::abs(o), norm = std::sqrt(squares_(i, d));
    double error = spread_(i, d) + size * sums_[static_cast<std::size_t>(i)].error;
    error += dot_product_error(keys(i)) * (size + norm) + 4 * u * size;
    if (bits_of(a_.in) < 32) error += unit_roundoff(a_.in) * (size + 6 * norm);
    error *= slack;
    return {o, error + unit_roundoff(a_.out) * (size + error) + underflow_error(a_.out)};
  }

  /// The logarithm, in f32, of a sum with errors of its terms and of adding them.
  Expected judge_sum(std::int64_t i) const {
    const Sum& sum = sums_[static_cast<std::size_t>(i)];
    if (sum.total == 0) return {-std::numeric_limits<double>::infinity(), 0};
    const double log = std::log(sum.total), error = sum.error + dot_product_error(keys(i));
    return {sum.most + log, slack * (error + 8 * u * (1 + std::abs(sum.most) + std::abs(log)))};
  }

  /// Returns the number of terms of a row's sums.
  std::int64_t keys(std::int64_t i) const {
    return visible(i) - first_visible(i) + (a_.sinks == nullptr ? 0 : 1);
  }

  /// Of a row's exponentials: the greatest score, the sum relative to it, its relative error.
  struct Sum {
    double most = 0, total = 0, error = 0;
  };

  const Attention& a_;
  std::int64_t sequence_, kv_head_;
  std::vector<std::pair<std::int64_t, std::int64_t>> list_;
  Matrix weights_, errors_;           ///< by key; errors are multiplied by the weights
  Matrix values_, squares_, spread_;  ///< sums over all keys of w v, (w v)^2 and errors |v|
  std::vector<Sum> sums_;
};

class AttentionReference : public Reference {
 public:
  AttentionReference(const Problem& problem, const std::vector<HostTensor>& inputs,
                     std::uint64_t seed) {
    const Attention a(problem, inputs);
    rows_ = a.rows();
    dim_ = a.v_dim;
    has_lse_ = problem.attribute("lse", "none") != "none";
    full_ = attention_fully_checked(problem);
    std::vector<std::vector<std::int64_t>> queries;
    for (const Attention::Sequence& one : a.sequences) {
      queries.push_back(full_ || one.queries == 0 ? all_queries(one.queries)
                                                  : sampled_queries(one.queries, seed));
      sampled_ = std::max(sampled_, static_cast<std::int64_t>(queries.back().size()));
    }
    for (std::size_t b = 0; b < queries.size(); ++b) {
      for (const std::int64_t query : queries[b]) {
        for (std::int64_t h = 0; h < a.heads; ++h) {
          places_.emplace(a.row(static_cast<std::int64_t>(b), query, h), places_.size());
        }
      }
    }
    expected_.resize(places_.size() * static_cast<std::size_t>(dim_));
    expected_lse_.resize(places_.size());
    std::vector<Group> groups = groups_of(a, queries);
    parallel_parts(static_cast<std::int64_t>(groups.size()),
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t i = first; i < last; ++i) {
                       Group group = groups[static_cast<std::size_t>(i)];
                       group.expect(expected_, expected_lse_, places_);
                     }
                   });
  }

  Verdict check(const std::vector<HostTensor>& outputs) const override {
    const HostTensor& out = tensor_named(outputs, "out");
    if (out.spec.rows != rows_ || out.spec.cols != dim_ || out.data.size() != out.spec.bytes()) {
      Findings none(rows_, dim_);
      none.reject(fmt::format("the output is not {} x {}", rows_, dim_), 1e300, 0);
      return none.verdict(method());
    }
    Findings all = find_in_parts(rows_, dim_, rows_,
                                 [&](std::int64_t first, std::int64_t last, Findings& part) {
                                   part.scan(out, first, last);
                                 });
    if (!all.finite()) return all.verdict(method());
    all.merge(find_in_parts(rows_, dim_, rows_,
                            [&](std::int64_t first, std::int64_t last, Findings& part) {
                              compare(out, first, last, part);
                            }));
    const Verdict verdict = all.verdict(method());
    return has_lse_ ? worse(verdict, check_lse(tensor_named(outputs, "lse"))) : verdict;
  }

  std::optional<std::vector<std::vector<Expected>>> expected() const override {
    if (!full_) return std::nullopt;
    if (has_lse_) return std::vector<std::vector<Expected>>{expected_, expected_lse_};
    return std::vector<std::vector<Expected>>{expected_};
  }

 private:
  /// Limits the number of rows per group to bound the memory of their weights.
  static std::vector<Group> groups_of(const Attention& a,
                                      const std::vector<std::vector<std::int64_t>>& queries) {
    const auto most = static_cast<std::size_t>(
        std::clamp<std::int64_t>((std::int64_t{1} << 21) / a.capacity, 1, 64));
    std::vector<Group> groups;
    for (std::int64_t b = 0; b < std::ssize(queries); ++b) {
      for (std::int64_t g = 0; g < a.kv_heads; ++g) {
        std::vector<std::pair<std::int64_t, std::int64_t>> list;
        for (const std::int64_t query : queries[static_cast<std::size_t>(b)]) {
          for (std::int64_t h = 0; h < a.group(); ++h) {
            list.emplace_back(query, g * a.group() + h);
            if (list.size() < most) continue;
            groups.emplace_back(a, b, g, std::move(list));
            list.clear();
          }
        }
        if (!list.empty()) groups.emplace_back(a, b, g, std::move(list));
      }
    }
    return groups;
  }

  /// Compares those of rows first to last - 1 that are checked.
  void compare(const HostTensor& out, std::int64_t first, std::int64_t last, Findings& part) const {
    const auto end = places_.lower_bound(last);
    for (auto place = places_.lower_bound(first); place != end; ++place) {
      for (std::int64_t d = 0; d < dim_; ++d) {
        const Expected& want =
            expected_[place->second * static_cast<std::size_t>(dim_) + static_cast<std::size_t>(d)];
        const double got = out.at(static_cast<std::size_t>(place->first * dim_ + d));
        part.compare(place->first, d, got, want.value, want.bound);
      }
    }
  }

  Verdict check_lse(const HostTensor& lse) const {
    const std::int64_t heads = lse.spec.cols;
    Findings all(lse.spec.rows, heads);
    if (lse.spec.rows * heads != rows_ || lse.data.size() != lse.spec.bytes()) {
      all.reject(fmt::format("the log-sum-exps are not {}", rows_), 1e300, 0);
      return all.verdict(method());
    }
    for (const auto& [row, at] : places_) {
      const Expected& want = expected_lse_[at];
      const double got = lse.at(static_cast<std::size_t>(row));
      all.compare(row / heads, row % heads, got, want.value, want.bound);
    }
    return all.verdict(method());
  }

  std::string method() const {
    return full_ ? "full" : fmt::format("{} queries of every head in full", sampled_);
  }

  std::int64_t rows_ = 0, dim_ = 0, sampled_ = 0;
  bool full_ = false, has_lse_ = false;
  std::map<std::int64_t, std::size_t> places_;  ///< index of each checked row in expected_
  std::vector<Expected> expected_, expected_lse_;
};

}  // namespace

bool attention_fully_checked(const Problem& problem) {
  double multiplications = 1;
  const bool packed = problem.attribute("sequences", "padded") == "packed";
  for (const char* name : {"batch", "q", "heads", "kv"}) {
    if (packed && std::string_view(name) == "batch") continue;
    multiplications *= static_cast<double>(problem.dim(name));
  }
  const bool latent = problem.op == "latent_attention";
  multiplications *= static_cast<double>(latent ? problem.dim("latent") + problem.dim("rope")
                                                : problem.dim("dim"));
  return multiplications <= 0x1p28;
}

std::unique_ptr<Reference> attention_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed) {
  return std::make_unique<AttentionReference>(problem, inputs, seed);
}

}  // namespace greta::kernels
