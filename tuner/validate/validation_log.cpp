#include "tuner/validate/validation_log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/validation.hpp"

namespace greta::tuner {
namespace {

/// A file to which lines are appended, as whole ones also by several processes.
class AppendedFile {
 public:
  explicit AppendedFile(int descriptor) : descriptor_(descriptor) {}
  ~AppendedFile() { close(descriptor_); }
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  void append(const nlohmann::json& object) const {
    const std::string line =
        object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    [[maybe_unused]] const auto written = write(descriptor_, line.data(), line.size());
  }

 private:
  int descriptor_;
};

}  // namespace

Result<void> write_validation_log(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    return Failure{
        Status::io, fmt::format("{}: can't be opened: {}", file.string(), strerror(errno)), {}};
  }
  const auto log = std::make_shared<const AppendedFile>(descriptor);
  const auto process = static_cast<std::int64_t>(getpid());
  auto observer = std::make_shared<device::ValidationObserver>();
  observer->opened = [log, process](const DeviceInfo& device) {
    log->append({{"opened", device.id()}, {"process", process}});
  };
  observer->said = [log](const device::ValidationMessage& message) {
    log->append({{"error", message.error}, {"id", message.id}, {"text", message.text}});
  };
  device::observe_validation(std::move(observer));
  return {};
}

Result<ValidationLog> read_validation_log(const std::filesystem::path& file) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
  auto text = device::read_file(file, most_bytes);
  if (!text) return text.failure();
  std::istringstream in(*std::move(text));
  ValidationLog log;
  std::set<std::int64_t> processes;
  for (std::string line; std::getline(in, line);) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object()) continue;
    if (object.contains("opened")) {
      ++log.opened[object["opened"].get<std::string>()];
      processes.insert(object.value("process", std::int64_t{0}));
    } else {
      const auto id = object.value("id", std::string());
      log.findings.add(id.empty() ? "without an id" : id, object.value("error", true),
                       object.value("text", std::string()));
    }
  }
  log.processes = processes.size();
  return log;
}

}  // namespace greta::tuner
