#include "kernels/catalog.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "kernels/templates/add/add.hpp"
#include "kernels/templates/add_rmsnorm/add_rmsnorm.hpp"
#include "kernels/templates/argmax/argmax.hpp"
#include "kernels/templates/attention/attention.hpp"
#include "kernels/templates/embedding/embedding.hpp"
#include "kernels/templates/gelu/gelu.hpp"
#include "kernels/templates/gemm/gemm.hpp"
#include "kernels/templates/kv_update/kv_update.hpp"
#include "kernels/templates/layernorm/layernorm.hpp"
#include "kernels/templates/layernorm_rmsnorm/layernorm_rmsnorm.hpp"
#include "kernels/templates/rmsnorm/rmsnorm.hpp"
#include "kernels/templates/rope/rope.hpp"
#include "kernels/templates/silu_mul/silu_mul.hpp"
#include "kernels/templates/softmax/softmax.hpp"

namespace greta::kernels {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// "nn, nt or tn"
std::string one_of(const std::vector<std::string>& names) {
  if (names.size() < 2) return fmt::format("{}", fmt::join(names, ""));
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

Failure bad_value(std::string_view option, std::string_view value, std::string_view allowed) {
  const std::string_view quotes = value.find('"') == value.npos ? "" : ", without quotes";
  return Failure{
      Status::invalid_argument,
      fmt::format("--{} {}: must be {}{}", option, value.empty() ? "\"\"" : value, allowed, quotes),
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
    if (!contains(known, option)) {
      return bad_request(fmt::format("{} {}: {} has no such option; it has {}", option, value,
                                     kernel.name, fmt::join(known, ", ")));
    }
    if (!given.insert(option).second) return bad_request(option + " is given twice");
  }
  return {};
}

std::vector<std::string> input_types(const KernelTemplate& kernel) {
  std::vector<std::string> names;
  for (const DTypes& pair : kernel.dtypes) {
    if (!contains(names, to_string(pair.in))) names.emplace_back(to_string(pair.in));
  }
  return names;
}

std::vector<std::string> output_types(const KernelTemplate& kernel, std::string_view input) {
  std::vector<std::string> names;
  for (const DTypes& pair : kernel.dtypes) {
    if (to_string(pair.in) == input) names.emplace_back(to_string(pair.out));
  }
  return names;
}

/// Rows that are not packed don't overlap.
Result<void> check_strides(const KernelTemplate& kernel, const Problem& problem) {
  for (const Attribute& attribute : kernel.attributes) {
    if (attribute.packed == nullptr) continue;
    const std::int64_t stride = problem.stride(attribute.name, 0),
                       least = attribute.packed(problem);
    if (stride == 0 || stride >= least) continue;
    return bad_value(attribute.name, std::to_string(stride),
                     fmt::format("at least {}, {}", attribute.fallback, least));
  }
  return {};
}

Result<void> check_types(const KernelTemplate& kernel, std::string_view in, std::string_view out) {
  const auto inputs = input_types(kernel), outputs = output_types(kernel, in);
  if (!contains(inputs, in)) return bad_value("dtype", in, one_of(inputs));
  if (contains(outputs, out)) return {};
  return bad_value("out-dtype", out, fmt::format("{} for {} inputs", one_of(outputs), in));
}

Result<std::int64_t> read_extent(const Dimension& dimension, const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < dimension.least || value > dimension.most) {
    return bad_value(
        dimension.name, text,
        fmt::format("a whole number between {} and {}", dimension.least, dimension.most));
  }
  return value;
}

Result<void> check_dimensions(const KernelTemplate& kernel, const Problem& problem) {
  const auto same_name = [](const auto& given, const Dimension& known) {
    return given.first == known.name;
  };
  if (!std::equal(problem.dims.begin(), problem.dims.end(), kernel.dimensions.begin(),
                  kernel.dimensions.end(), same_name)) {
    std::vector<std::string> names;
    for (const Dimension& dimension : kernel.dimensions) names.push_back(dimension.name);
    return bad_request(fmt::format("{}: the dimensions of {} are {}", problem.key(), kernel.name,
                                   fmt::join(names, ", ")));
  }
  for (std::size_t i = 0; i < problem.dims.size(); ++i) {
    auto extent = read_extent(kernel.dimensions[i], std::to_string(problem.dims[i].second));
    if (!extent) return extent.failure();
  }
  return {};
}

Result<void> check_attributes(const KernelTemplate& kernel, const Problem& problem) {
  for (const auto& [name, value] : problem.attributes) {
    const auto known = std::find_if(kernel.attributes.begin(), kernel.attributes.end(),
                                    [&name](const Attribute& a) { return a.name == name; });
    if (known == kernel.attributes.end()) {
      return bad_request(
          fmt::format("{}: {} has no attribute {}", problem.key(), kernel.name, name));
    }
    const std::string fallback = default_value(*known, problem);
    if (value == fallback) continue;
    if (known->packed != nullptr && !known->canonical(fallback)) {
      return bad_value(
          name, value,
          fmt::format("{}, {}: rows this long are always packed", known->fallback, fallback));
    }
    const auto& allowed = known->allowed;
    const bool good = allowed.empty() ? known->canonical(value) == value : contains(allowed, value);
    if (!good) return bad_value(name, value, values_text(*known));
  }
  return {};
}

Result<void> read_types(const KernelTemplate& kernel, const ProblemRequest& request,
                        Problem& problem) {
  const std::string in = request.dtype.empty() ? input_types(kernel).front() : request.dtype;
  const auto outputs = output_types(kernel, in);
  const std::string out =
      request.out_dtype.empty() && !outputs.empty() ? outputs.front() : request.out_dtype;
  if (auto done = check_types(kernel, in, out); !done) return done;
  problem.dtype = *dtype_from_string(in);
  problem.out_dtype = *dtype_from_string(out);
  return {};
}

/// What a dimension is that was not given; empty where it must be.
std::string fallback_extent(const Dimension& dimension, const Problem& so_far) {
  for (const auto& [name, value] : so_far.dims) {
    if (name == dimension.fallback) return std::to_string(value);
  }
  return dimension.fallback;
}

Result<void> read_dimensions(const KernelTemplate& kernel, const ProblemRequest& request,
                             Problem& problem) {
  for (const Dimension& dimension : kernel.dimensions) {
    const std::string* const given = find_value(request, dimension.name);
    const std::string text = given != nullptr ? *given : fallback_extent(dimension, problem);
    if (given == nullptr && text.empty()) {
      return bad_request(fmt::format("--{} is missing", dimension.name));
    }
    const auto extent = read_extent(dimension, text);
    if (!extent) return extent.failure();
    problem.dims.emplace_back(dimension.name, *extent);
  }
  return {};
}

Problem without_attribute(Problem problem, const std::string& name) {
  std::erase_if(problem.attributes, [&](const auto& a) { return a.first == name; });
  return problem;
}

/// Without strides that nothing depends on, of operands of one row: such problems are the same.
Problem without_needless_strides(const KernelTemplate& kernel, Problem problem) {
  for (const Attribute& stride : kernel.attributes) {
    if (stride.packed == nullptr) continue;
    Problem without = without_attribute(problem, stride.name);
    const auto tensors = kernel.tensors(problem), plain = kernel.tensors(without);
    const bool needless = std::equal(tensors.begin(), tensors.end(), plain.begin(),
                                     [](const TensorSpec& a, const TensorSpec& b) {
                                       return a.stride == b.stride || a.rows == 1;
                                     });
    if (needless) problem = std::move(without);
  }
  return problem;
}

}  // namespace

