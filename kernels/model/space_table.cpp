#include "kernels/model/space_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

#include "kernels/model/first_valid.hpp"

namespace greta::kernels {
namespace space_table {

constexpr std::uint32_t dead_end = 0;
constexpr std::uint32_t complete = 1;

/// A set of parameters, by index.
using Parameters = std::bitset<256>;

/// Zeros of which most are never read: the system provides those of a large array when they are
/// first used.
template <typename T>
class Zeros {
 public:
  Zeros() = default;
  explicit Zeros(std::size_t count)
      : data_(static_cast<T*>(std::calloc(std::max<std::size_t>(count, 1), sizeof(T)))) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  bool empty() const { return data_ == nullptr; }
  T& operator[](std::size_t i) { return data_.get()[i]; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };
  std::unique_ptr<T, Free> data_;
};

/// A constraint with its parameters as indices and a cache of its results.
class Rule {
 public:
  Rule(const Alternative& alternative, const Constraint& constraint)
      : condition_(constraint.condition), seen_{alternative.variant, {}} {
    std::size_t combinations = 1;
    for (const std::string& name : condition_.parameters()) {
      const auto found =
          std::find_if(alternative.parameters.begin(), alternative.parameters.end(),
                       [&](const Parameter& parameter) { return parameter.name == name; });
      reads_.push_back(static_cast<std::size_t>(found - alternative.parameters.begin()));
      parameters_.set(reads_.back());
      lists_.push_back(&found->values);
      seen_.values.emplace_back(name, 0);
      strides_.push_back(combinations);
      combinations = std::min(most_answers + 1, combinations * found->values.size());
    }
    values_.resize(reads_.size());
    if (combinations <= most_answers) answers_ = Zeros<Answer>(combinations);
  }

  const std::vector<std::size_t>& reads() const { return reads_; }
  const Parameters& parameters() const { return parameters_; }

  /// Returns the place of the answer for these positions.
  std::size_t place(const SpaceTable::Positions& choice) const {
    std::size_t place = 0;
    for (std::size_t i = 0; i < reads_.size(); ++i) place += strides_[i] * choice[reads_[i]];
    return place;
  }
  /// Returns the distance between the places of a parameter's adjacent values.
  std::size_t stride(std::size_t parameter) const {
    const auto read = std::find(reads_.begin(), reads_.end(), parameter);
    return read == reads_.end() ? 0 : strides_[static_cast<std::size_t>(read - reads_.begin())];
  }

  /// `place` is that of the choice.
  bool holds(const SpaceTable::Positions& choice, std::size_t place) {
    if (answers_.empty()) return ask(choice);
    Answer& answer = answers_[place];
    if (answer == Answer::unknown) answer = ask(choice) ? Answer::yes : Answer::no;
    return answer == Answer::yes;
  }

 private:
  enum class Answer : std::uint8_t { unknown, yes, no };  // zero is unknown
  static constexpr std::size_t most_answers = std::size_t{1} << 20;

  bool ask(const SpaceTable::Positions& choice) {
    const auto& expression = condition_.expression();
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      const int value = (*lists_[i])[choice[reads_[i]]];
      if (expression) {
        values_[i] = value;
      } else {
        seen_.values[i].second = value;
      }
    }
    return expression ? expression->holds(values_) : condition_.holds(seen_);
  }

  const Condition& condition_;
  std::vector<std::size_t> reads_, strides_;  ///< parameters, and the distances in answers_
  Parameters parameters_;                     ///< the elements of reads_ as a set
  std::vector<const std::vector<int>*> lists_;
  std::vector<std::int64_t> values_;  ///< for an expression
  Config seen_;  ///< for a function: only the declared parameters, so that it can't read others
  Zeros<Answer> answers_;  ///< empty if there would be too many
};

/// Maps the values of the parameters that rules still read to the nodes of one depth. Uses an array
/// if there are few combinations, else a hash map.
class Memo {
 public:
  Memo(const Alternative& alternative, const std::vector<std::size_t>& live) : live_(live) {
    std::uint64_t combinations = 1;
    for (const std::size_t parameter : live) {
      strides_.push_back(combinations);
      const std::uint64_t values = alternative.parameters[parameter].values.size();
      if (__builtin_mul_overflow(combinations, values, &combinations)) {
        throw Error(
            fmt::format("constraints of variant {} read 2^64 combinations of values or more",
                        alternative.variant));
      }
    }
    if (combinations <= most_entries) table_ = Zeros<std::uint32_t>(combinations);
  }

