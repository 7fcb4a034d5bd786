// Protects: the calls of BLAS libraries become the problems that have the same memory, and what
// GRETA has no problem for gives the reason. Damaged captures are one line.
#include "tuner/interchange/blas_call.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <sstream>
#include <vector>

#include "kernels/catalog.hpp"
#include "tests/layers.hpp"
#include "tuner/interchange/blas_capture.hpp"
#include "tuner/interchange/gemm_log.hpp"

namespace greta::test::blas_call_test {
namespace {

const Operation& gemm() {
  static const Catalog catalog = Catalog::built_in();
  return catalog.at("gemm");
}

/// A packed product of f16.
BlasCall call_of(char op_a, char op_b, std::int64_t m, std::int64_t n, std::int64_t k) {
  BlasCall call;
  call.library = "cuBLAS", call.function = "cublasGemmEx";
  call.op_a = op_a, call.op_b = op_b;
  call.m = m, call.n = n, call.k = k;
  for (BlasCall::Matrix* const each : {&call.a, &call.b, &call.c, &call.d}) each->type = "f16";
  call.a.ld = op_a == 'N' ? m : k;
  call.b.ld = op_b == 'N' ? k : n;
  call.c.ld = call.d.ld = m;
  call.compute = "f32";
  return call;
}

std::string key_of(const BlasCall& call) {
  const auto problem = problem_of(call, gemm());
  return problem ? problem->key() : problem.failure().message;
}

/// The place of an element of a stored matrix.
std::size_t place(const BlasCall::Matrix& matrix, std::int64_t row, std::int64_t column) {
  const std::int64_t at =
      matrix.order == "row" ? row * matrix.ld + column : column * matrix.ld + row;
  return static_cast<std::size_t>(at);
}

using Memory = std::vector<double>;

Memory as_blas(const BlasCall& call, const Memory& a, const Memory& b) {
  Memory d(static_cast<std::size_t>(call.m * call.n));
  for (std::int64_t i = 0; i < call.m; ++i) {
    for (std::int64_t j = 0; j < call.n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < call.k; ++l) {
        sum += a[call.op_a == 'N' ? place(call.a, i, l) : place(call.a, l, i)] *
               b[call.op_b == 'N' ? place(call.b, l, j) : place(call.b, j, l)];
      }
      d[place(call.d, i, j)] = sum;
    }
  }
  return d;
}

Memory as_greta(const Problem& problem, const Memory& a, const Memory& b) {
  const std::int64_t m = problem.dim("m"), n = problem.dim("n"), k = problem.dim("k");
  const std::string layout = problem.attribute("layout", "nn");
  Memory c(static_cast<std::size_t>(m * n));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t l = 0; l < k; ++l) {
        sum += a[static_cast<std::size_t>(layout[0] == 't' ? l * m + i : i * k + l)] *
               b[static_cast<std::size_t>(layout[1] == 't' ? j * k + l : l * n + j)];
      }
      c[static_cast<std::size_t>(i * n + j)] = sum;
    }
  }
  return c;
}

TEST(BlasCall, ProblemsHaveTheMemoryOfTheCall) {
  constexpr std::int64_t m = 3, n = 5, k = 7;
  Memory a(m * k), b(k * n);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<double>(i * i % 23) - 7;
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<double>(i * i % 29) - 11;
  int checked = 0;
  for (int bits = 0; bits < 32; ++bits) {
    BlasCall call = call_of((bits & 1) != 0 ? 'T' : 'N', (bits & 2) != 0 ? 'C' : 'N', m, n, k);
    const auto store_rows = [](BlasCall::Matrix& matrix, std::int64_t columns) {
      matrix.order = "row";
      matrix.ld = columns;
    };
    if ((bits & 4) != 0) store_rows(call.a, call.op_a == 'N' ? k : m);
    if ((bits & 8) != 0) store_rows(call.b, call.op_b == 'N' ? n : k);
    if ((bits & 16) != 0) store_rows(call.d, n), store_rows(call.c, n);
    const auto problem = problem_of(call, gemm());
    if (!problem) {
      EXPECT_NE(problem.failure().message.find("layout"), std::string::npos)
          << problem.failure().message;
      continue;
    }
    ++checked;
    const bool reversed = call.d.order == "row";
    EXPECT_EQ(as_greta(*problem, reversed ? a : b, reversed ? b : a), as_blas(call, a, b))
        << problem->key() << ' ' << bits;
  }
  EXPECT_GE(checked, 24);  // all but those with both operands transposed, at least
}

