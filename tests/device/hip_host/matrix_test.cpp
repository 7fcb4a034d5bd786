// Protects: matrix instructions of hip-host give the results of plain loops, with the register
// layouts of the manuals. The test gathers each lane's registers and reassembles the results.

#include <functional>
#include <random>

#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::matrix_test {
namespace {

/// Row and column of a matrix element.
struct Place {
  int row, column;
};

/// An instruction D = A B + C. The maps return the place of element `e` of a lane's registers.
struct Instruction {
  Imitated device;
  std::string call;  ///< of greta_host, for register arrays a, b, c, d
  bool bf16;
  int m, n, k;
  int a_elements, b_elements, results;
  std::function<Place(int lane, int e)> a, b, d;
};

void PrintTo(const Instruction& instruction, std::ostream* to) {
  *to << instruction.call;
}

std::vector<Instruction> with_both_types(Instruction instruction, const std::string& name) {
  Instruction other = instruction;
  instruction.call = name + "_f16";
  instruction.bf16 = false;
  other.call = name + "_bf16";
  other.bf16 = true;
  return {instruction, other};
}

std::vector<Instruction> instructions() {
  std::vector<Instruction> all;
  const auto add = [&](const std::vector<Instruction>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  // PTX manual, "Matrix Fragments for mma.m16n8k16 with floating point type": groupID = lane / 4.
  const auto mma_d = [](int lane, int e) {
    return Place{lane / 4 + (e < 2 ? 0 : 8), lane % 4 * 2 + e % 2};
  };
  add(with_both_types(
      {sm_80, "", false, 16, 8, 16, 8, 4, 4,
       [](int lane, int e) {
         const bool upper = e < 2 || (e >= 4 && e < 6);
         return Place{lane / 4 + (upper ? 0 : 8), lane % 4 * 2 + e % 2 + (e < 4 ? 0 : 8)};
       },
       [](int lane, int e) {
         return Place{lane % 4 * 2 + e % 2 + (e < 2 ? 0 : 8), lane / 4};
       },
       mma_d},
      "mma_m16n8k16"));
  add(with_both_types({sm_80, "", false, 16, 8, 8, 4, 2, 4,
                       [](int lane, int e) {
                         return Place{lane / 4 + (e < 2 ? 0 : 8), lane % 4 * 2 + e % 2};
                       },
                       [](int lane, int e) {
                         return Place{lane % 4 * 2 + e, lane / 4};
                       },
                       mma_d},
                      "mma_m16n8k8"));
  // CDNA3 manual, "Dense matrix layouts"; element e of a lane.
  const auto mfma_16_d = [](int lane, int e) { return Place{lane / 16 * 4 + e, lane % 16}; };
  add(with_both_types({gfx942, "", false, 16, 16, 16, 4, 4, 4,
                       [](int lane, int e) {
                         return Place{lane % 16, lane / 16 * 4 + e};
                       },
                       [](int lane, int e) {
                         return Place{lane / 16 * 4 + e, lane % 16};
                       },
                       mfma_16_d},
                      "mfma_f32_16x16x16"));
  add(with_both_types({gfx942, "", false, 32, 32, 8, 4, 4, 16,
                       [](int lane, int e) {
                         return Place{lane % 32, lane / 32 * 4 + e};
                       },
                       [](int lane, int e) {
                         return Place{lane / 32 * 4 + e, lane % 32};
                       },
                       [](int lane, int e) {
                         return Place{e / 4 * 8 + lane / 32 * 4 + e % 4, lane % 32};
                       }},
                      "mfma_f32_32x32x8"));
  // RDNA3 manual, "WMMA": lanes 16 to 31 repeat A's rows and B's columns.
  add(with_both_types({gfx1100, "", false, 16, 16, 16, 16, 16, 8,
                       [](int lane, int e) {
                         return Place{lane % 16, e};
                       },
                       [](int lane, int e) {
                         return Place{e, lane % 16};
                       },
                       [](int lane, int e) {
                         return Place{2 * e + lane / 16, lane % 16};
                       }},
                      "wmma_f32_16x16x16"));
  // RDNA4 manual.
  add(with_both_types({gfx1201, "", false, 16, 16, 16, 8, 8, 8,
                       [](int lane, int e) {
                         return Place{lane % 16, lane / 16 * 8 + e};
                       },
                       [](int lane, int e) {
                         return Place{lane / 16 * 8 + e, lane % 16};
                       },
                       [](int lane, int e) {
                         return Place{lane / 16 * 8 + e, lane % 16};
                       }},
                      "wmma_f32_16x16x16"));
  return all;
}

/// Returns the bits of a small integer, which both formats represent exactly.
std::uint16_t bits_of(int value, bool bf16) {
  const auto number = static_cast<float>(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof bits);
  if (bf16) return static_cast<std::uint16_t>(bits >> 16);
  if (value == 0) return 0;
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000) |
                                    (((bits >> 13) & 0x3ffff) - (112 << 10)));
}

