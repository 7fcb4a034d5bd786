#include "runtime/device/api.hpp"

namespace greta::device {

std::string_view to_string(Api api) {
  switch (api) {
    case Api::vulkan:
      return "vulkan";
    case Api::hip:
      return "hip";
    case Api::hip_host:
      return "hip-host";
  }
  return "unknown";
}

std::optional<Api> api_from_string(std::string_view text) {
  for (const Api api : {Api::vulkan, Api::hip, Api::hip_host}) {
    if (text == to_string(api)) return api;
  }
  return std::nullopt;
}

std::string_view to_string(Language language) {
  switch (language) {
    case Language::glsl:
      return "glsl";
    case Language::hip:
      return "hip";
  }
  return "unknown";
}

std::optional<Language> language_from_string(std::string_view text) {
  for (const Language language : {Language::glsl, Language::hip}) {
    if (text == to_string(language)) return language;
  }
  return std::nullopt;
}

}  // namespace greta::device
