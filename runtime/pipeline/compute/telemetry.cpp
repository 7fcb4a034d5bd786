#include "runtime/pipeline/compute/telemetry.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace greta::runtime {

std::shared_ptr<std::uint64_t> Telemetry::add_graph(
    std::vector<const PreparedOperation*> operations) {
  // Adds the counts of destroyed graphs to their operations.
  std::erase_if(graphs_, [](const GraphCounts& graph) {
    if (graph.replays.use_count() > 1) return false;
    for (const PreparedOperation* operation : graph.operations) {
      operation->counts.runs += *graph.replays;
    }
    return true;
  });
  graphs_.push_back({std::move(operations), std::make_shared<std::uint64_t>(0)});
  return graphs_.back().replays;
}

OperationCounts Telemetry::counts_of(const PreparedOperation& operation) const {
  OperationCounts counts = operation.counts;
  for (const GraphCounts& graph : graphs_) {
    const auto times = std::count(graph.operations.begin(), graph.operations.end(), &operation);
    counts.runs += static_cast<std::uint64_t>(times) * *graph.replays;
  }
  return counts;
}

std::vector<OperationReport> Telemetry::report(
    std::span<const PreparedOperation* const> prepared) const {
  std::vector<OperationReport> list;
  for (const PreparedOperation* const operation : prepared) {
    list.push_back({operation->problem, operation->key, operation->answer.config.shown(),
                    operation->answer.origin, counts_of(*operation)});
  }
  const auto order = [](const OperationReport& entry) {
    return std::make_tuple(-entry.counts.mean_us() * static_cast<double>(entry.counts.runs),
                           -static_cast<double>(entry.counts.runs), entry.key);
  };
  std::sort(list.begin(), list.end(),
            [&order](const auto& a, const auto& b) { return order(a) < order(b); });
  return list;
}

std::vector<OperationTotals> Telemetry::totals(
    std::span<const PreparedOperation* const> prepared) const {
  std::vector<OperationTotals> list;
  std::map<std::string, OperationTotals> by_name;
  for (const PreparedOperation* const operation : prepared) {
    OperationTotals& totals = by_name[operation->problem.op];
    const OperationCounts counts = counts_of(*operation);
    ++totals.prepared;
    totals.replaced += operation->replaced.empty() ? 0 : 1;
    totals.hits.at(static_cast<std::size_t>(operation->answer.origin)) += counts.runs;
    totals.counts.runs += counts.runs;
    totals.counts.timed_runs += counts.timed_runs;
    totals.counts.device_us += counts.device_us;
  }
  for (auto& [name, totals] : by_name) {
    totals.op = name;
    list.push_back(std::move(totals));
  }
  return list;
}

}  // namespace greta::runtime
