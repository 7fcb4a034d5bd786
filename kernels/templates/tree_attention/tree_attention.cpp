#include "kernels/operations.hpp"
#include "kernels/templates/latent_attention/inputs.hpp"

namespace greta::kernels {

Operation make_tree_attention() {
  Operation t;
  t.name = "tree_attention";
  t.summary =
      "attention of the tokens of a speculative tree: a query sees the keys before the new ones, "
      "and of these those that its bits name";
  t.dimensions = {
      {.name = "batch",
       .help = "sequences",
       .fallback = "1",
       .examples = {1, 2},
       .at_run_time = RunTimeExtent{.steps = 4}},
      {.name = "heads", .help = "number of query heads", .examples = {2, 4}},
      {.name = "kv_heads", .help = "number of KV heads", .fallback = "heads", .examples = {1, 2}},
      {.name = "q",
       .help = "number of queries per sequence: the tree's tokens, whose keys are the last ones",
       .examples = {1, 4, 9, 40, 64, 70},
       .at_run_time = RunTimeExtent{.exact_to = 16}},
      {.name = "kv",
       .help = "KV capacity: number of keys per sequence that the cache holds",
       .examples = {40, 70, 128},
       .at_run_time = RunTimeExtent{}},
      {.name = "dim",
       .help = "head size: number of elements, a multiple of 8",
       .least = 8,
       .most = 256,
       .examples = {8, 64, 80}},
  };
  t.attributes = latent::attributes(
      [](const Problem& problem) { return problem.dim("heads") * problem.dim("dim"); });
  latent::set_rows_operation(t, latent::tree_shape);
  t.check = [](const Problem& problem) -> Result<void> {
    if (problem.dim("dim") % 8 != 0) {
      return bad_field("dim", std::to_string(problem.dim("dim")), "must be a multiple of 8");
    }
    return latent::check(problem, latent::tree_shape(problem));
  };
  t.sizes = {{{8, 32, 8, 64, 2048, 128}},
             {{1, 32, 8, 26, 4096, 128}},
             {{4, 64, 8, 16, 8192, 128}},
             {{2, 4, 2, 9, 300, 80}}};
  return t;
}

}  // namespace greta::kernels
