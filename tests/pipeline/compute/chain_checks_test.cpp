// Protects: a chain of tensors that don't fit is refused in one line, before anything is recorded.
#include <gtest/gtest.h>

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

TEST(ChainChecks, OperandsHaveTheirDimensions) {
  ResidualNorm sum;
  sum.x = tensor({4, 96});
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