using Matrix = std::vector<std::vector<int>>;

Matrix random_matrix(int rows, int columns, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> number(-60, 60);  // sums of products are exact in f32
  Matrix matrix(static_cast<std::size_t>(rows),
                std::vector<int>(static_cast<std::size_t>(columns)));
  for (auto& row : matrix) {
    for (int& value : row) value = number(random);
  }
  return matrix;
}

int at(const Matrix& matrix, Place place) {
  return matrix.at(static_cast<std::size_t>(place.row)).at(static_cast<std::size_t>(place.column));
}

Matrix product(const Matrix& a, const Matrix& b, Matrix c) {
  for (std::size_t i = 0; i < c.size(); ++i) {
    for (std::size_t j = 0; j < c[i].size(); ++j) {
      for (std::size_t k = 0; k < b.size(); ++k) c[i][j] += a[i][k] * b[k][j];
    }
  }
  return c;
}

std::string kernel_for(const Instruction& op) {
  const auto array = [](const char* type, const char* name, int count) {
    return std::string("  ") + type + " " + name + "[" + std::to_string(count) + "];\n";
  };
  return R"(
template <typename T, int n>
void copy(T (&to)[n], const T* from) {
  for (int i = 0; i < n; ++i) to[i] = from[n * threadIdx.x + i];
}
extern "C" __global__ void test(const uint32_t* in_a, const uint32_t* in_b, const float* in_c,
                                float* out) {
)" + array("uint32_t", "a", op.a_elements / 2) +
         array("uint32_t", "b", op.b_elements / 2) + array("float", "c", op.results) +
         array("float", "d", op.results) +
         "  copy(a, in_a);\n  copy(b, in_b);\n  copy(c, in_c);\n" + "  greta_host::" + op.call +
         "(d, a, b, c);\n" + "  for (int i = 0; i < " + std::to_string(op.results) + "; ++i) out[" +
         std::to_string(op.results) + " * threadIdx.x + i] = d[i];\n}\n";
}

class HipHostMatrix : public ::testing::TestWithParam<Instruction> {};
INSTANTIATE_TEST_SUITE_P(All, HipHostMatrix, ::testing::ValuesIn(instructions()),
                         [](const auto& test) {
                           return std::to_string(test.param.device) + "_" + test.param.call;
                         });

