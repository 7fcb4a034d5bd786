#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test {

using test::TemporaryFolder;

DeviceInfo sample_device();
Problem sample_problem();
SessionRecord sample_session();
/// A good trial that carries `id` in its content key.
Trial sample_trial(const std::string& id);
/// Every field random: failures with logs, NaN and infinities, odd text.
Trial random_trial(std::mt19937_64& random);
/// Likewise.
Measurement random_measurement(std::mt19937_64& random);
Winner sample_winner();

/// Field by field; NaN equals NaN.
void expect_equal(const Trial& actual, const Trial& expected);
void expect_equal(const Measurement& actual, const Measurement& expected);
void expect_equal(const Verdict& actual, const Verdict& expected);
void expect_equal(const std::vector<KernelFigures>& actual,
                  const std::vector<KernelFigures>& expected);
void expect_equal(const DeviceInfo& actual, const DeviceInfo& expected);
void expect_equal(const Winner& actual, const Winner& expected);

std::string read_file(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, const std::string& content);

/// The message of the Error that `action` throws; fails the test and returns "" when it throws
/// none.
std::string error_of(const std::function<void()>& action);
/// Opens as a TunedDb and expects an Error of one line that names the file; returns the line.
std::string open_error(const std::filesystem::path& file,
                       TunedDb::Mode mode = TunedDb::Mode::read_write);

/// Forks; the child runs `work` and leaves without running anything of the parent's.
pid_t start_child(const std::function<void()>& work);
/// Waits for a child; true when its work ended without a throw and without failed expectations.
bool succeeded(pid_t child);
/// Gives up the rights of root, under which no file is read-only. For children.
void become_nobody();

}  // namespace greta::test
