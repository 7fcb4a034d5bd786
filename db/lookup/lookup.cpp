#include "db/lookup/lookup.hpp"

#include <fmt/format.h>

#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "db/lookup/best_of_variant.hpp"
#include "db/lookup/expected_regret.hpp"
#include "db/lookup/known_winners.hpp"
#include "kernels/chains/chains.hpp"
#include "kernels/model/problem_rules.hpp"
#include "kernels/prior/predicted_config.hpp"
#include "kernels/prior/prior.hpp"

namespace greta::db {
namespace {

/// Returns the device without the features that failed their health checks.
DeviceInfo usable(const DeviceInfo& device, KnownWinners& known) {
  const Avoided parts = avoided(known.unsafe(device));
  if (!parts.device) return without(device, parts);
  throw Error(Failure{Status::unavailable,
                      fmt::format("{}, {}: failed its health checks with {} (greta-bench doctor)",
                                  device.id(), device.name, device.driver),
                      {}});
}

/// The predicted time of another shape's winner over that of the prediction, above which the
/// prediction answers (results/2026-11-27-nvidia-h200-unseen-shapes).
constexpr double most_predicted_regret = 1.05;
/// The same of a default that judges, whose prediction is less exact
/// (results/2026-12-01-nvidia-h200-unseen-catalog).
constexpr double most_regret_of_default = 1.15;

/// Returns whether this was measured for such devices: NVIDIA GPUs through HIP.
bool compares_predictions(const DeviceInfo& device) {
  return device.language == Language::hip && device.architecture.starts_with("sm_");
}

}  // namespace

struct Lookup::Impl {
  /// A prediction, and its time by the static prior.
  struct Prediction {
    std::optional<Config> config;
    std::optional<double> cost;
  };

  Catalog operations;
  Catalog catalog;  ///< operations and chains
  DeviceInfo device;
  mutable std::shared_mutex mutex;                                   // protects all members below
  mutable std::unordered_map<Problem, Answer, ProblemHash> answers;  // references stay valid
  mutable std::unordered_map<Problem, Prediction, ProblemHash> predictions;  // of representatives
  mutable KnownWinners known;
  mutable ExpectedRegret expected;

  Impl(const DeviceInfo& device_as_it_is, KnownWinners known_winners, const LookupOptions& options)
      : operations(options.catalog),
        catalog(with_chains(options.catalog)),
        device(options.allow_unsafe ? device_as_it_is : usable(device_as_it_is, known_winners)),
        known(std::move(known_winners)) {}

  const Answer* find(const Problem& problem) const {
    const std::shared_lock lock(mutex);
    const auto found = answers.find(problem);
    return found != answers.end() ? &found->second : nullptr;
  }

  const Answer& compute(const Problem& problem) const {
    const std::unique_lock lock(mutex);
    const auto found = answers.find(problem);  // another thread may have been faster
    if (found != answers.end()) return found->second;
    return answers.emplace(problem, decide(problem)).first->second;
  }

  /// Returns the default for the representative, so that all lengths of a bucket share it.
  Config default_of(const Operation& operation, const Problem& problem,
                    const Problem& representative) const {
    Config config = operation.default_config(representative, device);
    return catalog.valid(problem, device, config) ? config
                                                  : operation.default_config(problem, device);
  }

  /// Returns the prediction for a representative; nothing if the default is the better answer for
  /// the operation.
  const Prediction& prediction(const Operation& operation, const Problem& representative) const {
    const auto found = predictions.find(representative);
    if (found != predictions.end()) return found->second;
    Prediction made{predicted_config(operation, representative, device), std::nullopt};
    if (made.config) {
      made.cost = StaticPrior(operation, representative, device).cost(*made.config);
    }
    return predictions.emplace(representative, std::move(made)).first->second;
  }

  /// Returns the prediction for the representative, like default_of().
  std::optional<Config> predicted_of(const Operation& operation, const Problem& problem,
                                     const Problem& representative) const {
    const auto& config = prediction(operation, representative).config;
    return !config || catalog.valid(problem, device, *config)
               ? config
               : predicted_config(operation, problem, device);
  }

  /// Returns whether a winner of another shape than the problem's and the representative's, or of
  /// the problem without its permissions, is predicted to cost more than the prediction or the
  /// judging default for the representative.
  bool costs_more(const Operation& operation, const Problem& representative,
                  const KnownWinners::Found& winner) const {
    const bool other = winner.other_shape && winner.winner.problem.dims != representative.dims;
    if (!(other || winner.forbids_more) || !compares_predictions(device)) return false;
    auto [config, least] = prediction(operation, representative);
    if (!config && operation.untuned == Operation::Untuned::first_default) return false;
    const Config& its_config = winner.usable.config;
    const StaticPrior prior(operation, representative, device);
    if (!config) {
      const Config standard = operation.default_config(representative, device);
      const Variant& judge = operation.variant(standard.variant);
      const bool judged = its_config.variant == judge.name || its_config.variant == judge.judges;
      if (judged) least = prior.cost(standard);
    }
    if (!least) return false;
    const auto its = prior.cost(its_config);
    return its && *its > (config ? most_predicted_regret : most_regret_of_default) * *least;
  }

