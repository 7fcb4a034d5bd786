#include "runtime/pipeline/c/problem_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernels/model/problem_rules.hpp"
#include "runtime/pipeline/c/abi.hpp"

namespace greta::runtime::c {

std::vector<std::string> words_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> words;
  while (true) {
    const auto begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    words.emplace_back(text.substr(0, text.find_first_of(separators)));
    text.remove_prefix(words.back().size());
  }
}

Problem read_problem(const Catalog& catalog, std::string_view text) {
  const std::vector<std::string> words = words_of(text, " \t\n");
  const std::string name = words.empty() ? "" : words[0];
  const Operation* const operation = catalog.find(name);
  if (operation == nullptr) {
    std::vector<std::string> names;
    for (const Operation& known : catalog) names.push_back(known.name);
    refuse(fmt::format("problem: no operation '{}'; there are {}", name, fmt::join(names, ", ")));
  }
  ProblemRequest request;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto equals = words[i].find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == words[i].size()) {
      refuse(fmt::format("problem: '{}' must be NAME=VALUE", words[i]));
    }
    std::string value = words[i].substr(equals + 1);
    // Keys quote attributes that are integers.
    if (value.size() > 2 && value.front() == '"' && value.back() == '"') {
      value = value.substr(1, value.size() - 2);
    }
    request.set(words[i].substr(0, equals), value);
  }
  auto problem = make_problem(*operation, std::move(request));
  if (!problem) throw Error(problem.failure());
  return *std::move(problem);
}

}  // namespace greta::runtime::c
