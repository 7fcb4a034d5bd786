// Protects: the adversarial inputs of every operation have the properties that their names state,
// and the references know the results of correct kernels for them.

#include "kernels/model/adversarial.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/problem_rules.hpp"
#include "kernels/model/random.hpp"
#include "kernels/model/weight_panels.hpp"
#include "kernels/reference/dequantized.hpp"
#include "kernels/reference/sample_integers.hpp"
#include "kernels/sampling/random_problem.hpp"
#include "kernels/templates/attention/options.hpp"
#include "tests/catalog.hpp"

namespace greta::test::adversarial_test {
namespace {

/// Properties of the rows of tensors.
struct Seen {
  void add(const HostTensor& tensor) {
    const TensorSpec& spec = tensor.spec;
    for (std::int64_t r = 0; r < spec.rows; ++r) {
      const double first =
          spec.cols > 0 ? tensor.at(static_cast<std::size_t>(r * spec.row_stride())) : 0;
      bool all_negative = true, all_equal = true;
      for (std::int64_t c = 0; c < spec.cols; ++c) {
        const double value = tensor.at(static_cast<std::size_t>(r * spec.row_stride() + c));
        all_equal = all_equal && value == first;
        all_negative = all_negative && value < 0;
        const double size = std::abs(value);
        if (size > largest && std::isfinite(size)) largest = size;
        if (size > 0 && size < smallest) smallest = size;
      }
      if (spec.cols < 8) continue;
      negative += all_negative;
      equal += all_equal && first != 0;
      zero += all_equal && first == 0;
    }
  }