TEST_P(HipHostMatrix, MultipliesAsTheManualSays) {
  const Instruction& op = GetParam();
  HostDevice host(op.device);
  const int lanes = static_cast<int>(wave_of(op.device));
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const Matrix a = random_matrix(op.m, op.k, seed), b = random_matrix(op.k, op.n, seed + 10),
                 c = random_matrix(op.m, op.n, seed + 20);
    std::vector<std::uint16_t> a_registers, b_registers;
    std::vector<float> c_registers;
    for (int lane = 0; lane < lanes; ++lane) {
      for (int e = 0; e < op.a_elements; ++e) {
        a_registers.push_back(bits_of(at(a, op.a(lane, e)), op.bf16));
      }
      for (int e = 0; e < op.b_elements; ++e) {
        b_registers.push_back(bits_of(at(b, op.b(lane, e)), op.bf16));
      }
      for (int e = 0; e < op.results; ++e) {
        c_registers.push_back(static_cast<float>(at(c, op.d(lane, e))));
      }
    }
    const auto in_a = host.upload(a_registers), in_b = host.upload(b_registers);
    const auto in_c = host.upload(c_registers);
    const auto out = host.upload(std::vector<float>(c_registers.size()));
    host.run(HostDevice::source(kernel_for(op), {static_cast<unsigned>(lanes), 1, 1}), {1, 1, 1},
             in_a, in_b, in_c, out)
        .value();
    const auto result = host.download<float>(out);
    const Matrix d = product(a, b, c);
    for (int lane = 0; lane < lanes; ++lane) {
      for (int e = 0; e < op.results; ++e) {
        ASSERT_EQ(result[static_cast<std::size_t>(lane * op.results + e)],
                  static_cast<float>(at(d, op.d(lane, e))))
            << "lane " << lane << " element " << e;
      }
    }
  }
}

TEST(HipHostMatrices, F32) {
  HostDevice host(gfx942);
  const Matrix a = random_matrix(16, 4, 1), b = random_matrix(4, 16, 2);
  std::vector<float> a_registers, b_registers;
  for (int lane = 0; lane < 64; ++lane) {
    a_registers.push_back(static_cast<float>(at(a, {lane % 16, lane / 16})));
    b_registers.push_back(static_cast<float>(at(b, {lane / 16, lane % 16})));
  }
  const auto in_a = host.upload(a_registers), in_b = host.upload(b_registers);
  const auto out = host.upload(std::vector<float>(256));
  host.run(HostDevice::source(R"(
extern "C" __global__ void test(const float* a, const float* b, float* out) {
  float d[4] = {1, 1, 1, 1};
  greta_host::mfma_f32_16x16x4_f32(d, a[threadIdx.x], b[threadIdx.x], d);
  for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
})",
                              {64, 1, 1}),
           {1, 1, 1}, in_a, in_b, out)
      .value();
  const auto result = host.download<float>(out);
  const Matrix d = product(a, b, Matrix(16, std::vector<int>(16, 1)));
  for (int lane = 0; lane < 64; ++lane) {
    for (int e = 0; e < 4; ++e) {
      ASSERT_EQ(result[static_cast<std::size_t>(4 * lane + e)],
                static_cast<float>(at(d, {lane / 16 * 4 + e, lane % 16})));
    }
  }
}

// Subnormal, huge and special numbers are converted unchanged.
TEST(HipHostMatrices, NumbersOfEverySize) {
  HostDevice host(sm_80);
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  const auto in = host.upload(halves);
  const auto out = host.upload(std::vector<std::uint32_t>(65536 * 2));
  host.run(HostDevice::source(R"(
extern "C" __global__ void test(const uint16_t* in, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  _Float16 half;
  __builtin_memcpy(&half, in + i, 2);
  out[2 * i] = greta_host::float_of_f16(in[i]);
  out[2 * i + 1] = greta_host::float_of_f16(greta_host::f16_of_float(half));
})",
                              {256, 1, 1}),
           {256, 1, 1}, in, out)
      .value();
  const auto result = host.download<float>(out);
  for (unsigned i = 0; i < 65536; ++i) {
    const unsigned exponent = i >> 10 & 31, fraction = i & 1023;
    const float sign = i < 32768 ? 1.0F : -1.0F;
    const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                          : std::ldexp(static_cast<float>(1024 + fraction),
                                                       static_cast<int>(exponent) - 25);
    for (const float value : {result[2 * i], result[2 * i + 1]}) {
      if (exponent == 31 && fraction != 0) {
        ASSERT_TRUE(std::isnan(value)) << i;
      } else if (exponent == 31) {
        ASSERT_EQ(value, sign * std::numeric_limits<float>::infinity());
      } else {
        ASSERT_EQ(value, sign * magnitude) << i;
      }
    }
  }
}

