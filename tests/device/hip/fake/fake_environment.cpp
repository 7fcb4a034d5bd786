// Configures the library for programs from environment variables. README.md lists them.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <tuple>

#include "tests/device/hip/fake/fake_state.hpp"
#include "tests/layers.hpp"

namespace greta::test {

namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Parses "hipMalloc:3:out_of_memory".
FakeFault fault_of(const std::string& text) {
  static const std::map<std::string, std::pair<FakeFault::Kind, int>> kinds{
      {"out_of_memory", {FakeFault::Kind::error, out_of_memory}},
      {"refused", {FakeFault::Kind::error, out_of_resources}},
      {"lost", {FakeFault::Kind::lost, launch_failure}},
      {"gone", {FakeFault::Kind::gone, launch_failure}},
      {"hang", {FakeFault::Kind::hang, success}},
      {"block", {FakeFault::Kind::block, success}}};
  std::istringstream words(text);
  FakeFault fault;
  std::string number, kind;
  std::getline(words, fault.function, ':');
  std::getline(words, number, ':');
  std::getline(words, kind);
  const auto found = kinds.find(kind);
  if (found == kinds.end() || std::atoi(number.c_str()) < 1) {
    std::fprintf(stderr, "fake HIP: GRETA_FAKE_FAULTS: '%s'\n", text.c_str());
    std::_Exit(70);
  }
  fault.call = std::atoi(number.c_str());
  std::tie(fault.kind, fault.error) = found->second;
  return fault;
}

/// Configures a small device of an architecture. Its name says that it is fake.
void describe(const std::string& architecture, bool executes) {
  const bool data_center = architecture.starts_with("gfx9");
  fake.devices = 1;
  fake.architecture = architecture + (data_center ? ":sramecc+:xnack-" : "");
  fake.name = (executes ? "Emulated " : "Fake ") + architecture +
              (executes ? " (no hardware)" : " (executes nothing)");
  fake.memory_bytes = std::size_t{4} << 30;
  const int wave = data_center ? 64 : 32;
  fake.attributes = {{56, 1024},  {26, 1024},   {27, 1024},     {28, 1024}, {29, 2147483647},
                     {30, 65536}, {31, 65536},  {74, 65536},    {87, wave}, {63, 2},
                     {16, 0},     {71, 131072}, {10002, 65536}, {57, 2048}, {10017, 100'000}};
  if (architecture.starts_with("sm_")) {  // of the CUDA driver, by its numbers
    const int capability = std::atoi(architecture.c_str() + 3);
    fake.attributes = {{1, 1024},
                       {2, 1024},
                       {3, 1024},
                       {4, 64},
                       {5, 2147483647},
                       {6, 65535},
                       {7, 65535},
                       {8, 49152},
                       {97, 166912},
                       {10, 32},
                       {16, 2},
                       {18, 0},
                       {82, 65536},
                       {39, 2048},
                       {81, 167936},
                       {38, 2048},
                       {75, capability / 10},
                       {76, capability % 10}};
  }
}

/// At exit, appends a line of JSON for this process to the file that GRETA_FAKE_CALLS names.
struct CountsCalls {
  ~CountsCalls() {
    const std::string path = variable("GRETA_FAKE_CALLS");
    if (!path.empty()) std::ofstream(path, std::ios::app) << nlohmann::json(fake.calls) << '\n';
  }
} const counts_calls;

/// Runs before any call. Tests in the same process set everything directly.
const bool configured = [] {
  const std::string architecture = variable("GRETA_FAKE_ARCHITECTURE");
  if (architecture.empty()) return false;
  describe(architecture, !variable("GRETA_FAKE_EMULATOR").empty());
  fake.tells_misuse = true;
  std::istringstream faults(variable("GRETA_FAKE_FAULTS"));
  for (std::string one; std::getline(faults, one, ',');) fake.faults.push_back(fault_of(one));
  return true;
}();

}  // namespace

}  // namespace greta::test