  /// Returns the place of the node for these positions.
  std::uint64_t place(const SpaceTable::Positions& choice) const {
    std::uint64_t place = 0;
    for (std::size_t i = 0; i < live_.size(); ++i) place += strides_[i] * choice[live_[i]];
    return place;
  }
  /// Returns the distance between the places of a parameter's adjacent values.
  std::uint64_t stride(std::size_t parameter) const {
    const auto live = std::find(live_.begin(), live_.end(), parameter);
    return live == live_.end() ? 0 : strides_[static_cast<std::size_t>(live - live_.begin())];
  }

  /// Returns the number after that of the node at a place, which is `unknown` until it is set.
  std::uint32_t& at(std::uint64_t place) {
    if (!table_.empty()) return table_[place];
    return map_.try_emplace(place, unknown).first->second;
  }

  static constexpr std::uint32_t unknown = 0;

 private:
  static constexpr std::size_t most_entries = std::size_t{1} << 20;

  std::vector<std::size_t> live_;
  std::vector<std::uint64_t> strides_;
  Zeros<std::uint32_t> table_;
  std::unordered_map<std::uint64_t, std::uint32_t> map_;  ///< references to its entries stay valid
};

/// Returns an upper bound on the number of partial assignments of `assigned` that later rules can
/// distinguish.
static double frontier(const Alternative& alternative, const std::vector<Rule>& rules,
                       const Parameters& assigned) {
  Parameters live;
  for (const Rule& rule : rules) {
    if ((rule.parameters() & ~assigned).any()) live |= rule.parameters();
  }
  live &= assigned;
  double size = 1;
  for (std::size_t parameter = 0; parameter < alternative.parameters.size(); ++parameter) {
    if (live[parameter])
      size *= static_cast<double>(alternative.parameters[parameter].values.size());
  }
  return size;
}

/// Returns an order of assignment. A greedy heuristic: the next rule to complete is the one that
/// leaves the fewest distinguishable partial assignments. Parameters that no rule reads come last,
/// where they add no nodes.
static std::vector<std::size_t> assignment_order(const Alternative& alternative,
                                                 const std::vector<Rule>& rules) {
  std::vector<std::size_t> order;
  Parameters assigned;
  const auto assign = [&](std::size_t parameter) {
    if (!assigned[parameter]) order.push_back(parameter);
    assigned.set(parameter);
  };
  while (true) {
    const Rule* best = nullptr;
    double best_size = std::numeric_limits<double>::infinity();
    std::size_t best_count = 0;
    for (const Rule& rule : rules) {
      const Parameters candidate = assigned | rule.parameters();
      if (candidate == assigned) continue;
      const double size = frontier(alternative, rules, candidate);
      if (size < best_size || (size == best_size && candidate.count() < best_count)) {
        best_size = size;
        best_count = candidate.count();
        best = &rule;
      }
    }
    if (best == nullptr) break;
    for (const std::size_t parameter : best->reads()) assign(parameter);
  }
  for (std::size_t parameter = 0; parameter < alternative.parameters.size(); ++parameter) {
    assign(parameter);
  }
  return order;
}

}  // namespace space_table

using namespace space_table;

class SpaceTable::Builder {
 public:
  Builder(const Alternative& alternative, SpaceTable& table, Extent extent)
      : alternative_(alternative),
        table_(table),
        extent_(extent),
        choice_(alternative.parameters.size()) {
    if (choice_.size() > Parameters().size()) {
      throw Error(fmt::format("variant {} has more than {} parameters", alternative.variant,
                              Parameters().size()));
    }
    for (const Parameter& parameter : alternative.parameters) {
      if (parameter.values.size() > std::numeric_limits<std::uint16_t>::max()) {
        throw Error(fmt::format("parameter {} of variant {} has more than 65535 values",
                                parameter.name, alternative.variant));
      }
    }
    table_.nodes_ = {Node{}, Node{0, 0, 1}};  // dead_end, complete
    table_.order_.resize(choice_.size());
    std::iota(table_.order_.begin(), table_.order_.end(), 0);
    if (!is_possible(alternative)) return;  // as most variants that are not for them
    for (const Constraint& constraint : alternative.constraints) {
      rules_.emplace_back(alternative, constraint);
    }
    table_.order_ = assignment_order(alternative, rules_);
    find_rules_and_live_parameters();
    for (const auto& live : live_) memo_.emplace_back(alternative, live);
    allowed_.resize(choice_.size());
    edges_.resize(choice_.size());
    table_.root_ = choice_.empty() ? complete : build(0, 0);
  }