TEST(HipHostMatrices, LdmatrixLoadsEveryForm) {
  HostDevice host(sm_80);
  // Rows of eight elements with a stride of 16, which the lanes address in permuted order.
  std::vector<std::uint16_t> numbers(32 * 16);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::uint16_t>(7 * i);
  const auto in = host.upload(numbers);
  const auto out = host.upload(std::vector<std::uint32_t>(32 * 8 * 4));
  host.run(HostDevice::source(R"(
template <int n>
void load(uint32_t* out, const uint16_t* rows) {
  // Lanes beyond the n matrices give addresses that nobody reads.
  const int lane = threadIdx.x;
  const uint16_t* const row = lane < 8 * n ? rows + 16 * ((lane * 5) % 32) : nullptr;
  uint32_t d[n], t[n];
  greta_host::ldmatrix(d, row);
  greta_host::ldmatrix_trans(t, row);
  for (int j = 0; j < n; ++j) {
    out[8 * lane + j] = d[j];
    out[8 * lane + 4 + j] = t[j];
  }
}
extern "C" __global__ void test(const uint16_t* in, uint32_t* out) {
  __shared__ __attribute__((aligned(16))) uint16_t rows[32 * 16];
  for (int i = threadIdx.x; i < 32 * 16; i += 32) rows[i] = in[i];
  __syncthreads();
  load<1>(out, rows);
  load<2>(out + 256, rows);
  load<4>(out + 512, rows);
})",
                              {32, 1, 1}),
           {1, 1, 1}, in, out)
      .value();
  const auto result = host.download<std::uint32_t>(out);
  const auto element = [&](unsigned matrix, unsigned row, unsigned column) {
    return std::uint32_t{numbers[16 * ((8 * matrix + row) * 5 % 32) + column]};
  };
  unsigned form = 0;
  for (const unsigned n : {1U, 2U, 4U}) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned j = 0; j < n; ++j) {
        const unsigned line = lane / 4, pair = lane % 4 * 2;
        const std::uint32_t* const mine = &result[256 * form + 8 * lane];
        ASSERT_EQ(mine[j], element(j, line, pair) | element(j, line, pair + 1) << 16);
        ASSERT_EQ(mine[4 + j], element(j, pair, line) | element(j, pair + 1, line) << 16);
      }
    }
    ++form;
  }
}

/// Each group of 16 lanes transposes four rows of 16 elements, wherever their pieces are.
TEST(HipHostMatrices, TransposedReadsGiveColumns) {
  HostDevice host(gfx942);
  const auto out = host.upload(std::vector<std::uint32_t>(128));
  host.run(HostDevice::source(R"(
extern "C" __global__ void test(uint32_t* out) {
  __shared__ __attribute__((aligned(16))) uint16_t rows[16][24];
  const int i = threadIdx.x, row = i / 4;
  for (int e = 0; e < 4; ++e) rows[row][4 * (i % 4) + e] = row * 100 + 4 * (i % 4) + e;
  __syncthreads();
  uint32_t d[2];
  greta_host::read_transposed(d, &rows[15 - row][4 * (i % 4)]);
  for (int w = 0; w < 2; ++w) out[2 * i + w] = d[w];
})",
                              {64, 1, 1}),
           {1, 1, 1}, out)
      .value();
  const auto result = host.download<std::uint32_t>(out);
  for (unsigned lane = 0; lane < 64; ++lane) {
    for (unsigned r = 0; r < 4; ++r) {
      const unsigned row = 15 - (lane / 16 * 4 + r);
      ASSERT_EQ(result[2 * lane + r / 2] >> 16 * (r % 2) & 0xffff, row * 100 + lane % 16) << lane;
    }
  }
}

