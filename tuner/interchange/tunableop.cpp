#include "tuner/interchange/tunableop.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <istream>
#include <limits>
#include <optional>
#include <sstream>

#include "kernels/catalog.hpp"
#include "kernels/model/problem_rules.hpp"

namespace greta::tuner {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 1) return std::nullopt;
  return number;
}

Failure untranslatable(const std::string& reason) {
  return Failure{Status::invalid_argument, reason, {}};
}

/// Parsed from "GemmTunableOp_Half_TN": the type, and whether each row-major operand is transposed.
struct TunableOperation {
  DType dtype = DType::f32;
  bool bias = false;
  bool a_transposed = false, b_transposed = false;
};

Result<TunableOperation> read_operation(const std::string& text) {
  const auto parts = split(text, '_');
  TunableOperation operation;
  if (parts[0] == "GemmStridedBatchedTunableOp") {
    return untranslatable("batches do not say the distances of their matrices");
  }
  if (parts[0] == "ScaledGemmTunableOp") return untranslatable("scaled GEMMs of 8-bit types");
  operation.bias = parts[0] == "GemmAndBiasTunableOp";
  if (!operation.bias && parts[0] != "GemmTunableOp") {
    return untranslatable(fmt::format("\"{}\" is not a GEMM of TunableOp's", parts[0]));
  }
  if (parts.size() != 3 || parts[2].size() != 2) {
    return untranslatable(fmt::format("\"{}\" can't be read", text));
  }
  bool known = false;
  for (const DTypeTraits& type : dtype_table) {
    if (type.torch.empty() || parts[1] != type.torch) continue;
    operation.dtype = type.type;
    known = true;
  }
  if (!known) return untranslatable(fmt::format("no type {} here", parts[1]));
  operation.b_transposed = parts[2][0] == 'T';
  operation.a_transposed = parts[2][1] == 'T';
  return operation;
}

/// Leading dimensions of B, A and C, which is the order of the file, and their names in GRETA.
constexpr std::array<const char*, 3> line_names{"ldb", "lda", "ldc"};
std::array<std::int64_t, 3> packed_lines(const TunableOperation& operation, std::int64_t m,
                                         std::int64_t n, std::int64_t k) {
  return {operation.b_transposed ? k : n, operation.a_transposed ? m : k, n};
}

/// Parses "tn_M_N_K" or "tn_M_N_K_ld_A_B_C" as row-major dimensions.
Result<Problem> read_problem(const TunableOperation& operation, const std::string& text,
                             bool& says_lines) {
  const auto parts = split(text, '_');
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (i == 4 && parts[i] == "ld") continue;
    const auto number = whole_number(parts[i]);
    if (!number) return untranslatable(fmt::format("parameters \"{}\" can't be read", text));
    numbers.push_back(*number);
  }
  says_lines = numbers.size() == 6;
  if (numbers.size() != 3 && !says_lines) {
    return untranslatable(fmt::format("parameters \"{}\" can't be read", text));
  }
  const std::int64_t m = numbers[1], n = numbers[0], k = numbers[2];
  ProblemRequest request;
  request.values = {{"m", std::to_string(m)}, {"n", std::to_string(n)}, {"k", std::to_string(k)}};
  for (std::size_t i = 0; says_lines && i < line_names.size(); ++i)
    request.values.emplace_back(line_names[i], std::to_string(numbers[3 + i]));
  const std::string layout{operation.a_transposed ? 't' : 'n', operation.b_transposed ? 't' : 'n'};
  request.values.emplace_back("layout", layout);
  if (operation.bias) request.values.emplace_back("epilogue", "bias");
  request.dtype = to_string(operation.dtype);
  request.out_dtype = request.dtype;
  return make_problem(Catalog::built_in().at("gemm"), request);
}

