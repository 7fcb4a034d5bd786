#include "tuner/bench/printed_result.hpp"

namespace greta::tuner {

nlohmann::json printed_result(const std::string& output, const std::string& key) {
  const auto start = output.rfind("{\"" + key + "\":");
  if (start == std::string::npos) return nlohmann::json::object();
  const auto line = output.substr(start, output.find('\n', start) - start);
  auto object = nlohmann::json::parse(line, nullptr, false);
  return object.is_object() ? object : nlohmann::json::object();
}

}  // namespace greta::tuner
