#include "tuner/cli/probe_json.hpp"

#include "db/json.hpp"

namespace greta::tuner::cli {

nlohmann::json probe_json(std::string_view backend, const Probe& probe) {
  nlohmann::json devices = nlohmann::json::array();
  for (const auto& device : probe.devices) {
    auto object = to_json(device.info);
    object["usable"] = device.usable;
    object["reason"] = device.reason;
    devices.push_back(object);
  }
  return {{"backend", backend},
          {"available", probe.available},
          {"reason", probe.reason},
          {"missing", probe.missing},
          {"devices", devices}};
}

}  // namespace greta::tuner::cli