TEST(BlasCall, EpiloguesAndFactors) {
  BlasCall call = call_of('T', 'N', 4096, 16, 1024);
  EXPECT_EQ(key_of(call), "gemm dtype=f16 out=f16 layout=nt m=16 n=4096 k=1024");
  call.epilogue = "gelu_bias", call.bias_type = "f16";
  EXPECT_EQ(key_of(call), "gemm dtype=f16 out=f16 layout=nt epilogue=bias,gelu m=16 n=4096 k=1024");
  call.beta.value = 1, call.out_of_place = true, call.epilogue = "none";
  EXPECT_EQ(key_of(call), "gemm dtype=f16 out=f16 layout=nt epilogue=residual m=16 n=4096 k=1024");
  call.out_of_place = false, call.alpha.value = 0.125;
  EXPECT_EQ(key_of(call),
            "gemm dtype=f16 out=f16 layout=nt alpha=0.125 beta=\"1\" m=16 n=4096 k=1024");
  call.d.type = call.c.type = "f32";
  EXPECT_EQ(key_of(call),
            "gemm dtype=f16 out=f32 layout=nt alpha=0.125 beta=\"1\" m=16 n=4096 k=1024");
}

TEST(BlasCall, Batches) {
  BlasCall call = call_of('N', 'N', 64, 48, 32);
  call.batch_kind = "strided", call.batch = 12;
  call.a.stride = 64 * 32, call.b.stride = 32 * 48, call.c.stride = call.d.stride = 64 * 48;
  EXPECT_EQ(key_of(call), "gemm dtype=f16 out=f16 m=48 n=64 k=32 batch=12");
  call.b.stride = 5000;
  EXPECT_EQ(key_of(call), "gemm dtype=f16 out=f16 a_batch_stride=\"5000\" m=48 n=64 k=32 batch=12");
  call.b.stride = 32 * 48, call.a.stride = 0;
  EXPECT_EQ(key_of(call), "gemm dtype=f16 out=f16 shared=b m=48 n=64 k=32 batch=12");
  call.a.stride = 64 * 32, call.b.stride = 0;
  EXPECT_EQ(key_of(call), "a batch with one common A (of row-major products)");
  call.batch = 1;
  EXPECT_EQ(key_of(call), "gemm dtype=f16 out=f16 m=48 n=64 k=32");
}

// A decode step that multiplies a slice of each token's q, k and v: one row for each product. The
// key is that of the runtime's tensors, which have no leading dimension then.
TEST(BlasCall, ABatchOfSingleRowsKeepsItsDistance) {
  BlasCall call = call_of('N', 'N', 64, 1, 4096);
  call.batch_kind = "strided", call.batch = 8;
  call.a.stride = 64 * 4096, call.c.stride = call.d.stride = 64;
  call.b.ld = call.b.stride = 12288;
  EXPECT_EQ(key_of(call),
            "gemm dtype=f16 out=f16 a_batch_stride=\"12288\" m=1 n=64 k=4096 batch=8");
  call.b.stride = 4096;
  EXPECT_EQ(key_of(call), "gemm dtype=f16 out=f16 m=1 n=64 k=4096 batch=8");
}

TEST(BlasCall, ReasonsWhyThereIsNoProblem) {
  const auto reason = [](const auto& change) {
    BlasCall call = call_of('T', 'N', 64, 48, 32);
    change(call);
    return key_of(call);
  };
  EXPECT_EQ(reason([](BlasCall& c) { c.a.type = c.b.type = c.c.type = c.d.type = "f64"; }),
            "no type f64 here");
  EXPECT_EQ(reason([](BlasCall& c) { c.b.type = "bf16"; }), "operands of types f16 and bf16");
  EXPECT_EQ(reason([](BlasCall& c) { c.compute = "f16"; }), "GRETA computes in f32, not in f16");
  EXPECT_EQ(reason([](BlasCall& c) { c.a.order = "number 2"; }), "A is in order number 2");
  EXPECT_EQ(reason([](BlasCall& c) { c.scaled = true; }), "GRETA's GEMM has no scales");
  EXPECT_EQ(reason([](BlasCall& c) { c.k = 0; }), "k is 0");
  EXPECT_EQ(reason([](BlasCall& c) { c.op_b = '?'; }),
            "an operand that is neither as stored nor transposed");
  EXPECT_EQ(reason([](BlasCall& c) { c.a.ld = c.b.ld = 40; }),
            "gemm dtype=f16 out=f16 layout=nt lda=\"40\" ldb=\"40\" m=48 n=64 k=32");
  EXPECT_EQ(reason([](BlasCall& c) {
              c.beta = {std::nullopt, "device", false};
            }),
            "beta is unknown (device)");
  EXPECT_EQ(reason([](BlasCall& c) { c.epilogue = "relu_aux"; }), "no epilogue relu_aux here");
  EXPECT_EQ(reason([](BlasCall& c) { c.epilogue = "bias", c.bias_type = "f32"; }),
            "a bias of another type, f32, than the result");
  EXPECT_EQ(reason([](BlasCall& c) { c.batch_kind = "pointers", c.batch = 2; }),
            "a batch whose matrices are at any addresses: GRETA's are at equal distances");
  EXPECT_EQ(reason([](BlasCall& c) { c.beta.value = 0.5, c.out_of_place = true; }),
            "C is not D, and beta is neither 0 nor 1");
  // Factors of unknown value do not matter for the time if C is not read.
  EXPECT_EQ(reason([](BlasCall& c) {
              c.alpha = {std::nullopt, "device", false};
            }),
            "gemm dtype=f16 out=f16 layout=nt m=48 n=64 k=32");
}

