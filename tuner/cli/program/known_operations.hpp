#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"
#include "kernels/described/kernel_file.hpp"

namespace greta::tuner::cli {

/// Adds the operation of a description (docs/your-kernel.md) to operations_in_use(). Returns it,
/// valid until the program ends.
/// `reference` is the socket of what computes its reference (ReferenceServer); empty: as the
/// description says. Throws CommandError.
const Operation& add_described(const std::filesystem::path& description,
                               const std::filesystem::path& reference = {});

/// Adds a folder, before that of the user (folder_of_kernels()): all its descriptions are known by
/// their names. Throws CommandError if it is not a folder.
void add_kernel_folder(const std::filesystem::path& folder);
/// Adds --kernels DIR to a command, which calls add_kernel_folder().
void add_kernels_option(CLI::App& command);
/// Returns the description of this name in one of the folders: the file NAME.jsonc or NAME.json.
/// Returns an empty path if there is none.
std::filesystem::path described_as(const std::string& name);

/// Returns the operations of this program: GRETA's, and those that were added. Descriptions of the
/// folders are not among them unless known_operations() was called.
Catalog operations_in_use();
/// Adds all descriptions of the folders, and returns operations_in_use(). Warns once of each
/// description that cannot be read, or whose name is taken, and omits it.
Catalog known_operations();
/// Also adds the kernels that a database carries, except those whose names are taken. They have no
/// reference, which suffices to judge results. Warns of each that cannot be read, and omits it.
void add_carried(const TunedDb& db);

/// Returns configurations, parameters or their values as text, "MODE=fast BLOCK=32,64", with
/// numbers in place of the words of a described kernel.
std::string in_numbers(const std::string& operation, const std::string& text,
                       const std::string& option);
/// Returns a stored configuration with words in place of numbers.
std::string shown(const Problem& problem, const DeviceInfo& device, const Config& stored);

/// Returns the names of the devices on which an operation is to run. In place of "auto", a
/// described kernel gets the best device that runs its language. Throws CommandError if there is
/// none.
std::string devices_for(const std::string& operation, const std::string& wanted);

/// Returns whether an operation is one that was added.
bool is_described(const std::string& operation);
/// Returns the files of the descriptions that were added.
const std::vector<KernelFile>& described_kernels();
/// Returns the words by which a process of the same program gets these descriptions:
/// --kernel FILE for each.
std::vector<std::string> words_of_kernels();

}  // namespace greta::tuner::cli