TEST(HipHostMatrices, Gfx12LoadsTranspose) {
  HostDevice host(gfx1201);
  std::vector<std::uint16_t> rows(std::size_t{16} * 24);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint16_t>(i);
  const auto in = host.upload(rows);
  const auto out = host.upload(std::vector<std::uint32_t>(std::size_t{32} * 4));
  host.run(HostDevice::source(R"(
extern "C" __global__ void test(const uint16_t* rows, uint32_t* out) {
  const int i = threadIdx.x;
  uint32_t d[4];
  greta_host::load_transposed(d, rows + (15 - i / 16 * 8 - i % 8) * 24 + i / 8 % 2 * 8);
  for (int w = 0; w < 4; ++w) out[4 * i + w] = d[w];
})",
                              {32, 1, 1}),
           {1, 1, 1}, in, out)
      .value();
  const auto result = host.download<std::uint32_t>(out);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned r = 0; r < 8; ++r) {
      const unsigned row = 15 - lane / 16 * 8 - r, element = lane / 8 % 2 * 8 + lane % 8;
      ASSERT_EQ(result[4 * lane + r / 2] >> 16 * (r % 2) & 0xffff, row * 24 + element) << lane;
    }
  }
}

struct Misuse {
  Imitated device;
  unsigned threads;
  std::string body, message;
};

TEST(HipHostMatrices, MisuseIsTold) {
  const std::string mma =
      "uint32_t a[4] = {}, b[2] = {}; float c[4] = {}; greta_host::mma_m16n8k16_f16(c, a, b, c);";
  const Misuse cases[] = {
      {sm_80, 16, mma, "mma.m16n8k16 at test.hip:1: needs every lane of the wave"},
      {sm_80, 32, "if (threadIdx.x == 3) return; " + mma, "needs every lane of the wave"},
      {sm_80, 32, "__shared__ uint16_t s[512]; uint32_t d[4]; greta_host::ldmatrix(d, s + 4);",
       "ldmatrix at test.hip:1: a row is not aligned to 16"},
      {sm_80, 32, "uint32_t d[4]; greta_host::ldmatrix(d, out);", "a row is not in shared memory"},
      {gfx942, 64, "uint32_t d[2]; greta_host::read_transposed(d, out);",
       "a piece of a row is not in shared memory"},
      {gfx942, 64,
       "__shared__ uint16_t s[8]; uint32_t d[2]; greta_host::read_transposed(d, s + 1);",
       "a piece of a row is not aligned to 8"},
      {gfx1201, 32, "uint32_t d[4]; greta_host::load_transposed(d, (const char*)out + 2);",
       "load_transposed at test.hip:1: a row is not aligned to 16"},
      {gfx1201, 32, "__shared__ uint16_t s[8]; uint32_t d[4]; greta_host::load_transposed(d, s);",
       "a row is in shared memory"},
      {gfx1100, 32,
       "uint32_t a[8] = {threadIdx.x}, b[8] = {}; float c[8] = {}; "
       "greta_host::wmma_f32_16x16x16_f16(c, a, b, c);",
       "lanes 16 to 31 must repeat the operands of lanes 0 to 15"},
  };
  for (const Misuse& misuse : cases) {
    HostDevice host(misuse.device);
    const auto out = host.upload(std::vector<float>(64));
    const auto ran = host.run(
        HostDevice::source("extern \"C\" __global__ void test(float* out) {" + misuse.body + "}",
                           {misuse.threads, 1, 1}),
        {1, 1, 1}, out);
    ASSERT_FALSE(ran) << misuse.body;
    EXPECT_EQ(ran.failure().status, Status::device_lost);
    EXPECT_NE(ran.failure().message.find(misuse.message), std::string::npos)
        << ran.failure().message;
  }
}

TEST(HipHostMatrices, OtherDevicesInstructionsDoNotCompile) {
  HostDevice host(gfx1201);
  const auto out = host.upload(std::vector<float>(64));
  const auto ran = host.run(HostDevice::source(R"(
extern "C" __global__ void test(float* out) {
  float d[4] = {};
  greta_host::mfma_f32_16x16x4_f32(d, 1, 2, d);
})",
                                               {32, 1, 1}),
                            {1, 1, 1}, out);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.failure().status, Status::compile);
  EXPECT_NE(ran.failure().message.find("test.hip:4"), std::string::npos) << ran.failure().message;
}

}  // namespace
}  // namespace greta::test::matrix_test
