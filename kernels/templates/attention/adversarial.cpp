#include "kernels/templates/attention/adversarial.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "kernels/model/random.hpp"
#include "kernels/templates/attention/shape.hpp"

namespace greta::kernels::attention {
namespace {

std::int64_t below(std::mt19937_64& random, std::int64_t bound) {
  return static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(bound)));
}

/// A tensor as packed rows of `dim` elements, independent of the tensor's rows.
class Rows {
 public:
  Rows(HostTensor& tensor, std::int64_t dim) : tensor_(tensor), dim_(dim) {}

  std::int64_t count() const { return static_cast<std::int64_t>(tensor_.spec.elements()) / dim_; }
  double at(std::int64_t row, std::int64_t col) const { return tensor_.at(index(row, col)); }
  void set(std::int64_t row, std::int64_t col, double value) {
    store_element(tensor_.spec.dtype, tensor_.data.data(), index(row, col), value);
  }
  /// Replaces each element of a row by f(col, old value).
  template <typename F>
  void change(std::int64_t row, const F& f) {
    for (std::int64_t col = 0; col < dim_; ++col) set(row, col, f(col, at(row, col)));
  }

 private:
  std::size_t index(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>(row * dim_ + col);
  }

  HostTensor& tensor_;
  std::int64_t dim_;
};

/// Where packed sequences begin and end: tensor 3 for queries, 4 for keys. What lies outside all
/// tokens counts as their end, and the first sequence begins with the first token.
struct Part {
  Part(std::int64_t first_token, std::int64_t tokens) : first(first_token), count(tokens) {}
  Part(const std::vector<HostTensor>& inputs, std::size_t tensor, std::int64_t sequence,
       std::int64_t tokens) {
    const auto start = [&](std::int64_t i) {
      if (i == 0) return std::int64_t{0};
      const auto said = static_cast<std::int64_t>(inputs[tensor].at(static_cast<std::size_t>(i)));
      return std::clamp<std::int64_t>(said, 0, tokens);
    };
    first = start(sequence);
    count = start(sequence + 1) - first;
  }

  std::int64_t first = 0, count = 0;
};

/// The rows of K and V that the keys of a sequence's KV head have.
class KeyRows {
 public:
  KeyRows(const Shape& s, const std::vector<HostTensor>& inputs, std::int64_t sequence,
          std::int64_t head)
      : s_(s), sequence_(sequence), head_(head) {
    if (s.packed) {
      const Part part(inputs, 4, sequence, s.capacity);
      first_ = part.first;
      s_.capacity = part.count;
    }
    for (std::int64_t i = 0; s.page > 0 && i < s.pages(); ++i) {
      pages_.push_back(static_cast<std::int64_t>(
          inputs[4].at(static_cast<std::size_t>(sequence * s.pages() + i))));
    }
  }

  /// Returns the number of keys.
  std::int64_t keys() const { return s_.capacity; }
  /// Returns the number of rows, of which the last page may have more than the capacity.
  std::int64_t count() const { return s_.page > 0 ? s_.pages() * s_.page : s_.capacity; }
  std::int64_t row(std::int64_t key) const {
    if (s_.packed) return (first_ + key) * s_.kv_heads + head_;
    if (s_.page == 0) return (sequence_ * s_.kv_heads + head_) * s_.capacity + key;
    const std::int64_t page = pages_[static_cast<std::size_t>(key / s_.page)];
    return (page * s_.kv_heads + head_) * s_.page + key % s_.page;
  }

 private:
  Shape s_;
  std::int64_t sequence_, head_, first_ = 0;
  std::vector<std::int64_t> pages_;
};

/// Whole tiles of keys that fit, one more or one less: all keys, those that the first or the last
/// causal query sees, or those before its window, or those before a tree's queries.
std::int64_t length_at_edge(const Shape& s, std::int64_t part, std::mt19937_64& random) {
  const std::int64_t tile =
      part > 1 && below(random, 4) > 0 ? part : std::int64_t{16} << below(random, 4);
  const std::int64_t newest = s.causal ? s.queries - 1 : s.queries;
  const std::int64_t before = (below(random, 4) >= (s.causal ? 1 : 2) ? newest : 0) +
                              (below(random, 2) == 0 ? s.window : 0);
  const std::int64_t most = std::max<std::int64_t>(0, (s.capacity - before) / tile);
  const std::int64_t edge = before + below(random, most + 1) * tile + below(random, 3) - 1;
  return std::clamp<std::int64_t>(edge, 1, s.capacity);
}

