#include "kernels/catalog.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <set>

#include "kernels/templates/gemm/gemm.hpp"

namespace greta {
namespace {

constexpr std::int64_t largest_dimension = std::numeric_limits<std::int32_t>::max();

/// "nn, nt or tn"
std::string one_of(const std::vector<std::string>& names) {
  if (names.size() < 2) return fmt::format("{}", fmt::join(names, ""));
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

Failure bad_value(std::string_view option, std::string_view value, std::string_view allowed) {
  return Failure{
      Status::invalid_argument,
      fmt::format("--{} {}: must be {}", option, value.empty() ? "\"\"" : value, allowed),
      {}};
}

Failure bad_request(std::string message) {
  return Failure{Status::invalid_argument, std::move(message), {}};
}

/// What the request says for one option, if anything.
const std::string* find_value(const ProblemRequest& request, std::string_view name) {
  const auto found = std::find_if(request.values.begin(), request.values.end(),
                                  [name](const auto& value) { return value.first == name; });
  return found == request.values.end() ? nullptr : &found->second;
}

Result<void> check_options(const KernelTemplate& kernel, const ProblemRequest& request) {
  std::vector<std::string> known;
  for (const Dimension& dimension : kernel.dimensions) known.push_back("--" + dimension.name);
  for (const Attribute& attribute : kernel.attributes) known.push_back("--" + attribute.name);
  std::set<std::string> given;
  for (const auto& [name, value] : request.values) {
    const std::string option = "--" + name;
    if (std::find(known.begin(), known.end(), option) == known.end()) {
      return bad_request(fmt::format("{} {}: {} has no such option; it has {}", option, value,
                                     kernel.name, fmt::join(known, ", ")));
    }
    if (!given.insert(option).second) return bad_request(option + " is given twice");
  }
  return {};
}

Result<void> read_types(const KernelTemplate& kernel, const ProblemRequest& request,
                        Problem& problem) {
  const auto& pairs = kernel.dtypes;
  problem.dtype = pairs.front().in;
  if (!request.dtype.empty()) {
    const auto type = dtype_from_string(request.dtype);
    std::vector<std::string> inputs;
    for (const DTypes& pair : pairs) {
      const std::string name(to_string(pair.in));
      if (std::find(inputs.begin(), inputs.end(), name) == inputs.end()) inputs.push_back(name);
    }
    if (!type || std::find(inputs.begin(), inputs.end(), request.dtype) == inputs.end()) {
      return bad_value("dtype", request.dtype, one_of(inputs));
    }
    problem.dtype = *type;
  }
  std::vector<std::string> outputs;
  for (const DTypes& pair : pairs) {
    if (pair.in == problem.dtype) outputs.emplace_back(to_string(pair.out));
  }
  const std::string& out = request.out_dtype.empty() ? outputs.front() : request.out_dtype;
  if (std::find(outputs.begin(), outputs.end(), out) == outputs.end()) {
    return bad_value("out-dtype", out,
                     fmt::format("{} for {} inputs", one_of(outputs), to_string(problem.dtype)));
  }
  problem.out_dtype = *dtype_from_string(out);
  return {};
}

Result<void> read_attributes(const KernelTemplate& kernel, const ProblemRequest& request,
                             Problem& problem) {
  for (const Attribute& attribute : kernel.attributes) {
    const std::string* value = find_value(request, attribute.name);
    if (value == nullptr || *value == attribute.fallback) continue;
    const auto& allowed = attribute.allowed;
    const bool good = allowed.empty()
                          ? attribute.valid(*value)
                          : std::find(allowed.begin(), allowed.end(), *value) != allowed.end();
    if (!good) {
      return bad_value(attribute.name, *value,
                       allowed.empty() ? attribute.allowed_text : one_of(allowed));
    }
    problem.attributes.emplace_back(attribute.name, *value);
  }
  return {};
}

Result<void> read_dimensions(const KernelTemplate& kernel, const ProblemRequest& request,
                             Problem& problem) {
  for (const Dimension& dimension : kernel.dimensions) {
    const std::string* text = find_value(request, dimension.name);
    if (text == nullptr) return bad_request(fmt::format("--{} is missing", dimension.name));
    std::int64_t value = 0;
    const char* end = text->data() + text->size();
    const auto [stop, error] = std::from_chars(text->data(), end, value);
    if (error != std::errc() || stop != end || value < 1 || value > largest_dimension) {
      return bad_value(dimension.name, *text, fmt::format("between 1 and {}", largest_dimension));
    }
    problem.dims.emplace_back(dimension.name, value);
  }
  return {};
}

}  // namespace

const std::vector<const KernelTemplate*>& catalog() {
  static const std::vector<const KernelTemplate*> templates{
      &gemm_template(),
  };
  return templates;
}

const KernelTemplate* find_template(std::string_view name) {
  for (const KernelTemplate* entry : catalog()) {
    if (entry->name == name) return entry;
  }
  return nullptr;
}

Result<Problem> make_problem(const KernelTemplate& kernel_template, const ProblemRequest& request) {
  Problem problem;
  problem.op = kernel_template.name;
  if (auto done = check_options(kernel_template, request); !done) return done.failure();
  for (const auto read : {read_types, read_attributes, read_dimensions}) {
    if (auto done = read(kernel_template, request, problem); !done) return done.failure();
  }
  if (auto done = kernel_template.check(problem); !done) return done.failure();
  return problem;
}

}  // namespace greta
