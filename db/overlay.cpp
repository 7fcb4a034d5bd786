#include "db/overlay.hpp"

#include <map>
#include <tuple>

namespace greta::db {

Overlay::Overlay(std::optional<TunedDb> own, std::optional<TunedDb> shipped) {
  if (own) layers_.push_back(*std::move(own));
  if (shipped) layers_.push_back(*std::move(shipped));
}

std::optional<StoredWinner> Overlay::find_winner(const std::string& device_fingerprint,
                                                 const std::string& problem_key, bool cold) const {
  for (const auto& layer : layers_) {
    if (auto found = layer.find_winner(device_fingerprint, problem_key, cold)) return found;
  }
  return std::nullopt;
}

std::vector<StoredWinner> Overlay::winners() const {
  std::map<std::tuple<std::string, std::string, bool>, StoredWinner> first;
  for (const auto& layer : layers_) {
    for (auto& winner : layer.winners()) {
      std::tuple key(winner.problem.key(), winner.device.fingerprint(), winner.winner.cold);
      first.emplace(std::move(key), std::move(winner));
    }
  }
  std::vector<StoredWinner> all;
  for (auto& [key, winner] : first) all.push_back(std::move(winner));
  return all;
}

}  // namespace greta::db
