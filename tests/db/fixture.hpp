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
/// Returns a successful trial with `id` in its content key.
Trial sample_trial(const std::string& id);
/// Returns a trial with random fields: failures with logs, NaN, infinities and unusual text.
Trial random_trial(std::mt19937_64& random);
/// Returns a measurement with random fields.
Measurement random_measurement(std::mt19937_64& random);
Winner sample_winner();
/// Returns finalists with special numbers and every departure.
std::vector<Finalist> sample_finalists();

/// Compares all fields; NaN equals NaN.
void expect_equal(const Trial& actual, const Trial& expected);
void expect_equal(const Measurement& actual, const Measurement& expected);
void expect_equal(const Verdict& actual, const Verdict& expected);
void expect_equal(const std::vector<KernelFigures>& actual,
                  const std::vector<KernelFigures>& expected);
void expect_equal(const DeviceInfo& actual, const DeviceInfo& expected);
void expect_equal(const Winner& actual, const Winner& expected);

std::string read_file(const std::filesystem::path& file);
void write_file(const std::filesystem::path& file, const std::string& content);

/// Returns the message of the Error that `action` throws. If it throws none, fails the test and
/// returns "".
std::string error_of(const std::function<void()>& action);
/// Opens the file as a TunedDb and expects an Error of one line that names it. Returns the line.
std::string open_error(const std::filesystem::path& file,
                       TunedDb::Mode mode = TunedDb::Mode::read_write);

/// Forks. The child runs `work` and exits without running code of the parent.
pid_t start_child(const std::function<void()>& work);
/// Waits for a child. Returns true if its work neither threw nor failed an expectation.
bool succeeded(pid_t child);
/// Drops the rights of root, which can write read-only files. For child processes.
void become_nobody();

}  // namespace greta::test