/// `part`: the length of tiles of keys, or 1.
std::int64_t draw_length(const Shape& s, std::int64_t part, std::mt19937_64& random) {
  if (below(random, 4) == 0) return s.capacity;  // the longest loops
  // Such a length leaves the first causal queries without keys, and others with keys.
  if (s.causal && s.queries > 2 && below(random, 3) == 0) return 1 + below(random, s.queries - 2);
  constexpr std::int64_t farthest = std::numeric_limits<std::int32_t>::max();
  const std::int64_t past = std::min(s.capacity, farthest - 1) + 1;
  const std::int64_t lengths[] = {0,          1,    std::max<std::int64_t>(0, s.queries - 2),
                                  s.capacity, past, farthest,
                                  s.capacity, -1,   -farthest};
  const std::int64_t draw = below(random, 3 * std::ssize(lengths));
  // Of a single sequence, no keys would leave nothing to check.
  const bool none = draw < std::ssize(lengths) && lengths[draw] <= 0 && s.batch == 1;
  if (draw < std::ssize(lengths) && !(none && below(random, 4) > 0)) return lengths[draw];
  return draw < 2 * std::ssize(lengths) ? length_at_edge(s, part, random)
                                        : below(random, s.capacity + 1);
}

/// Replaces the values of one KV head of a sequence.
void harden_values(const Shape& s, Rows& v, const KeyRows& rows, std::mt19937_64& random) {
  // Keeps weights times the smallest values, and sums of the largest over all keys, in f32's normal
  // range.
  const Magnitudes range = normal_within(s.in, {0x1p-80, 0x1p90});
  enum { kept, huge, tiny, negative, equal, wide, kinds };
  const std::int64_t kind = below(random, kinds);
  const double common = std::exp2(8 * uniform(random) - 4);
  for (std::int64_t key = 0; key < rows.keys(); ++key) {
    v.change(rows.row(key), [&](std::int64_t, double x) {
      if (kind == huge) return 2 * x * range.most;
      if (kind == tiny) return std::copysign(1 + std::abs(x), x) * range.least;
      if (kind == negative) return -std::abs(x) * common;
      if (kind == equal) return common;
      if (kind == wide) return x * std::exp2(8 * uniform(random));
      return x;
    });
  }
}

/// One element of all keys of a head is almost constant, so the corresponding element of a query
/// determines the magnitude of all its scores. In most heads it grows by a quarter from the first
/// key to the last, so that scores differ strongly between parts of the keys: evenly, in six steps,
/// or at one key, after which no greater scores hide what went wrong there.
constexpr double common_key = -0.5;

void harden_keys(Rows& k, const KeyRows& rows, std::int64_t valid, std::int64_t col,
                 std::mt19937_64& random) {
  enum { kept, grows, climbs, jumps, kinds };
  const std::int64_t kind = below(random, kinds);
  const std::int64_t jump = below(random, std::max<std::int64_t>(1, valid));
  for (std::int64_t i = 0; i < rows.keys(); ++i) {
    double part = 1;
    if (kind == grows && i < valid) {
      part = 0.8 + 0.2 * static_cast<double>(i + 1) / static_cast<double>(valid);
    }
    if (kind == climbs && i < valid) part = 0.8 + 0.04 * static_cast<double>(i * 6 / valid);
    if (kind == jumps && i < jump) part = 0.8;
    const std::int64_t row = rows.row(i);
    k.set(row, col, common_key * part * (1 + k.at(row, col) / 16));
  }
}

void harden_query(const Shape& s, Rows& q, std::int64_t row, std::int64_t col,
                  std::mt19937_64& random) {
  enum { kept, low, lowest, high, highest, zero, single, kinds };
  const std::int64_t kind = below(random, 3) == 0 ? 0 : below(random, kinds);
  const auto scores = [&](double size) {
    q.set(row, col,
          std::clamp(size / (common_key * s.scale), -magnitudes_of(s.in).most,
                     magnitudes_of(s.in).most));
  };
  if (kind == low) scores(-200);
  if (kind == lowest) scores(-1500);
  if (kind == high) scores(200);
  if (kind == highest) scores(1500);
  if (kind == zero) q.change(row, [](std::int64_t, double) { return 0.0; });
  if (kind == single) q.change(row, [&](std::int64_t d, double x) { return d == col ? x : 0.0; });
}

