#include "kernels/reference/screen.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/model/parallel.hpp"

namespace greta::kernels {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{4} << 30;

std::uint64_t physical_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

float rounded_down(double value) {
  const auto nearest = static_cast<float>(value);
  return nearest > value ? std::nextafter(nearest, -std::numeric_limits<float>::infinity())
                         : nearest;
}

/// Let s = |exact value - kept value|. An element's exact error is at most |element - kept value| +
/// s. It is at most `ratio` times the bound if |element - kept value| <= ratio (bound - s / least)
/// and least <= ratio. For floating-point types of up to 16 bits, the kept value is a float and
/// least is 1/4, a ratio that the worst of many rounded numbers reaches. For other types it is a
/// double, and s and least are 0.
template <DType type>
class TypedScreen : public Screen {
 public:
  explicit TypedScreen(const ExpectedOutput& expected)
      : values_(std::make_unique_for_overwrite<Value[]>(expected.spec.elements())),
        bounds_(std::make_unique_for_overwrite<float[]>(expected.spec.elements())) {
    const std::int64_t cols = expected.spec.cols;
    parallel_parts(expected.spec.rows * cols, [&](std::int64_t first, std::int64_t last) {
      std::int64_t row = first / cols, col = first % cols;
      for (std::int64_t i = first; i < last; ++i) {
        keep(static_cast<std::size_t>(i), expected.element(row, col));
        if (++col == cols) {
          col = 0;
          ++row;
        }
      }
    });
  }

  static std::uint64_t bytes(const TensorSpec& spec) {
    return spec.elements() * (sizeof(Value) + sizeof(float));
  }

  std::int64_t suspect(const HostTensor& output, std::int64_t first, std::int64_t last,
                       double ratio) const override {
    if (ratio < 0) return first;
    constexpr double roundings = 0x1p-20;  // roundings of this computation
    const auto factor = static_cast<Value>(ratio < least ? -1 : ratio * (1 - roundings));
    const std::byte* data = output.data.data();
    const auto differs = [&](std::size_t i) {
      return !(std::abs(load<type>(data, i) - values_[i]) <= factor * bounds_[i]);
    };
    constexpr std::size_t together = 64;  // branch-free block for vectorisation
    const auto end = static_cast<std::size_t>(last);
    auto i = static_cast<std::size_t>(first);
    for (; i + together <= end; i += together) {
      unsigned any = 0;
      for (std::size_t j = 0; j < together; ++j) any |= static_cast<unsigned>(differs(i + j));
      if (any != 0) break;
    }
    while (i < end && !differs(i)) ++i;
    return static_cast<std::int64_t>(i);
  }

 private:
  using Value = std::conditional_t<is_floating(type) && bits_of(type) <= 16, float, double>;
  static constexpr double least = std::is_same_v<Value, float> ? 0.25 : 0;

  void keep(std::size_t i, const Expected& want) {
    values_[i] = static_cast<Value>(want.value);
    const double changed = std::abs(want.value - static_cast<double>(values_[i]));
    const float bound = rounded_down(want.bound - (changed > 0 ? changed / least : 0));
    const bool usable = bound == 0 || (std::isnormal(bound) && bound > 0);
    bounds_[i] = usable ? bound : std::numeric_limits<float>::quiet_NaN();  // never skipped
  }

  std::unique_ptr<Value[]> values_;
  std::unique_ptr<float[]> bounds_;
};

template <DType type>
std::unique_ptr<Screen> make_typed(const ExpectedOutput& expected) {
  if (TypedScreen<type>::bytes(expected.spec) > std::min(most_bytes, physical_memory() / 4)) {
    return nullptr;
  }
  return std::make_unique<TypedScreen<type>>(expected);
}

}  // namespace

void compare_elements(const ExpectedOutput& expected, const Screen* screen,
                      const HostTensor& output, std::int64_t first, std::int64_t last,
                      Findings& part) {
  for (std::int64_t i = first; i < last && !part.plenty(); ++i) {
    if (screen != nullptr) {
      const std::int64_t next = screen->suspect(output, i, last, part.ratio());
      part.pass(next - i);
      if (next == last) return;
      i = next;
    }
    const std::int64_t row = i / expected.spec.cols, col = i % expected.spec.cols;
    const Expected want = expected.element(row, col);
    part.compare(row, col, output.at(static_cast<std::size_t>(i)), want.value, want.bound);
  }
}

std::unique_ptr<Screen> make_screen(const ExpectedOutput& expected) {
  return with_dtype(expected.spec.dtype,
                    [&](auto type) { return make_typed<decltype(type)::value>(expected); });
}

}  // namespace greta::kernels
