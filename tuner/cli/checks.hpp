#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/search/budget.hpp"

namespace greta::tuner::cli {

// Options and problems, checked before anything is opened or written. Each throws CommandError with
// one line that names the option, the value and what is allowed.

Budget read_budget(const std::string& text);
/// MiB as bytes; 0 when the text is empty.
std::uint64_t read_flush(const std::string& text);
void check_strategy(const std::string& name);
/// "local, random, …"
std::string names_of_strategies();

/// Ends a command whose --device could not be had: exit code 3 where there is no device at all, 2
/// where the wanted one is not among those there are.
[[noreturn]] void no_such_device(const std::string& wanted, const Failure& failure);

/// One device, or several as "hip:0,vulkan:0"; each once.
std::vector<ProbedDevice> select_devices(const std::string& wanted);

/// Whether kernels can run under sanitizers on this device, and on this system.
void check_sanitizes(const ProbedDevice& device);

/// An existing file must be one of ours: rows are appended to it, never written over. `option`:
/// that names it.
void check_csv(const std::string& option, const std::filesystem::path& file);

/// Configurations that a user wants to be tried, as text in which any white space separates.
std::vector<Config> read_configs(const Operation& operation, const Problem& problem,
                                 const DeviceInfo& device, const std::vector<std::string>& texts);

/// What results are needed for: to be verified, or also to be written down (--emit-case).
enum class ResultsFor { verification, a_case };

/// Whether a problem fits a device's and the host's memory. `where`: what lists it; may be empty.
void check_fits(const Operation& operation, const Problem& problem, const DeviceInfo& device,
                const std::string& where, ResultsFor use = ResultsFor::verification);

}  // namespace greta::tuner::cli
