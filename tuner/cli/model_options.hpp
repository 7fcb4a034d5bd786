#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/pipeline/compute/runtime.hpp"
#include "runtime/pipeline/models/llama_config.hpp"
#include "tuner/cli/model_timer.hpp"
#include "tuner/cli/option_values.hpp"

namespace greta::tuner::cli {

/// What every command that runs a model is told.
struct RuntimeChoice {
  std::string device = "auto";
  std::string db;       ///< empty: the user's own, where there is one
  std::string shipped;  ///< empty: none
  std::string dtype;    ///< empty: the model's, where the device has it
  bool untuned = false;
  bool allow_unsafe = false;
  std::int64_t patience_s = 60;  ///< how long the device may take for one thing
};

void add_runtime_options(CLI::App& command, RuntimeChoice& choice);

/// Ends greta-run with one line where a call of the device does not return in time. To be called
/// once, before open_runtime().
void watch_device(const RuntimeChoice& choice);

/// The databases that are looked up in. Throws CommandError for one that was named and isn't there.
LookupFiles lookup_files(const RuntimeChoice& choice);

/// The devices of --device; drivers may take --patience to list theirs. Throws CommandError.
std::vector<ProbedDevice> select_watched(const RuntimeChoice& choice);

/// Opens the device and its databases. Throws CommandError.
std::unique_ptr<Runtime> open_runtime(const RuntimeChoice& choice);

/// The same device with other databases; tensors of the one serve the other. Throws CommandError.
std::unique_ptr<Runtime> open_beside(Runtime& runtime, const LookupFiles& files,
                                     const RuntimeChoice& choice);

/// The type that a model runs in: the one that was asked for, which the device must have; else
/// `model`'s, or f32 where the device doesn't have that, which is told. Throws CommandError.
DType run_dtype(const RuntimeChoice& choice, DType model, const DeviceInfo& device);

/// An architecture without weights, and what it is asked for.
struct ArchitectureChoice {
  std::string config;       ///< a name, or a config.json
  std::int64_t layers = 0;  ///< only so many; 0: all
  ModelLoad load;
};

void add_architecture_options(CLI::App& command, ArchitectureChoice& choice);
/// The architecture that --config names. Throws CommandError.
LlamaConfig read_architecture(const ArchitectureChoice& choice);
/// Cuts a model to --layers, completes the load, and checks that the model has room for it. Throws
/// CommandError.
void apply_load(ArchitectureChoice& choice, LlamaConfig& config);

}  // namespace greta::tuner::cli
