#include "kernels/templates/attention/lengths.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/model/random.hpp"

namespace greta::kernels::attention {
namespace {

std::int64_t draw(std::int64_t sequence, std::int64_t most) {
  const std::uint64_t random = mix64(static_cast<std::uint64_t>(sequence));
  return static_cast<std::int64_t>(random % static_cast<std::uint64_t>(most + 1));
}

/// Returns the parts of all tokens that a packed sequence has.
std::int64_t parts_of(const Shape& shape, std::int64_t sequence) {
  return shape.ragged ? 1 + draw(sequence, 1023) : 1;
}

}  // namespace

void for_each_length(const Shape& shape,
                     const std::function<void(const Lengths&, std::int64_t)>& use) {
  if (!shape.packed && !shape.ragged) {
    use({shape.queries, shape.capacity}, shape.batch);
    return;
  }
  if (!shape.packed) {
    const std::int64_t least = std::min(shape.capacity, shape.queries);
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      use({shape.queries, least + draw(b, shape.capacity - least)}, 1);
    }
    return;
  }
  double all = 0, before = 0;
  for (std::int64_t b = 0; b < shape.batch; ++b) all += static_cast<double>(parts_of(shape, b));
  const auto start = [&](std::int64_t tokens) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(tokens) * (before / all)));
  };
  Lengths begin;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    before += static_cast<double>(parts_of(shape, b));
    const Lengths end{start(shape.queries), start(shape.capacity)};
    use({end.queries - begin.queries, end.keys - begin.keys}, 1);
    begin = end;
  }
}

}  // namespace greta::kernels::attention
