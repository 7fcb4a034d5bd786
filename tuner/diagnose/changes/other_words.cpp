#include "tuner/diagnose/changes/other_words.hpp"

#include <algorithm>
#include <map>

namespace greta::tuner {

const std::vector<OtherWord>& other_operators(std::string_view sign) {
  static const std::vector<OtherWord> none;
  static const std::map<std::string_view, std::vector<OtherWord>> others{
      {"+", {{likely, "-"}, {likely, "*"}, {seldom, "/"}}},
      {"-", {{likely, "+"}, {possible, "*"}}},
      {"*", {{likely, "/"}, {possible, "+"}, {possible, "%"}}},
      {"/", {{likely, "*"}, {likely, "%"}}},
      {"%", {{likely, "/"}, {possible, "*"}}},
      {"<<", {{likely, ">>"}}},
      {">>", {{likely, "<<"}}},
      {"&", {{likely, "|"}, {seldom, "^"}, {possible, "&&"}}},
      {"|", {{likely, "&"}, {seldom, "^"}, {seldom, "<<"}}},
      {"^", {{likely, "|"}, {possible, "&"}, {possible, "+"}}},
      {"&&", {{likely, "||"}}},
      {"||", {{likely, "&&"}}},
      {"==",
       {{likely, "!="}, {possible, "<"}, {possible, ">"}, {possible, "<="}, {possible, ">="}}},
      {"!=", {{likely, "=="}, {possible, "<"}, {possible, ">"}}},
      {"<", {{likely, "<="}, {likely, ">"}, {likely, ">="}, {possible, "!="}, {possible, "=="}}},
      {"<=", {{likely, "<"}, {likely, ">"}, {likely, ">="}, {possible, "=="}}},
      {">", {{likely, ">="}, {likely, "<"}, {likely, "<="}, {possible, "!="}}},
      {">=", {{likely, ">"}, {likely, "<"}, {likely, "<="}}}};
  const auto found = others.find(sign);
  return found == others.end() ? none : found->second;
}

const std::vector<std::string_view>& other_types(std::string_view type) {
  static const std::vector<std::string_view> none;
  static const std::map<std::string_view, std::vector<std::string_view>> wider{
      {"uint", {"u64", "int", "uint64_t"}},
      {"unsigned", {"unsigned long long", "int"}},
      {"int", {"uint", "long long", "int64_t"}},
      {"uint32_t", {"uint64_t"}},
      {"u32", {"u64"}},
      {"i32", {"i64"}},
      {"half", {"float"}},
      {"float", {"double"}},
      {"In", {"float"}},
      {"Out", {"float"}}};
  const auto found = wider.find(type);
  return found == wider.end() ? none : found->second;
}

std::vector<std::string_view> confused_names(std::string_view name) {
  static const std::vector<std::vector<std::string_view>> families{
      {"row", "col"},   {"rows", "cols"},  {"x", "y"},         {"m", "n", "k"},
      {"i", "j"},       {"min", "max"},    {"fminf", "fmaxf"}, {"first", "last"},
      {"begin", "end"}, {"left", "right"}, {"a", "b"}};
  std::vector<std::string_view> others;
  for (const auto& family : families) {
    if (std::find(family.begin(), family.end(), name) == family.end()) continue;
    for (const std::string_view other : family) {
      if (other != name) others.push_back(other);
    }
  }
  return others;
}

}  // namespace greta::tuner
