#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "db/lookup/answer.hpp"
#include "kernels/catalog.hpp"
#include "kernels/model/weight_packing.hpp"
#include "runtime/device/device_info.hpp"

/// Whether the weights of products should be rows or panels (weight_packing.hpp): a question about
/// what a look-up answers for both.
namespace greta::db {

/// A product with weights in rows, of an operation that has_packings(), and how much it counts.
struct WeightedProduct {
  Problem product;
  double weight = 1;  ///< share of the time of all products, in any unit, above 0
};

/// A product in both packings.
struct PackedProduct {
  Problem rows, panels;
  double weight = 1;
  Answer of_rows, of_panels;
  /// Of winners that were measured for this problem, or the one that represents its bucket, and
  /// this device.
  std::optional<CertifiedTime> rows_time{}, panels_time{};
  /// The time with panels divided by that with rows, and its confidence interval: of both such
  /// winners, else as the static prior predicts both answers, without an interval. Nothing if
  /// neither is known.
  std::optional<Speedup> ratio;
  bool measured = false;
};

/// What decides about products without winners.
enum class Unmeasured {
  rows,      ///< nothing: weights stay rows
  predicted  ///< the static prior
};

/// The better packing of weights that several products multiply by.
struct PackingChoice {
  WeightPacking packing = WeightPacking::rows;
  bool measured = false;        ///< of all products
  std::optional<double> ratio;  ///< the weighted mean of the products' ratios
  std::vector<PackedProduct> products;
  std::string reason;  ///< one line
};

/// Returns the answer for a problem, as Lookup::answer() does. May throw Error.
using AnswerOf = std::function<Answer(const Problem&)>;

/// Returns whether the weights of an operation may be rows or panels.
bool has_packings(const Operation& operation);

/// Chooses panels if products with them take less time in the weighted mean: if all are measured,
/// at least 3 % less by the upper ends of intervals, which do not include that winners may be of
/// other days or cards; otherwise as `unmeasured` says. Fails with `invalid_argument` for what is
/// no product of these in rows, and like the answers. Weights that have no panels stay rows, with
/// the reason.
Result<PackingChoice> choose_packing(const Catalog& catalog, const DeviceInfo& device,
                                     std::span<const WeightedProduct> products,
                                     const AnswerOf& answer,
                                     Unmeasured unmeasured = Unmeasured::rows);

/// Returns a line about a product: what is known of both packings.
std::string packing_text(const PackedProduct& product);

}  // namespace greta::db
