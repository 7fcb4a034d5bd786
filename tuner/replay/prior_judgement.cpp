#include "tuner/replay/prior_judgement.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "kernels/catalog.hpp"

namespace greta::tuner {
namespace {

/// Returns the places of the values in ascending order; equal ones keep their order.
std::vector<std::size_t> ascending(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

/// Returns the rank of each value; equal ones share the mean of their ranks.
std::vector<double> ranks(const std::vector<double>& values) {
  const auto order = ascending(values);
  std::vector<double> result(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) {
      result[order[i]] = static_cast<double>(first + end - 1) / 2;
    }
    first = end;
  }
  return result;
}

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const double count = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / count;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / count;
  double together = 0, of_x = 0, of_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    together += (x[i] - mean_x) * (y[i] - mean_y);
    of_x += (x[i] - mean_x) * (x[i] - mean_x);
    of_y += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return of_x > 0 && of_y > 0 ? together / std::sqrt(of_x * of_y) : 0;
}

/// Collects the configurations of a problem that were measured.
class Collector {
 public:
  Collector(const Operation& operation, const Problem& problem, const DeviceInfo& device)
      : prior_(operation, problem, device) {
    space_ = {problem, device, operation.default_config(problem, device), {}};
  }

  void add(const Trial& trial) {
    if (!trial.ok()) return;
    const auto today = prior_.instance().migrate(trial.config);
    if (!today || prior_.instance().rejects(today->config)) return;
    if (!seen_.insert(today->config.text()).second) return;
    if (const auto terms = prior_.terms(today->config)) {
      space_.rows.push_back({today->config, trial.measurement.median_us, *terms});
    }
  }
  PredictedSpace space() && { return std::move(space_); }

 private:
  StaticPrior prior_;
  PredictedSpace space_;
  std::set<std::string> seen_;
};

}  // namespace

std::optional<PredictedSpace> predicted_space(const Recording& recording) {
  const auto subject = recording.subject();
  if (!subject) return std::nullopt;
  Collector collector(*subject->operation, subject->problem, subject->device);
  const Space& space = recording.space();
  for (std::uint64_t index = 0; index < space.count(); ++index) {
    collector.add(recording.trial(space.choice(index)));
  }
  return std::move(collector).space();
}

std::vector<PredictedSpace> predicted_spaces(const TunedDb& db) {
  static const Catalog catalog = Catalog::built_in();
  std::map<std::string, DeviceInfo> devices;
  for (const StoredDevice& device : db.devices()) {
    devices[device.info.fingerprint()] = device.info;
  }
  std::map<std::pair<std::string, std::string>, Collector> by_question;
  for (const StoredSession& session : db.sessions()) {
    const Operation* const operation = catalog.find(session.problem.op);
    const auto device = devices.find(session.device_fingerprint);
    if (operation == nullptr || device == devices.end()) continue;
    Collector& collector = by_question
                               .try_emplace({session.device_fingerprint, session.problem.key()},
                                            *operation, session.problem, device->second)
                               .first->second;
    for (const Trial& trial : db.trials(session.id)) {
      if (trial.problem_key == session.problem.key()) collector.add(trial);
    }
  }
  std::vector<PredictedSpace> spaces;
  for (auto& [question, collector] : by_question) {
    spaces.push_back(std::move(collector).space());
  }
  return spaces;
}

PriorJudgement judge_prior(const std::vector<PredictedRow>& rows,
                           const std::optional<Config>& standard) {
  std::vector<double> predicted, measured;
  for (const PredictedRow& row : rows) {
    predicted.push_back(predicted_cycles(row.terms));
    measured.push_back(row.time_us);
  }
  PriorJudgement judgement;
  judgement.rank_correlation = correlation(ranks(predicted), ranks(measured));
  const double optimum = *std::min_element(measured.begin(), measured.end());
  const auto order = ascending(predicted);
  double best = measured[order.front()];
  for (std::size_t place = 0, top = 0; top < PriorJudgement::tops.size(); ++top) {
    for (; place < std::min(PriorJudgement::tops[top], order.size()); ++place) {
      best = std::min(best, measured[order[place]]);
    }
    judgement.regret[top] = best / optimum - 1;
  }
  for (const PredictedRow& row : rows) {
    if (standard && row.config == *standard) judgement.default_regret = row.time_us / optimum - 1;
  }
  return judgement;
}

}  // namespace greta::tuner
