#include "tuner/cli/bench/verify_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/candidates.hpp"
#include "kernels/catalog.hpp"
#include "tuner/cli/bench/parts.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/table.hpp"

namespace greta::tuner::cli {

void VerifyRun::check(const std::string& name, Benchmark& benchmark, std::vector<TableRow>& rows,
                      const std::atomic<bool>& stop) const {
  if (!benchmark.check || stop || !matches(filter, name)) return;
  TableRow row{name, benchmark.row, {}};
  row.row.status = "ok";
  for (int run = 0; run < runs && row.failure.empty() && !stop; ++run) {
    const auto right = benchmark.check(row.row, run);
    if (right) {
      ++row.row.samples;
    } else {
      row.failure = right.failure().message;
      row.row.status = to_string(right.failure().status);
    }
  }
  rows.push_back(std::move(row));
}

void VerifyRun::check_random(Evaluator& evaluator, std::vector<TableRow>& rows,
                             const std::atomic<bool>& stop) const {
  TrialLimits limits;
  limits.run_s = timeout_s;
  const auto count = static_cast<std::size_t>(random) * static_cast<std::size_t>(runs);
  for (const Operation& operation : evaluator.catalog()) {
    const std::string name = fmt::format("random/{}", operation.name);
    if (random == 0 || stop || !matches(filter, name)) continue;
    TableRow total{name, {}, {}};
    total.row.set_device(evaluator.device());
    total.row.op = operation.name;
    total.row.origin = "random";
    total.row.status = "ok";
    std::uint64_t at = seed;
    for (const auto& [problem, config] :
         random_candidates(operation, evaluator.device(), {}, count, seed)) {
      if (stop) break;
      const bool plain = limits.inputs == InputStyle::plain;  // they take turns
      limits.inputs = plain ? InputStyle::adversarial : InputStyle::plain;
      const Trial trial = evaluator.verify(problem, config, at++, limits);
      const auto& verdict = trial.verdict;
      const double worst = total.row.bound > 0 ? total.row.error / total.row.bound : -1;
      if (verdict.bound > 0 && verdict.ratio() > worst) total.row.set_verdict(verdict);
      if (trial.ok()) {
        ++total.row.samples;
        continue;
      }
      TableRow wrong{
          name, {}, fmt::format("{} | {}: {}", problem.key(), config.text(), trial.message)};
      wrong.row.set_device(evaluator.device());
      wrong.row.set_problem(problem);
      wrong.row.config = config.text();
      wrong.row.origin = "random";
      wrong.row.status = to_string(*trial.failure);
      rows.push_back(std::move(wrong));
    }
    rows.push_back(std::move(total));
  }
}

std::string verify_table(const std::vector<TableRow>& rows) {
  Table table({{"benchmark"}, {"right", Table::Align::right}, {"error"}});
  for (const auto& [name, row, failure] : rows) {
    const std::string share =
        row.bound > 0 ? fmt::format("{} of bound", format_share(row.error / row.bound)) : "";
    table.add({name, std::to_string(row.samples),
               failure.empty() ? share : fmt::format("{}: {}", row.status, failure)});
  }
  return table.text();
}

}  // namespace greta::tuner::cli
