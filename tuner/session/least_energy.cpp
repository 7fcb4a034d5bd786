#include "tuner/session/least_energy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tuner/measure/stopwatch.hpp"
#include "tuner/session/search_plan.hpp"

namespace greta::tuner {
namespace {

constexpr int blocks = 3;
constexpr double block_s = 1;  // counters are updated ten to fifty times a second

}  // namespace

void find_least_energy(SessionWork& work, std::vector<Config> finalists) {
  SessionResult& result = work.result;
  const Config& usual = result.default_config;
  const auto no_answer = [&result](const std::string& why) {
    result.notes.push_back("no answer for the least energy: " + why);
  };
  if (finalists.empty() || finalists.front() != usual) return no_answer("the default failed");
  std::erase(finalists, usual);
  const Config& winner = result.winner->config;
  if (winner != usual && std::find(finalists.begin(), finalists.end(), winner) == finalists.end())
    finalists.push_back(winner);
  finalists.insert(finalists.begin(), usual);
  work.observer.on_phase("measuring the energy of the finalists");
  const Lap lap(result.time.measure);
  Result<std::vector<Energy>> energies = std::vector<Energy>{};
  try {  // the winner is certified, and stays whatever happens here
    energies = work.pool.lead().measure_energy(result.problem, finalists, blocks, block_s,
                                               limits_of(work));
  } catch (const Error& error) {
    if (error.status() == Status::interrupted) throw;
    return no_answer(error.what());
  }
  if (!energies) return no_answer(energies.failure().message);
  std::size_t least = 0;
  for (std::size_t i = 1; i < energies->size(); ++i) {
    if ((*energies)[i].joules < (*energies)[least].joules) least = i;
  }
  if ((*energies)[least].high >= energies->front().low) least = 0;
  EnergyWinner& best = result.energy_winner.emplace();
  best.config = finalists[least];
  best.is_default = least == 0;
  best.energy = (*energies)[least];
  best.default_energy = energies->front();
  best.card = work.pool.device().card.uuid;
}

}  // namespace greta::tuner