/// The keys that a query of a sequence sees: those from `first` to `end`, but for a tree's.
struct Seen {
  std::int64_t first = 0, end = 0;
};

Seen seen_by(const Shape& s, std::int64_t valid, std::int64_t queries, std::int64_t query) {
  const std::int64_t end =
      s.causal ? std::max<std::int64_t>(0, valid - queries + query + 1) : valid;
  return {s.window == 0 ? 0 : std::max<std::int64_t>(0, end - s.window), end};
}

/// Points a query at one of the valid keys: its score is above the others, or far above, which
/// tells whether the query sees this key, however many it sees. The key is the first or the last
/// one that it sees, the one before or after, one of the last `queries` (which may be nodes of a
/// tree), the first of these, or any.
void point_query(const Shape& s, Rows& q, std::int64_t row, const Rows& k, const KeyRows& rows,
                 std::int64_t valid, std::int64_t queries, Seen seen, std::mt19937_64& random) {
  // Kernels may scale their sums again only for much greater scores.
  constexpr double sizes[] = {300, 30, 10, 10};
  const double score = sizes[below(random, 4)];
  const std::int64_t keys[] = {seen.end - 1,         seen.end,
                               seen.first,           seen.first - 1,
                               below(random, valid), valid - 1 - below(random, queries),
                               valid - queries};
  const std::int64_t key =
      rows.row(std::clamp<std::int64_t>(keys[below(random, std::ssize(keys))], 0, valid - 1));
  double squares = 0;
  for (std::int64_t col = 0; col < s.dim; ++col) squares += k.at(key, col) * k.at(key, col);
  if (!(squares > 0) || s.scale == 0) return;
  const double factor = score / (s.scale * squares), most = magnitudes_of(s.in).most;
  q.change(row, [&](std::int64_t col, double) {
    return std::clamp(factor * k.at(key, col), -most, most);
  });
}

/// Points a quarter of a sequence's queries of a KV head's group at keys, which must be final.
void point_queries(const Shape& s, const std::vector<HostTensor>& inputs, Rows& q, const Rows& k,
                   const KeyRows& rows, std::int64_t sequence, std::int64_t kv_head,
                   std::int64_t valid, std::mt19937_64& random) {
  Part tokens{sequence * s.queries, s.queries};
  if (s.packed) {
    tokens = Part(inputs, 3, sequence, s.queries);
    valid = rows.keys();
  }
  const std::int64_t group = s.heads / s.kv_heads;
  for (std::int64_t i = 0; valid > 0 && i < tokens.count * group; ++i) {
    if (below(random, 4) > 0) continue;
    const std::int64_t query = i / group;
    const std::int64_t row = (tokens.first + query) * s.heads + kv_head * group + i % group;
    point_query(s, q, row, k, rows, valid, tokens.count, seen_by(s, valid, tokens.count, query),
                random);
  }
}

/// Sinks far below and far above all scores, and those that add nothing.
void harden_sinks(HostTensor& sinks, std::mt19937_64& random) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  constexpr double kinds[] = {0, none, -200, -1500, 200, 1500};
  for (std::size_t head = 0; head < sinks.spec.elements(); ++head) {
    const std::int64_t kind = below(random, 2 * std::ssize(kinds));
    if (kind >= std::ssize(kinds)) continue;
    store_element(sinks.spec.dtype, sinks.data.data(), head, kinds[kind]);
  }
}

double not_a_number(std::int64_t, double) {
  return std::numeric_limits<double>::quiet_NaN();
}

/// Hides what lies behind the valid keys, in the last page, too.
void hide(Rows& tensor, const KeyRows& rows, std::int64_t valid) {
  for (std::int64_t key = valid; key < rows.count(); ++key) {
    tensor.change(rows.row(key), not_a_number);
  }
}

