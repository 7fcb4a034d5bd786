#include "kernels/templates/gemm/shape.hpp"

#include <algorithm>
#include <vector>

#include "kernels/planning/number_attribute.hpp"
#include "kernels/skeletons/norms.hpp"

namespace greta::kernels::gemm {
namespace {

/// Splits a comma-separated list. Misplaced commas give empty words.
std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words(1);
  for (const char c : list) {
    if (c == ',') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
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
  shape.a_along_k = layout.front() == 'n';
  shape.b_along_k = layout.back() == 't';
  for (const auto& word : words_of(problem.attribute("epilogue", "none"))) {
    shape.bias = shape.bias || word == "bias";
    shape.residual = shape.residual || word == "residual";
    if (word == "silu" || word == "swiglu") shape.activation = 1;
    if (word == "gelu" || word == "geglu") shape.activation = 2;
    shape.gated = shape.gated || word == "swiglu" || word == "geglu";
  }
  shape.norm = problem.attribute("prologue", "none") == "rmsnorm";
  shape.epsilon = rows::epsilon(problem);
  shape.alpha = finite_number(problem.attribute("alpha", "1")).value();
  shape.beta = finite_number(problem.attribute("beta", "0")).value();
  shape.panels = problem.attribute("packing", "rows") == "panels";
  shape.tf32x3 = problem.attribute("math", "exact") == "tf32x3";
  shape.lda = problem.stride("lda", shape.a_length());
  shape.ldb = problem.stride("ldb", shape.b_length());
  shape.ldc = problem.stride("ldc", shape.n);
  shape.a_offset = problem.stride("a_offset", 0);
  shape.b_offset = problem.stride("b_offset", 0);
  shape.c_offset = problem.stride("c_offset", 0);
  shape.groups = problem.dim("batch", 1);
  if (shape.groups == 1) return shape;
  shape.grouping = Grouping::batch;
  const auto step = [&](const char* name, std::int64_t packed) {
    const std::int64_t said = problem.stride(name, 0);
    return said > 0 ? said : packed;
  };
  shape.a_step = step("a_batch_stride", shape.a_lines() * shape.a_stride());
  shape.b_step = step("b_batch_stride", shape.b_lines() * shape.b_stride());
  shape.c_step = step("c_batch_stride", shape.m * shape.c_stride());
  if (problem.attribute("shared", "none") == "b") shape.b_step = 0;
  return shape;
}

std::optional<std::string> canonical_epilogue(const std::string& text) {
  if (text == "none") return text;
  auto words = words_of(text);
  std::string list;
  const auto take = [&](std::string_view known) {
    const auto found = std::find(words.begin(), words.end(), known);
    if (found == words.end()) return false;
    list += (list.empty() ? "" : ",") + *found;
    words.erase(found);
    return true;
  };
  take("bias");
  const bool residual = take("residual");
  int plain = 0, gated = 0;
  for (const char* known : {"silu", "gelu"}) plain += take(known) ? 1 : 0;
  for (const char* known : {"swiglu", "geglu"}) gated += take(known) ? 1 : 0;
  const bool known = words.empty() && plain + gated <= 1 && !(residual && gated > 0);
  return known ? std::optional(list) : std::nullopt;
}

}  // namespace greta::kernels::gemm
