// Protects: the GEMMs that other tools recorded become the problems that have the same memory, and
// what GRETA has no problem for is named with its line and the reason.
#include "tuner/interchange/gemm_log.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "tests/layers.hpp"

namespace greta::test::gemm_log_test {
namespace {

GemmLog read(const std::string& text) {
  std::istringstream in(text);
  return read_gemm_log(in);
}

/// A command line as hipBLASLt logs it.
std::string command(const std::string& options) {
  return "hipblaslt-bench --api_method c " + options +
         " --stride_a 0 --alpha 1.000000 --alphai 0.000000 --beta 0.000000 --betai 0.000000 "
         "--batch_count 1 --scaleA 0 --scaleB 0  --scale_type f32_r   --compute_type f32_r "
         "--algo_method index --solution_index 2010 --any_stride --rotating 0 --iters 0 \n";
}
const std::string half = " --a_type f16_r --b_type f16_r --c_type f16_r --d_type f16_r";

TEST(GemmLog, CommandLinesOfHipblasltBench) {
  const auto log = read(
      "some program's output\n" +
      command("-m 48 -n 176 -k 1024 --lda 48 --ldb 176 --ldc 48 --ldd 48 --transA N --transB T "
              "--a_type bf16_r --b_type bf16_r --c_type bf16_r --d_type bf16_r") +
      command(
          "-m 4096 -n 1 -k 512 --lda 512 --ldb 600 --ldc 4096 --ldd 4096 --transA T --transB N" +
          half) +
      command("-m 8 -n 16 -k 24 --lda 8 --ldb 24 --ldc 8 --ldd 8 --transA N --transB N "
              "--activation_type gelu --bias_vector --bias_type f32_r "
              "--a_type f16_r --b_type f16_r --c_type f32_r --d_type f32_r"));
  EXPECT_EQ(log.tool, "hipblaslt-bench");
  EXPECT_TRUE(log.untranslated.empty());
  ASSERT_EQ(log.peers.size(), 3U);
  EXPECT_EQ(log.peers[0].problem.key(), "gemm dtype=bf16 out=bf16 layout=tn m=176 n=48 k=1024");
  EXPECT_EQ(log.peers[0].solution, "2010");
  EXPECT_TRUE(std::isnan(log.peers[0].us));
  EXPECT_EQ(log.peers[1].problem.key(), "gemm dtype=f16 out=f16 layout=nt m=1 n=4096 k=512");
  EXPECT_EQ(log.peers[2].problem.key(), "gemm dtype=f16 out=f32 epilogue=bias,gelu m=16 n=8 k=24");
}

TEST(GemmLog, YamlAndResultsOfHipblasltBench) {
  const auto log = read(
      "- { function: matmul, M: 128, N: 32, K: 64, lda: 64, ldb: 64, ldc: 128, ldd: 128, stride_a: "
      "0, alpha: 2.0000, beta: 0.0000, transA: T, transB: N, batch_count: 1, a_type: f32_r, "
      "b_type: f32_r, c_type: f32_r, d_type: f32_r, compute_type: f32_r }\n"
      "[0]:transA,transB,grouped_gemm,batch_count,m,n,k,alpha,lda,stride_a,beta,ldb,ldc,ldd,"
      "a_type,b_type,c_type,d_type,compute_type,activation_type,bias_vector,hipblaslt-Gflops,us\n"
      "    N,N,0,1,4096,512,256,1,4096,1,0,256,4096,4096,f16_r,f16_r,f16_r,f16_r,f32_r,none,0,"
      "908602,18.25\n");
  ASSERT_EQ(log.peers.size(), 2U) << log.untranslated.at(0).reason;
  EXPECT_EQ(log.peers[0].problem.key(),
            "gemm dtype=f32 out=f32 layout=nt alpha=\"2\" m=32 n=128 k=64");
  EXPECT_EQ(log.peers[1].problem.key(), "gemm dtype=f16 out=f16 m=512 n=4096 k=256");
  EXPECT_DOUBLE_EQ(log.peers[1].us, 18.25);
}

TEST(GemmLog, TablesOfAiter) {
  const auto log = read(
      "M,N,K,bias,dtype,outdtype,scaleAB,bpreshuffle\r\n"
      "64, 256,5120,False,torch.bfloat16,torch.float32,False,False\r\n"
      "1,640,2880,True,torch.bfloat16,torch.bfloat16,False,False\n\n"
      "gfx,cu_num,M,N,K,bias,dtype,outdtype,scaleAB,bpreshuffle,libtype,us,kernelName\n"
      "gfx950,256,80,256,5120,False,torch.float16,torch.float16,False,False,asm,7.5,gemm_tn\n"
      "gfx950,256,80,256,5120,False,torch.float16,torch.float16,False,True,asm,7,gemm_"
      "bpreshuffle\n");
  EXPECT_EQ(log.tool, "AITER");
  ASSERT_EQ(log.peers.size(), 4U) << log.untranslated.at(0).reason;
  EXPECT_EQ(log.peers[0].problem.key(), "gemm dtype=bf16 out=f32 layout=nt m=64 n=256 k=5120");
  EXPECT_EQ(log.peers[1].problem.key(),
            "gemm dtype=bf16 out=bf16 layout=nt epilogue=bias m=1 n=640 k=2880");
  EXPECT_EQ(log.peers[2].problem.key(), "gemm dtype=f16 out=f16 layout=nt m=80 n=256 k=5120");
  EXPECT_DOUBLE_EQ(log.peers[2].us, 7.5);
  EXPECT_EQ(log.peers[2].solution, "gemm_tn");
  EXPECT_EQ(log.peers[2].circumstances, "gfx=gfx950\ncu_num=256");
  EXPECT_EQ(log.peers[3].problem.key(),
            "gemm dtype=f16 out=f16 layout=nt packing=panels m=80 n=256 k=5120");
}

TEST(GemmLog, TunableOpIsRecognised) {
  const auto log =
      read("Validator,PT_VERSION,2.8.0\nGemmTunableOp_Half_TN,tn_4096_16_1024_ld_1024_1024_4096\n");
  EXPECT_EQ(log.tool, tunableop_library);
  ASSERT_EQ(log.peers.size(), 1U);
  EXPECT_EQ(log.peers[0].problem.key(), "gemm dtype=f16 out=f16 layout=nt m=16 n=4096 k=1024");
  const auto unknown = read("nothing, that, is known\n");
  EXPECT_EQ(unknown.tool, "");
  ASSERT_EQ(unknown.untranslated.size(), 1U);
  EXPECT_TRUE(read("").untranslated.empty());
}

/// Computes a column-major product by BLAS's definition, then the translated row-major problem on
/// the same memory.
void expect_same_memory(bool first, bool second, int apart) {
  constexpr int m = 3, n = 5, k = 2;
  const int lda = (first ? k : m) + apart, ldb = (second ? n : k) + apart, ldd = m + apart;
  std::vector<double> a(30), b(40), blas(60);
  for (int i = 0; i < 30; ++i) a[i] = 1 + i * i;
  for (int i = 0; i < 40; ++i) b[i] = 7 - 3 * i + i * i;
  const auto element = [](const std::vector<double>& of, int row, int col, int ld) {
    return of[static_cast<std::size_t>(row + col * ld)];
  };
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int p = 0; p < k; ++p) {
        blas[i + j * ldd] += (first ? element(a, p, i, lda) : element(a, i, p, lda)) *
                             (second ? element(b, j, p, ldb) : element(b, p, j, ldb));
      }
    }
  }
  const auto log = read(command(
      fmt::format("-m 3 -n 5 -k 2 --lda {} --ldb {} --ldc {} --ldd {} --transA {} --transB {}{}",
                  lda, ldb, ldd, ldd, first ? 'T' : 'N', second ? 'T' : 'N', half)));
  ASSERT_EQ(log.peers.size(), 1U) << log.untranslated.at(0).reason;
  const Problem& problem = log.peers[0].problem;
  const std::string key = problem.key();
  const std::string layout = problem.attribute("layout", "nn");
  const bool a_transposed = layout[0] == 't', b_transposed = layout[1] == 't';
  const auto rows = static_cast<int>(problem.dim("m")), cols = static_cast<int>(problem.dim("n"));
  const auto depth = static_cast<int>(problem.dim("k"));
  const auto stride = [&](const char* name, int packed) {
    const std::int64_t said = problem.stride(name, 0);
    return said > 0 ? static_cast<int>(said) : packed;
  };
  const int a_rows = stride("lda", a_transposed ? rows : depth),
            b_rows = stride("ldb", b_transposed ? depth : cols), c_rows = stride("ldc", cols);
  std::vector<double> c(blas.size());
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < cols; ++j) {
      for (int p = 0; p < depth; ++p) {  // GRETA's A is BLAS's second operand
        c[i * c_rows + j] += b[a_transposed ? p * a_rows + i : i * a_rows + p] *
                             a[b_transposed ? j * b_rows + p : p * b_rows + j];
      }
    }
  }
  EXPECT_EQ(c, blas) << key;
}

