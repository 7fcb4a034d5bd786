#include <fmt/format.h>

#include <set>
#include <string>
#include <utility>

#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/causes/in_memory.hpp"
#include "tuner/diagnose/where.hpp"

namespace greta::tuner {
namespace {

/// One operand, which the kernel reads from wrong addresses.
class Addresses {
 public:
  Addresses(Judge& judge, std::size_t which)
      : judge_(judge),
        evidence_(judge.evidence()),
        which_(which),
        memory_(judge.evidence(), which),
        spec_(judge.evidence().inputs()[which].spec) {}

  /// Elements that are taken as larger or smaller than they are.
  void offer_element_size() {
    const auto size = static_cast<std::int64_t>(bytes_of(spec_.dtype, std::size_t{1}));
    for (const std::int64_t other :
         {size / 2, 2 * size, size - 1, size + 1, 3 * size / 2, 4 * size}) {
      if (other < 1 || other == size) continue;
      offer("wrong stride",
            fmt::format("{} is addressed as if its elements had {} bytes, not {}", spec_.name,
                        other, size),
            [&](std::int64_t row, std::int64_t col) {
              return memory_.at_byte((row * memory_.stride() + col) * other);
            });
      offer("wrong stride",
            fmt::format("rows of {} are addressed as if elements had {} bytes, not {}", spec_.name,
                        other, size),
            [&](std::int64_t row, std::int64_t col) {
              return memory_.at_byte(row * memory_.stride() * other + col * size);
            });
    }
  }

  /// Neighbours that are read in place of each other, as of a vector.
  void offer_neighbours() {
    for (const bool rows : {true, false}) {
      const std::int64_t extent = rows ? spec_.rows : spec_.cols;
      const char* const what = rows ? "row" : "element";
      const auto offer_index = [&](const std::string& words, const auto& index) {
        offer("wrong index", fmt::format("{}: {}", spec_.name, words),
              [&](std::int64_t row, std::int64_t col) {
                const std::int64_t at = index(rows ? row : col);
                return rows ? memory_.at(at * memory_.stride() + col)
                            : memory_.at(row * memory_.stride() + at);
              });
      };
      for (const std::int64_t group : {2, 4, 8}) {
        if (group > extent) continue;
        offer_index(
            fmt::format("the first {} of each group of {} is read for all of them", what, group),
            [=](std::int64_t at) { return at / group * group; });
        offer_index(fmt::format("{}s of each group of {} are read in reverse order", what, group),
                    [=](std::int64_t at) {
                      const std::int64_t other = at / group * group + group - 1 - at % group;
                      return other < extent ? other : at;
                    });
        for (const bool first : {true, false}) {
          offer_index(
              fmt::format("the {} half of each group of {} {}s is read in place of the {}",
                          first ? "second" : "first", group, what, first ? "first" : "second"),
              [=](std::int64_t at) {
                const bool replaced_half = (at % group < group / 2) == first;
                const std::int64_t other =
                    replaced_half ? at + (first ? group / 2 : -group / 2) : at;
                return other < extent ? other : at;
              });
        }
        offer_index(fmt::format("halves of each group of {} {}s are exchanged", group, what),
                    [=](std::int64_t at) {
                      const std::int64_t other =
                          at / group * group + (at % group + group / 2) % group;
                      return other < extent ? other : at;
                    });
      }
    }
  }

  /// Tiles along an axis between which the address moves by a wrong distance.
  void offer_tile_steps() {
    for (const bool rows : {true, false}) {
      const std::int64_t extent = rows ? spec_.rows : spec_.cols;
      const std::int64_t step = rows ? memory_.stride() : 1;
      std::set<std::int64_t> tiles{8, 16, 32, 64}, slices{extent};
      for (const Division& one : evidence_.failed().divisions) {
        if (one.extent == extent && one.part > 1 && one.part < extent) {
          tiles.insert(one.part);
          slices.insert(one.part);
        }
      }
      for (const std::int64_t parts : {2, 4, 8}) {
        if (extent % parts == 0) slices.insert(extent / parts);
      }
      for (const std::int64_t tile : tiles) {
        for (const std::int64_t slice : slices) {
          if (tile >= slice) continue;
          for (const std::int64_t moved : {rows ? std::int64_t{1} : memory_.stride(),
                                           std::int64_t{0}, 2 * step, spec_.rows, spec_.cols}) {
            if (moved != step) offer_tile_step(rows, tile, slice, moved);
          }
        }
      }
    }
  }

 private:
  void offer_tile_step(bool rows, std::int64_t tile, std::int64_t slice, std::int64_t moved) {
    const std::int64_t step = rows ? memory_.stride() : 1;
    const std::string within =
        slice == (rows ? spec_.rows : spec_.cols) ? "" : fmt::format(" within slices of {}", slice);
    offer("wrong stride",
          moved == 0
              ? fmt::format("{}: each tile of {} {} is the first one again{}", spec_.name, tile,
                            rows ? "rows" : "columns", within)
              : fmt::format("{}: tiles of {} {} are {} elements apart, not {}{}", spec_.name, tile,
                            rows ? "rows" : "columns", tile * moved, tile * step, within),
          [&, this](std::int64_t row, std::int64_t col) {
            const std::int64_t at = rows ? row : col, other = rows ? col : row * memory_.stride();
            const std::int64_t in_slice = at % slice;
            return memory_.at(other + (at - in_slice) * step + in_slice / tile * tile * moved +
                              in_slice % tile * step);
          });
  }

  template <typename Value>
  void offer(std::string kind, std::string words, const Value& value) {
    if (!judge_.time_left()) return judge_.hurry();
    judge_.offer_inputs(std::move(kind), std::move(words), replaced(evidence_, which_, value));
  }

  Judge& judge_;
  const Evidence& evidence_;
  std::size_t which_;
  InMemory memory_;
  TensorSpec spec_;
};

}  // namespace

void offer_addresses(Judge& judge) {
  const auto& inputs = judge.evidence().inputs();
  for (const bool steps : {false, true}) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!is_floating(inputs[i].spec.dtype)) continue;
      Addresses addresses(judge, i);
      if (steps) {
        addresses.offer_tile_steps();
      } else {
        addresses.offer_element_size();
        addresses.offer_neighbours();
      }
    }
  }
}

}  // namespace greta::tuner
