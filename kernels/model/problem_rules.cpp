#include "kernels/model/problem_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <map>
#include <set>
#include <span>

#include "runtime/device/text/strings.hpp"

namespace greta::kernels {
namespace {

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Failure bad_value(std::string_view field, std::string_view value, std::string_view allowed) {
  const std::string_view quotes = value.find('"') == value.npos ? "" : ", without quotes";
  return bad_field(std::string(field), value.empty() ? "\"\"" : std::string(value),
                   fmt::format("must be {}{}", allowed, quotes));
}

Failure bad_request(std::string message) {
  return Failure{Status::invalid_argument, std::move(message), {}};
}

/// Returns the current spelling of an attribute's or dimension's value, or nullptr if it is
/// unchanged.
const Renamed* today(const Operation& operation, std::string_view name, std::string_view value) {
  for (const Renamed& entry : operation.renamed) {
    if (entry.old_name == name && entry.old_value == value) return &entry;
  }
  return nullptr;
}

/// Returns the request's value of a field, or nullptr.
const std::string* find_value(const ProblemRequest& request, std::string_view name) {
  const auto found = std::find_if(request.values.begin(), request.values.end(),
                                  [name](const auto& value) { return value.first == name; });
  return found == request.values.end() ? nullptr : &found->second;
}

/// Translates a request that has the field of another notation.
Result<void> translate(const Notation& other, ProblemRequest& request) {
  const std::string value = *find_value(request, other.name);
  std::erase_if(request.values, [&](const auto& field) { return field.first == other.name; });
  if (value == other.value) {
    for (auto& field : request.values) field.first = other.exchanged(field.first);
    return other.translate(request);
  }
  return value == other.usual ? Result<void>{}
                              : bad_value(other.name, value, one_of({other.usual, other.value}));
}

Result<void> check_names(const Operation& operation, const ProblemRequest& request) {
  std::vector<std::string> known;
  for (const Dimension& dimension : operation.dimensions) known.push_back(dimension.name);
  for (const Attribute& attribute : operation.attributes) known.push_back(attribute.name);
  std::set<std::string> given;
  for (const auto& [name, value] : request.values) {
    if (!contains(known, name)) {
      return bad_field(
          name, value,
          fmt::format("{} has no such field; it has {}", operation.name, fmt::join(known, ", ")));
    }
    if (!given.insert(name).second) return bad_field(name, "", "is given twice");
  }
  return {};
}

std::vector<std::string> input_types(const Operation& operation) {
  std::vector<std::string> names;
  for (const DTypes& pair : operation.dtypes) {
    if (!contains(names, to_string(pair.in))) names.emplace_back(to_string(pair.in));
  }
  return names;
}

std::vector<std::string> output_types(const Operation& operation, std::string_view input) {
  std::vector<std::string> names;
  for (const DTypes& pair : operation.dtypes) {
    if (to_string(pair.in) == input) names.emplace_back(to_string(pair.out));
  }
  return names;
}

/// Checks that strided rows do not overlap.
Result<void> check_strides(const Operation& operation, const Problem& problem) {
  for (const Attribute& attribute : operation.attributes) {
    if (!attribute.packed || attribute.may_interleave) continue;
    const std::int64_t stride = problem.stride(attribute.name, 0),
                       least = attribute.packed(problem);
    if (stride == 0 || stride >= least) continue;
    return bad_value(attribute.name, std::to_string(stride),
                     fmt::format("at least {}, {}", attribute.fallback, least));
  }
  return {};
}

Result<void> check_types(const Operation& operation, std::string_view in, std::string_view out) {
  const auto inputs = input_types(operation), outputs = output_types(operation, in);
  if (!contains(inputs, in)) return bad_value("dtype", in, one_of(inputs));
  if (contains(outputs, out)) return {};
  return bad_value("out", out, fmt::format("{} for {} inputs", one_of(outputs), in));
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

/// Returns the dimensions of an operation, without an optional one if there are fewer extents.
std::span<const Dimension> dimensions_of(const Operation& operation, std::size_t extents) {
  const std::span all(operation.dimensions);
  const bool shorter = !all.empty() && all.back().optional && extents < all.size();
  return all.first(all.size() - (shorter ? 1 : 0));
}

Result<void> check_dimensions(const Operation& operation, const Problem& problem) {
  const auto same_name = [](const auto& given, const Dimension& known) {
    return given.first == known.name;
  };
  const auto dimensions = dimensions_of(operation, problem.dims.size());
  if (!std::equal(problem.dims.begin(), problem.dims.end(), dimensions.begin(), dimensions.end(),
                  same_name)) {
    std::vector<std::string> names;
    for (const Dimension& dimension : operation.dimensions) names.push_back(dimension.name);
    return bad_request(fmt::format("{}: the dimensions of {} are {}", problem.key(), operation.name,
                                   fmt::join(names, ", ")));
  }
  for (std::size_t i = 0; i < problem.dims.size(); ++i) {
    const Dimension& dimension = operation.dimensions[i];
    const std::string text = std::to_string(problem.dims[i].second);
    auto extent = read_extent(dimension, text);
    if (!extent) return extent.failure();
    if (dimension.optional && text == dimension.fallback) {
      return bad_request(
          fmt::format("{}: {} must be absent where it is {}", problem.key(), dimension.name, text));
    }
  }
  return {};
}

Result<void> check_attributes(const Operation& operation, const Problem& problem) {
  for (const auto& [name, value] : problem.attributes) {
    const auto known = std::find_if(operation.attributes.begin(), operation.attributes.end(),
                                    [&name](const Attribute& a) { return a.name == name; });
    if (known == operation.attributes.end()) {
      return bad_request(
          fmt::format("{}: {} has no attribute {}", problem.key(), operation.name, name));
    }
    const std::string fallback = default_value(*known, problem);
    if (value == fallback) continue;
    if (known->packed && fallback != "0" && !known->canonical(fallback)) {
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

Result<void> read_types(const Operation& operation, const ProblemRequest& request,
                        Problem& problem) {
  const std::string in = request.dtype.empty() ? input_types(operation).front() : request.dtype;
  const auto outputs = output_types(operation, in);
  const std::string out =
      request.out_dtype.empty() && !outputs.empty() ? outputs.front() : request.out_dtype;
  if (auto done = check_types(operation, in, out); !done) return done;
  problem.dtype = *dtype_from_string(in);
  problem.out_dtype = *dtype_from_string(out);
  return {};
}

/// Returns the default extent of a dimension, or an empty string if it is required.
std::string fallback_extent(const Dimension& dimension, const Problem& so_far) {
  for (const auto& [name, value] : so_far.dims) {
    if (name == dimension.fallback) return std::to_string(value);
  }
  return dimension.fallback;
}

Result<void> read_dimensions(const Operation& operation, const ProblemRequest& request,
                             Problem& problem) {
  for (const Dimension& dimension : operation.dimensions) {
    const std::string* const given = find_value(request, dimension.name);
    const std::string text = given != nullptr ? *given : fallback_extent(dimension, problem);
    if (given == nullptr && text.empty()) {
      return bad_field(dimension.name, "", "is missing");
    }
    const auto extent = read_extent(dimension, text);
    if (!extent) return extent.failure();
    if (dimension.optional && std::to_string(*extent) == dimension.fallback) continue;
    problem.dims.emplace_back(dimension.name, *extent);
  }
  return {};
}

Problem without_attribute(Problem problem, const std::string& name) {
  std::erase_if(problem.attributes, [&](const auto& a) { return a.first == name; });
  return problem;
}

/// Returns whether a problem is valid without some of its strides and has the same operands then.
bool equal_without_strides(const Operation& operation, const Problem& problem,
                           const Problem& without) {
  if (!check_problem(operation, without)) return false;
  const auto tensors = operation.tensors(problem), plain = operation.tensors(without);
  return std::equal(
      tensors.begin(), tensors.end(), plain.begin(), [](const TensorSpec& a, const TensorSpec& b) {
        const bool alike = a.stride == b.stride || a.rows == 1;
        return alike && a.block_rows == b.block_rows && a.block_stride == b.block_stride;
      });
}

/// Removes strides that have no effect, such as those of operands with one row. Such problems are
/// equal. Strides of operands in place must be equal, so they are removed together or not at all.
Problem without_needless_strides(const Operation& operation, Problem problem) {
  Problem packed = of_packed_rows(operation, problem);
  if (packed == problem || equal_without_strides(operation, problem, packed)) return packed;
  for (const Attribute& stride : operation.attributes) {
    if (stride.packed == nullptr) continue;
    Problem without = without_attribute(problem, stride.name);
    if (equal_without_strides(operation, problem, without)) problem = std::move(without);
  }
  return problem;
}

}  // namespace

std::string values_text(const Attribute& attribute) {
  return attribute.allowed.empty() ? attribute.allowed_text : one_of(attribute.allowed);
}

std::string default_value(const Attribute& attribute, const Problem& problem) {
  if (attribute.packed) return std::to_string(attribute.packed(problem));
  if (!attribute.allowed.empty()) return attribute.fallback;  // a word, even that of a dimension
  for (const auto& [name, extent] : problem.dims) {
    if (name == attribute.fallback) return std::to_string(extent);
  }
  return attribute.fallback;
}

std::vector<std::string> values_to_test(const Attribute& attribute, const Problem& problem) {
  if (!attribute.packed) {
    auto values = attribute.allowed.empty() ? attribute.examples : attribute.allowed;
    std::replace(values.begin(), values.end(), attribute.fallback,
                 default_value(attribute, problem));
    return values;
  }
  const std::int64_t packed = attribute.packed(problem);
  if (packed == 0) return {"0"};
  std::vector<std::string> values;
  for (const std::int64_t stride : {packed, packed + 1, packed / 8 * 8 + 8, packed * 2}) {
    values.push_back(std::to_string(stride));
  }
  return values;
}

std::string input_types_text(const Operation& operation) {
  return one_of(input_types(operation));
}

std::string output_types_text(const Operation& operation) {
  std::string text;
  for (const std::string& in : input_types(operation)) {
    text += fmt::format("{}{} for {}", text.empty() ? "" : "; ",
                        one_of(output_types(operation, in)), in);
  }
  return text;
}

Problem typical_problem(const Operation& operation, const DTypes& types, std::size_t number) {
  const TypicalSize& size = operation.sizes.at(number);
  Problem problem{operation.name, types.in, types.out, size.attributes, {}};
  const auto dimensions = dimensions_of(operation, size.extents.size());
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    problem.dims.emplace_back(dimensions[i].name, size.extents.at(i));
  }
  return problem;
}

Problem with_attribute(const Operation& operation, const Problem& problem, const Attribute& changed,
                       const std::string& value) {
  Problem other = problem;
  other.attributes.clear();
  for (const Attribute& attribute : operation.attributes) {
    const std::string standard = default_value(attribute, problem);
    const std::string now =
        attribute.name == changed.name ? value : problem.attribute(attribute.name, standard);
    if (now != standard) other.attributes.emplace_back(attribute.name, now);
  }
  return other;
}

Problem of_packed_rows(const Operation& operation, Problem problem) {
  for (const Attribute& stride : operation.attributes) {
    if (stride.packed) problem = without_attribute(std::move(problem), stride.name);
  }
  return problem;
}

Problem without_permissions(const Operation& operation, Problem problem) {
  for (const Attribute& attribute : operation.attributes) {
    if (attribute.permission) problem = without_attribute(std::move(problem), attribute.name);
  }
  return problem;
}

Problem renamed(const Operation& operation, Problem problem) {
  std::map<std::string, std::string> moved;
  const auto take = [&](auto& list, const auto& text) {
    std::erase_if(list, [&](const auto& entry) {
      const Renamed* const now = today(operation, entry.first, text(entry.second));
      if (now != nullptr) moved[now->name] = now->value;
      return now != nullptr;
    });
  };
  take(problem.attributes, [](const std::string& value) { return value; });
  take(problem.dims, [](std::int64_t value) { return std::to_string(value); });
  if (moved.empty()) return problem;
  std::vector<std::pair<std::string, std::string>> attributes;  // in the operation's order
  for (const Attribute& attribute : operation.attributes) {
    const auto found = moved.find(attribute.name);
    const std::string value = found != moved.end()
                                  ? found->second
                                  : problem.attribute(attribute.name, attribute.fallback);
    const bool stays = problem.attribute(attribute.name, "") == value;
    if (stays || (found != moved.end() && value != attribute.fallback)) {
      attributes.emplace_back(attribute.name, value);
    }
  }
  problem.attributes = std::move(attributes);
  return problem;
}

namespace {

/// Returns the extent of those that represent others (RunTimeExtent).
std::int64_t representative(const RunTimeExtent& varies, std::int64_t extent) {
  constexpr std::uint64_t finest = 8;
  const auto whole = static_cast<std::uint64_t>(extent);
  if (varies.rounded == RunTimeExtent::Rounded::down) {
    return static_cast<std::int64_t>(std::bit_floor(whole));
  }
  const std::uint64_t power = std::bit_ceil(whole), below = power / 2;
  if (below <= finest) return static_cast<std::int64_t>(power);
  const std::uint64_t step = std::max(below / static_cast<std::uint64_t>(varies.steps), finest);
  return static_cast<std::int64_t>((whole + step - 1) / step * step);
}

}  // namespace

Problem bucket(const Operation& operation, const Problem& problem) {
  constexpr std::int64_t most = std::int64_t{1} << 30;
  Problem rounded = problem, each = problem;
  for (std::size_t i = 0; i < rounded.dims.size(); ++i) {
    const auto& varies = operation.dimensions[i].at_run_time;
    std::int64_t& extent = rounded.dims.at(i).second;
    if (!varies || extent <= varies->exact_to || extent > most) continue;
    const auto& [attribute, values] = varies->exact_with;
    if (contains(values, problem.attribute(attribute, ""))) continue;
    extent = representative(*varies, extent);
    Problem with = each;
    with.dims[i].second = extent;
    if (check_problem(operation, with)) each = std::move(with);
  }
  // Rounding can make a problem invalid, e.g. with more tokens than the cache has room for, or with
  // more matrices than a row has room for. Then only extents are rounded that can be, one by one.
  return check_problem(operation, rounded) ? rounded : each;
}

Result<void> check_problem(const Operation& operation, const Problem& problem) {
  if (problem.op != operation.name) {
    return bad_request(fmt::format("{}: the operation is not {}", problem.key(), operation.name));
  }
  auto types = check_types(operation, to_string(problem.dtype), to_string(problem.out_dtype));
  if (!types) return types;
  for (const auto check : {check_dimensions, check_attributes, check_strides}) {
    if (auto done = check(operation, problem); !done) return done;
  }
  return operation.check ? operation.check(problem) : Result<void>{};
}

void ProblemRequest::set(std::string field, std::string text) {
  if (field == "dtype") {
    dtype = std::move(text);
  } else if (field == "out") {
    out_dtype = std::move(text);
  } else {
    values.emplace_back(std::move(field), std::move(text));
  }
}

Result<Problem> make_problem(const Operation& operation, ProblemRequest request) {
  for (auto& [name, value] : request.values) {
    if (const Renamed* now = today(operation, name, value)) {
      name = now->name;
      value = now->value;
    }
  }
  if (operation.notation && find_value(request, operation.notation->name) != nullptr) {
    const bool other = *find_value(request, operation.notation->name) == operation.notation->value;
    if (auto done = translate(*operation.notation, request); !done) return done.failure();
    auto made = make_problem(operation, std::move(request));
    if (made || !other || !made.failure().field) return made;
    const BadField& wrong = *made.failure().field;  // in the names of the request
    return bad_field(operation.notation->exchanged(wrong.field), wrong.value, wrong.reason);
  }
  Problem problem;
  problem.op = operation.name;
  if (auto done = check_names(operation, request); !done) return done.failure();
  for (const auto read : {read_types, read_dimensions}) {
    if (auto done = read(operation, request, problem); !done) return done.failure();
  }
  for (const Attribute& attribute : operation.attributes) {
    const std::string* text = find_value(request, attribute.name);
    if (text == nullptr) continue;
    const auto canonical = attribute.allowed.empty() ? attribute.canonical(*text) : *text;
    const std::string value = canonical.value_or(*text);
    if (value == default_value(attribute, problem)) continue;
    problem.attributes.emplace_back(attribute.name, value);
  }
  if (auto done = check_problem(operation, problem); !done) return done.failure();
  return without_needless_strides(operation, std::move(problem));
}

}  // namespace greta::kernels
