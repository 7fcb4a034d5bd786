// Protects: the error bounds of every reference, from both sides. Results of the types' arithmetic
// pass and come as close to their bounds as stated, and results that are a few times less precise
// fail. If a bound grows, wrong kernels pass; if it shrinks, correct ones fail.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "kernels/model/problem_rules.hpp"
#include "kernels/model/random.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/bounds/emulation.hpp"

namespace greta::test::bounds::bounds_test {
namespace {

std::vector<Emulation> emulations() {
  std::vector<Emulation> all = elementwise_emulations();
  for (const auto& more : {append_emulations(), row_emulations(), product_emulations(),
                           attention_emulations(), quantized_emulations(), scaled_emulations(),
                           sample_emulations(), expert_emulations(), quantize_emulations()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// A case for a pair of types with its inputs and its reference.
class Trial {
 public:
  Trial(const Emulation& emulation, const Operation& kernel, const DTypes& types, const Case& of)
      : emulation_(emulation),
        kernel_(kernel),
        what_(of.what),
        problem_(make_problem(kernel, {of.options, std::string(to_string(types.in)),
                                       std::string(to_string(types.out))})
                     .value()) {
    std::vector<HostTensor> inputs;
    for (const TensorSpec& spec : kernel.tensors(problem_)) {
      if (spec.role == Role::output) continue;
      inputs.push_back(input(spec, of, inputs.size() + 1));
    }
    for (const HostTensor& tensor : inputs) {
      std::vector<float>& values = given_[tensor.spec.name];
      for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
        values.push_back(static_cast<float>(tensor.at(i)));
      }
    }
    reference_ = kernel.reference(problem_, inputs, 1);
  }

  const Problem& problem() const { return problem_; }
  const char* what() const { return what_; }
  /// Returns whether numbers are so small that their bound is absolute.
  bool tiny() const { return std::string(what_).find("tiny") != std::string::npos; }
  const Reference& reference() const { return *reference_; }

  /// Returns the stored results of the arithmetic. The outputs have `coarse` bits less than their
  /// type.
  std::vector<HostTensor> compute(const Arithmetic& arithmetic, int coarse = 0) const {
    compute_with(arithmetic);
    const Outputs values = emulation_.run({problem_, given_});
    std::vector<HostTensor> outputs;
    for (const TensorSpec& spec : kernel_.tensors(problem_)) {
      if (spec.role == Role::input) continue;
      HostTensor& output =
          outputs.emplace_back(HostTensor{spec, std::vector<std::byte>(spec.bytes())});
      const std::vector<float>& list = values.at(outputs.size() - 1);
      EXPECT_EQ(list.size(), spec.elements());
      for (std::size_t i = 0; i < list.size(); ++i) {
        store_element(spec.dtype, output.data.data(), i, coarsened(spec.dtype, list[i], coarse));
      }
    }
    return outputs;
  }

 private:
  static HostTensor input(const TensorSpec& spec, const Case& of, std::size_t seed) {
    const auto contents = of.contents.find(spec.name);
    TensorSpec drawn = spec;
    drawn.dtype = DType::f32;
    const HostTensor draws = random_tensor(drawn, seed);
    HostTensor tensor{spec, std::vector<std::byte>(spec.bytes())};
    for (std::size_t i = 0; i < spec.elements(); ++i) {
      const double draw = draws.at(i);
      store_element(spec.dtype, tensor.data.data(), i,
                    contents == of.contents.end() ? draw : contents->second(draw, i));
    }
    return tensor;
  }

  const Emulation& emulation_;
  const Operation& kernel_;
  const char* what_;
  Problem problem_;
  Tensors given_;
  std::unique_ptr<Reference> reference_;
};

/// Returns the stated factor of a case, or 0 if it does not apply to these types.
double factor_of(const Case& of, const DTypes& types) {
  if (types.out == DType::f16) return of.factors.to_f16;
  if (types.out == DType::bf16) return of.factors.to_bf16;
  if (types.in == DType::f32) return of.factors.f32;
  return types.in == DType::f16 ? of.factors.f16 : of.factors.bf16;
}

/// Returns whether every value of `in` is also one of `out`.
bool holds(DType out, DType in) {
  return out == in || out == DType::f32 || out == DType::i32;
}

/// Returns how close the worst element of each output comes to its bound: error / bound, minimum
/// over all outputs that are not exact. 0 if all are.
double worst_ratio(const Reference& reference, const std::vector<HostTensor>& outputs) {
  const auto expected = reference.expected().value();
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    double most = 0, bounds = 0;
    for (std::size_t j = 0; j < expected.at(i).size(); ++j) {
      const auto& [value, bound] = expected[i][j];
      const double error = std::abs(outputs[i].at(j) - value);
      if (error > 0) most = std::max(most, error / bound);
      bounds = std::max(bounds, bound);
    }
    if (most > 0 || bounds > 0) least = std::min(least, most);
  }
  return std::isinf(least) ? 0 : least;
}

class Bounds : public ::testing::TestWithParam<std::string> {
 protected:
  /// Calls body(trial, factor) for every case of every pair of types. The factor is 0 if the
  /// results are exact.
  template <typename Body>
  void for_each_trial(const Body& body) const {
    ASSERT_FALSE(kernel_.dtypes.empty());
    for (const DTypes& types : kernel_.dtypes) {
      const bool exact = emulation().copies && holds(types.out, types.in);
      std::size_t cases = 0;
      for (const Case& of : emulation().cases(types)) {
        const double factor = factor_of(of, types);
        if (factor == 0 && !exact) continue;
        ++cases;
        const Trial trial(emulation(), kernel_, types, of);
        SCOPED_TRACE(trial.problem().key() + ", " + of.what);
        body(trial, exact ? 0 : factor);
      }
      EXPECT_GE(cases, 1U) << to_string(types.in) << " to " << to_string(types.out);
    }
  }

  const Emulation& emulation() const {
    static const std::vector<Emulation> all = emulations();
    const auto found = std::find_if(
        all.begin(), all.end(), [&](const Emulation& e) { return e.operation == kernel_.name; });
    if (found == all.end()) throw Error("no emulation of the arithmetic of " + kernel_.name);
    return *found;
  }

  const Operation& kernel_ = built_in(GetParam());
};

// Results that a correct kernel may give pass. For every term of the bound there is a case in which
// it dominates. There the bound must exceed the worst error by at most the stated factor, and not
// by much less.
TEST_P(Bounds, AreAsFarFromTheWorstErrorAsIsStated) {
  std::size_t elements = 0;
  for_each_trial([&](const Trial& trial, double factor) {
    double ratio = 0;
    for (const Arithmetic& arithmetic : arithmetics()) {
      SCOPED_TRACE(arithmetic.name);
      const auto outputs = trial.compute(arithmetic);
      const Verdict verdict = trial.reference().check(outputs);
      EXPECT_TRUE(verdict.passed) << verdict.detail;
      EXPECT_EQ(verdict.method, "full");
      ratio = std::max(ratio, worst_ratio(trial.reference(), outputs));
      for (const HostTensor& output : outputs) elements += output.spec.elements();
    }
    if (factor == 0) {
      EXPECT_EQ(ratio, 0) << "these results are exact";
      const auto expected = trial.reference().expected().value();
      for (const auto& output : expected) {
        EXPECT_TRUE(std::all_of(output.begin(), output.end(),
                                [](const Expected& e) { return e.bound == 0; }));
      }
      return;
    }
    EXPECT_GE(ratio * factor, 1) << "the bound is " << 1 / ratio << " times the worst error, "
                                 << factor << " is stated";
    EXPECT_LT(ratio * factor, 1.5) << "the bound is only " << 1 / ratio << " times the worst error";
  });
  EXPECT_GE(elements, 1000000U);
}

/// Sets an element to the next number of its type, away from zero.
void next_number(HostTensor& tensor, std::size_t element) {
  const auto size = bytes_of(tensor.spec.dtype, std::size_t{1});
  std::uint32_t raw = 0;
  std::memcpy(&raw, tensor.data.data() + element * size, size);
  ++raw;
  std::memcpy(tensor.data.data() + element * size, &raw, size);
}

TEST_P(Bounds, OneElementThatIsAFewBoundsOffFails) {
  std::size_t spoilt = 0;
  for_each_trial([&](const Trial& trial, double) {
    std::vector<HostTensor> outputs = trial.compute(arithmetics().front());
    const auto expected = trial.reference().expected().value();
    std::mt19937_64 random(7);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const HostTensor right = outputs[i];
      for (int round = 0; round < 8; ++round) {
        const auto at = static_cast<std::size_t>(uniform_below(random, expected[i].size()));
        const auto& [value, bound] = expected[i][at];
        if (!std::isfinite(value) || !std::isfinite(bound)) continue;
        for (const double bounds : {4.0, -4.0}) {
          store_element(right.spec.dtype, outputs[i].data.data(), at, value + bounds * bound);
          if (bound == 0) next_number(outputs[i], at);
          EXPECT_FALSE(trial.reference().check(outputs).passed)
              << "element " << at << " is " << outputs[i].at(at) << ", expected " << value
              << " within " << bound;
          ++spoilt;
        }
        outputs[i] = right;
      }
    }
  });
  EXPECT_GE(spoilt, 64U);
}

// 16-bit results rounded to a few bits less, and f32 results of an arithmetic with a few bits less,
// must fail. The number of bits follows from the stated factor.
TEST_P(Bounds, RoundingThatIsAFewTimesTooCoarseFails) {
  std::size_t checked = 0;
  for_each_trial([&](const Trial& trial, double factor) {
    if (factor == 0 || trial.tiny()) return;  // exact, or below the bound
    Arithmetic coarse = arithmetics()[1];
    const DType out = trial.problem().out_dtype;
    const bool stored = bits_of(out) < 32 && traits(out).kind != DTypeKind::integer;
    const int bits = static_cast<int>(std::ceil(std::log2((stored ? 6 : 12) * factor)));
    if (!stored) coarse.dropped = bits;
    EXPECT_FALSE(trial.reference().check(trial.compute(coarse, stored ? bits : 0)).passed) << bits;
    ++checked;
  });
  const bool exact = emulation().copies &&
                     std::all_of(kernel_.dtypes.begin(), kernel_.dtypes.end(),
                                 [](const DTypes& types) { return holds(types.out, types.in); });
  EXPECT_EQ(checked > 0, !exact);
}

/// A new operation and a new value of an attribute need a case.
TEST_P(Bounds, CasesHaveEveryValueOfEveryAttribute) {
  for (const Attribute& attribute : kernel_.attributes) {
    if (attribute.packed != nullptr) continue;  // references pack rows first
    std::set<std::string> missing(attribute.allowed.begin(), attribute.allowed.end());
    if (attribute.allowed.empty()) missing.insert("another");
    missing.erase(attribute.fallback);
    for (const DTypes& types : kernel_.dtypes) {
      for (const Case& of : emulation().cases(types)) {
        for (const auto& [name, value] : of.options) {
          if (name != attribute.name || value == attribute.fallback) continue;
          missing.erase(attribute.allowed.empty() ? "another" : value);
        }
      }
    }
    for (const std::string& value : missing) ADD_FAILURE() << attribute.name << ": " << value;
  }
}

std::vector<std::string> operations() {
  std::vector<std::string> names;
  for (const Operation& kernel : catalog()) names.push_back(kernel.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalog, Bounds, ::testing::ValuesIn(operations()),
                         [](const auto& instance) { return instance.param; });

}  // namespace
}  // namespace greta::test::bounds::bounds_test
