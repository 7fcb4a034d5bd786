#include "db/lookup/packing_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "kernels/model/problem_rules.hpp"
#include "kernels/prior/prior.hpp"

namespace greta::db {
namespace {

constexpr std::string_view field = "packing";

/// Returns the time of a winner of the problem itself, or of the one that represents its bucket, on
/// this device.
std::optional<CertifiedTime> measured(const Answer& answer, const Problem& representative) {
  const bool own =
      answer.origin == LookupOrigin::exact ||
      (answer.origin == LookupOrigin::nearest_shape && answer.problem == representative.key());
  return own ? answer.time : std::nullopt;
}

/// Returns the predicted time of the answer for a problem's bucket, in cycles.
std::optional<double> predicted(const Operation& operation, const Problem& problem,
                                const Answer& answer, const DeviceInfo& device) {
  const Problem representative = bucket(operation, problem);
  return StaticPrior(operation, representative, device).cost(answer.config);
}

/// Returns the attribute of an operation whose weights may be rows or panels, else nullptr.
const Attribute* packing_of(const Operation& operation) {
  for (const Attribute& one : operation.attributes) {
    const auto& allowed = one.allowed;
    if (one.name == field && one.fallback == "rows" &&
        std::find(allowed.begin(), allowed.end(), "panels") != allowed.end()) {
      return &one;
    }
  }
  return nullptr;
}

Result<PackedProduct> packed(const Operation& operation, const DeviceInfo& device,
                             const WeightedProduct& given, const Problem& panels,
                             const AnswerOf& answer) {
  PackedProduct both;
  both.rows = given.product;
  both.panels = panels;
  both.weight = given.weight;
  try {
    both.of_rows = answer(both.rows);
    both.of_panels = answer(both.panels);
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
  const auto rows_us = both.rows_time = measured(both.of_rows, bucket(operation, both.rows));
  const auto panels_us = both.panels_time =
      measured(both.of_panels, bucket(operation, both.panels));
  both.measured = rows_us && panels_us;
  if (both.measured) {
    both.ratio = {panels_us->us / rows_us->us, panels_us->low / rows_us->high,
                  panels_us->high / rows_us->low};
    return both;
  }
  const auto rows_cost = predicted(operation, both.rows, both.of_rows, device);
  const auto panels_cost = predicted(operation, both.panels, both.of_panels, device);
  if (rows_cost && panels_cost) {
    const double ratio = *panels_cost / *rows_cost;
    both.ratio = {ratio, ratio, ratio};
  }
  return both;
}

/// Decides by the ratios of all products.
void decide(PackingChoice& choice, Unmeasured unmeasured) {
  const auto& products = choice.products;
  choice.measured = std::all_of(products.begin(), products.end(),
                                [](const PackedProduct& one) { return one.measured; });
  double largest = 0, weights = 0, mean = 0, high = 0;
  for (const PackedProduct& one : products) largest = std::max(largest, one.weight);
  for (const PackedProduct& one : products) {
    if (!one.ratio) {
      choice.reason = "rows: of a product neither is measured or predicted";
      return;
    }
    const double weight = one.weight / largest;
    weights += weight;
    mean += weight * one.ratio->ratio;
    high += weight * one.ratio->high;
  }
  choice.ratio = mean / weights;
  const std::string times = fmt::format("panels take {:.3f} times as long", *choice.ratio);
  if (!choice.measured && unmeasured == Unmeasured::rows) {
    choice.reason =
        fmt::format("rows: {} of {} products are not measured in both packings",
                    std::count_if(products.begin(), products.end(),
                                  [](const PackedProduct& one) { return !one.measured; }),
                    products.size());
    return;
  }
  const char* const how = choice.measured ? "measured" : "predicted";
  // Both winners may be of other days or cards of a model, which intervals do not include.
  constexpr double worthwhile = 0.97;
  if (high / weights < (choice.measured ? worthwhile : 1)) {
    choice.packing = WeightPacking::panels;
    choice.reason = fmt::format("panels: {}, {}", times, how);
  } else if (*choice.ratio < 1) {
    choice.reason = fmt::format("rows: {}, {}, which may be chance", times, how);
  } else {
    choice.reason = fmt::format("rows: {}, {}", times, how);
  }
}

}  // namespace

bool has_packings(const Operation& operation) {
  return packing_of(operation) != nullptr;
}

Result<PackingChoice> choose_packing(const Catalog& catalog, const DeviceInfo& device,
                                     std::span<const WeightedProduct> products,
                                     const AnswerOf& answer, Unmeasured unmeasured) {
  PackingChoice choice;
  if (products.empty()) return invalid_argument("a packing is chosen for one product at least");
  for (const WeightedProduct& given : products) {
    const Operation* const operation = catalog.find(given.product.op);
    const Attribute* const attribute = operation == nullptr ? nullptr : packing_of(*operation);
    if (attribute == nullptr || given.product.attribute(std::string(field), "rows") != "rows") {
      return invalid_argument(fmt::format(
          "{}: a packing is chosen for products whose weights may be rows or panels, with "
          "packing=rows",
          given.product.key()));
    }
    if (!(given.weight > 0) || !std::isfinite(given.weight)) {
      return invalid_argument("weights of products must be finite and above 0");
    }
    if (auto good = check_problem(*operation, given.product); !good) return good.failure();
    const Problem panels = with_attribute(*operation, given.product, *attribute, "panels");
    if (const auto good = check_problem(*operation, panels); !good) {
      choice.products.clear();
      choice.reason = "rows: " + good.failure().message;
      return choice;
    }
    auto both = packed(*operation, device, given, panels, answer);
    if (!both) return both.failure();
    choice.products.push_back(*std::move(both));
  }
  decide(choice, unmeasured);
  return choice;
}

std::string packing_text(const PackedProduct& product) {
  const auto side = [](const Answer& answer, const std::optional<CertifiedTime>& known) {
    return fmt::format("{} ({}{})", answer.config.shown(), answer.origin_text(),
                       known ? fmt::format(", {:.3g} \u00b5s", known->us) : "");
  };
  const std::string ratio =
      !product.ratio ? "neither measured nor predicted"
      : product.measured
          ? fmt::format("{:.3f} ({:.3f} to {:.3f}) times as long, measured", product.ratio->ratio,
                        product.ratio->low, product.ratio->high)
          : fmt::format("{:.3f} times as long, predicted", product.ratio->ratio);
  return fmt::format("{}: panels {}, rows {}: {}", product.rows.dims_text(),
                     side(product.of_panels, product.panels_time),
                     side(product.of_rows, product.rows_time), ratio);
}

}  // namespace greta::db
