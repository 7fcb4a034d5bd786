#include "tuner/interchange/gemm_log_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "kernels/catalog.hpp"
#include "kernels/model/problem_rules.hpp"
#include "tuner/interchange/gemm_place.hpp"

namespace greta::tuner::gemm_log {
namespace {

Failure no_problem(const std::string& reason) {
  return Failure{Status::invalid_argument, reason, {}};
}

/// The reason why a row has no problem; thrown only within this file.
struct NoProblem {
  std::string reason;
};

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::string of(const Fields& fields, const std::string& name, const std::string& fallback) {
  const auto found = fields.find(name);
  return found == fields.end() || found->second.empty() ? fallback : found->second;
}

std::optional<double> number(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::int64_t extent(const Fields& fields, const std::string& name) {
  const auto found = fields.find(name);
  if (found == fields.end()) throw NoProblem{"it has no " + name};
  std::int64_t value = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [stop, error] = std::from_chars(found->second.data(), end, value);
  if (error != std::errc() || stop != end || value < 1) {
    throw NoProblem{
        fmt::format("{} is \"{}\", but it must be a whole number above 0", name, found->second)};
  }
  return value;
}

/// Throws NoProblem unless the field has one of these values, or is missing.
void expect(const Fields& fields, const std::string& name, std::initializer_list<const char*> good,
            const std::string& reason) {
  const auto found = fields.find(name);
  if (found == fields.end() || found->second.empty()) return;
  if (std::find(good.begin(), good.end(), found->second) == good.end()) throw NoProblem{reason};
}

std::string type_of(const std::string& text, const std::string& suffix, const std::string& prefix) {
  for (const char* const known : {"f32", "f16", "bf16"}) {
    if (text == known + suffix) return known;
  }
  for (const auto& [torch, known] :
       {std::pair("float32", "f32"), std::pair("float16", "f16"), std::pair("bfloat16", "bf16")}) {
    if (text == prefix + torch) return known;
  }
  throw NoProblem{fmt::format("no type {} here", text)};
}

Peer peer_of(ProblemRequest request, const Fields& fields) {
  auto problem = make_problem(Catalog::built_in().at("gemm"), std::move(request));
  if (!problem) throw NoProblem{problem.failure().message};
  Peer peer;
  peer.problem = *std::move(problem);
  peer.us = std::numeric_limits<double>::quiet_NaN();
  if (const auto us = fields.find("us"); us != fields.end()) {
    const auto time = number(us->second);
    if (!time || *time <= 0) throw NoProblem{fmt::format("\"{}\" is not a time", us->second)};
    peer.us = *time;
  }
  return peer;
}

template <typename Translate>
Result<Peer> translated(const Translate& translate) {
  try {
    return translate();
  } catch (const NoProblem& none) {
    return no_problem(none.reason);
  }
}

/// "1", "0", "True" and "False" as both tools write them.
bool is_true(const std::string& text) {
  return text == "1" || text == "True" || text == "true";
}

void check_bench_options(const Fields& fields) {
  expect(fields, "function", {"matmul"}, "it is not a matrix product");
  expect(fields, "grouped_gemm", {"0"}, "GRETA's GEMM has no groups");
  for (const char* const name :
       {"scaleA", "scaleB", "scaleC", "scaleD", "amaxD", "scaleAlpha_vector", "use_e", "gradient",
        "swizzleA", "swizzleB"}) {
    expect(fields, name, {"0", "false"}, fmt::format("GRETA's GEMM has no {}", name));
  }
  for (const char* const name : {"alphai", "betai"}) {
    const auto value = number(of(fields, name, "0"));
    if (!value || *value != 0) throw NoProblem{"complex factors"};
  }
}

/// The types of both operands and of the result.
std::pair<std::string, std::string> bench_types(const Fields& fields) {
  const std::string both = of(fields, "precision", "");
  const std::string a = of(fields, "a_type", both), b = of(fields, "b_type", both);
  const std::string c = of(fields, "c_type", both), d = of(fields, "d_type", both);
  if (a.empty() || d.empty()) throw NoProblem{"it has no types"};
  if (a != b) throw NoProblem{fmt::format("operands of types {} and {}", a, b)};
  if (!c.empty() && c != d) throw NoProblem{fmt::format("C of type {} and D of type {}", c, d)};
  expect(fields, "compute_type", {"f32_r", "c_f32_r"},
         fmt::format("GRETA computes in f32, not in {}", of(fields, "compute_type", "")));
  return {type_of(a, "_r", ""), type_of(d, "_r", "")};
}

std::string bench_epilogue(const Fields& fields, const std::string& out) {
  std::string list;
  if (is_true(of(fields, "bias_vector", "0"))) {
    const std::string type = of(fields, "bias_type", out + "_r");
    if (type_of(type, "_r", "") != out) {
      throw NoProblem{fmt::format("a bias of another type, {}, than the result", type)};
    }
    list = "bias";
  }
  const std::string activation = of(fields, "activation_type", "none");
  if (activation == "none") return list;
  if (activation != "gelu") throw NoProblem{fmt::format("no activation {} here", activation)};
  return list + (list.empty() ? "" : ",") + "gelu";
}

/// Returns a number that a row may leave out, or 0.
std::int64_t extent_or_none(const Fields& fields, const std::string& name) {
  const std::string text = of(fields, name, "0");
  return text == "0" ? 0 : extent(fields, name);
}

/// Adds where a matrix of the request is: the leading dimension and, of a batch, the distance of
/// the matrices, from the fields of another tool.
void add_places(const Fields& fields, const std::string& ld, const std::string& step, char matrix,
                std::int64_t lines, bool several, ProblemRequest& request) {
  std::optional<std::int64_t> distance;
  if (several && fields.contains(step)) distance = extent_or_none(fields, step);
  auto added = add_place(matrix, lines, extent_or_none(fields, ld), distance, request);
  if (!added) throw NoProblem{added.failure().message};
}

/// Adds factors that differ from the operation's defaults, 1 and 0.
void add_factors(const Fields& fields, ProblemRequest& request) {
  for (const auto& [name, usual] : {std::pair("alpha", "1"), std::pair("beta", "0")}) {
    const std::string text = of(fields, name, usual);
    const auto value = number(text);
    if (!value) throw NoProblem{fmt::format("{} is \"{}\"", name, text)};
    request.values.emplace_back(name, fmt::format("{}", *value));
  }
}

bool transposed(const Fields& fields, const std::string& name) {
  const std::string text = of(fields, name, "N");
  if (text != "N" && text != "T") throw NoProblem{fmt::format("{} is \"{}\"", name, text)};
  return text == "T";
}

}  // namespace

std::vector<std::string> columns(const std::string& line) {
  std::vector<std::string> parts;
  std::istringstream in(line);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(trimmed(part));
  return parts;
}

Result<Fields> table_row(const std::vector<std::string>& names, const std::string& line) {
  const auto values = columns(line);
  if (names.empty() || values.size() != names.size()) {
    return no_problem(
        fmt::format("has {} columns, and the names before it {}", values.size(), names.size()));
  }
  Fields fields;
  for (std::size_t i = 0; i < names.size(); ++i) fields[names[i]] = values[i];
  return fields;
}

Result<Fields> command_line(const std::string& line) {
  std::istringstream in(line.substr(line.find("hipblaslt-bench ")));
  std::string word, name;
  in >> word;
  Fields fields;
  while (in >> word) {
    const bool option = word.size() > 1 && word[0] == '-' && !number(word);
    if (option) {
      name = word.substr(word.find_first_not_of('-'));
      fields[name] = "1";
    } else if (!name.empty()) {
      fields[name] = word;
      name.clear();
    } else {
      return no_problem(fmt::format("\"{}\" is not an option", word));
    }
  }
  return fields;
}

Result<Fields> yaml_problem(const std::string& line) {
  const auto begin = line.find('{'), end = line.rfind('}');
  if (begin == std::string::npos || end == std::string::npos || end < begin) {
    return no_problem("it is not one object in braces");
  }
  Fields fields;
  for (const std::string& part : columns(line.substr(begin + 1, end - begin - 1))) {
    const auto colon = part.find(':');
    if (colon == std::string::npos) return no_problem(fmt::format("\"{}\" is not a field", part));
    std::string name = trimmed(part.substr(0, colon));
    if (name == "M" || name == "N" || name == "K") name[0] = static_cast<char>(name[0] + 'a' - 'A');
    if (name == "activation") name = "activation_type";
    std::string value = trimmed(part.substr(colon + 1));
    if (name == "activation_type") {
      std::transform(value.begin(), value.end(), value.begin(),
                     [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    }
    fields[name] = value;
  }
  return fields;
}

Result<Peer> aiter_gemm(const Fields& fields) {
  return translated([&] {
    if (fields.contains("q_dtype_w")) {
      throw NoProblem{fmt::format("weights of type {}", fields.at("q_dtype_w"))};
    }
    if (!fields.contains("dtype")) throw NoProblem{"the table has no column dtype"};
    expect(fields, "scaleAB", {"False"}, "GRETA's GEMM has no scales");
    expect(fields, "bpreshuffle", {"False", "True"}, "bpreshuffle is neither False nor True");
    ProblemRequest request;
    request.dtype = type_of(fields.at("dtype"), "", "torch.");
    request.out_dtype = type_of(of(fields, "outdtype", fields.at("dtype")), "", "torch.");
    request.values = {{"m", std::to_string(extent(fields, "M"))},
                      {"n", std::to_string(extent(fields, "N"))},
                      {"k", std::to_string(extent(fields, "K"))},
                      {"layout", "nt"}};
    if (fields.contains("B"))
      request.values.emplace_back("batch", std::to_string(extent(fields, "B")));
    if (is_true(of(fields, "bias", "False"))) request.values.emplace_back("epilogue", "bias");
    if (is_true(of(fields, "bpreshuffle", "False")))
      request.values.emplace_back("packing", "panels");
    Peer peer = peer_of(std::move(request), fields);
    peer.solution = of(fields, "kernelName", of(fields, "libtype", ""));
    for (const char* const name : {"gfx", "cu_num"}) {
      if (!fields.contains(name)) continue;
      peer.circumstances +=
          fmt::format("{}{}={}", peer.circumstances.empty() ? "" : "\n", name, fields.at(name));
    }
    return peer;
  });
}

Result<Peer> hipblaslt_gemm(const Fields& fields) {
  return translated([&] {
    check_bench_options(fields);
    const auto [dtype, out] = bench_types(fields);
    // Column-major matrices are row-major ones with their sides exchanged, so that the product of
    // transposes in reverse order has the same memory.
    const std::int64_t rows = extent(fields, "m"), cols = extent(fields, "n");
    const std::int64_t k = extent(fields, "k");
    const bool first = transposed(fields, "transA"), second = transposed(fields, "transB");
    const bool adds = number(of(fields, "beta", "0")).value_or(0) != 0;
    for (const auto& [c, d] : {std::pair("ldc", "ldd"), std::pair("stride_c", "stride_d")}) {
      if (adds && fields.contains(c) && fields.contains(d) && fields.at(c) != fields.at(d))
        throw NoProblem{"C and D lie differently"};
    }
    const bool several = extent_or_none(fields, "batch_count") > 1;
    ProblemRequest request;
    request.dtype = dtype;
    request.out_dtype = out;
    request.values = {{"m", std::to_string(cols)},
                      {"n", std::to_string(rows)},
                      {"k", std::to_string(k)},
                      {"layout", {second ? 't' : 'n', first ? 't' : 'n'}}};
    if (several) request.values.emplace_back("batch", fields.at("batch_count"));
    add_places(fields, "lda", "stride_a", 'b', first ? rows : k, several, request);
    add_places(fields, "ldb", "stride_b", 'a', second ? k : cols, several, request);
    add_places(fields, "ldd", "stride_d", 'c', cols, several, request);
    add_factors(fields, request);
    if (const std::string list = bench_epilogue(fields, out); !list.empty()) {
      request.values.emplace_back("epilogue", list);
    }
    Peer peer = peer_of(std::move(request), fields);
    peer.solution = of(fields, "solution_index", "");
    return peer;
  });
}

}  // namespace greta::tuner::gemm_log
