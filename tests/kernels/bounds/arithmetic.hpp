#pragma once

#include <algorithm>
#include <cstddef>
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

/// Sets the arithmetic of Float.
void compute_with(const Arithmetic& arithmetic);
const Arithmetic& arithmetic();

/// A number in that arithmetic: the result of every operation is rounded.
class Float {
 public:
  Float() = default;
  Float(float number);  ///< unchanged, except denormals on the least precise device

  float value() const { return value_; }

  friend Float operator+(Float a, Float b) { return rounded(a.value_ + b.value_); }
  friend Float operator-(Float a, Float b) { return rounded(a.value_ - b.value_); }
  friend Float operator*(Float a, Float b) { return rounded(a.value_ * b.value_); }
  friend Float operator-(Float a) { return Float(-a.value_); }
  friend bool operator<(Float a, Float b) { return a.value_ < b.value_; }
  friend bool operator==(Float a, Float b) { return a.value_ == b.value_; }

  friend Float operator/(Float a, Float b);
  friend Float multiply_add(Float a, Float b, Float c);  ///< a b + c
  friend Float exp(Float x);
  friend Float erfc(Float x);
  friend Float inverse_root(Float x);

 private:
  static Float rounded(float value);
  /// Returns `exact` rounded to f32, with an error of up to `ulps`.
  static Float off(double exact, double ulps);

  float value_ = 0;
};

/// Returns the nearest number with `bits` fewer bits than a type has.
double coarsened(DType type, double value, int bits);

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
  if (arithmetic().sums == Arithmetic::Sums::lanes) {
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
