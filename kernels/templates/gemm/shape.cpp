#include "kernels/templates/gemm/shape.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace greta::gemm {
namespace {

float factor(const std::string& text) {
  float value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Takes `word` off the front of a comma list, if it is there.
bool take(std::string_view& list, std::string_view word) {
  if (!list.starts_with(word)) return false;
  const std::string_view rest = list.substr(word.size());
  if (!rest.empty() && rest.front() != ',') return false;
  list = rest.empty() ? rest : rest.substr(1);
  return true;
}

/// Reads what is in canonical order; false when anything is left.
bool read_epilogue(std::string_view list, Shape& shape) {
  if (list == "none") return true;
  if (list.empty() || list.back() == ',') return false;
  shape.bias = take(list, "bias");
  shape.residual = take(list, "residual");
  if (take(list, "silu")) {
    shape.activation = 1;
  } else if (take(list, "gelu")) {
    shape.activation = 2;
  }
  return list.empty();
}

}  // namespace

Shape shape_of(const Problem& problem) {
  Shape shape;
  shape.m = problem.dim("m");
  shape.n = problem.dim("n");
  shape.k = problem.dim("k");
  shape.in = problem.dtype;
  shape.out = problem.out_dtype;
  const std::string layout = problem.attribute("layout", "nn");
  shape.a_along_k = layout != "tn";
  shape.b_along_k = layout == "nt";
  read_epilogue(problem.attribute("epilogue", "none"), shape);
  shape.alpha = factor(problem.attribute("alpha", "1"));
  shape.beta = factor(problem.attribute("beta", "0"));
  return shape;
}

bool valid_epilogue(const std::string& text) {
  Shape unused;
  return read_epilogue(text, unused);
}

bool valid_factor(const std::string& text) {
  const float value = factor(text);
  return std::isfinite(value) && fmt::format("{}", value) == text;
}

}  // namespace greta::gemm