Result<Peer> read_row(const std::vector<std::string>& fields, bool& says_lines) {
  if (fields.size() < 2 || fields[0].empty()) return untranslatable("no row of a GEMM");
  const auto operation = read_operation(fields[0]);
  if (!operation) return operation.failure();
  auto problem = read_problem(*operation, fields[1], says_lines);
  if (!problem) return problem.failure();
  Peer peer;
  peer.problem = *std::move(problem);
  peer.library = tunableop_library;
  peer.solution = fields.size() > 2 ? fields[2] : "";
  peer.us = std::numeric_limits<double>::quiet_NaN();
  if (fields.size() > 3) {
    double milliseconds = 0;
    std::istringstream in(fields[3]);
    if (!(in >> milliseconds) || !(milliseconds > 0) || !std::isfinite(milliseconds)) {
      return untranslatable(fmt::format("\"{}\" is not a time", fields[3]));
    }
    peer.us = 1e3 * milliseconds;
  }
  return peer;
}

}  // namespace

TunableOpFile read_tunableop(std::istream& in) {
  TunableOpFile file;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const auto fields = split(line, ',');
    if (fields[0] == "Validator" && fields.size() >= 3) {
      file.validators.emplace_back(fields[1], line.substr(fields[0].size() + fields[1].size() + 2));
      continue;
    }
    bool says_lines = true;
    auto peer = read_row(fields, says_lines);
    if (!peer) {
      file.untranslated.push_back({fmt::format("line {}", number), peer.failure().message});
      continue;
    }
    file.assumed_packed += says_lines ? 0 : 1;
    file.peers.push_back(*std::move(peer));
  }
  for (auto& peer : file.peers) peer.circumstances = validators_text(file.validators);
  return file;
}

std::string validators_text(const std::vector<std::pair<std::string, std::string>>& validators) {
  std::string text;
  for (const auto& [name, value] : validators) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "\n", name, value);
  }
  return text;
}

std::vector<std::pair<std::string, std::string>> validators_from_text(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> validators;
  for (const auto& line : split(text, '\n')) {
    const auto equals = std::min(line.find('='), line.size());
    validators.emplace_back(line.substr(0, equals), line.substr(std::min(equals + 1, line.size())));
  }
  return validators;
}

Result<std::pair<std::string, std::string>> tunableop_fields(const Problem& problem) {
  if (problem.op != "gemm") return untranslatable("TunableOp tunes GEMMs only");
  if (problem.out_dtype != problem.dtype) {
    return untranslatable("its output has another type than its inputs");
  }
  TunableOperation operation;
  std::array<std::int64_t, 3> said{};
  for (const auto& [name, value] : problem.attributes) {
    const auto line = std::find(line_names.begin(), line_names.end(), name);
    if (line != line_names.end()) {
      said.at(static_cast<std::size_t>(line - line_names.begin())) = problem.stride(name, 0);
    } else if (name == "layout") {
      operation.a_transposed = value[0] == 't';
      operation.b_transposed = value[1] == 't';
    } else if (name == "epilogue" && value == "bias") {
      operation.bias = true;
    } else {
      return untranslatable(fmt::format("TunableOp has no {}={}", name, value));
    }
  }
  const auto letter = [](bool transposed) { return transposed ? 'T' : 'N'; };
  const std::string_view type = traits(problem.dtype).torch;
  const auto m = problem.dim("m"), n = problem.dim("n"), k = problem.dim("k");
  auto lines = packed_lines(operation, m, n, k);
  for (std::size_t i = 0; i < said.size(); ++i) lines[i] = std::max(lines[i], said[i]);
  const char first = letter(operation.b_transposed), second = letter(operation.a_transposed);
  return std::pair(
      fmt::format("{}_{}_{}{}", operation.bias ? "GemmAndBiasTunableOp" : "GemmTunableOp", type,
                  first, second),
      fmt::format("{}{}_{}_{}_{}_ld_{}_{}_{}", static_cast<char>(first + 'a' - 'A'),
                  static_cast<char>(second + 'a' - 'A'), n, m, k, lines[0], lines[1], lines[2]));
}

}  // namespace greta::tuner
