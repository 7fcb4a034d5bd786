#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/model/operation.hpp"
#include "runtime/device/result.hpp"
#include "tests/kernels/bounds/arithmetic.hpp"
#include "tests/layers.hpp"

namespace greta::test::bounds {

/// The elements of an input as a function of a number drawn from [-0.5, 0.5) and of the index.
using Contents = std::function<double(double draw, std::size_t index)>;

/// Upper limits of bound / worst observed error, which are also close to it: for f32 outputs by the
/// type of the inputs, and for f16 and bf16 outputs. 0: the case does not apply to these types.
struct Factors {
  double f32 = 0, f16 = 0, bf16 = 0, to_f16 = 0, to_bf16 = 0;
};

/// A problem in which some terms of a bound dominate.
struct Case {
  const char* what = "";
  std::vector<std::pair<std::string, std::string>> options;  ///< dimensions and attributes
  std::map<std::string, Contents> contents;                  ///< inputs that are not plain draws
  Factors factors;
};

using Tensors = std::map<std::string, std::vector<float>, std::less<>>;

/// Inputs of a problem as f32.
struct Given {
  const Problem& problem;
  const Tensors& tensors;

  std::size_t dim(const char* name) const { return static_cast<std::size_t>(problem.dim(name)); }
  bool has(std::string_view name) const { return tensors.contains(name); }
  const std::vector<float>& operator[](std::string_view name) const {
    const auto found = tensors.find(name);
    if (found == tensors.end()) throw Error("no input " + std::string(name));
    return found->second;
  }
  /// Returns the elements of an input, or nullptr if there is none.
  const float* elements(std::string_view name) const {
    const auto found = tensors.find(name);
    return found == tensors.end() ? nullptr : found->second.data();
  }
  float number(const char* attribute, const char* fallback) const {
    return std::stof(problem.attribute(attribute, fallback));
  }
};

using Outputs = std::vector<std::vector<float>>;  ///< every element, before it is stored

/// An operation in f32, implemented only for its tests.
struct Emulation {
  const char* operation = "";
  std::vector<Case> (*cases)(const DTypes& types) = nullptr;
  Outputs (*run)(const Given& given) = nullptr;
  bool copies = false;  ///< values that a type can represent are copied exactly
};

std::vector<Emulation> elementwise_emulations();
std::vector<Emulation> append_emulations();
std::vector<Emulation> row_emulations();
std::vector<Emulation> product_emulations();
std::vector<Emulation> attention_emulations();
std::vector<Emulation> quantized_emulations();
std::vector<Emulation> scaled_emulations();
std::vector<Emulation> sample_emulations();
std::vector<Emulation> expert_emulations();
std::vector<Emulation> quantize_emulations();

/// Divides each element by the root of the mean of all squares.
void over_root(const Given& given, std::vector<Float>& x);
/// The layer norm of a row, with weight and bias if there are any.
void centre(const Given& given, std::vector<Float>& x);
/// Multiplies each element by that of the input `name`, if there is one.
void weigh(const Given& given, const char* name, std::vector<Float>& x);
Float silu(Float x);
Float gelu_tanh(Float x);
Float gelu_erf(Float x);

inline Contents times(double factor) {
  return [factor](double draw, std::size_t) { return factor * draw; };
}
/// Returns contents from `low` to `high`.
inline Contents between(double low, double high) {
  return [=](double draw, std::size_t) { return low + (draw + 0.5) * (high - low); };
}
/// Returns integers from 0 to count - 1.
/// The numbers of the pages of `keys` keys, the last page first.
inline Contents pages_of(std::size_t keys, const std::string& page, std::size_t sequences = 1) {
  if (page == "none") return {};
  const std::size_t size = std::stoul(page), count = (keys + size - 1) / size * sequences;
  return [count](double, std::size_t i) { return static_cast<double>(count - 1 - i); };
}
inline Contents index_below(std::size_t count) {
  return [count](double draw, std::size_t) {
    return static_cast<double>(static_cast<std::size_t>((draw + 0.5) * static_cast<double>(count)) %
                               count);
  };
}
/// Returns a factor that scales draws to the smallest normal numbers of both types.
inline double tiny(const DTypes& types) {
  return 4 * std::max(smallest_normal(types.in), smallest_normal(types.out));
}

}  // namespace greta::test::bounds
