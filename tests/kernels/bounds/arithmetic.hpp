#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/device/dtype.hpp"
#include "tests/layers.hpp"

/// f32 arithmetic of kernels, implemented independently of the kernels and their references.
namespace greta::test::bounds {

/// One way to compute in f32.
struct Arithmetic {
  enum class Sums {
    straight,  ///< one running sum
    lanes,     ///< eight interleaved running sums, added pairwise at the end
    tree,      ///< recursive halves
  };

  const char* name = "";
  Sums sums = Sums::straight;
  bool fused = false;  ///< a product is added without rounding; e^x is 2^(x log2(e))
  /// Functions have the largest errors that Vulkan allows (exp: 3 + 2 |x| ulp, division: 2.5,
  /// inverse square root: 2), in a random direction, and numbers below 2^-126 are 0.
  bool least_precise = false;
  int dropped = 0;  ///< number of mantissa bits rounded away in every result
};

/// Returns the three ways of computing that a bound must allow.
const std::vector<Arithmetic>& arithmetics();

/// A number in that arithmetic: the result of every operation is rounded.
class Float {
 public:
  Float() = default;
  /// The number is unchanged, except denormals on the least precise device.
  Float(float number) : value_(number) {
    if (current_.least_precise && std::abs(number) < 0x1p-126F) {
      value_ = std::copysign(0.0F, number);
    }
  }

  float value() const { return value_; }

  friend Float operator+(Float a, Float b) { return rounded(a.value_ + b.value_); }
  friend Float operator-(Float a, Float b) { return rounded(a.value_ - b.value_); }
  friend Float operator*(Float a, Float b) { return rounded(a.value_ * b.value_); }
  friend Float operator-(Float a) { return Float(-a.value_); }
  friend bool operator<(Float a, Float b) { return a.value_ < b.value_; }
  friend bool operator==(Float a, Float b) { return a.value_ == b.value_; }

  friend Float operator/(Float a, Float b);
  /// Returns a b + c.
  friend Float multiply_add(Float a, Float b, Float c) {
    if (!current_.fused) return a * b + c;
    // The product is exact in FP64.
    return rounded(static_cast<float>(static_cast<double>(a.value_) * b.value_ +
                                      static_cast<double>(c.value_)));
  }
  friend Float exp(Float x);
  friend Float erfc(Float x);
  friend Float inverse_root(Float x);
  friend void compute_with(const Arithmetic& arithmetic);
  friend const Arithmetic& arithmetic();

 private:
  static Float rounded(float value) { return current_.dropped == 0 ? value : dropped(value); }
  /// Returns the value with fewer bits, half to even.
  static Float dropped(float value);
  /// Returns `exact` rounded to f32, with an error of up to `ulps`.
  static Float off(double exact, double ulps);

  inline static Arithmetic current_;

  float value_ = 0;
};

/// Sets the arithmetic of Float.
inline void compute_with(const Arithmetic& arithmetic) {
  Float::current_ = arithmetic;
}
inline const Arithmetic& arithmetic() {
  return Float::current_;
}

/// Returns the nearest number with `bits` fewer bits than a type has.
double coarsened(DType type, double value, int bits);
/// Returns a number as one of a type, with as many bits less as results of the arithmetic have.
Float as_number_of(DType type, Float x);

/// Accumulates 0 … count-1 by step(state, i) into states that start as `nothing`, and combines them
/// by merge(a, b), in the order of the arithmetic.
template <typename State, typename Step, typename Merge>
State accumulate(std::size_t count, const State& nothing, const Step& step, const Merge& merge) {
  const auto run = [&](std::size_t first, std::size_t last, std::size_t stride) {
    State state = nothing;
    for (std::size_t i = first; i < last; i += stride) state = step(state, i);
    return state;
  };
  if (arithmetic().sums == Arithmetic::Sums::straight) return run(0, count, 1);
  std::vector<State> states;
  const bool lanes = arithmetic().sums == Arithmetic::Sums::lanes;
  states.reserve(lanes ? 8 : (count + 3) / 4);
  if (lanes) {
    for (std::size_t lane = 0; lane < 8 && lane < count; ++lane) {
      states.push_back(run(lane, count, 8));
    }
  } else {
    for (std::size_t i = 0; i < count; i += 4) states.push_back(run(i, std::min(i + 4, count), 1));
  }
  for (; states.size() > 1; states.resize((states.size() + 1) / 2)) {
    for (std::size_t i = 0; 2 * i < states.size(); ++i) {
      const bool alone = 2 * i + 1 == states.size();
      states[i] = alone ? states[2 * i] : merge(states[2 * i], states[2 * i + 1]);
    }
  }
  return states.empty() ? nothing : states.front();
}

/// Returns the sum of term(i), i < count.
template <typename Term>
Float sum(std::size_t count, const Term& term) {
  return accumulate(
      count, Float(), [&](Float s, std::size_t i) { return s + term(i); },
      [](Float a, Float b) { return a + b; });
}

/// Returns the sum of a(i) b(i), i < count.
template <typename A, typename B>
Float dot(std::size_t count, const A& a, const B& b) {
  return accumulate(
      count, Float(), [&](Float s, std::size_t i) { return multiply_add(a(i), b(i), s); },
      [](Float x, Float y) { return x + y; });
}

}  // namespace greta::test::bounds
