#include "kernels/templates/rope_append/parts.hpp"

#include <string>
#include <utility>

namespace greta::kernels {
namespace {

using Attributes = std::vector<std::pair<std::string, std::string>>;

/// Adds an attribute that a problem has, so that a part has it, too.
void add_same(Attributes& attributes, const Problem& problem, const char* name) {
  const std::string value = problem.attribute(name, "");
  if (!value.empty()) attributes.emplace_back(name, value);
}

/// Rotates this number of heads of all tokens, which are `stride` elements apart.
Problem rotation(const Problem& problem, std::int64_t heads, std::int64_t stride, bool in_place) {
  const std::int64_t tokens = problem.dim("batch") * problem.dim("tokens");
  const std::int64_t dim = problem.dim("dim");
  Problem rope{"rope", problem.dtype, problem.dtype, {}, {}};
  add_same(rope.attributes, problem, "style");
  if (in_place) rope.attributes.emplace_back("place", "in");
  if (stride > 0 && stride != heads * dim) {
    rope.attributes.emplace_back("x_stride", std::to_string(stride));
  }
  rope.dims = {
      {"tokens", tokens}, {"heads", heads}, {"dim", dim}, {"positions", problem.dim("positions")}};
  return rope;
}

}  // namespace

std::vector<Problem> parts_of_rope_append(const Problem& problem) {
  const std::int64_t heads = problem.dim("heads"), kv_heads = problem.dim("kv_heads");
  const std::int64_t dim = problem.dim("dim"), batch = problem.dim("batch");
  const std::int64_t q_stride = problem.stride("q_stride", heads * dim);
  const std::int64_t kv_stride = problem.stride("kv_stride", kv_heads * dim);
  std::vector<Problem> list;
  if (problem.attribute("norm", "none") == "rms") {
    for (const std::int64_t count : {heads, kv_heads}) {
      Problem norm{"rmsnorm", problem.dtype, problem.dtype, {}, {}};
      add_same(norm.attributes, problem, "epsilon");
      norm.dims = {{"rows", batch * problem.dim("tokens") * count}, {"cols", dim}};
      list.push_back(std::move(norm));
    }
  }
  if (q_stride > 0 && q_stride == kv_stride) {
    list.push_back(rotation(problem, heads + kv_heads, q_stride, true));
  } else {
    const bool in_place = problem.attribute("place", "out") == "in";
    list.push_back(rotation(problem, heads, q_stride, in_place));
    list.push_back(rotation(problem, kv_heads, kv_stride, true));
  }
  Problem append{"kv_update", problem.dtype, problem.out_dtype, {}, {}};
  for (const char* same : {"kv_stride", "page_size"}) add_same(append.attributes, problem, same);
  append.dims = {{"tokens", problem.dim("tokens")},
                 {"kv_heads", kv_heads},
                 {"dim", dim},
                 {"capacity", problem.dim("capacity")}};
  list.insert(list.end(), static_cast<std::size_t>(batch), append);
  return list;
}

}  // namespace greta::kernels
