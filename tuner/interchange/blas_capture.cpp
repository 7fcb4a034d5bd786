#include "tuner/interchange/blas_capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tuner/interchange/blas_call.hpp"

namespace greta::tuner {
namespace {

using nlohmann::json;

constexpr std::uint64_t form_version = 2;

/// The error in a line; thrown only within this file.
struct BadLine {
  std::string why;
};

json object_of(const std::string& line) {
  json object = json::parse(line, nullptr, false);
  if (!object.is_object()) throw BadLine{"not a JSON object"};
  return object;
}

[[noreturn]] void bad_member(const std::string& name) {
  throw BadLine{fmt::format("no valid \"{}\"", name)};
}

std::string text(const json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_string() || found->get<std::string>().empty()) {
    bad_member(name);
  }
  return found->get<std::string>();
}

/// A name, or a number of the library's that has no name. Neither is there: `fallback`, unless that
/// is empty.
std::string name_or_number(const json& object, const std::string& name,
                           const std::string& fallback) {
  const auto found = object.find(name);
  if (found == object.end() && !fallback.empty()) return fallback;
  if (found != object.end() && found->is_number_integer()) {
    return fmt::format("number {}", found->get<std::int64_t>());
  }
  return text(object, name);
}

std::int64_t extent(const json& object, const std::string& name, std::int64_t least) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number_integer() ||
      (found->is_number_unsigned() && found->get<std::uint64_t>() > INT64_MAX) ||
      found->get<std::int64_t>() < least) {
    bad_member(name);
  }
  return found->get<std::int64_t>();
}

bool flag(const json& object, const std::string& name) {
  return object.contains(name) && extent(object, name, 0) != 0;
}

char operation(const json& object, const std::string& name) {
  const std::string op = text(object, name);
  if (op != "N" && op != "T" && op != "C" && op != "?") bad_member(name);
  return op[0];
}

BlasCall::Factor factor(const json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end()) bad_member(name);
  const bool complex = object.contains(name + "_imaginary");
  if (found->is_number()) return {found->get<double>(), "", complex};
  return {std::nullopt, text(object, name), complex};
}

BlasCall::Matrix matrix(const json& object, const std::string& letter, bool strided) {
  BlasCall::Matrix matrix;
  matrix.type = name_or_number(object, letter + "_type", "");
  matrix.order = name_or_number(object, "order_" + letter, "col");
  matrix.ld = extent(object, "ld" + letter, 0);
  if (strided) matrix.stride = extent(object, "stride_" + letter, INT64_MIN);
  return matrix;
}

BlasCall read_call(const json& object) {
  BlasCall call;
  call.library = text(object, "library");
  call.function = text(object, "function");
  call.op_a = operation(object, "op_a");
  call.op_b = operation(object, "op_b");
  call.m = extent(object, "m", 1);
  call.n = extent(object, "n", 1);
  call.k = extent(object, "k", 0);
  call.batch_kind = name_or_number(object, "batch_kind", "none");
  if (call.batch_kind != "none") call.batch = extent(object, "batch", 1);
  const bool strided = call.batch_kind == "strided";
  if (!strided && call.batch_kind != "none" && call.batch_kind != "pointers" &&
      call.batch_kind != "grouped") {
    bad_member("batch_kind");
  }
  call.a = matrix(object, "a", strided);
  call.b = matrix(object, "b", strided);
  call.c = matrix(object, "c", strided);
  call.d = matrix(object, "d", strided);
  call.compute = name_or_number(object, "compute", "");
  call.alpha = factor(object, "alpha");
  call.beta = factor(object, "beta");
  call.tf32 = flag(object, "tf32");
  call.out_of_place = flag(object, "out_of_place");
  call.scaled = flag(object, "scaled");
  call.epilogue = name_or_number(object, "epilogue", "none");
  if (object.contains("bias_type")) call.bias_type = name_or_number(object, "bias_type", "");
  return call;
}

void read_head(const json& head, BlasCapture& capture) {
  capture.program = text(head, "program");
  const auto libraries = head.find("libraries");
  if (libraries == head.end() || !libraries->is_array()) bad_member("libraries");
  for (const json& each : *libraries) {
    if (!each.is_string()) bad_member("libraries");
    capture.libraries.push_back(each.get<std::string>());
  }
  if (head.contains("uncounted")) {
    capture.uncounted = static_cast<std::uint64_t>(extent(head, "uncounted", 0));
  }
}

/// The time of a call in µs; 0 if there is none, as of calls that were made once.
double time_us(const json& object) {
  const auto found = object.find("least_us");
  if (found == object.end()) return 0;
  if (!found->is_number() || !(found->get<double>() > 0)) bad_member("least_us");
  return found->get<double>();
}

BlasCapture::Row read_row(const json& object, std::size_t line, const Operation& gemm) {
  const BlasCall call = read_call(object);
  BlasCapture::Row row{.line = line,
                       .call = text_of(call),
                       .count = static_cast<std::uint64_t>(extent(object, "count", 1)),
                       .us = time_us(object),
                       .problem = {},
                       .reason = {}};
  auto problem = problem_of(call, gemm);
  if (problem) {
    row.problem = *std::move(problem);
  } else {
    row.reason = problem.failure().message;
  }
  return row;
}

}  // namespace

bool is_blas_capture(const std::string& text) {
  const json head = json::parse(text.substr(0, text.find('\n')), nullptr, false);
  if (!head.is_object() || !head.contains("greta_capture")) return false;
  const json& version = head["greta_capture"];
  return version.is_number_unsigned() && version.get<std::uint64_t>() == form_version;
}

Result<BlasCapture> read_blas_capture(const std::string& name, const std::string& text,
                                      const Operation& gemm) {
  std::istringstream in(text);
  BlasCapture capture;
  std::size_t number = 0;
  try {
    for (std::string line; std::getline(in, line);) {
      const json object = (++number, object_of(line));
      if (number == 1) {
        read_head(object, capture);
      } else {
        capture.rows.push_back(read_row(object, number, gemm));
      }
    }
  } catch (const BadLine& bad) {
    return Failure{
        Status::invalid_argument, fmt::format("{}, line {}: {}", name, number, bad.why), {}};
  }
  return capture;
}

double estimated_us(const Operation& operation, const Problem& problem) {
  const Work work = operation.work(problem);
  return 3 + std::max(work.bytes / 2e6, work.flops / 2e8);
}

}  // namespace greta::tuner
