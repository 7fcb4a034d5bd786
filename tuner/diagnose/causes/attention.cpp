#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>

#include "kernels/reference/attention_inputs.hpp"
#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/where.hpp"

namespace greta::tuner {
namespace {

constexpr double most_products = 0x1p28;

/// A query of a head, for which an output row is computed.
struct Query {
  std::int64_t sequence = 0, query = 0, head = 0;
  std::int64_t first = 0, last = 0;  ///< visible keys: last is the one after them
};

/// What a faulty kernel does with a query's keys.
struct Fault {
  /// Returns the keys that are seen, in place of Query::first and last.
  std::function<std::pair<std::int64_t, std::int64_t>(const Query&)> keys{};
  /// Returns how often a key of `seen` counts, in the sum of weights and in that of values.
  std::function<double(std::int64_t key, std::int64_t first, std::int64_t last)> in_sum{},
      in_values{};
  std::function<std::int64_t(std::int64_t head)> kv_head{};
  bool past_the_end = false;       ///< keys after a sequence's are read as they lie in memory
  std::int64_t unscaled_tile = 0;  ///< keys of tiles after which sums are not rescaled; 0: they are
  bool rescales_weights = false;   ///< of unscaled tiles: only the sum of values is not rescaled
  bool rescales_values = false;    ///< only the sum of weights is not rescaled
};

/// Attention in FP64, with faults.
class FaultyAttention {
 public:
  explicit FaultyAttention(Judge& judge)
      : judge_(judge),
        evidence_(judge.evidence()),
        inputs_(evidence_.inputs()),
        a_(evidence_.problem(), inputs_) {
    const std::int64_t sequences = static_cast<std::int64_t>(a_.sequences.size());
    for (std::int64_t s = 0; s < std::min(sequences, a_.batch); ++s) {
      for (std::int64_t q = 0; q < a_.of(s).queries; ++q) {
        for (std::int64_t h = 0; h < a_.heads; ++h)
          queries_.push_back({s, q, h, a_.first_visible(s, q), a_.visible(s, q)});
      }
    }
  }

  bool is_affordable() const {
    return static_cast<double>(queries_.size()) * static_cast<double>(a_.capacity * a_.dim) <=
           most_products;
  }

  void offer(const char* kind, std::string words, const Fault& fault, double weight = 1) {
    if (!judge_.time_left()) return judge_.hurry();
    judge_.offer(kind, std::move(words), predict(fault), weight);
  }

  void offer_masks();
  void offer_tiles();
  void offer_heads();

 private:
  /// Returns the row of K and V that a key has, or nothing if it lies outside of them.
  std::optional<std::int64_t> row_of(const Query& of, std::int64_t kv_head,
                                     std::int64_t key) const {
    if (key < 0 || (a_.page > 0 && key / a_.page >= a_.table->spec.cols)) return std::nullopt;
    const std::int64_t row = a_.key_row(of.sequence, kv_head, key);
    if (row < 0 || row >= std::min(a_.k.spec.rows, a_.v.spec.rows)) return std::nullopt;
    return row;
  }

  double score(const Query& of, std::int64_t kv_head, std::int64_t key) const {
    double sum = 0;
    const auto q = a_.row(of.sequence, of.query, of.head) * a_.dim;
    const auto row = row_of(of, kv_head, key);
    if (!row) return std::numeric_limits<double>::quiet_NaN();
    const auto k = *row * a_.dim;
    for (std::int64_t d = 0; d < a_.dim; ++d)
      sum += a_.q.at(static_cast<std::size_t>(q + d)) * a_.k.at(static_cast<std::size_t>(k + d));
    sum *= a_.scale;
    return a_.cap > 0 ? a_.cap * std::tanh(sum / a_.cap) : sum;
  }