/// Starts of sequences at random, of which some are empty, and some begin or end where others do;
/// the last ones may lie outside all tokens, or leave some behind, and those after the first one
/// before them. The first start is not read.
void harden_starts(HostTensor& starts, std::int64_t tokens, std::int64_t part,
                   std::mt19937_64& random) {
  const auto count = static_cast<std::int64_t>(starts.spec.elements());
  std::vector<std::int64_t> list(static_cast<std::size_t>(count));
  for (std::int64_t& start : list) start = below(random, tokens + 1);
  if (below(random, 4) > 0) list.back() = tokens;
  for (std::size_t i = 1; i < list.size(); ++i) {
    if (below(random, 4) == 0) list[i] = list[i - 1];
  }
  std::sort(list.begin(), list.end());
  // Whole parts, one more or one less.
  for (std::size_t i = 1; part > 1 && i + 1 < list.size(); ++i) {
    const std::int64_t start = i == 1 ? 0 : list[i - 1], parts = (list[i + 1] - start) / part;
    if (parts > 0 && below(random, 3) == 0) {
      list[i] =
          std::min(start + (1 + below(random, parts)) * part + below(random, 3) - 1, list[i + 1]);
    }
  }
  constexpr std::int64_t farthest = std::numeric_limits<std::int32_t>::max();
  if (below(random, 3) == 0) list.back() = below(random, 2) == 0 ? tokens + 1 : farthest;
  if (below(random, 2) == 0) {
    const std::int64_t outside = below(random, count);
    for (std::int64_t i = 1; i <= outside; ++i) {
      list[static_cast<std::size_t>(i)] = below(random, 2) == 0 ? -1 : -farthest;
    }
  }
  constexpr std::int64_t firsts[] = {0, -1, farthest};
  list.front() = firsts[below(random, std::ssize(firsts))];
  for (std::size_t i = 0; i < list.size(); ++i) {
    store_element(DType::i32, starts.data.data(), i, static_cast<double>(list[i]));
  }
}

/// Numbers of pages without valid keys must not be used.
void spoil_table(const Shape& s, HostTensor& table, std::int64_t sequence, std::int64_t valid,
                 std::mt19937_64& random) {
  constexpr double bad[] = {-1, -2147483648.0, 2147483647.0};
  for (std::int64_t page = ceil_div(valid, s.page); page < s.pages(); ++page) {
    store_element(DType::i32, table.data.data(),
                  static_cast<std::size_t>(sequence * s.pages() + page),
                  bad[below(random, std::ssize(bad))]);
  }
}

}  // namespace

void harden(const Problem& problem, std::vector<HostTensor>& inputs, const InputSeed& seed) {
  harden_operands(shape_of(problem), inputs, seed);
}

void harden_operands(const Shape& s, std::vector<HostTensor>& inputs, const InputSeed& seed) {
  std::mt19937_64 random(seed.number);
  Rows q(inputs[0], s.dim), k(inputs[1], s.dim), v(inputs[2], s.v_dim);
  const std::int64_t col = below(random, s.dim);
  if (s.sinks) harden_sinks(inputs[s.page > 0 || s.packed ? 5 : 4], random);
  if (s.packed) {
    // Of packed heads, a tile has fewer queries.
    const std::int64_t part = std::max(seed.part_of("q"), seed.part_of("q x heads") / s.group());
    harden_starts(inputs[3], s.queries, part, random);
    harden_starts(inputs[4], s.capacity, seed.part_of("kv"), random);
    const auto last = static_cast<std::int64_t>(inputs[4].spec.elements()) - 1;
    const std::int64_t used =
        Part(inputs, 4, last - 1, s.capacity).first + Part(inputs, 4, last - 1, s.capacity).count;
    for (std::int64_t row = used * s.kv_heads; row < k.count(); ++row) {
      for (Rows* const tensor : {&k, &v}) tensor->change(row, not_a_number);
    }
  }
  for (std::int64_t row = 0; row < q.count(); ++row) harden_query(s, q, row, col, random);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::int64_t part = seed.part_of(below(random, 2) == 0 ? "kv" : "slices of kv");
    const std::int64_t length = s.packed ? s.capacity : draw_length(s, part, random);
    const std::int64_t valid = std::clamp<std::int64_t>(length, 0, s.capacity);
    if (!s.packed) {
      store_element(DType::i32, inputs[3].data.data(), static_cast<std::size_t>(b),
                    static_cast<double>(length));
    }
    for (std::int64_t head = 0; head < s.kv_heads; ++head) {
      const KeyRows rows(s, inputs, b, head);
      harden_keys(k, rows, valid, col, random);
      harden_values(s, v, rows, random);
      point_queries(s, inputs, q, k, rows, b, head, valid, random);
      hide(k, rows, valid);
      hide(v, rows, valid);
    }
    if (s.page > 0) spoil_table(s, inputs[4], b, valid, random);
  }
}

}  // namespace greta::kernels::attention