TEST(GemmLog, ColumnMajorProductsKeepTheirMemory) {
  for (const int apart : {0, 4}) {
    for (const bool first : {false, true}) {
      for (const bool second : {false, true}) expect_same_memory(first, second, apart);
    }
  }
}

TEST(GemmLog, BatchesKeepTheDistancesOfTheirMatrices) {
  const std::string sizes = "hipblaslt-bench -m 8 -n 16 -k 32 --batch_count 4 ";
  const auto key = [&](const std::string& more) {
    const auto log = read(sizes + more + half);
    return log.peers.empty() ? log.untranslated.at(0).reason : log.peers[0].problem.key();
  };
  const std::string begin = "gemm dtype=f16 out=f16 ", end = "m=16 n=8 k=32 batch=4";
  EXPECT_EQ(key("--stride_a 256 --stride_b 512 --stride_c 128 --stride_d 128"), begin + end);
  EXPECT_EQ(key("--stride_a 0 --stride_b 600"), begin + "shared=b a_batch_stride=\"600\" " + end);
  EXPECT_EQ(key("--lda 32 --stride_a 8"), begin + "ldb=\"32\" b_batch_stride=\"8\" " + end);
  EXPECT_EQ(key("--stride_b 0"), "a batch with one common A (of row-major products)");
  EXPECT_EQ(read("B,M,N,K,dtype\n16,1,1280,8192,torch.float16\n").peers.at(0).problem.key(),
            "gemm dtype=f16 out=f16 layout=nt m=1 n=1280 k=8192 batch=16");
}