  /// Computes a row of the output; a row of NaN if keys lie outside of the cache.
  void predict_row(const Query& of, const Fault& fault, std::vector<Expected>& to) const {
    auto [first, last] = fault.keys ? fault.keys(of) : std::pair(of.first, of.last);
    first = std::max<std::int64_t>(first, 0);
    if (!fault.past_the_end)
      last = std::min(last, a_.packs ? a_.of(of.sequence).keys : a_.capacity);
    const std::int64_t kv_head = fault.kv_head ? fault.kv_head(of.head) : of.head / a_.group();
    std::vector<double> scores;
    for (std::int64_t key = first; key < last; ++key) scores.push_back(score(of, kv_head, key));
    double largest = a_.sinks != nullptr ? a_.sinks->at(static_cast<std::size_t>(of.head))
                                         : -std::numeric_limits<double>::infinity();
    const double sink = largest;
    for (const double one : scores) largest = std::max(largest, one);
    double sum = a_.sinks != nullptr ? std::exp(sink - largest) : 0, running = sink;
    std::vector<double> row(static_cast<std::size_t>(a_.v_dim), 0);
    for (std::int64_t key = first; key < last; ++key) {
      const auto at = static_cast<std::size_t>(key - first);
      if (fault.unscaled_tile > 0 && (key - first) % fault.unscaled_tile == 0) {
        const auto end = std::min<std::size_t>(scores.size(),
                                               at + static_cast<std::size_t>(fault.unscaled_tile));
        for (std::size_t i = at; i < end; ++i) running = std::max(running, scores[i]);
      }
      const double right = std::exp(scores[at] - largest);
      const double stale = fault.unscaled_tile > 0 ? std::exp(scores[at] - running) : right;
      sum += (fault.rescales_weights ? right : stale) *
             (fault.in_sum ? fault.in_sum(key, first, last) : 1);
      const double weight = fault.rescales_values ? right : stale;
      const double counted = weight * (fault.in_values ? fault.in_values(key, first, last) : 1);
      if (counted == 0) continue;
      const auto v = row_of(of, kv_head, key).value_or(0) * a_.v_dim;
      for (std::int64_t d = 0; d < a_.v_dim; ++d)
        row[static_cast<std::size_t>(d)] += counted * a_.v.at(static_cast<std::size_t>(v + d));
    }
    const auto out = a_.row(of.sequence, of.query, of.head) * a_.v_dim;
    for (std::int64_t d = 0; d < a_.v_dim; ++d) {
      Expected& element = to[static_cast<std::size_t>(out + d)];
      element.value = sum > 0 ? row[static_cast<std::size_t>(d)] / sum : 0;
    }
  }

  Prediction predict(const Fault& fault) const {
    Prediction predicted = evidence_.expected();
    const auto count = static_cast<std::int64_t>(queries_.size());
    for (std::int64_t i = 0; i < count; ++i)
      predict_row(queries_[static_cast<std::size_t>(i)], fault, predicted.front());
    return predicted;
  }