  Result<BestOfVariant> best_of(const Problem& problem, std::string_view variant,
                                const UseValues& values) const {
    const std::unique_lock lock(mutex);
    const Operation* const operation = catalog.find(problem.op);
    if (operation == nullptr) return invalid_argument(fmt::format("no operation {}", problem.op));
    if (auto good = check_problem(*operation, problem); !good) return good.failure();
    std::optional<Config> untuned;
    try {
      untuned = decide(problem).config;
    } catch (const Error&) {  // no variant has a valid configuration; the reason follows
    }
    return best_of_variant({*operation, problem, device, known, untuned}, variant, values);
  }

  Answer decide(const Problem& problem) const {
    const Operation& operation = catalog.at(problem.op);
    check_problem(operation, problem).value();
    const Problem representative = bucket(operation, problem);
    Answer answer;
    auto found = known.find(operation, {problem, representative}, device);
    if (found && costs_more(operation, representative, *found)) found.reset();
    if (found) {
      answer.config = std::move(found->usable.config);
      answer.migrated = std::move(found->usable.changes);
      answer.origin = found->origin;
      const Winner& winner = found->winner.winner;
      if (has_ratio(winner) && !found->implies_default) {
        answer.speedup = {winner.speedup, winner.speedup_low, winner.speedup_high};
      }
      const Measurement& measured = winner.measurement;
      if (measured.low_us > 0 && !found->implies_default) {
        answer.time = {measured.median_us, measured.low_us, measured.high_us};
      }
      answer.problem = found->winner.problem.key();
      answer.device = found->winner.device.name;
      answer.level = found->level;
      answer.database = found->database;
    } else if (auto predicted = predicted_of(operation, problem, representative)) {
      answer.config = *std::move(predicted);
      answer.origin = LookupOrigin::predicted;
    } else {
      answer.config = default_of(operation, problem, representative);
    }
    answer.expected_regret = expected.of(known, problem, answer.origin);
    return answer;
  }
};

Lookup::Lookup(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Lookup::Lookup(Lookup&&) noexcept = default;
Lookup& Lookup::operator=(Lookup&&) noexcept = default;
Lookup::~Lookup() = default;

Lookup Lookup::open(const DeviceInfo& device, const LookupFiles& files,
                    const LookupOptions& options) {
  LookupOptions all = options;
  all.catalog = with_chains(options.catalog);
  return Lookup(std::make_unique<Impl>(device, KnownWinners(device, files, all), options));
}

const Answer& Lookup::find(const Problem& problem) const {
  if (const Answer* const answer = impl_->find(problem)) return *answer;
  return impl_->compute(problem);
}

Result<BestOfVariant> Lookup::best_of(const Problem& problem, std::string_view variant,
                                      const UseValues& values) const {
  return impl_->best_of(problem, variant, values);
}

Result<Answer> Lookup::forced(const UseRule& rule, const Problem& problem) const {
  auto best = best_of(problem, rule.variant(), rule.values());
  if (!best) {
    Failure failure = best.failure();
    failure.message =
        fmt::format("rule \"{}\": {}: {}", rule.text(), problem.key(), failure.message);
    return failure;
  }
  Answer answer;
  answer.config = std::move(best->config);
  answer.origin = LookupOrigin::forced;
  answer.rule = rule.text();
  return answer;
}

const Catalog& Lookup::catalog() const {
  return impl_->operations;
}

const Catalog& Lookup::questions() const {
  return impl_->catalog;
}

std::optional<CarriedKernel> Lookup::kernel(const std::string& name) const {
  const std::unique_lock lock(impl_->mutex);
  return impl_->known.kernel(name);
}

std::optional<CarriedBinary> Lookup::binary(const std::string& content,
                                            const std::vector<std::string>& targets) const {
  const std::unique_lock lock(impl_->mutex);
  return impl_->known.binary(content, targets);
}

bool Lookup::has_binaries(const std::vector<std::string>& targets) const {
  const std::unique_lock lock(impl_->mutex);
  return impl_->known.has_binaries(targets);
}

Answer Lookup::answer(const Problem& problem) const {
  Answer answer = find(problem);
  const Problem stands_for = bucket(questions().at(problem.op), problem);
  if (answer.problem == problem.key() || stands_for == problem) return answer;
  answer = find(stands_for);
  if (answer.origin == LookupOrigin::exact) {  // a match for another shape
    answer.origin = LookupOrigin::nearest_shape;
    answer.expected_regret.reset();
  }
  return answer;
}

const DeviceInfo& Lookup::device() const {
  return impl_->device;
}

std::vector<std::string> Lookup::unreadable() const {
  const std::shared_lock lock(impl_->mutex);
  return impl_->known.unreadable();
}

}  // namespace greta::db
