#include <fmt/format.h>

#include <algorithm>

#include "tuner/model/model_tuner.hpp"

/// The part of ModelTuner that finds the problems of a model.
namespace greta::tuner::model {

/// Measures what a comparison takes: a model whose kernels are compiled, from the look-up of its
/// configurations to the last round.
void ModelTuner::measure_comparison(const Bench& bench) {
  const Phase phase(*this, "measuring what a comparison takes");
  const Stopwatch watch;
  const auto runtime = open_beside(*bench.runtime, files_of(options_.tuner.database));
  const auto again = timer(*runtime, bench);
  again->warm_up(2);
  needs_.comparison_s = watch.seconds() + shortest_rounds_s(*again);
}

/// Adds the problems of a pass, each with its time as often as the pass runs. Returns the time of
/// all.
double ModelTuner::add_problems(LoadTimer& timer, const LoadPass& of_load) {
  auto& changes = result_.changes;
  double total = 0;
  const double times = of_load.times;
  const PipelineGraph& pass = timer.ready(of_load);
  const auto spent = pass.time(timer.queue()).value();
  for (std::size_t i = 0; i < spent.size(); ++i) {
    const PreparedOperation* operation = pass.operations()[i].prepared;
    if (operation == nullptr) continue;
    auto known = std::find_if(changes.begin(), changes.end(), [&](const ModelChange& change) {
      return change.problem == operation->problem;
    });
    if (known == changes.end()) {
      changes.push_back({.problem = operation->problem});
      known = changes.end() - 1;
    }
    known->share += times * spent[i].us;
    total += times * spent[i].us;
  }
  return total;
}

/// Finds the model's problems and their shares of its time. A budget that ends before is an error.
void ModelTuner::find_problems() {
  try {
    time_operations();
  } catch (const Error& error) {
    if (error.status() != Status::interrupted || stop_) throw;
    throw Error(Failure{Status::timeout,
                        fmt::format("the budget of {} ended after {:.0f} s, before anything was "
                                    "tuned: {}",
                                    options_.tuner.budget.text(), watch_.seconds(),
                                    "the model has to be loaded, compiled and timed first"),
                        {}});
  }
}

void ModelTuner::time_operations() {
  bench_ = open_model();
  needs_.open_s = stays_loaded_ ? 0 : watch_.seconds();
  std::unique_ptr<LoadTimer> model;
  {
    const Phase phase(*this, "compiling the model and running it once");
    model = timer(*bench_->runtime, *bench_);
    model->warm_up(1);
  }
  measure_comparison(*bench_);
  double total = 0;
  {
    const Phase phase(*this, "timing each operation");
    for (const LoadPass& pass : model->passes()) total += add_problems(*model, pass);
    find_chains(*model);
    order_chains(*model);
  }
  model.reset();  // its memory is free for those of the alternatives
  find_problems_of_chains(*bench_);
  if (!stays_loaded_) bench_.reset();
  auto& changes = result_.changes;
  for (ModelChange& change : changes) change.share /= std::max(total, 1e-9);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  model_observer_.on_problems(changes);
}

}  // namespace greta::tuner::model
