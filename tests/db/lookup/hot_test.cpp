// Protects: a second lookup finds the same answer without allocation, from any thread, for any
// number of problems.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "tests/db/lookup/allocations.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::hot_test {
namespace {

using test::allocations;
using test::card;
using test::gemm;
using test::plain_config;
using test::winner;

std::vector<Problem> many_problems(int count) {
  std::vector<Problem> problems;
  for (int i = 0; i < count; ++i) problems.push_back(gemm(1 + i % 700, 64, 8 * (1 + i / 700)));
  return problems;
}

TEST(HotLookup, AllocatesNothing) {
  const auto here = card("gfx942", "aa");
  test::Databases databases;
  databases.add(winner(gemm(64, 64, 64), here, plain_config(1)));
  const auto lookup = databases.open(here);
  auto half = gemm(64, 64, 64);
  half.dtype = half.out_dtype = DType::f16;
  half.attributes = {{"layout", "nt"}, {"epilogue", "bias,residual,silu"}};
  for (const auto& problem : {gemm(64, 64, 64), gemm(63, 64, 64), half}) {
    const Answer& first = lookup.find(problem);
    const auto before = allocations();
    const Answer& second = lookup.find(problem);
    EXPECT_EQ(allocations(), before) << problem.key();
    EXPECT_EQ(&first, &second);
  }
}

TEST(HotLookup, ThreadsFindTheSameAnswersWhileOthersAreComputed) {
  const auto here = card("gfx942", "aa");
  test::Databases databases;
  databases.add(winner(gemm(64, 64, 64), here, plain_config(1)));
  const auto lookup = databases.open(here);
  const auto problems = many_problems(1200);
  constexpr std::size_t thread_count = 4;
  std::vector<std::vector<const Answer*>> found(thread_count);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      found[t].resize(problems.size());
      std::mt19937_64 random(t);
      std::vector<std::size_t> order(problems.size());
      for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t i : order) found[t][i] = &lookup.find(problems[i]);
      for (const std::size_t i : order) {
        if (found[t][i] != &lookup.find(problems[i])) found[t][i] = nullptr;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t i = 0; i < problems.size(); ++i) {
    ASSERT_NE(found[0][i], nullptr);
    EXPECT_EQ(found[0][i]->origin == LookupOrigin::exact, problems[i] == gemm(64, 64, 64));
    for (std::size_t t = 1; t < thread_count; ++t) EXPECT_EQ(found[t][i], found[0][i]);
  }
}

}  // namespace
}  // namespace greta::test::hot_test