TEST(GemmLog, WhatDoesNotCarryOverIsSaidForEachRow) {
  const std::string sizes = "-m 8 -n 8 -k 8 --lda 8 --ldb 8 --ldc 8 --ldd 8 ";
  const std::string aiter = "M,N,K,bias,dtype,outdtype,scaleAB,bpreshuffle\n";
  const std::vector<std::pair<std::string, std::string>> logs{
      {"hipblaslt-bench " + sizes + half + " --grouped_gemm 2", "no groups"},
      {command("-m 8 -n 8 -k 8 --lda 4 --ldb 8 --ldd 8" + half), "line 1: ldb 4"},
      {"hipblaslt-bench -m 8 -n 8 -k 8 --ldc 8 --ldd 16 --beta 1" + half,
       "C and D lie differently"},
      {"hipblaslt-bench " + sizes + half + " --scaleA 2", "no scaleA"},
      {command(sizes + "--a_type i8_r --b_type i8_r --c_type i32_r --d_type bf16_r"),
       "C of type i32_r and D of type bf16_r"},
      {command(sizes + "--a_type f8_r --b_type f8_r --c_type f16_r --d_type f16_r"),
       "no type f8_r"},
      {command(sizes + "--a_type f16_r --b_type f8_r --c_type f16_r --d_type f16_r"), "of types"},
      {"hipblaslt-bench " + sizes + half + " --compute_type xf32_r",
       "computes in f32, not in xf32_r"},
      {"hipblaslt-bench " + sizes + half + " --activation_type relu", "no activation relu"},
      {"hipblaslt-bench " + sizes + half + " --bias_vector --bias_type f32_r", "a bias of another"},
      {"hipblaslt-bench " + sizes, "types"},
      {"hipblaslt-bench -m 8 -n 8" + half, "it has no k"},
      {"hipblaslt-bench -m 8 -n -8 -k 8" + half, "n is \"-8\""},
      {"hipblaslt-bench gemm -m 8" + half, "\"gemm\" is not an option"},
      {"- { function: matmul, M: 8, N 8 }", "\"N 8\" is not a field"},
      {"- function: matmul", "not one object in braces"},
      {"[0]:transA,transB,m,n,k,us\nN,N,8,8\n", "line 2: has 4 columns, and the names before it 6"},
      {aiter + "1,2,3,False,torch.int8,torch.bfloat16,False,False\n", "line 2: no type torch.int8"},
      {aiter + "1,2,3,False,torch.float16,torch.float16,True,False\n", "no scales"},
      {aiter + "1,8,16,False,torch.float16,torch.float16,False,True\n", "n of a multiple of 16"},
      {aiter + "1,16,16,False,torch.float16,torch.float16,False,Maybe\n", "neither False nor True"},
      {aiter + "1,0,3,False,torch.float16,torch.float16,False,False\n", "N is \"0\""},
      {aiter + "1,2,3\n", "has 3 columns, and the names before it 8"},
      {"M,N,K\n1,1280,8192\n", "no column dtype"},
      {"M,N,K,q_dtype_w\n1,1280,8192,torch.int8\n", "weights of type torch.int8"},
      {"M,N,K,dtype,us\n1,8,8,torch.float16,fast\n", "\"fast\" is not a time"}};
  for (const auto& [text, reason] : logs) {
    const auto log = read(text);
    ASSERT_EQ(log.untranslated.size(), 1U) << text;
    const std::string line = log.untranslated[0].row + ": " + log.untranslated[0].reason;
    EXPECT_NE(line.find(reason), std::string::npos) << text << line;
    EXPECT_TRUE(log.peers.empty()) << text;
  }
}

}  // namespace
}  // namespace greta::test::gemm_log_test
