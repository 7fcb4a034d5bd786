// Protects: problem keys are canonical, are parsed back exactly, and errors in them are explained.

#include "kernels/model/problem.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "kernels/model/random.hpp"
#include "tests/layers.hpp"

namespace greta::test::problem_test {
namespace {

Problem example() {
  return {"gemm",
          DType::f16,
          DType::f32,
          {{"layout", "nt"}, {"alpha", "2"}, {"epilogue", "bias,silu"}},
          {{"m", 1}, {"n", 2}, {"k", 3}}};
}

TEST(Problem, KeyIsCanonical) {
  EXPECT_EQ(example().key(),
            "gemm dtype=f16 out=f32 layout=nt alpha=\"2\" epilogue=bias,silu m=1 n=2 k=3");
  EXPECT_EQ(example().dims_text(), "m=1 n=2 k=3");
  EXPECT_EQ((Problem{"nop", DType::f32, DType::f32, {}, {}}).key(), "nop dtype=f32 out=f32");
}

TEST(Problem, LooksUpDimensionsAndAttributes) {
  EXPECT_EQ(example().dim("n"), 2);
  EXPECT_THROW(example().dim("batch"), Error);
  EXPECT_EQ(example().attribute("layout", "nn"), "nt");
  EXPECT_EQ(example().attribute("beta", "0"), "0");
}

std::string random_text(std::mt19937_64& random, std::string_view letters, std::uint64_t most) {
  std::string text;
  const std::uint64_t length = 1 + uniform_below(random, most);
  while (text.size() < length) text += letters[uniform_below(random, letters.size())];
  return text;
}

Problem random_problem(std::mt19937_64& random) {
  const auto type = [&] { return static_cast<DType>(uniform_below(random, 3)); };
  Problem problem{random_text(random, "abcxyz_019", 8), type(), type(), {}, {}};
  for (std::uint64_t i = uniform_below(random, 4); i > 0; --i) {
    problem.attributes.emplace_back(random_text(random, "abc_", 4) + std::to_string(i),
                                    random_text(random, "0123456789-+.,=ab:", 6));
  }
  for (std::uint64_t i = uniform_below(random, 4); i > 0; --i) {
    problem.dims.emplace_back("d" + std::to_string(i), static_cast<std::int64_t>(random()));
  }
  return problem;
}

TEST(Problem, RandomKeysAreReadBack) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 5000; ++i) {
    const Problem problem = random_problem(random);
    const auto parsed = Problem::parse(problem.key());
    ASSERT_TRUE(parsed) << parsed.failure().message;
    ASSERT_EQ(parsed.value(), problem);
  }
}

TEST(Problem, DamagedKeysAreRejectedOrCanonical) {
  std::mt19937_64 random(12);
  int rejected = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string key = random_problem(random).key();
    for (std::uint64_t damage = uniform_below(random, 3); damage < 3; ++damage) {
      const std::size_t at = uniform_below(random, key.size());
      switch (uniform_below(random, 3)) {
        case 0:
          key.erase(at, 1 + uniform_below(random, 3));
          break;
        case 1:
          key.insert(at, 1, " =\"a1\n\t"[uniform_below(random, 7)]);
          break;
        default:
          key[at] = static_cast<char>(uniform_below(random, 256));
          break;
      }
      if (key.empty()) break;
    }
    const auto parsed = Problem::parse(key);
    if (parsed) {
      ASSERT_EQ(parsed->key(), key);
    } else {
      ++rejected;
      ASSERT_EQ(parsed.failure().message.find('\n'), std::string::npos);
    }
  }
  EXPECT_GT(rejected, 5000);
}

TEST(Problem, ParseSaysWhatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "it must begin with an operation's name"},
      {"dtype=f32", "it must begin with an operation's name"},
      {"gemm", "\"\" must be dtype= and f32, f16 or bf16"},
      {"gemm dtype=f8 out=f32 m=1", "\"dtype=f8\" must be dtype= and f32, f16 or bf16"},
      {"gemm dtype=f32 m=1", "\"m=1\" must be out= and f32, f16 or bf16"},
      {"gemm dtype=f32 out=f32 m=1 m=2", "m is given twice"},
      {"gemm dtype=f32 out=f32 m", "\"m\" is not name=value"},
      {"gemm dtype=f32 out=f32 m=", "\"m=\" is not name=value"},
      {"gemm dtype=f32 out=f32  m=1", "\"\" is not name=value"},
      {"gemm dtype=f32 out=f32 m=1 ", "it ends with a space"},
      {"gemm dtype=f32 out=f32 m=007", "\"m=007\" has no readable value"},
      {"gemm dtype=f32 out=f32 m=99999999999999999999",
       "\"m=99999999999999999999\" has no "
       "readable value"},
      {"gemm dtype=f32 out=f32 layout=\"nn\" m=1", "\"layout=\"nn\"\" has no readable value"},
      {"gemm dtype=f32 out=f32 m=1 layout=nn", "attribute layout stands after a dimension"},
  };
  for (const auto& [key, why] : cases) {
    const auto parsed = Problem::parse(key);
    ASSERT_FALSE(parsed) << key;
    EXPECT_EQ(parsed.failure().message, "problem \"" + key + "\": " + why);
  }
}

}  // namespace
}  // namespace greta::test::problem_test