const std::vector<const KernelTemplate*>& catalog() {
  static const std::vector<KernelTemplate> templates{
      make_gemm(),        make_add(),
      make_silu_mul(),    make_gelu(),
      make_rope(),        make_kv_update(),
      make_embedding(),   make_argmax(),
      make_attention(),   make_softmax(),
      make_layernorm(),   make_rmsnorm(),
      make_add_rmsnorm(), make_layernorm_rmsnorm(),
  };
  static const std::vector<const KernelTemplate*> list = [] {
    std::vector<const KernelTemplate*> pointers;
    for (const KernelTemplate& entry : templates) pointers.push_back(&entry);
    return pointers;
  }();
  return list;
}

std::string values_text(const Attribute& attribute) {
  return attribute.allowed.empty() ? attribute.allowed_text : one_of(attribute.allowed);
}

std::string default_value(const Attribute& attribute, const Problem& problem) {
  return attribute.packed == nullptr ? attribute.fallback
                                     : std::to_string(attribute.packed(problem));
}

std::vector<std::string> values_to_test(const Attribute& attribute, const Problem& problem) {
  if (attribute.packed == nullptr) {
    return attribute.allowed.empty() ? attribute.examples : attribute.allowed;
  }
  const std::int64_t packed = attribute.packed(problem);
  std::vector<std::string> values;
  for (const std::int64_t stride : {packed, packed + 1, packed / 8 * 8 + 8, packed * 2}) {
    values.push_back(std::to_string(stride));
  }
  return values;
}