const std::string head =
    R"({"greta_capture":2,"greta":"0.1.0","program":"python3","process":7,"libraries":["/a.so"]})"
    "\n";
const std::string row =
    R"({"library":"cuBLAS","function":"cublasGemmEx","op_a":"T","op_b":"N","m":64,"n":48,"k":32,)"
    R"("a_type":"f16","b_type":"f16","c_type":"f16","d_type":"f16","compute":"f32","scale":"f32",)"
    R"("lda":32,"ldb":32,"ldc":64,"ldd":64,"alpha":1,"beta":0,"count":5})"
    "\n";

std::string changed(const std::string& from, const std::string& to) {
  std::string text = row;
  text.replace(text.find(from), from.size(), to);
  return head + text;
}

TEST(BlasCapture, RowsAndTheLogOfGemms) {
  EXPECT_TRUE(is_blas_capture(head));
  EXPECT_FALSE(is_blas_capture(R"({"greta_capture":1})"));
  EXPECT_FALSE(is_blas_capture("[2]"));
  const auto capture = read_blas_capture("x", head + row, gemm());
  ASSERT_TRUE(capture) << capture.failure().message;
  EXPECT_EQ(capture->program, "python3");
  ASSERT_EQ(capture->rows.size(), 1U);
  EXPECT_EQ(capture->rows[0].count, 5U);
  EXPECT_EQ(capture->rows[0].call, "cublasGemmEx T N m=64 n=48 k=32 f16");
  std::istringstream in(head + row);
  const GemmLog log = read_gemm_log(in);
  EXPECT_EQ(log.tool, "libgreta-capture");
  ASSERT_EQ(log.peers.size(), 1U);
  EXPECT_EQ(log.peers[0].problem.key(), "gemm dtype=f16 out=f16 layout=nt m=48 n=64 k=32");
}

TEST(BlasCapture, DamagedFilesAreOneLine) {
  const auto why = [](const std::string& text) {
    const auto capture = read_blas_capture("x.jsonl", text, gemm());
    return capture ? "read" : capture.failure().message;
  };
  EXPECT_EQ(why(head + row), "read");
  EXPECT_EQ(why(head + "{\n"), "x.jsonl, line 2: not a JSON object");
  EXPECT_EQ(why(head + row.substr(0, 90)), "x.jsonl, line 2: not a JSON object");
  EXPECT_EQ(why(R"({"greta_capture":2})"), "x.jsonl, line 1: no valid \"program\"");
  for (const auto& [from, to, field] :
       std::vector<std::array<std::string, 3>>{{R"("m":64)", R"("m":0)", "m"},
                                               {R"("m":64)", R"("m":1e3)", "m"},
                                               {R"("m":64)", R"("m":18446744073709551615)", "m"},
                                               {R"("k":32)", R"("k":-1)", "k"},
                                               {R"("op_a":"T")", R"("op_a":"X")", "op_a"},
                                               {R"("a_type":"f16")", R"("a_type":[])", "a_type"},
                                               {R"("lda":32)", R"("lda":"32")", "lda"},
                                               {R"("alpha":1)", R"("alpha":null)", "alpha"},
                                               {R"("count":5)", R"("count":0)", "count"},
                                               {R"("count":5)", R"("kount":5)", "count"}}) {
    EXPECT_EQ(why(changed(from, to)), fmt::format("x.jsonl, line 2: no valid \"{}\"", field)) << to;
  }
  EXPECT_EQ(why(changed(R"("count":5)", R"("batch_kind":"odd","batch":2,"count":5)")),
            "x.jsonl, line 2: no valid \"batch_kind\"");
  // Extents beyond GRETA's are a reason, not damage.
  EXPECT_EQ(why(changed(R"("m":64)", R"("m":99999999999)")), "read");
}

}  // namespace
}  // namespace greta::test::blas_call_test