 private:
  void find_rules_and_live_parameters() {
    const auto depth_of = [&](std::size_t parameter) {
      const auto& order = table_.order_;
      return static_cast<std::size_t>(std::find(order.begin(), order.end(), parameter) -
                                      order.begin());
    };
    completed_.resize(choice_.size());
    live_.resize(choice_.size());
    for (Rule& rule : rules_) {
      std::size_t last = 0;
      for (const std::size_t parameter : rule.reads()) last = std::max(last, depth_of(parameter));
      if (!rule.reads().empty()) completed_[last].push_back(&rule);
      for (const std::size_t parameter : rule.reads()) {
        for (std::size_t depth = depth_of(parameter) + 1; depth <= last; ++depth) {
          auto& live = live_[depth];
          if (std::find(live.begin(), live.end(), parameter) == live.end()) {
            live.push_back(parameter);
          }
        }
      }
    }
  }

  /// Returns the node for the values chosen at depths below `depth`, whose place is given.
  std::uint32_t build(std::size_t depth, std::uint64_t place) {
    std::uint32_t& after = memo_[depth].at(place);
    if (after == Memo::unknown) after = add_node(depth) + 1;
    return after - 1;
  }

  /// Finds the values of a parameter that meet the rules of which it is the last one. Each rule is
  /// asked about the values that meet those before it.
  const std::vector<bool>& find_allowed(std::size_t depth, std::size_t parameter) {
    const std::size_t values = alternative_.parameters[parameter].values.size();
    std::vector<bool>& allowed = allowed_[depth];
    allowed.assign(values, true);
    for (Rule* const rule : completed_[depth]) {
      choice_[parameter] = 0;
      const std::size_t first = rule->place(choice_), stride = rule->stride(parameter);
      for (std::uint16_t value = 0; value < values; ++value) {
        if (!allowed[value]) continue;
        choice_[parameter] = value;
        allowed[value] = rule->holds(choice_, first + value * stride);
      }
    }
    return allowed;
  }

  std::uint32_t add_node(std::size_t depth) {
    const std::size_t parameter = table_.order_[depth];
    const std::vector<bool>& allowed = find_allowed(depth, parameter);
    const bool last = depth + 1 == choice_.size();
    choice_[parameter] = 0;
    const std::uint64_t place = last ? 0 : memo_[depth + 1].place(choice_),
                        stride = last ? 0 : memo_[depth + 1].stride(parameter);
    std::vector<Edge>& edges = edges_[depth];
    edges.clear();
    std::uint64_t count = 0;
    for (std::uint16_t value = 0; value < allowed.size(); ++value) {
      if (!allowed[value]) continue;
      choice_[parameter] = value;
      const std::uint32_t child = last ? complete : build(depth + 1, place + value * stride);
      if (child == dead_end) continue;
      edges.push_back({value, child, count});
      if (__builtin_add_overflow(count, table_.nodes_[child].count, &count)) {
        throw Error(fmt::format("variant {} has more than 2^64 valid configurations",
                                alternative_.variant));
      }
      if (extent_ == Extent::first) break;
    }
    if (edges.empty()) return dead_end;
    const auto first = static_cast<std::uint32_t>(table_.edges_.size());
    table_.edges_.insert(table_.edges_.end(), edges.begin(), edges.end());
    table_.nodes_.push_back({first, static_cast<std::uint32_t>(edges.size()), count});
    return static_cast<std::uint32_t>(table_.nodes_.size() - 1);
  }

