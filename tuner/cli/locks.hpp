#pragma once

#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "tuner/evaluate/card_lock.hpp"

namespace greta::tuner::cli {

/// Waits until no other process of `tool`'s kind measures on the cards of these devices, and says
/// whom it waits for. Throws CommandError when interrupted.
std::vector<CardLock> lock_cards(const std::vector<ProbedDevice>& devices, const std::string& tool);

}  // namespace greta::tuner::cli