  Judge& judge_;
  const Evidence& evidence_;
  const std::vector<HostTensor> inputs_;  ///< a_ refers to them
  Attention a_;
  std::vector<Query> queries_;
};

void FaultyAttention::offer_masks() {
  for (const std::int64_t by : {1, -1, 2, -2}) {
    const char* const keys = std::abs(by) == 1 ? "key" : "keys";
    offer("off-by-one mask",
          fmt::format("each query sees {} {} too {} at the end of the mask", std::abs(by), keys,
                      by > 0 ? "many" : "few"),
          {.keys = [by](const Query& q) { return std::pair(q.first, q.last + by); }});
    offer("off-by-one mask",
          fmt::format("the keys that each query sees lie {} {} too {}", std::abs(by), keys,
                      by > 0 ? "late" : "early"),
          {.keys = [by](const Query& q) { return std::pair(q.first + by, q.last + by); },
           .past_the_end = true});
    offer("off-by-one mask",
          fmt::format("each query sees {} {} too {} at the beginning of the window", std::abs(by),
                      keys, by < 0 ? "many" : "few"),
          {.keys = [by](const Query& q) { return std::pair(q.first + by, q.last); }});
  }
  offer("wrong mask", "each query sees all keys of the cache, whatever the length of its sequence",
        {.keys = [this](const Query&) { return std::pair(std::int64_t{0}, a_.capacity); }});
  offer("wrong mask", "the mask ignores the sequence's length: query i sees keys up to i",
        {.keys = [](const Query& q) { return std::pair(q.first, q.query + 1); }}, 0.99);
  if (!a_.packs) {
    const HostTensor& lengths = tensor_named(inputs_, "lengths");
    offer("out of range", "lengths greater than the cache's capacity are not clamped to it",
          {.keys =
               [&](const Query& q) {
                 const double said = lengths.at(static_cast<std::size_t>(q.sequence));
                 const auto more = static_cast<std::int64_t>(std::min(said, 1e6)) - a_.capacity;
                 return std::pair(q.first,
                                  q.last + std::clamp<std::int64_t>(more, 0, 4 * a_.capacity));
               },
           .past_the_end = true});
  }
  offer("wrong mask", "each query sees all keys of its sequence, without a mask",
        {.keys = [this](const Query& q) {
          return std::pair(std::int64_t{0}, a_.of(q.sequence).keys);
        }});
}

void FaultyAttention::offer_tiles() {
  std::set<std::int64_t> tiles{1, 2, 4, 8, 16, 32, 64, 128};
  for (const Division& one : evidence_.failed().divisions) tiles.insert(one.part);
  for (const std::int64_t tile : tiles) {
    if (tile >= a_.capacity) continue;
    const auto offer_counted = [&](const char* kind, const std::string& which, double times,
                                   const auto& is_there) {
      const auto counts = [=](std::int64_t key, std::int64_t first, std::int64_t last) {
        return is_there(key, first, last) ? times : 1.0;
      };
      const char* const what = times == 0 ? "skipped" : "counted twice";
      offer(kind, fmt::format("{} of {} keys is {}", which, tile, what),
            {.in_sum = counts, .in_values = counts});
      offer(kind, fmt::format("{} of {} keys is {} in the sum of values", which, tile, what),
            {.in_values = counts}, 0.99);
      offer(kind, fmt::format("{} of {} keys is {} in the sum of weights", which, tile, what),
            {.in_sum = counts}, 0.99);
    };
    const auto is_tail = [tile](std::int64_t key, std::int64_t, std::int64_t last) {
      return key >= last / tile * tile;
    };
    const auto is_last = [tile](std::int64_t key, std::int64_t, std::int64_t last) {
      return key >= (last - 1) / tile * tile;
    };
    const auto is_first = [tile](std::int64_t key, std::int64_t first, std::int64_t) {
      return key < first / tile * tile + tile;
    };
    offer_counted("missing tail", "the incomplete last tile", 0, is_tail);
    offer_counted("missing tail", "the last tile", 0, is_last);
    offer_counted("missing slice", "the first tile", 0, is_first);
    offer_counted("doubled slice", "the last tile", 2, is_last);
    offer_counted("doubled slice", "the first tile", 2, is_first);
    offer("missing rescaling",
          fmt::format("sums over tiles of {} keys are not rescaled to a greater maximum", tile),
          {.unscaled_tile = tile}, 0.99);
    offer("missing rescaling",
          fmt::format("sums of values over tiles of {} keys are not rescaled to a greater maximum",
                      tile),
          {.unscaled_tile = tile, .rescales_weights = true}, 0.99);
    offer("missing rescaling",
          fmt::format("sums of weights over tiles of {} keys are not rescaled to a greater maximum",
                      tile),
          {.unscaled_tile = tile, .rescales_values = true}, 0.99);
  }
}

void FaultyAttention::offer_heads() {
  if (a_.kv_heads < 2) return;
  offer("wrong head or batch", "query head h uses the KV head h modulo their number",
        {.kv_head = [this](std::int64_t head) { return head % a_.kv_heads; }});
  offer("wrong head or batch", "every query head uses the first KV head",
        {.kv_head = [](std::int64_t) { return 0; }});
  for (const std::int64_t by : {1, -1}) {
    offer("wrong head or batch",
          fmt::format("query heads use the {} KV head", by > 0 ? "next" : "previous"),
          {.kv_head = [this, by](std::int64_t head) {
            return (head / a_.group() + by + a_.kv_heads) % a_.kv_heads;
          }});
  }
}

}  // namespace

void offer_attention(Judge& judge) {
  if (judge.evidence().problem().op != "attention") return;
  FaultyAttention attention(judge);
  if (!attention.is_affordable()) return judge.hurry();
  attention.offer_masks();
  attention.offer_heads();
  attention.offer_tiles();
}

}  // namespace greta::tuner
