// Protects: faults of kernels under AddressSanitizer and UndefinedBehaviorSanitizer are reported
// with the line of the kernel and the thread, and the correct kernel passes.

#include <csignal>

#include "tests/device/hip_host/sanitized_run.hpp"

namespace greta::test::sanitize_test {
namespace {

struct Fault {
  std::string name, body;
  std::string report;  ///< substring of the report
  int line;
  std::string thread = "";  ///< substring of the message that identifies the thread
  Imitated device = sm_80;
  unsigned dynamic_bytes = 0;
};

void PrintTo(const Fault& fault, std::ostream* to) {
  *to << fault.name;
}

class HipHostSanitize : public ::testing::TestWithParam<Fault> {};

const Fault faults[] = {
    {"BufferOverrun", "out[threadIdx.x + edge] = 2;", "heap-buffer-overflow", 2, "(63,0,0)"},
    {"BufferUnderrun", "\n\nif (threadIdx.x == 5) out[-edge] = 2;", "heap-buffer-overflow", 4,
     "(5,0,0)"},
    {"BufferRead", "int v = out[threadIdx.x];\nv += out[n - 1 + of_first];\nout[threadIdx.x] = v;",
     "heap-buffer-overflow", 3, "(0,0,0)"},
    {"SharedArray",
     "__shared__ int tile[64];\nvolatile int* const at = tile;\nat[threadIdx.x + edge] = 1;\n"
     "__syncthreads();\nout[threadIdx.x] = tile[threadIdx.x];",
     "global-buffer-overflow", 4, "(63,0,0)"},
    // The bounds of the array are known without looking at memory.
    {"SharedArrayIndex",
     "__shared__ int tile[64];\ntile[threadIdx.x + edge] = 1;\n__syncthreads();\n"
     "out[threadIdx.x] = tile[threadIdx.x];",
     "index 64 out of bounds", 3, "(63,0,0)"},
    {"SharedArrayOfAFunction",
     "const auto put = [](int i) {\n__shared__ float part[3];\nfloat* volatile at = part;\n"
     "at[i] = 1;\n};\nput(2 + of_first);",
     "global-buffer-overflow", 5, "(0,0,0)"},
    {"DynamicSharedMemory",
     "extern __shared__ int rest[];\nrest[threadIdx.x + edge] = 1;\nout[0] = rest[threadIdx.x];",
     "use-after-poison", 3, "(63,0,0)", sm_80, 256},
    {"PrivateArray",
     "int values[4] = {};\nint* volatile at = values;\nat[n / 16 - 1 + of_first] = 7;\n"
     "out[threadIdx.x] = values[0];",
     "stack-buffer-overflow", 4, "(0,0,0)"},
    {"MisalignedVector",
     "const int2 v = *reinterpret_cast<const int2*>(out + of_first);\nout[threadIdx.x] = v.x;",
     "misaligned address", 2, "(0,0,0)"},
    {"Shift", "const int by = threadIdx.x == 3 ? 3 + 29 * edge : 3;\nout[threadIdx.x] = 1 << by;",
     "shift exponent 32 is too large", 3, "(3,0,0)"},
    {"SignedOverflow", "volatile int most = 0x7fffffff;\nout[threadIdx.x] = most + of_first;",
     "signed integer overflow", 3, "(0,0,0)"},
    {"CopyAsyncSource",
     "__shared__ int tile[64];\n"
     "greta_host::copy_async(&tile[threadIdx.x], out + threadIdx.x + edge, 4);\n"
     "greta_host::copy_wait_all();\nout[threadIdx.x] = tile[threadIdx.x];",
     "heap-buffer-overflow", 3, "(63,0,0)"},
    {"CopyAsyncTarget",
     "__shared__ int tile[64];\nint* const at = tile;\n"
     "greta_host::copy_async(at + threadIdx.x + edge, out + threadIdx.x, 4);\n"
     "greta_host::copy_wait_all();\nout[threadIdx.x] = tile[threadIdx.x];",
     "global-buffer-overflow", 4, "(63,0,0)"},
    {"LdmatrixRow",
     "__shared__ __attribute__((aligned(16))) uint16_t rows[32 * 8];\n"
     "for (int i = threadIdx.x; i < 256; i += 64) rows[i] = i;\n__syncthreads();\nuint32_t d[4];\n"
     "greta_host::ldmatrix(d, rows + 8 * (threadIdx.x % 32 + edge));\nout[threadIdx.x] = d[3];",
     "global-buffer-overflow", 6},
};

INSTANTIATE_TEST_SUITE_P(All, HipHostSanitize, ::testing::ValuesIn(faults),
                         [](const auto& test) { return test.param.name; });

TEST_P(HipHostSanitize, ReportsTheFaultAndNothingElse) {
  const Fault& fault = GetParam();
  const auto right =
      run_sanitized(kernel_with(fault.body, 0), fault.device, 64, fault.dynamic_bytes);
  EXPECT_TRUE(right.ok()) << right.output << right.errors;
  EXPECT_EQ(right.errors, "");

  const auto wrong =
      run_sanitized(kernel_with(fault.body, 1), fault.device, 64, fault.dynamic_bytes);
  EXPECT_EQ(wrong.signal, SIGABRT) << wrong.output << wrong.errors;
  EXPECT_NE(wrong.errors.find(fault.report), std::string::npos) << wrong.errors;
  const std::string place = fmt::format("test.hip:{}", fault.line);
  EXPECT_NE(wrong.errors.find(place + "\n"), std::string::npos) << place << "\n" << wrong.errors;
  EXPECT_NE(wrong.errors.find("of the kernel test\n"), std::string::npos) << wrong.errors;
  EXPECT_NE(wrong.errors.find("it was thread " + fault.thread), std::string::npos) << wrong.errors;
  const auto summary = sanitizer_summary(wrong.errors);
  EXPECT_NE(summary.find(place), std::string::npos) << summary;
}

TEST(HipHostSanitizer, ReportsNameSharedArrays) {
  const auto wrong = run_sanitized(kernel_with(faults[3].body, 1));
  EXPECT_NE(wrong.errors.find("'tile'"), std::string::npos) << wrong.errors;
}

// Fibers, waves and abandoned stacks must not look like faults.
TEST(HipHostSanitizer, WhatIsRightPassesInEveryShape) {
  const std::string text = R"(
__device__ int deep(int depth) {
  volatile int local[16];
  for (int i = 0; i < 16; ++i) local[i] = depth + i;
  if (depth == 0) return __shfl_xor(local[3], 1);
  __syncthreads();
  return deep(depth - 1) + local[5];
}
extern "C" __global__ void test(int* out, int n) {
  extern __shared__ int rest[];
  __shared__ int tile[512];
  const int i = threadIdx.x;
  for (int round = 0; round < 20; ++round) {
    tile[i] = rest[i] = round;
    __syncthreads();
    tile[i] += __ballot(i & 1) != 0 ? deep(round % 4) : 0;
    __syncthreads();
  }
  atomicAdd(out + n - 1, tile[i] & 1);
})";
  for (const Imitated device : {sm_80, gfx942}) {
    for (const unsigned threads : {1U, 50U, 512U}) {
      const auto right = run_sanitized(text, device, threads, 4 * threads);
      EXPECT_TRUE(right.ok()) << right.output << right.errors;
    }
  }
}

TEST(HipHostSanitizer, MisuseIsStillAFailure) {
  const auto refused = run_sanitized(kernel_with("if (threadIdx.x < 3) __syncthreads();", 0));
  EXPECT_EQ(refused.exit_code, 3) << refused.output << refused.errors;
  EXPECT_NE(refused.output.find("no thread of block"), std::string::npos) << refused.output;
}

#if !defined(__SANITIZE_ADDRESS__)  // otherwise every test process has the runtime
TEST(HipHostSanitizer, NeedsTheRuntimeInTheProcess) {
  const auto outcome =
      run_process({HIP_HOST_RUNNER, "0"}, kernel_with("out[0] = 1;", 0), std::chrono::seconds(60))
          .value();
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_NE(outcome.output.find("AddressSanitizer's runtime"), std::string::npos) << outcome.output;
}

TEST(HipHostSanitizer, ACompilerWithoutRuntimeIsTold) {
  const auto missing = sanitizer_environment("/nowhere/c++");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.failure().status, Status::unavailable);
  EXPECT_NE(missing.failure().message.find("/nowhere/c++"), std::string::npos);
}
#endif

TEST(HipHostSanitizer, SummariesAreOneLine) {
  EXPECT_EQ(sanitizer_summary("x\n==1==ERROR: y\nSUMMARY: AddressSanitizer: z a.hip:1 in k\nb\n"),
            "AddressSanitizer: z a.hip:1 in k");
  EXPECT_EQ(sanitizer_summary("x\na.hip:3:4: runtime error: shift\n  #0\n"),
            "a.hip:3:4: runtime error: shift");
  EXPECT_EQ(sanitizer_summary("nothing of that kind"), "");
}

}  // namespace
}  // namespace greta::test::sanitize_test
