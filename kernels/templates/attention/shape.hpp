#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/planning/render.hpp"

namespace greta::kernels::attention {

/// An attention problem. Q has a row of `dim` elements and the output one of `v_dim` for each
/// sequence, query and head, in this order. K has one of `dim` and V one of `v_dim` for each
/// sequence, KV head and key; with pages, for each page, KV head and key of the page. Tokens of
/// packed sequences lie one after the other: `queries` and `capacity` are their numbers in all
/// sequences, and K and V have a row for each key and KV head, in this order.
struct Shape {
  DType in, out;
  std::int64_t batch, heads, kv_heads, queries, capacity, dim, v_dim;
  std::int64_t q_stride;  ///< elements of Q from one token to the next; 0: packed
  bool causal;
  double scale;         ///< of the scores
  std::int64_t window;  ///< keys that a causal query sees at most; 0: all
  double softcap;       ///< scores are less than this; 0: without limit
  bool sinks, lse;      ///< an input with sinks, an output with log-sum-exps
  std::int64_t page;    ///< keys of a page; 0: each sequence's keys lie one after the other
  bool packed;          ///< packed sequences
  bool ragged;          ///< sequences of plain inputs have different lengths
  /// Of equal lengths in place of packed ones: queries of all sequences; 0: others.
  std::int64_t packed_queries = 0;

  /// Whether kernels find the sequence of each token: also of equal lengths in place of packed
  /// ones.
  bool finds_tokens() const { return packed || packed_queries > 0; }
  /// Returns the number of keys that a query sees at most.
  std::int64_t seen_keys() const { return window > 0 && window < capacity ? window : capacity; }
  /// Returns the number of pages of a sequence.
  std::int64_t pages() const { return ceil_div(capacity, page); }
  /// Return the number of elements of a key and its value together, and of the longer of them.
  std::int64_t both_dims() const { return dim + v_dim; }
  std::int64_t longest() const { return dim > v_dim ? dim : v_dim; }
  /// Returns the number of heads that share a KV head.
  std::int64_t group() const { return heads / kv_heads; }
  /// Returns the number of sets of tiles that are numbered by themselves: sequences, or one if they
  /// are packed.
  std::int64_t tile_sets() const { return packed ? 1 : batch; }
  /// Returns the number of tiles of `rows` rows in a set, with `of_query` rows for each query: all
  /// that packed sequences of any lengths can need, and those of tokens after the last one.
  auto tiles(const auto& rows, const auto& of_query) const {
    const auto all = queries * of_query;
    return packed ? ceil_div(all + 1, rows) + batch : ceil_div(all, rows);
  }
  /// Returns the 32-bit registers of a load of `count` inputs.
  auto load_registers(const auto& count) const {
    return max(1, count * static_cast<std::int64_t>(bits_of(in)) / 32);
  }
};

Shape shape_of(const Problem& problem);
/// Returns sequences of equal lengths in place of packed ones, which have their mean.
Shape of_mean_lengths(Shape shape);

/// Returns the division of the keys that the first query may see into windows, of which the first
/// may begin before the first key; none without a window.
std::vector<Division> window_divisions(const Shape& shape);

/// Makes a variant whose defaults, divisions and work are those for mean lengths.
template <typename SpaceOf, typename PlanOf, typename DefaultsOf, typename DivisionsOf,
          typename WorkOf>
Variant attention_variant(std::string name, std::string summary, SpaceOf space, PlanOf plan,
                          DefaultsOf defaults, DivisionsOf divisions, WorkOf work) {
  Variant variant = make_variant<Shape>(
      std::move(name), std::move(summary), space, plan,
      [defaults](const Shape& shape, const DeviceInfo& device) {
        return defaults(of_mean_lengths(shape), device);
      },
      [divisions](const Shape& shape, const Config& config) {
        return divisions(of_mean_lengths(shape), config);
      });
  set_work<Shape>(variant, [work](const Shape& shape, const DeviceInfo& device, const Config& c) {
    return work(of_mean_lengths(shape), device, c);
  });
  return variant;
}

/// Return the macros and arguments of all attention kernels: types, compile-time dimensions and
/// arguments. `tiles` is the number of tiles of a sequence's queries. The workspace begins with
/// `counter_bytes`.
Defines problem_defines(const Shape& shape);
std::vector<Argument> arguments(const Shape& shape, std::int64_t tiles, bool workspace,
                                std::uint64_t counter_bytes);

/// Moves defaults that need many registers of a thread, by the estimate `registers`, to the end of
/// the list, and those that would spill after them.
void roomy_first(std::vector<Config>& configs, const DeviceInfo& device,
                 const std::function<std::int64_t(const Config&)>& registers);

Variant decode();      ///< few queries: split over the keys
Variant warpgroups();  ///< many queries, with matrix instructions of warpgroups
Variant matrix();      ///< many queries, with matrix instructions
Variant vector();      ///< many queries, without matrix instructions
Variant vendor();      ///< by the vendor's library

}  // namespace greta::kernels::attention
