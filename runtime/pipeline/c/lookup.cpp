// What a runtime knows, as JSON, and described kernels, of greta.h.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/chains/chains.hpp"
#include "kernels/described/description_json.hpp"
#include "kernels/described/kernel_file.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/version.hpp"
#include "runtime/pipeline/c/handles.hpp"
#include "runtime/pipeline/c/problem_text.hpp"

using namespace greta::runtime;     // NOLINT
using namespace greta::runtime::c;  // NOLINT

namespace {

std::string text_of(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// Reads a description: a file, or a kernel that a database carries.
Result<KernelFile> find_kernel(const Runtime& runtime, const std::string& wanted) {
  if (wanted.find_first_of("./") != std::string::npos) return read_kernel_file(wanted);
  const auto carried = runtime.lookup().kernel(wanted);
  if (carried) return read_kernel_file(carried->description, carried->files);
  return invalid_argument(fmt::format(
      "no database carries a kernel {0} (greta-db export --ship --with-kernels); a file is named "
      "as ./{0}",
      wanted));
}

nlohmann::json packing_json(const PackingChoice& choice) {
  const auto side = [](const Answer& answer) {
    return nlohmann::json{{"config", answer.config.shown()}, {"origin", to_string(answer.origin)}};
  };
  auto products = nlohmann::json::array();
  for (const PackedProduct& one : choice.products) {
    products.push_back({{"problem", one.rows.key()},
                        {"rows", side(one.of_rows)},
                        {"panels", side(one.of_panels)},
                        {"ratio", nullptr},
                        {"low", nullptr},
                        {"high", nullptr},
                        {"measured", one.measured}});
    if (!one.ratio) continue;
    products.back()["ratio"] = one.ratio->ratio;
    products.back()["low"] = one.ratio->low;
    products.back()["high"] = one.ratio->high;
  }
  return {{"packing", greta::kernels::to_string(choice.packing)},
          {"measured", choice.measured},
          {"ratio", choice.ratio ? nlohmann::json(*choice.ratio) : nlohmann::json()},
          {"reason", choice.reason},
          {"products", std::move(products)}};
}

/// Returns what runs for a problem, which is prepared, or what a pipeline records for a chain.
Result<Answer> answer_of(Runtime& runtime, const Problem& wanted) {
  if (is_chain(wanted.op)) return runtime.choose(wanted);
  const auto prepared = runtime.prepare(wanted);
  if (!prepared) return prepared.failure();
  return (*prepared)->answer;
}

}  // namespace

greta_status greta_runtime_describe(greta_runtime* runtime, const char** json) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    need(json, "json");
    const DeviceInfo& info = runtime->runtime->device().info();
    runtime->described = text_of({{"id", info.id()},
                                  {"name", info.name},
                                  {"fingerprint", info.fingerprint()},
                                  {"greta", version()}});
    *json = runtime->described.c_str();
    return {};
  });
}

greta_status greta_runtime_problem(greta_runtime* runtime, const char* problem, const char** key) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    need(problem, "problem");
    need(key, "key");
    runtime->key = read_problem(runtime->runtime->catalog(), problem).key();
    *key = runtime->key.c_str();
    return {};
  });
}

greta_status greta_runtime_lookup(greta_runtime* runtime, const char* problem, const char** json) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    need(problem, "problem");
    need(json, "json");
    const Catalog& questions = runtime->runtime->lookup().questions();
    const Problem wanted = read_problem(questions, problem);
    const auto found = answer_of(*runtime->runtime, wanted);
    if (!found) return found.failure();
    const Answer& answer = *found;
    const auto known = [](const auto& value) {
      return value ? nlohmann::json(*value) : nlohmann::json();
    };
    std::optional<double> speedup;
    if (answer.speedup) speedup = answer.speedup->ratio;
    const Operation& operation = questions.at(wanted.op);
    runtime->answer =
        text_of({{"problem", wanted.key()},
                 {"bucket", bucket(operation, wanted).key()},
                 {"config", answer.config.shown()},
                 {"origin", to_string(answer.origin)},
                 {"expected_regret", known(answer.expected_regret)},
                 {"speedup", known(speedup)},
                 {"rule", answer.rule.empty() ? nlohmann::json() : nlohmann::json(answer.rule)}});
    *json = runtime->answer.c_str();
    return {};
  });
}

greta_status greta_runtime_packing(greta_runtime* runtime, const char* const* products,
                                   const double* weights, std::size_t count, std::int32_t predict,
                                   const char** json) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    need(products, "products");
    need(json, "json");
    std::vector<WeightedProduct> wanted;
    for (std::size_t i = 0; i < count; ++i) {
      wanted.push_back({read_problem(runtime->runtime->catalog(), &need(products[i], "a product")),
                        weights == nullptr ? 1 : weights[i]});
    }
    const auto choice =
        runtime->runtime->packing(wanted, predict == 0 ? Unmeasured::rows : Unmeasured::predicted);
    if (!choice) return choice.failure();
    runtime->packing = text_of(packing_json(*choice));
    *json = runtime->packing.c_str();
    return {};
  });
}

greta_status greta_runtime_use(greta_runtime* runtime, const char* rule) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    return runtime->runtime->use(&need(rule, "rule"));
  });
}

greta_status greta_runtime_rules(greta_runtime* runtime, const char** json) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    need(json, "json");
    auto list = nlohmann::json::array();
    for (const auto& [text, matched, decided] : runtime->runtime->rules()) {
      list.push_back({{"rule", text}, {"matched", matched}, {"decided", decided}});
    }
    runtime->rules = text_of(list);
    *json = runtime->rules.c_str();
    return {};
  });
}

greta_status greta_runtime_prepare(greta_runtime* runtime, const char* problem,
                                   const greta_prepared** prepared) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    need(problem, "problem");
    need(prepared, "prepared");
    const Problem wanted = read_problem(runtime->runtime->catalog(), problem);
    const auto made = runtime->runtime->prepare(wanted);
    if (!made) return made.failure();
    const greta_prepared one{runtime->runtime.get(), *made};
    *prepared = &runtime->prepared.try_emplace(*made, one).first->second;
    return {};
  });
}

greta_status greta_operation_load(greta_runtime* runtime, const char* description,
                                  const char** json) {
  return guarded([&]() -> Result<void> {
    need(runtime, "runtime");
    need(description, "description");
    const auto file = find_kernel(*runtime->runtime, description);
    if (!file) return file.failure();
    auto operation = load_described(*file, reference_devices(), no_reference());
    if (!operation) return operation.failure();
    std::string text = description_json(file->description, *operation);
    if (auto added = runtime->runtime->add(*std::move(operation)); !added) return added;
    runtime->loaded.push_back(std::move(text));
    if (json != nullptr) *json = runtime->loaded.back().c_str();
    return {};
  });
}
