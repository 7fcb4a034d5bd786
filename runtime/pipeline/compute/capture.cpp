#include "runtime/pipeline/compute/capture.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <system_error>

#include "kernels/catalog.hpp"
#include "runtime/device/system/input_file.hpp"
#include "runtime/device/system/output_file.hpp"
#include "runtime/device/version.hpp"
#include "runtime/pipeline/compute/runtime.hpp"

namespace greta::runtime {
namespace {

using nlohmann::json;

/// The error in a line; thrown only within this file.
struct BadLine {
  std::string why;
};

template <typename T>
T member(const json& object, const char* name) {
  const auto found = object.find(name);
  const bool good =
      found != object.end() && (std::is_same_v<T, std::string>     ? found->is_string()
                                : std::is_same_v<T, std::uint64_t> ? found->is_number_unsigned()
                                                                   : found->is_number());
  if (!good) throw BadLine{fmt::format("no valid \"{}\"", name)};
  return found->get<T>();
}

json object_of(const std::string& line) {
  json object = json::parse(line, nullptr, false);
  if (!object.is_object()) throw BadLine{"not a JSON object"};
  return object;
}

void read_head(const std::string& line, Capture& capture) {
  const json head = object_of(line);
  if (const auto version = member<std::uint64_t>(head, "greta_capture");
      version != static_cast<std::uint64_t>(capture_version)) {
    throw BadLine{
        fmt::format("version {} of the form, this GRETA reads {}", version, capture_version)};
  }
  capture.device = member<std::string>(head, "device");
  capture.fingerprint = member<std::string>(head, "fingerprint");
  capture.greta_version = member<std::string>(head, "greta");
}

CapturedProblem read_problem(const std::string& line, const Catalog& catalog) {
  const json object = object_of(line);
  auto problem = catalog.read(member<std::string>(object, "problem"));
  if (!problem) throw BadLine{problem.failure().message};
  CapturedProblem captured{*std::move(problem), member<std::uint64_t>(object, "count"),
                           member<double>(object, "device_us")};
  if (captured.count == 0) throw BadLine{"\"count\" must be at least 1"};
  if (!std::isfinite(captured.device_us) || captured.device_us < 0) {
    throw BadLine{"\"device_us\" must be at least 0"};
  }
  return captured;
}

/// Returns whether the path exists and is not a regular file.
bool is_other_than_file(const std::filesystem::path& file) {
  std::error_code ignored;
  const auto status = std::filesystem::status(file, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

Failure io_failure(const std::filesystem::path& file, std::string_view why) {
  return {Status::io, fmt::format("{}: {}", file.string(), why), {}};
}

}  // namespace

Capture captured(Runtime& runtime) {
  const DeviceInfo& device = runtime.device().info();
  Capture capture{device.name, device.fingerprint(), std::string(version()), {}};
  for (const OperationReport& entry : runtime.telemetry().report(runtime.prepared())) {
    if (entry.counts.runs == 0) continue;
    capture.problems.push_back({entry.problem, entry.counts.runs,
                                entry.counts.mean_us() * static_cast<double>(entry.counts.runs)});
  }
  return capture;
}

Result<void> write_capture(const std::filesystem::path& file, const Capture& capture) {
  if (is_other_than_file(file)) return io_failure(file, "is not a regular file");
  std::error_code error;
  // A symbolic link is preserved; its target is replaced.
  const auto target = std::filesystem::weakly_canonical(file, error);
  if (error) return io_failure(file, error.message());
  std::ostringstream out;
  out << json{{"greta_capture", capture_version},
              {"device", capture.device},
              {"fingerprint", capture.fingerprint},
              {"greta", capture.greta_version}}
             .dump()
      << '\n';
  for (const CapturedProblem& entry : capture.problems) {
    out << json{{"problem", entry.problem.key()},
                {"count", entry.count},
                {"device_us", entry.device_us}}
               .dump()
        << '\n';
  }
  return device::replace_file(target, out.str());
}

Result<Capture> read_capture(const std::filesystem::path& file, const Catalog& catalog) {
  auto text = read_file(file, most_capture_bytes);
  if (!text) return text.failure();
  std::istringstream in(*std::move(text));
  Capture capture;
  std::set<std::string> seen;
  std::string line;
  std::size_t number = 0;
  try {
    while (std::getline(in, line)) {
      if (++number == 1) {
        read_head(line, capture);
        continue;
      }
      capture.problems.push_back(read_problem(line, catalog));
      if (!seen.insert(capture.problems.back().problem.key()).second) {
        throw BadLine{"its problem was there before"};
      }
    }
  } catch (const BadLine& bad) {
    return Failure{Status::invalid_argument,
                   fmt::format("{}, line {}: {}", file.string(), number, bad.why),
                   {}};
  }
  if (number == 0) {
    return Failure{Status::invalid_argument, file.string() + ": empty, no capture", {}};
  }
  return capture;
}

}  // namespace greta::runtime
