#include "tuner/interchange/blas_call.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "kernels/model/problem_rules.hpp"
#include "tuner/interchange/gemm_place.hpp"

namespace greta::tuner {
namespace {

/// The reason why a call has no problem; thrown only within this file.
struct NoProblem {
  std::string reason;
};

/// A call in memory as GRETA has it. A column-major matrix has the memory of the row-major one with
/// its sides exchanged, and the transpose of a product is the product of the transposes in reverse
/// order: GRETA's A is the library's B, and its m the library's n.
struct RowMajor {
  std::int64_t m, n, k;
  bool a_transposed, b_transposed;
  BlasCall::Matrix a, b;
  bool rows_are_reversed;  ///< the library's rows are GRETA's rows, since D is row-major itself
};

bool is_row(const BlasCall::Matrix& matrix) {
  return matrix.order == "row";
}

RowMajor row_major(const BlasCall& call) {
  // A row-major operand is its column-major transpose.
  const bool a = (call.op_a != 'N') != is_row(call.a), b = (call.op_b != 'N') != is_row(call.b);
  if (is_row(call.d)) return {call.m, call.n, call.k, !a, !b, call.a, call.b, true};
  return {call.n, call.m, call.k, b, a, call.b, call.a, false};
}

void check_kind(const BlasCall& call) {
  for (const auto& [name, matrix] : {std::pair("A", &call.a), std::pair("B", &call.b),
                                     std::pair("C", &call.c), std::pair("D", &call.d)}) {
    if (matrix->order != "col" && matrix->order != "row") {
      throw NoProblem{fmt::format("{} is in order {}", name, matrix->order)};
    }
  }
  if (call.op_a == '?' || call.op_b == '?') {
    throw NoProblem{"an operand that is neither as stored nor transposed"};
  }
  if (call.k < 1) throw NoProblem{"k is 0"};
  if (call.scaled) throw NoProblem{"GRETA's GEMM has no scales"};
  if (call.batch_kind == "pointers" && call.batch > 1) {
    throw NoProblem{"a batch whose matrices are at any addresses: GRETA's are at equal distances"};
  }
  if (call.batch_kind == "grouped") throw NoProblem{"a group of a grouped product"};
  for (const BlasCall::Factor* const factor : {&call.alpha, &call.beta}) {
    if (factor->complex) throw NoProblem{"complex factors"};
  }
}

/// The types of both operands and of the result.
std::pair<std::string, std::string> types_of(const BlasCall& call) {
  if (call.a.type != call.b.type) {
    throw NoProblem{fmt::format("operands of types {} and {}", call.a.type, call.b.type)};
  }
  for (const std::string& type : {call.a.type, call.d.type}) {
    if (type != "f32" && type != "f16" && type != "bf16") {
      throw NoProblem{fmt::format("no type {} here", type)};
    }
  }
  if (call.beta.value != 0.0 && call.c.type != call.d.type) {
    throw NoProblem{fmt::format("C of type {} and D of type {}", call.c.type, call.d.type)};
  }
  // GRETA sums in f32, which is at least what was asked for by all of these.
  if (!call.compute.starts_with("f32")) {
    throw NoProblem{fmt::format("GRETA computes in f32, not in {}", call.compute)};
  }
  return {call.a.type, call.d.type};
}

/// Adds a factor that differs from the operation's default. What is in device memory can be any
/// value; for the time, only whether C is read matters.
void add_factors(const BlasCall& call, ProblemRequest& request) {
  if (call.alpha.value) request.set("alpha", fmt::format("{}", *call.alpha.value));
  if (!call.beta.value) {
    throw NoProblem{fmt::format("beta is unknown ({})", call.beta.unknown)};
  }
  if (*call.beta.value != 0 && !call.out_of_place) {
    request.set("beta", fmt::format("{}", *call.beta.value));
  }
}

void add_epilogue(const BlasCall& call, const RowMajor& product, const std::string& out,
                  ProblemRequest& request) {
  std::string list;
  const auto add = [&](const char* part) { list += (list.empty() ? "" : ",") + std::string(part); };
  std::string name = call.epilogue;
  if (name == "bias" || name.ends_with("_bias")) {
    if (call.bias_type != out) {
      throw NoProblem{fmt::format("a bias of another type, {}, than the result", call.bias_type)};
    }
    if (product.rows_are_reversed) throw NoProblem{"a bias for each row of a row-major result"};
    add("bias");
    name = name == "bias" ? "none" : name.substr(0, name.size() - 5);
  }
  if (call.beta.value != 0.0 && call.out_of_place) {
    if (call.beta.value != 1.0) throw NoProblem{"C is not D, and beta is neither 0 nor 1"};
    if (call.c.ld != call.d.ld || call.c.order != call.d.order) {
      throw NoProblem{"C and D lie differently in memory"};
    }
    if (call.batch > 1 && call.c.stride != call.d.stride) {
      throw NoProblem{"C and D have different distances in a batch"};
    }
    add("residual");
  }
  if (name == "gelu") {
    add("gelu");
  } else if (name == "swish") {
    add("silu");
  } else if (name != "none") {
    throw NoProblem{fmt::format("no epilogue {} here", call.epilogue)};
  }
  if (!list.empty()) request.set("epilogue", list);
}

void add_places(const BlasCall& call, const RowMajor& product, ProblemRequest& request) {
  const auto add = [&](char name, std::int64_t lines, const BlasCall::Matrix& matrix) {
    const bool several = call.batch > 1;
    auto added = add_place(name, lines, matrix.ld,
                           several ? std::optional(matrix.stride) : std::nullopt, request);
    if (!added) throw NoProblem{added.failure().message};
  };
  if (call.batch > 1) request.set("batch", std::to_string(call.batch));
  add('a', product.a_transposed ? product.k : product.m, product.a);
  add('b', product.b_transposed ? product.n : product.k, product.b);
  add('c', product.m, call.d);
}

Problem translated(const BlasCall& call, const Operation& gemm) {
  check_kind(call);
  const auto [dtype, out] = types_of(call);
  const RowMajor product = row_major(call);
  ProblemRequest request;
  request.dtype = dtype;
  request.out_dtype = out;
  const std::string layout{product.a_transposed ? 't' : 'n', product.b_transposed ? 't' : 'n'};
  request.values = {{"m", std::to_string(product.m)},
                    {"n", std::to_string(product.n)},
                    {"k", std::to_string(product.k)},
                    {"layout", layout}};
  add_factors(call, request);
  add_epilogue(call, product, out, request);
  add_places(call, product, request);
  auto problem = make_problem(gemm, std::move(request));
  if (!problem) throw NoProblem{problem.failure().message};
  return *std::move(problem);
}

}  // namespace

Result<Problem> problem_of(const BlasCall& call, const Operation& gemm) {
  try {
    return translated(call, gemm);
  } catch (const NoProblem& none) {
    return Failure{Status::invalid_argument, none.reason, {}};
  }
}

std::string text_of(const BlasCall& call) {
  std::string text = fmt::format("{} {} {} m={} n={} k={}", call.function, call.op_a, call.op_b,
                                 call.m, call.n, call.k);
  if (call.batch_kind != "none") text += fmt::format(" batch={}", call.batch);
  text += " " + call.a.type;
  if (call.b.type != call.a.type) text += "," + call.b.type;
  if (call.d.type != call.a.type) text += " to " + call.d.type;
  if (call.epilogue != "none") text += " " + call.epilogue;
  return text;
}

}  // namespace greta::tuner