  const Alternative& alternative_;
  SpaceTable& table_;
  const Extent extent_;
  Positions choice_;
  std::vector<Rule> rules_;
  std::vector<std::vector<Rule*>> completed_;   ///< by depth: rules whose last parameter it is
  std::vector<std::vector<std::size_t>> live_;  ///< by depth: the parameters that rules still read
  std::vector<Memo> memo_;                      ///< by depth
  // By depth, of the node that is being built:
  std::vector<std::vector<bool>> allowed_;
  std::vector<std::vector<Edge>> edges_;
};

SpaceTable::SpaceTable(const Alternative& alternative, Extent extent) {
  Builder(alternative, *this, extent);
}

SpaceTable::SpaceTable(std::size_t parameters, std::vector<Positions> valid)
    : order_(parameters), nodes_{Node{}, Node{0, 0, 1}} {
  std::iota(order_.begin(), order_.end(), 0);
  std::sort(valid.begin(), valid.end());
  valid.erase(std::unique(valid.begin(), valid.end()), valid.end());
  root_ = valid.empty() ? dead_end : add_listed(valid.begin(), valid.end(), 0);
}

std::uint32_t SpaceTable::add_listed(Row first, Row last, std::size_t depth) {
  if (depth == order_.size()) return complete;
  std::vector<Edge> edges;
  std::uint64_t count = 0;
  while (first != last) {
    const std::uint16_t value = (*first)[depth];
    const Row end =
        std::find_if(first, last, [&](const Positions& row) { return row[depth] != value; });
    edges.push_back({value, add_listed(first, end, depth + 1), count});
    count += static_cast<std::uint64_t>(end - first);
    first = end;
  }
  const auto begin = static_cast<std::uint32_t>(edges_.size());
  edges_.insert(edges_.end(), edges.begin(), edges.end());
  nodes_.push_back({begin, static_cast<std::uint32_t>(edges.size()), count});
  return static_cast<std::uint32_t>(nodes_.size() - 1);
}

SpaceTable::Positions SpaceTable::at(std::uint64_t index) const {
  Positions choice(order_.size());
  const Node* node = &nodes_[root_];
  for (const std::size_t parameter : order_) {
    const auto first = edges_.begin() + node->first_edge;
    const auto after =
        std::upper_bound(first, first + node->edge_count, index,
                         [](std::uint64_t i, const Edge& edge) { return i < edge.before; });
    const Edge& edge = *std::prev(after);
    choice[parameter] = static_cast<std::uint16_t>(edge.choice);
    index -= edge.before;
    node = &nodes_[edge.child];
  }
  return choice;
}

std::optional<std::uint64_t> SpaceTable::index(const Positions& choice) const {
  std::uint64_t index = 0;
  const Node* node = &nodes_[root_];
  if (node->count == 0) return std::nullopt;
  for (const std::size_t parameter : order_) {
    const auto first = edges_.begin() + node->first_edge;
    const auto last = first + node->edge_count;
    const auto edge = std::lower_bound(
        first, last, choice[parameter],
        [](const Edge& candidate, std::uint32_t value) { return candidate.choice < value; });
    if (edge == last || edge->choice != choice[parameter]) return std::nullopt;
    index += edge->before;
    node = &nodes_[edge->child];
  }
  return index;
}

// Every node lies on a path from the root to the end, so each edge is part of a valid choice.
std::vector<std::vector<std::uint32_t>> SpaceTable::used() const {
  std::vector<std::vector<std::uint32_t>> used(order_.size());
  std::vector<std::uint32_t> level{root_};
  std::vector<bool> listed(nodes_.size());  // nodes that are in the next level already
  for (const std::size_t parameter : order_) {
    std::vector<std::uint32_t> next;
    std::vector<bool> positions;
    for (const std::uint32_t at : level) {
      const Node& node = nodes_[at];
      for (std::uint32_t i = node.first_edge; i < node.first_edge + node.edge_count; ++i) {
        const Edge& edge = edges_[i];
        if (edge.choice >= positions.size()) positions.resize(edge.choice + 1);
        positions[edge.choice] = true;
        if (!listed[edge.child]) next.push_back(edge.child);
        listed[edge.child] = true;
      }
    }
    for (std::uint32_t position = 0; position < positions.size(); ++position) {
      if (positions[position]) used[parameter].push_back(position);
    }
    level = std::move(next);
  }
  return used;
}

}  // namespace greta::kernels