  double largest = 0, smallest = 1;
  int negative = 0, equal = 0, zero = 0;
};

struct Case {
  Problem problem;
  std::uint64_t seed = 0;
};

/// Returns random problems of all types with all values of attributes, which are drawn once.
const std::vector<Case>& cases_of(const Operation& kernel) {
  constexpr std::size_t count = 60;
  static std::map<std::string, std::vector<Case>> drawn;
  std::vector<Case>& cases = drawn[kernel.name];
  if (!cases.empty()) return cases;
  std::mt19937_64 random(1);
  for (std::size_t i = 0; cases.size() < count; ++i) {
    AttributeValues values;
    for (const Attribute& attribute : kernel.attributes) {
      if (attribute.packed != nullptr) continue;
      const auto tested = values_to_test(attribute, {});
      const std::string& value = tested[uniform_below(random, tested.size())];
      if (value != attribute.fallback) values.emplace_back(attribute.name, value);
    }
    const DTypes& types = kernel.dtypes[i % kernel.dtypes.size()];
    const Problem problem = random_problem(kernel, types, std::move(values), {}, random);
    if (check_problem(kernel, problem)) cases.push_back({problem, cases.size()});
  }
  return cases;
}

TEST(AdversarialInputs, OfEveryOperationHaveRowsOfEveryKind) {
  for (const Operation& kernel : catalog()) {
    SCOPED_TRACE(kernel.name);
    Seen seen;
    for (const auto& [problem, seed] : cases_of(kernel)) {
      for (const HostTensor& tensor : kernel.inputs(problem, seed, InputStyle::adversarial)) {
        if (tensor.spec.dtype != DType::i32) seen.add(tensor);
      }
    }
    if (kernel.name == "dequantize") continue;  // its numbers are scales alone
    // Most of the problems of experts that are drawn have weights of integers, or f16.
    EXPECT_GT(seen.largest, kernel.name == "experts" ? 0x1p24 : 0x1p38) << "of f32 or bf16";
    EXPECT_LT(seen.smallest, 0x1p-38);
    EXPECT_GT(seen.zero, 0);
    // Their operands are bytes, which stand for numbers.
    if (kernel.name == "scaled_gemm" || kernel.name == "scaled_grouped_gemm") continue;
    EXPECT_GT(seen.negative, 0);
    EXPECT_GT(seen.equal, 0);
  }
}

// Conversions that round by adding half a unit lose those whose bits are all set, and those with
// the least payload if they cut it.
TEST(AdversarialInputs, HaveNumbersThatAreNoneWithPayloads) {
  const std::pair<DType, std::set<std::uint32_t>> cases[] = {
      {DType::f32, {0x7fc00000, 0x7fffffff, 0xffffffff, 0x7f800001}},
      {DType::bf16, {0x7fc0, 0x7fff, 0xffff, 0x7f81}},
      {DType::f16, {0x7e00, 0x7fff, 0xffff, 0x7c01}}};
  for (const auto& [type, expected] : cases) {
    SCOPED_TRACE(to_string(type));
    const TensorSpec spec{"X", Role::input, type, 500, 16};
    HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
    kernels::mix_in_special_values(tensor, 1);
    std::set<std::uint32_t> seen;
    const std::size_t size = type == DType::f32 ? 4 : 2;
    for (std::size_t i = 0; i < spec.elements(); ++i) {
      if (!std::isnan(tensor.at(i))) continue;
      std::uint32_t bits = 0;
      std::memcpy(&bits, tensor.data.data() + i * size, size);
      seen.insert(bits);
    }
    EXPECT_EQ(seen, expected);
  }
}

TEST(AdversarialInputs, HaveIndicesOnBothSidesOfWhatIsValid) {
  const std::map<std::string, std::string> limits{
      {"latent_attention", "kv"},      {"tree_attention", "kv"},     {"attention", "kv"},
      {"rope", "positions"},           {"kv_update", "capacity"},    {"rope_append", "positions"},
      {"embedding", "vocabulary"},     {"grouped_gemm", "m"},        {"permute", "experts"},
      {"unpermute", "rows"},           {"experts", "experts"},       {"gather_columns", "width"},
      {"quantized_grouped_gemm", "m"}, {"scaled_grouped_gemm", "m"}, {"repack_weights", "k"}};
  const std::set<std::string> words{"qweight", "qzeros", "B", "zeros"};  // of packed integers
  for (const Operation& kernel : catalog()) {
    if (kernel.name == "sample")
      continue;  // seeds are any numbers, and tokens are tested on devices
    SCOPED_TRACE(kernel.name);
    int below = 0, inside = 0, at = 0, above = 0;
    for (const auto& [problem, seed] : cases_of(kernel)) {
      for (const HostTensor& tensor : kernel.inputs(problem, seed, InputStyle::adversarial)) {
        if (tensor.spec.dtype != DType::i32 || words.contains(tensor.spec.name)) continue;
        const auto limit = static_cast<double>(problem.dim(limits.at(kernel.name)));
        for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
          below += tensor.at(i) < 0;
          inside += tensor.at(i) >= 0 && tensor.at(i) < limit;
          at += tensor.at(i) == limit;
          above += tensor.at(i) > limit;
        }
      }
    }
    const bool any = below + inside + at + above > 0;
    EXPECT_EQ(any, !kernel.out_of_range.empty());
    EXPECT_EQ(any, below > 0 && inside > 0 && at > 0 && above > 0);
  }
}

/// Returns the share of an attention's lengths, or of those of packed sequences, of at least `part`
/// that are a multiple of it, one more or one less.
double share_at_borders(const Problem& problem, std::size_t operand, InputSeed seed,
                        std::int64_t part) {
  const bool starts = kernels::attention::packs_sequences(problem);
  int at_borders = 0, all = 0;
  for (; seed.number < 100; ++seed.number) {
    const auto inputs = built_in("attention").inputs(problem, seed, InputStyle::adversarial);
    const HostTensor& numbers = inputs[operand];
    // The first and the last start may be outside all tokens.
    for (std::size_t i = starts ? 2 : 0; i + (starts ? 1 : 0) < numbers.spec.elements(); ++i) {
      const double before = starts ? numbers.at(i - 1) : 0, length = numbers.at(i) - before;
      if (before < 0 || length < static_cast<double>(part) - 1 || length > 4000) continue;
      ++all;
      at_borders += std::abs(std::remainder(length, static_cast<double>(part))) <= 1;
    }
  }
  EXPECT_GT(all, 100);
  return static_cast<double>(at_borders) / all;
}

TEST(AdversarialInputs, LengthsAreWholePartsOfTheConfiguration) {
  const Operation& attention = built_in("attention");
  const auto share = [&](const char* key, std::size_t operand, const Config& config,
                         std::int64_t part) {
    const Problem problem = Problem::parse(key).value();
    const auto divisions =
        attention.variant(config.variant).divisions(attention.shape(problem), config);
    return share_at_borders(problem, operand, {0, divisions}, part) -
           share_at_borders(problem, operand, 0, part);
  };
  const Config slices{"decode", {{"THREADS", 32}, {"LANES", 4}, {"UNROLL", 1}, {"SPLIT", 3}}};
  constexpr std::int64_t round_of_slices = 32 / 4 * 3;
  EXPECT_GT(share("attention dtype=f16 out=f16 batch=16 heads=2 kv_heads=1 q=1 kv=250 dim=4", 3,
                  slices, round_of_slices),
            0.04);
  Config tiles{"matrix",
               {{"WAVES", 2},
                {"WQ", 16},
                {"BK", 20},
                {"TOGETHER", 1},
                {"SPLIT", 1},
                {"BUFFERS", 2},
                {"PACK", 0}}};
  const char* const packed =
      "attention dtype=f16 out=f16 sequences=packed batch=8 heads=4 kv_heads=1 q=250 kv=250 "
      "dim=4";
  EXPECT_GT(share(packed, 3, tiles, 32), 0.08);
  EXPECT_GT(share(packed, 4, tiles, 20), 0.08);
  tiles.value("PACK") = 1;  // 4 heads of a query
  tiles.value("WQ") = 64;
  EXPECT_GT(share(packed, 3, tiles, 32), 0.08);
}

/// Returns how many different elements of A are the largest one that a column's weights are not 0
/// for.
std::size_t largest_with_a_weight(const Problem& problem, const std::vector<HostTensor>& inputs) {
  HostTensor rows = inputs[1];
  if (problem.attribute("packing", "rows") == "panels") {
    kernels::panels_to_rows(inputs[1].data.data(), rows.spec.rows, rows.spec.cols,
                            rows.data.data());
  }
  kernels::QuantizedMatrix matrix{
      .format = kernels::weight_format_from_string(problem.attribute("weights", "int4")).value(),
      .rows = rows.spec.rows,
      .k = problem.dim("k"),
      .group = 32,
      .integers = &rows};
  for (const HostTensor& tensor : inputs) {
    if (tensor.spec.name == "scales") matrix.scales = &tensor;
    if (tensor.spec.name == "zeros") matrix.zeros = &tensor;
  }
  const std::vector<float> weights = kernels::dequantized(matrix);
  std::set<double> largest;
  for (std::int64_t row = 0; row < matrix.rows; ++row) {
    double of_row = 0;
    for (std::int64_t i = 0; i < matrix.k; ++i) {
      if (weights[static_cast<std::size_t>(row * matrix.k + i)] == 0) continue;
      of_row = std::max(of_row, std::abs(inputs[0].at(static_cast<std::size_t>(i))));
    }
    largest.insert(of_row);
  }
  return largest.size();
}

// Products' bounds are those of their terms. Large elements of A hide the errors of others, unless
// their weights are 0.
TEST(AdversarialInputs, OfQuantizedProductsHaveColumnsWithoutTheLargestElements) {
  for (const char* weights : {"weights=int4 group=\"32\"", "weights=int4 group=\"32\" zeros=groups",
                              "weights=int4 group=\"32\" packing=panels",
                              "weights=int8 group=\"32\"", "weights=int8 group=\"32\" zeros=groups",
                              "weights=q4_0", "weights=q8_0", "weights=mxfp4"}) {
    const std::string key =
        std::string("quantized_gemm dtype=bf16 out=f32 ") + weights + " m=1 n=64 k=256";
    const Problem problem = catalog().read(key).value();
    int many = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      const auto inputs = built_in("quantized_gemm").inputs(problem, seed, InputStyle::adversarial);
      many += largest_with_a_weight(problem, inputs) >= 10;
    }
    EXPECT_GE(many, 5) << key;
  }
}

