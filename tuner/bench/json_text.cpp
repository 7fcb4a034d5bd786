#include "tuner/bench/json_text.hpp"

#include <set>
#include <vector>

#include "runtime/device/result.hpp"
#include "runtime/device/text/printable.hpp"

namespace greta::tuner {

nlohmann::json parse_json_text(const std::string& text) {
  using nlohmann::json;
  std::vector<std::set<std::string>> open;
  const json::parser_callback_t callback = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key) {
      const auto name = parsed.get<std::string>();
      if (!open.back().insert(name).second) throw Error(name + ": is given twice in one object");
    }
    return true;
  };
  try {
    return json::parse(text, callback);
  } catch (const json::parse_error& error) {
    const std::string said = one_line(error.what());  // "[json.exception.…] parse error at line …"
    throw Error("is not JSON: " + said.substr(said.find("] ") + 2));
  }
}

}  // namespace greta::tuner