std::string input_types_text(const KernelTemplate& kernel) {
  return one_of(input_types(kernel));
}

std::string output_types_text(const KernelTemplate& kernel) {
  std::string text;
  for (const std::string& in : input_types(kernel)) {
    text +=
        fmt::format("{}{} for {}", text.empty() ? "" : "; ", one_of(output_types(kernel, in)), in);
  }
  return text;
}

Problem typical_problem(const KernelTemplate& kernel, const DTypes& types) {
  Problem problem{kernel.name, types.in, types.out, {}, {}};
  for (std::size_t i = 0; i < kernel.dimensions.size(); ++i) {
    problem.dims.emplace_back(kernel.dimensions[i].name, kernel.sizes.at(0).at(i));
  }
  return problem;
}

Problem of_packed_rows(const KernelTemplate& kernel, Problem problem) {
  for (const Attribute& stride : kernel.attributes) {
    if (stride.packed != nullptr) problem = without_attribute(std::move(problem), stride.name);
  }
  return problem;
}

const KernelTemplate* find_template(std::string_view name) {
  for (const KernelTemplate* entry : catalog()) {
    if (entry->name == name) return entry;
  }
  return nullptr;
}

Result<void> check_problem(const KernelTemplate& kernel, const Problem& problem) {
  if (problem.op != kernel.name) {
    return bad_request(fmt::format("{}: the operation is not {}", problem.key(), kernel.name));
  }
  auto types = check_types(kernel, to_string(problem.dtype), to_string(problem.out_dtype));
  if (!types) return types;
  for (const auto check : {check_dimensions, check_attributes, check_strides}) {
    if (auto done = check(kernel, problem); !done) return done;
  }
  return kernel.check == nullptr ? Result<void>{} : kernel.check(problem);
}

Result<Problem> make_problem(const KernelTemplate& kernel, const ProblemRequest& request) {
  Problem problem;
  problem.op = kernel.name;
  if (auto done = check_options(kernel, request); !done) return done.failure();
  for (const auto read : {read_types, read_dimensions}) {
    if (auto done = read(kernel, request, problem); !done) return done.failure();
  }
  for (const Attribute& attribute : kernel.attributes) {
    const std::string* text = find_value(request, attribute.name);
    if (text == nullptr) continue;
    const auto canonical = attribute.allowed.empty() ? attribute.canonical(*text) : *text;
    const std::string value = canonical.value_or(*text);
    if (value == default_value(attribute, problem)) continue;
    problem.attributes.emplace_back(attribute.name, value);
  }
  if (auto done = check_problem(kernel, problem); !done) return done.failure();
  return without_needless_strides(kernel, std::move(problem));
}

}  // namespace greta::kernels
