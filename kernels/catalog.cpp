#include "kernels/catalog.hpp"

#include <fmt/format.h>

#include <set>

#include "kernels/model/problem_rules.hpp"
#include "kernels/operations.hpp"

namespace greta::kernels {

Catalog Catalog::built_in() {
  static const Catalog catalog({
      make_gemm(),
      make_grouped_gemm(),
      make_quantized_gemm(),
      make_quantized_grouped_gemm(),
      make_scaled_gemm(),
      make_scaled_grouped_gemm(),
      make_quantize(),
      make_add(),
      make_silu_mul(),
      make_gelu(),
      make_rope(),
      make_kv_update(),
      make_rope_append(),
      make_embedding(),
      make_gather_columns(),
      make_argmax(),
      make_sample(),
      make_route(),
      make_permute(),
      make_unpermute(),
      make_attention(),
      make_attention_merge(),
      make_softmax(),
      make_latent_attention(),
      make_tree_attention(),
      make_layernorm(),
      make_rmsnorm(),
      make_add_rmsnorm(),
      make_layernorm_rmsnorm(),
      make_experts(),
      make_dequantize(),
      make_repack_weights(),
  });
  return catalog;
}

Catalog::Catalog(std::vector<Operation> operations) {
  std::set<std::string_view> names;
  for (const Operation& operation : operations) {
    if (!names.insert(operation.name).second) {
      throw Error(fmt::format("the catalog has two operations called {}", operation.name));
    }
  }
  operations_ = std::make_shared<std::vector<Operation>>(std::move(operations));
}

const Operation* Catalog::find(std::string_view name) const {
  for (const Operation& operation : *this) {
    if (operation.name == name) return &operation;
  }
  return nullptr;
}

const Operation& Catalog::at(std::string_view name) const {
  if (const Operation* operation = find(name)) return *operation;
  throw Error(fmt::format("there is no operation {}", name));
}

Result<Problem> Catalog::read(std::string_view key) const {
  auto problem = Problem::parse(key);
  if (!problem) return problem;
  const Operation* const operation = find(problem->op);
  if (operation == nullptr) {
    return bad_field("op", problem->op, "there is no such operation");
  }
  *problem = renamed(*operation, *std::move(problem));
  if (auto done = check_problem(*operation, *problem); !done) return done.failure();
  return problem;
}

Result<MigratedConfig> Catalog::usable(const Problem& problem, const DeviceInfo& device,
                                       const Config& stored) const {
  const Operation* const operation = find(problem.op);
  if (operation == nullptr) {
    return invalid_argument(fmt::format("there is no operation {}", problem.op));
  }
  if (auto good = check_problem(*operation, problem); !good) {
    return invalid_argument(good.failure().message);
  }
  const Instance instance(*operation, problem, device);
  auto migrated = instance.migrate(stored);
  if (!migrated) return invalid_argument(migrated.failure().message);
  if (const auto broken = instance.rejects(migrated->config)) {
    return Failure{Status::constraints, *broken, {}};
  }
  return migrated;
}

bool Catalog::valid(const Problem& problem, const DeviceInfo& device, const Config& config) const {
  const Operation* const operation = find(problem.op);
  return operation != nullptr && check_problem(*operation, problem) &&
         !Instance(*operation, problem, device).rejects(config);
}

}  // namespace greta::kernels
