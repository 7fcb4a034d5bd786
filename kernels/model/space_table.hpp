#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/model/space.hpp"

namespace greta::kernels {

/// The valid choices of one variant as a decision graph; private to Space.
///
/// A node represents all partial assignments of one depth that later constraints cannot
/// distinguish. An edge assigns the next parameter. Dead ends are removed, so every path from the
/// root is a valid choice.
class SpaceTable {
 public:
  /// What a table contains: all valid choices, or the first one alone, if there is any.
  enum class Extent { all, first };
  explicit SpaceTable(const Alternative& alternative, Extent extent = Extent::all);
  using Positions = Space::Positions;
  /// Takes the valid choices of `parameters` parameters as a list.
  SpaceTable(std::size_t parameters, std::vector<Positions> valid);

  std::uint64_t count() const { return nodes_[root_].count; }
  Positions at(std::uint64_t index) const;
  /// The inverse of at(). Returns std::nullopt if the choice violates a constraint.
  std::optional<std::uint64_t> index(const Positions& positions) const;
  /// Returns, for each parameter in declared order, the indices that occur in a valid choice, in
  /// ascending order.
  std::vector<std::vector<std::uint32_t>> used() const;

 private:
  class Builder;
  using Row = std::vector<Positions>::const_iterator;
  /// Adds the node of sorted choices that agree in all parameters before `depth`.
  std::uint32_t add_listed(Row first, Row last, std::size_t depth);

  struct Edge {
    std::uint32_t choice;
    std::uint32_t child;
    std::uint64_t before;  ///< number of choices under the node's earlier edges
  };
  struct Node {
    std::uint32_t first_edge = 0;
    std::uint32_t edge_count = 0;
    std::uint64_t count = 0;
  };

  std::vector<std::size_t> order_;  ///< the parameter assigned at each depth
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::uint32_t root_ = 0;
};

}  // namespace greta::kernels
