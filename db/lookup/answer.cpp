#include "db/lookup/answer.hpp"

namespace greta::db {

std::string_view to_string(LookupOrigin origin) {
  switch (origin) {
    case LookupOrigin::exact:
      return "exact";
    case LookupOrigin::nearest_shape:
      return "nearest shape";
    case LookupOrigin::same_architecture:
      return "same architecture";
    case LookupOrigin::predicted:
      return "static prior";
    case LookupOrigin::fallback:
      return "default";
    case LookupOrigin::forced:
      return "forced";
  }
  return "unknown";
}

std::string Answer::origin_text() const {
  std::string text(to_string(origin));
  if (level && *level != DatabaseLevel::own) text += ", " + std::string(to_string(*level));
  if (!migrated.empty()) text += ", migrated";
  return text;
}

}  // namespace greta::db
