#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "runtime/device/dtype.hpp"
#include "tests/layers.hpp"

/// f32 arithmetic as kernels have it, written without a line of the kernels or their references.
namespace greta::test::bounds {

/// One way to compute in f32.
struct Arithmetic {
  enum class Sums {
    straight,  ///< one running sum
    lanes,     ///< eight running sums in turn, added pairwise at the end
    tree,      ///< halves, and halves of these
  };

  const char* name = "";
  Sums sums = Sums::straight;
  bool fused = false;  ///< a product is added without a rounding; e^x is 2^(x log2(e))
  /// Functions are as far off as Vulkan lets a device be (exp: 3 + 2 |x| ulp, a division: 2.5, an
  /// inverse root: 2), in a random direction, and what is below 2^-126 is 0.
  bool least_precise = false;
  int dropped = 0;  ///< so many bits of every result's mantissa are rounded away
};

/// The three ways to compute that a bound must allow.
const std::vector<Arithmetic>& arithmetics();

/// What Float computes with from now on.
void compute_with(const Arithmetic& arithmetic);
const Arithmetic& arithmetic();

/// A number of that arithmetic: the result of every operation is rounded.
class Float {
 public:
  Float() = default;
  Float(float number);  ///< as it is; but denormals are 0 on the least precise device

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
  /// `exact` rounded to f32, or up to `ulps` beside it.
  static Float off(double exact, double ulps);

  float value_ = 0;
};

/// The nearest number that has `bits` fewer than a type's.
double coarsened(DType type, double value, int bits);

/// Takes 0 … count-1 into states that `nothing` starts, each by step(state, i), and merges states
/// as merge(a, b), in the arithmetic's order.
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

/// The sum of term(i), i < count.
template <typename Term>
Float sum(std::size_t count, const Term& term) {
  return accumulate(
      count, Float(), [&](Float s, std::size_t i) { return s + term(i); },
      [](Float a, Float b) { return a + b; });
}

/// The sum of a(i) b(i), i < count.
template <typename A, typename B>
Float dot(std::size_t count, const A& a, const B& b) {
  return accumulate(
      count, Float(), [&](Float s, std::size_t i) { return multiply_add(a(i), b(i), s); },
      [](Float x, Float y) { return x + y; });
}

}  // namespace greta::test::bounds
