// Protects: a chain of tensors that don't fit is refused in one line, before anything is recorded.
#include <gtest/gtest.h>

#include <tuple>

#include "runtime/pipeline/compute/chains.hpp"
#include "tests/layers.hpp"

namespace greta::test::chain_checks_test {
namespace {

using namespace greta::runtime;

Tensor tensor(const Shape& shape) {
  return Tensor::placeholder(DType::f32, shape);
}

/// Returns what chain_of() says of a chain; empty if it accepts it.
template <typename Chain>
std::string refused(const Chain& chain) {
  try {
    static_cast<void>(chain_of(chain));
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(ChainChecks, GatesAndUpsAreHalves) {
  GateUp chain;
  chain.x = tensor({4, 64});
  chain.weights = tensor({128, 64});
  EXPECT_EQ(refused(chain), "");
  chain.weights = tensor({127, 64});
  EXPECT_NE(refused(chain).find("two equal parts"), std::string::npos);
  chain.weights = tensor({128, 64, 1});
  EXPECT_NE(refused(chain).find("weights must have 2 dimensions"), std::string::npos);
  chain.weights = {};
  EXPECT_NE(refused(chain).find("weights must have 2 dimensions"), std::string::npos);
}

TEST(ChainChecks, KeysAndValuesAreEqual) {
  Qkv chain;
  chain.x = tensor({4, 64});
  chain.weights = tensor({128, 64});
  chain.queries = 64;
  EXPECT_EQ(refused(chain), "");
  for (const std::int64_t queries : {-2, 63, 128, 200}) {
    chain.queries = queries;
    EXPECT_NE(refused(chain), "") << queries;
  }
}

// Their products have no prologue, or no epilogue either: such a chain is a question of its own, so
// that a choice that was measured with numbers isn't taken for it.
TEST(ChainChecks, QuantisedWeightsMakeAnotherChain) {
  const MatrixFormat q8_0{WeightFormat::q8_0}, q4_0{WeightFormat::q4_0};
  const auto make = [](DType dtype, const Shape& shape, Memory) {
    return Tensor::placeholder(dtype, shape);
  };
  GateUp chain;
  chain.x = tensor({4, 64});
  chain.weights = tensor({128, 64});
  const std::string dense = chain_of(chain).key();
  for (const auto& [gate, up, segments] :
       {std::tuple{q8_0, q8_0, 1}, {q8_0, q4_0, 2}, {MatrixFormat{}, q8_0, 2}}) {
    chain.weights = make_projection(DType::f32, 64, {{64, gate}, {64, up}}, make);
    EXPECT_EQ(chain.weights.segments.size(), static_cast<std::size_t>(segments));
    EXPECT_EQ(chain.weights.rows(), 128);
    const Problem problem = chain_of(chain);
    EXPECT_EQ(problem.attribute("weights", "dense"), segments == 1 ? "quantised" : "others");
    EXPECT_NE(problem.key(), dense);
  }
}

// Rows of one part are an operand of their own where another part has another format, and then
// begin at multiples of 16 bytes.
TEST(ChainChecks, PartsOfAProjectionAreAligned) {
  const MatrixFormat q8_0{WeightFormat::q8_0}, q4_0{WeightFormat::q4_0};
  const auto make = [](DType dtype, const Shape& shape, Memory) {
    return Tensor::placeholder(dtype, shape);
  };
  const auto segments = [&](std::int64_t rows, const MatrixFormat& last) {
    return make_projection(DType::f16, 32, {{rows, q8_0}, {8, q8_0}, {8, last}}, make)
        .segments.size();
  };
  EXPECT_EQ(segments(8, q4_0), 2U);  // 8 rows of 34 bytes
  EXPECT_EQ(segments(4, q4_0), 3U);  // 136 bytes
  EXPECT_EQ(segments(4, q8_0), 1U);  // which are multiplied together only
}

TEST(ChainChecks, OperandsHaveTheirDimensions) {
  ResidualNorm sum;
  sum.x.numbers = tensor({4, 96});
  sum.weights = tensor({64, 96});
  sum.residual = tensor({64});
  EXPECT_NE(refused(sum).find("residual must have 2 dimensions"), std::string::npos);
  RopeKv rope;
  rope.heads = tensor({1, 4, 12, 8});
  rope.queries = 8;
  rope.keys = rope.values = tensor({1, 2, 16, 8});
  EXPECT_EQ(refused(rope), "");
  rope.queries = 9;
  EXPECT_NE(refused(rope).find("two equal parts"), std::string::npos);
  rope.heads = tensor({4, 12, 8});
  EXPECT_NE(refused(rope).find("heads must have 4 dimensions"), std::string::npos);
}

}  // namespace
}  // namespace greta::test::chain_checks_test
