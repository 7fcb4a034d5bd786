#include "kernels/operations.hpp"
#include "kernels/templates/latent_attention/inputs.hpp"

namespace greta::kernels {

Operation make_latent_attention() {
  Operation t;
  t.name = "latent_attention";
  t.summary =
      "multi-head latent attention in its absorbed form: all heads share one cache, whose rows are "
      "keys and in their first elements values";
  t.untuned = Operation::Untuned::judging_default;
  t.dimensions = {
      {.name = "batch",
       .help = "sequences",
       .fallback = "1",
       .examples = {1, 2, 5},
       .at_run_time = RunTimeExtent{.steps = 4}},
      {.name = "heads", .help = "number of query heads", .examples = {3, 8, 16, 40}},
      {.name = "q",
       .help = "number of queries per sequence",
       .fallback = "1",
       .examples = {1, 3, 9},
       .at_run_time = RunTimeExtent{.exact_to = 16}},
      {.name = "kv",
       .help = "capacity of the cache: number of rows per sequence",
       .examples = {1, 70, 128, 600},
       .at_run_time = RunTimeExtent{}},
      {.name = "latent",
       .help = "elements of a cache row that are its value, a multiple of 8",
       .least = 8,
       .most = 1024,
       .fallback = "512",
       .examples = {64, 72, 480}},
      {.name = "rope",
       .help = "further elements of a cache row, with rotary embedding, a multiple of 8",
       .least = 0,
       .most = 256,
       .fallback = "64",
       .examples = {16, 8}},
  };
  t.attributes = latent::attributes([](const Problem& problem) {
    return problem.dim("heads") * (problem.dim("latent") + problem.dim("rope"));
  });
  t.attributes.insert(
      t.attributes.begin(),
      {.name = "mask",
       .help =
           "what a query sees: all keys; causal: only the keys up to its own; tree: those before "
           "the new keys, and of these the ones whose bits the input tree has, and its own",
       .fallback = "none",
       .allowed = {"none", "causal", "tree"}});
  latent::set_rows_operation(t, latent::latent_shape);
  t.variants.insert(t.variants.begin(), {latent::pingpong(), latent::warpgroups()});
  t.check = [](const Problem& problem) -> Result<void> {
    for (const char* name : {"latent", "rope"}) {
      if (problem.dim(name) % 8 != 0) {
        return bad_field(name, std::to_string(problem.dim(name)), "must be a multiple of 8");
      }
    }
    return latent::check(problem, latent::latent_shape(problem));
  };
  t.sizes = {{{1, 128, 1, 8192, 512, 64}},
             {{32, 128, 1, 4096, 512, 64}},
             {{64, 16, 1, 4096, 512, 64}},
             {{8, 16, 4, 2000, 512, 64}, {{"mask", "causal"}}},
             {{2, 8, 3, 300, 64, 16}, {{"mask", "tree"}}}};
  return t;
}

}  // namespace greta::kernels
