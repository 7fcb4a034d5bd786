#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "tuner/c/greta_tune.h"
#include "tuner/evaluate/reference_server.hpp"
#include "tuner/tuning/tuner.hpp"

// The handle of greta_tune.h.

struct greta_tuner {
  greta::tuner::TunerOptions options;
  greta::tuner::Problem problem;
  std::string key;  ///< result of greta_tune_problem()
  greta_tune_observer observer = nullptr;
  void* context = nullptr;
  std::unique_ptr<greta::tuner::ReferenceServer> references{};  ///< for workers; null: none
  std::atomic<bool> stop{false};
  std::string result;  ///< of greta_tune_run()
};