// Kernels that scale rows by their largest weighted element must not forget its sign.
TEST(AdversarialInputs, OfQuantizedProductsWithANormAreSometimesAllNegative) {
  const auto problem =
      catalog().read("quantized_gemm dtype=f16 out=f16 prologue=rmsnorm m=2 n=16 k=256").value();
  int negative = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto inputs = built_in("quantized_gemm").inputs(problem, seed, InputStyle::adversarial);
    const auto weight = std::find_if(inputs.begin(), inputs.end(), [](const HostTensor& tensor) {
      return tensor.spec.name == "weight";
    });
    ASSERT_NE(weight, inputs.end());
    bool all = true;
    for (std::size_t i = 0; i < inputs[0].spec.elements(); ++i)
      all = all && !(inputs[0].at(i) * weight->at(i % 256) > 0);
    negative += all;
  }
  EXPECT_GE(negative, 2);
}

// A token too many or too few in the kept set mostly gives the same draw, except of the last one.
TEST(AdversarialInputs, OfSampleOftenDrawTheLastTokenThatIsKept) {
  const Problem problem = Problem::parse("sample dtype=f32 out=i32 rows=8 cols=500").value();
  int rows = 0, last = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const auto inputs = built_in("sample").inputs(problem, seed, InputStyle::adversarial);
    for (std::size_t row = 0; row < 8; ++row) {
      const auto setting = [&](std::size_t i) {
        return static_cast<float>(inputs[1].at(row * 4 + i));
      };
      const auto seed_word = [&](std::size_t i) {
        return static_cast<std::uint32_t>(static_cast<std::int64_t>(inputs[2].at(row * 3 + i)));
      };
      const kernels::sampled::Draw draw{
          setting(0),  setting(1), setting(2), setting(3), {seed_word(0), seed_word(1)},
          seed_word(2)};
      if (!(draw.temperature > 0x1p-64F)) continue;
      const auto number = static_cast<std::int64_t>(row);
      const auto kept = kernels::sampled::kept(inputs[0], number, draw);
      if (kept.size() < 20) continue;
      ++rows;
      last += kernels::sampled::drawn(inputs[0], number, draw) == kept.back().column;
    }
  }
  EXPECT_GT(rows, 40);
  EXPECT_GT(last, rows / 4);
}

