// Protects: where repack_weights finds the integers, zero points and scales of AWQ and GPTQ, by
// words written as these projects do; orders of weights; panels of what is packed, and of rows of
// any weights; what is not a packing; and that the reference rejects what differs by one bit.

#include <gtest/gtest.h>

#include <array>

#include "kernels/model/problem_rules.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/kernels/row_cases.hpp"

namespace greta::test::repack_weights_test {
namespace {

const Operation& repack() {
  return built_in("repack_weights");
}

Result<Problem> problem_of(Attributes attributes, std::int64_t n, std::int64_t k) {
  attributes.emplace_back("n", std::to_string(n));
  attributes.emplace_back("k", std::to_string(k));
  return make_problem(repack(), {std::move(attributes), "f16", "f16"});
}

/// Runs the problem everywhere and calls body(outputs) for each result, which must be right.
template <typename Body>
void on_each(const Problem& problem, const std::vector<HostTensor>& inputs, const Body& body) {
  const auto reference = repack().reference(problem, inputs, 1);
  for (const std::string& id : unlike_devices()) {
    Device& on = device(id);
    for (const Config& config : one_of_each(repack(), problem, on.info(), 3)) {
      SCOPED_TRACE(id + " | " + config.text());
      const auto plan = repack().plan(problem, on.info(), config).value();
      const auto done = run_plan(on, plan, repack().tensors(problem), inputs).value();
      EXPECT_EQ(done.overrun, "");
      const Verdict verdict = reference->check(done.outputs);
      EXPECT_TRUE(verdict.passed) << verdict.detail;
      body(done.outputs);
    }
  }
}

/// The words of an input as a function of row and column.
Elements words(std::uint32_t (*word)(std::int64_t row, std::int64_t col)) {
  return [word](std::int64_t row, std::int64_t col) {
    return static_cast<double>(static_cast<std::int32_t>(word(row, col)));
  };
}

// AutoAWQ packs rows 0, 2, 4, 6, 1, 3, 5, 7 from the lowest nibble on.
TEST(RepackWeights, WordsOfAwqHaveEightRows) {
  const Problem problem = problem_of({{"group", "32"}, {"zeros", "groups"}}, 16, 64).value();
  const auto inputs = inputs_of(
      repack(), problem,
      {{"qweight", words([](std::int64_t k, std::int64_t word) -> std::uint32_t {
          if (word == 1) return 0x11111111U * static_cast<std::uint32_t>(k % 16);
          return k % 2 == 0 ? 0x75316420U : 0xFDB9ECA8U;  // row r has r, or of odd k r + 8
        })},
       {"qzeros", words([](std::int64_t g, std::int64_t) -> std::uint32_t {
          return g == 0 ? 0x75316420U : 0;
        })},
       {"qscales",
        [](std::int64_t g, std::int64_t row) { return static_cast<double>(100 * g + row); }}});
  on_each(problem, inputs, [](const std::vector<HostTensor>& out) {
    for (std::size_t row = 0; row < 16; ++row) {
      for (std::size_t i = 0; i < 32; ++i) {
        const std::size_t even = row < 8 ? row : 2 * i % 16;
        const std::size_t odd = row < 8 ? row + 8 : (2 * i + 1) % 16;
        ASSERT_EQ(out[0].at(row * 32 + i), static_cast<double>(even | odd << 4)) << row;
      }
      for (std::size_t g = 0; g < 2; ++g) {
        EXPECT_EQ(out[1].at(row * 2 + g), static_cast<double>(100 * g + row));
        EXPECT_EQ(out[2].at(row * 2 + g), g == 0 ? static_cast<double>(row % 8) : 0);
      }
    }
  });
}

// AutoGPTQ packs eight k from the lowest nibble on, and one less than a zero point.
TEST(RepackWeights, WordsOfGptqHaveEightWeights) {
  for (const char* packing : {"gptq", "gptq_v2"}) {
    const Problem problem =
        problem_of({{"packing", packing}, {"zeros", "groups"}, {"order", "given"}}, 8, 128).value();
    const auto inputs = inputs_of(
        repack(), problem,
        {{"qweight", words([](std::int64_t, std::int64_t row) -> std::uint32_t {
            return row == 7 ? 0xFFFFFFFFU : 0x76543210U;  // weight i has i % 8
          })},
         {"qzeros", words([](std::int64_t, std::int64_t) -> std::uint32_t { return 0xF6543210U; })},
         // From the last weight to the first one, but for some that there aren't.
         {"order", [](std::int64_t, std::int64_t i) {
            return i == 2 ? -1.0 : i == 5 ? 128.0 : static_cast<double>(127 - i);
          }}});
    const double more = std::string(packing) == "gptq" ? 1 : 0;
    on_each(problem, inputs, [&](const std::vector<HostTensor>& out) {
      const std::array<int, 8> first{0x67, 0x40, 0x03, 0x01,  // 7 6, - 4, 3 -, 1 0
                                     0x67, 0x45, 0x23, 0x01};
      for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(out[0].at(i), first.at(i));
      EXPECT_EQ(out[0].at(7 * 64 + 1), 0xF0);
      for (std::size_t row = 0; row < 8; ++row) {
        EXPECT_EQ(out[2].at(row), (row == 7 ? 15 : static_cast<double>(row)) + more);
      }
    });
  }
}

TEST(RepackWeights, BytesWithoutZeroPointsBecomeSigned) {
  const auto weight = words([](std::int64_t line, std::int64_t) -> std::uint32_t {
    return line == 0 ? 0x80FF7F00U : 0x80808080U;
  });
  for (const char* zeros : {"none", "groups"}) {
    const Problem problem =
        problem_of({{"packing", "gptq"}, {"weights", "int8"}, {"zeros", zeros}}, 8, 128).value();
    const auto inputs = inputs_of(
        repack(), problem,
        {{"qweight", weight},
         {"qzeros", words([](std::int64_t, std::int64_t) { return std::uint32_t{0xFF7F00FE}; })}});
    const bool flipped = std::string(zeros) == "none";
    on_each(problem, inputs, [&](const std::vector<HostTensor>& out) {
      const std::array<int, 5> stored{0x00, 0x7F, 0xFF, 0x80, 0x80};
      for (std::size_t i = 0; i < 5; ++i) {
        EXPECT_EQ(out[0].at(i), flipped ? stored.at(i) ^ 0x80 : stored.at(i));
      }
      if (flipped) return;
      const std::array<int, 4> points{0xFF, 0x01, 0x80, 0x00};  // 256 is no byte
      for (std::size_t row = 0; row < 8; ++row) EXPECT_EQ(out[2].at(row), points.at(row % 4));
    });
  }
}

/// B as the rows that it has otherwise, or of rows themselves.
std::vector<std::byte> panels_of_rows(const Problem& problem,
                                      const std::vector<HostTensor>& inputs) {
  const HostTensor* rows = &inputs[0];
  std::vector<HostTensor> outputs;
  if (problem.attribute("packing", "awq") != "rows") {
    Problem same = problem;
    std::erase_if(same.attributes, [](const auto& one) { return one.first == "to"; });
    const auto plan =
        repack().plan(same, device().info(), repack().default_config(same, device().info()));
    outputs = run_plan(device(), plan.value(), repack().tensors(same), inputs).value().outputs;
    rows = &outputs[0];
  }
  std::vector<std::byte> panels(rows->data.size());
  const auto lines = static_cast<std::size_t>(rows->spec.rows), bytes = panels.size() / lines;
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const std::size_t row = i / bytes, at = i % bytes;
    panels[row / 16 * 16 * bytes + at / 16 * 256 + row % 16 * 16 + at % 16] = rows->data[i];
  }
  return panels;
}

TEST(RepackWeights, PanelsHaveUnitsOfSixteenRows) {
  for (const Attributes& attributes : {
           Attributes{{"zeros", "groups"}},
           {{"packing", "gptq"}, {"weights", "int8"}, {"group", "32"}},
           {{"packing", "gptq_v2"}, {"order", "given"}},
           {{"packing", "rows"}},
           {{"packing", "rows"}, {"weights", "int8"}},
           {{"packing", "rows"}, {"weights", "mxfp4"}},
           {{"packing", "rows"}, {"weights", "f16"}},
           {{"packing", "rows"}, {"weights", "bf16"}},
       }) {
    Attributes with = attributes;
    with.emplace_back("to", "panels");
    const auto read = problem_of(with, 80, 384);
    ASSERT_TRUE(read) << read.failure().message;
    for (const std::uint64_t seed : {1, 2}) {
      const auto inputs = repack().inputs(*read, seed, kernels::InputStyle::plain);
      const auto expected = panels_of_rows(*read, inputs);
      on_each(*read, inputs,
              [&](const std::vector<HostTensor>& out) { EXPECT_EQ(out[0].data, expected); });
    }
  }
}

TEST(RepackWeights, RefusesWhatIsNoPacking) {
  const auto refused = [](const Attributes& attributes, std::int64_t n, std::int64_t k) {
    const auto problem = problem_of(attributes, n, k);
    return problem ? std::string() : problem.failure().message;
  };
  EXPECT_EQ(refused({}, 8, 128), "");
  EXPECT_NE(refused({{"weights", "int8"}}, 8, 128).find("packing=awq has 4 bits"),
            std::string::npos);
  EXPECT_NE(refused({}, 12, 128).find("must be a multiple of 8"), std::string::npos);
  EXPECT_NE(refused({}, 8, 192).find("must be a multiple of 128"), std::string::npos);
  const auto of_panels = [&](Attributes more, std::int64_t n, std::int64_t k) {
    more.emplace_back("to", "panels");
    return refused(more, n, k);
  };
  EXPECT_EQ(of_panels({{"packing", "rows"}}, 16, 32), "");
  EXPECT_EQ(of_panels({{"packing", "rows"}, {"weights", "bf16"}}, 16, 40), "");
  EXPECT_NE(of_panels({}, 24, 128).find("must be a multiple of 16"), std::string::npos);
  EXPECT_NE(of_panels({{"packing", "rows"}}, 24, 128).find("must be a multiple of 16"),
            std::string::npos);
  EXPECT_NE(of_panels({{"packing", "rows"}}, 16, 48).find("k a multiple of 32"), std::string::npos);
  EXPECT_NE(
      of_panels({{"packing", "rows"}, {"zeros", "groups"}}, 16, 128).find("not with packing=rows"),
      std::string::npos);
  EXPECT_NE(of_panels({{"weights", "f16"}}, 16, 128).find("needs packing=rows"), std::string::npos);
  EXPECT_NE(refused({{"packing", "rows"}}, 16, 128).find("packing=rows needs to=panels"),
            std::string::npos);
}

TEST(RepackWeights, ReferenceRejectsOneBit) {
  const Problem problem = problem_of({{"zeros", "groups"}}, 24, 256).value();
  const auto inputs = repack().inputs(problem, 5);
  const auto reference = repack().reference(problem, inputs, 1);
  const auto plan =
      repack().plan(problem, device().info(), repack().default_config(problem, device().info()));
  auto outputs =
      run_plan(device(), plan.value(), repack().tensors(problem), inputs).value().outputs;
  EXPECT_TRUE(reference->check(outputs).passed);
  for (HostTensor& tensor : outputs) {
    std::byte& byte = tensor.data[tensor.data.size() / 2];
    byte ^= std::byte{1};
    EXPECT_FALSE(reference->check(outputs).passed) << tensor.spec.name;
    byte ^= std::byte{1};
  }
}

}  // namespace
}  // namespace greta::test::repack_weights_test
