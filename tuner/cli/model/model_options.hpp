#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/pipeline/compute/runtime.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"
#include "tuner/cli/options/database_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/model/load_timer.hpp"

namespace greta::tuner::cli {

/// Options of every command that runs a model.
struct RuntimeChoice {
  std::string device = "auto";
  std::string db;  ///< empty: the user's database, if it exists
  KnownDatabases known;
  std::string dtype;  ///< empty: the model's, if the device supports it
  bool untuned = false;
  bool allow_unsafe = false;
  std::vector<std::string> allow;  ///< words of --allow
  std::vector<std::string> use;    ///< rules of --use, see Runtime::use()
  bool no_overlap = false;         ///< launches of a pass run one after another
  std::string packing = "auto";    ///< of quantised matrices: rows, panels or auto
  std::int64_t patience_s = 60;    ///< time limit of each device operation
};

void add_runtime_options(CLI::App& command, RuntimeChoice& choice);

/// Ends greta-run with one line if a device call does not return in time. Call it once, before
/// open_runtime().
void watch_device(const RuntimeChoice& choice);

/// Returns the databases for lookups. Throws CommandError if a named one does not exist.
LookupFiles lookup_files(const RuntimeChoice& choice);

/// Returns the devices of --device. Drivers may take --patience seconds to list them. Throws
/// CommandError.
std::vector<ProbedDevice> select_watched(const RuntimeChoice& choice);

/// Opens the device and its databases, with the rules of --use. Throws CommandError.
std::unique_ptr<Runtime> open_runtime(const RuntimeChoice& choice);

/// Reports on standard error the rules that decided about nothing that ran.
void tell_unused_rules(const Runtime& runtime);

/// Opens the same device with other databases, and with the rules of --use; the runtimes can share
/// tensors. Throws CommandError.
std::unique_ptr<Runtime> open_beside(Runtime& runtime, const LookupFiles& files,
                                     const RuntimeChoice& choice);

/// Returns the element type that a model runs in: the requested one, which the device must support;
/// else `model`'s, or f32 with a message if the device does not support that. Throws CommandError.
DType run_dtype(const RuntimeChoice& choice, DType model, const DeviceInfo& device);

/// Opens a model, or the tokenizer that --tokenizer names or that lies beside it. What is wrong
/// with a file is invalid usage: throws CommandError.
LlamaModel open_model(const std::string& path);
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& file, const LlamaModel& model);
/// Reports on standard error if `--allow rounded_weights` is among the allowed words and a model
/// with activations of this type has no product that rounds weights. Call it after
/// apply_quantisation().
void tell_idle_permission(const std::vector<std::string>& allowed, const LlamaConfig& config,
                          DType activations);

/// An architecture without weights, and its load.
struct ArchitectureChoice {
  std::string config;       ///< a name, or a config.json
  std::string quantize;     ///< of --quantize; empty: as the file stores weights
  std::int64_t layers = 0;  ///< number of layers; 0: all
  std::string mix;          ///< the file of --batch-mix; empty: sequences of one length
  ModelLoad load;
};

void add_architecture_options(CLI::App& command, ArchitectureChoice& choice);
/// Reads the architecture that --config names. Throws CommandError.
LlamaConfig read_architecture(const ArchitectureChoice& choice);
/// Adds --page-size and --pages.
void add_page_options(CLI::App& command, std::int64_t& tokens, std::int64_t& pages);
/// Throws CommandError if --pages are too few for a sequence of which `tokens` are in its cache.
void check_pages(std::int64_t page, std::int64_t pages, std::int64_t tokens);
/// Reduces a model to --layers, reads the mix, completes the load, and checks that it fits the
/// model's context. Throws CommandError.
void apply_load(ArchitectureChoice& choice, LlamaConfig& config);

}  // namespace greta::tuner::cli