TEST(AdversarialInputs, AreEqualForEqualSeedsAndPlainOnesAreUntouched) {
  for (const Operation& kernel : catalog()) {
    const Problem problem = cases_of(kernel).front().problem;
    const auto data = [&](std::uint64_t seed, InputStyle style) {
      std::vector<std::byte> all;
      for (const HostTensor& tensor : kernel.inputs(problem, seed, style))
        all.insert(all.end(), tensor.data.begin(), tensor.data.end());
      return all;
    };
    EXPECT_EQ(data(3, InputStyle::adversarial), data(3, InputStyle::adversarial));
    EXPECT_NE(data(3, InputStyle::adversarial), data(4, InputStyle::adversarial));
    EXPECT_NE(data(3, InputStyle::adversarial), data(3, InputStyle::plain));
    EXPECT_EQ(data(3, InputStyle::plain), data(3, InputStyle::plain));
  }
}

// Otherwise a check of these inputs would pass for any output.
TEST(AdversarialInputs, HaveExpectedResultsWithBounds) {
  for (const Operation& kernel : catalog()) {
    SCOPED_TRACE(kernel.name);
    std::size_t elements = 0, anything = 0, nan = 0, loose = 0;
    for (const auto& [problem, seed] : cases_of(kernel)) {
      const auto inputs = kernel.inputs(problem, seed, InputStyle::adversarial);
      const auto expected = kernel.reference(problem, inputs, seed)->expected();
      ASSERT_TRUE(expected) << problem.key();
      for (const auto& output : *expected) {
        for (const Expected& element : output) {
          ++elements;
          nan += std::isnan(element.value);
          anything += !(element.bound < 0x1p120);
          loose += element.bound > 0.1 * std::abs(element.value) && element.bound > 1e-3;
        }
      }
    }
    EXPECT_LT(anything, elements / 50);
    EXPECT_LT(loose, elements / 5);  // where an activation vanishes, nothing but its bound is left
    const bool has_nan = kernel.name == "embedding" || kernel.name == "gather_columns" ||
                         kernel.name.starts_with("rope") ||
                         kernel.name.ends_with("grouped_gemm") ||  // in rows of no group
                         kernel.name == "gemm" ||                  // as elements and lines are
                         kernel.name == "permute" ||               // in rows of no expert
                         kernel.name == "experts" ||               // as weights are
                         kernel.name == "unpermute" ||             // as weights are
                         kernel.name == "softmax" || kernel.name == "add" ||  // as elements are
                         kernel.name == "gelu" || kernel.name == "silu_mul" ||
                         kernel.name == "kv_update" ||
                         kernel.name == "quantized_gemm" ||  // as scales of mxfp4 are
                         kernel.name == "dequantize" || kernel.name == "scaled_gemm" ||
                         kernel.name == "sample" || kernel.name == "quantize";  // as inputs have
    EXPECT_EQ(nan > 0, has_nan);
  }
}

}  // namespace
}  // namespace greta::test::adversarial_test
