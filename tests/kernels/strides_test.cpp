// Rows that are further apart than they are long: results are those of packed rows, what lies
// between is neither read (NaN) nor written, and strides that can't be are refused.

#include <gtest/gtest.h>

#include <tuple>

#include "kernels/catalog.hpp"
#include "runtime/device/architectures.hpp"
#include "tests/kernels/filled.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/kernels/row_cases.hpp"

namespace greta {
namespace {

using test::Attributes;
using test::row_problem;

constexpr DTypes f16{DType::f16, DType::f16}, f32{DType::f32, DType::f32};

std::vector<std::string> strided_operations() {
  std::vector<std::string> names;
  for (const KernelTemplate* entry : catalog()) {
    if (!entry->attributes.empty() && entry->attributes.back().packed != nullptr) {
      names.push_back(entry->name);
    }
  }
  return names;
}

class Strides : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  bool has_output_rows() const { return entry_.name != "argmax"; }

  Problem problem(std::int64_t rows, std::int64_t cols, DTypes types, Attributes attributes) const {
    if (!has_output_rows()) {
      types.out = DType::i32;
      std::erase_if(attributes, [](const auto& a) { return a.first == "y_stride"; });
    }
    return row_problem(entry_, rows, cols, types, std::move(attributes));
  }

  std::vector<std::vector<std::byte>> outputs_of(const Problem& problem, const Config& config) {
    const auto plan = entry_.plan(problem, device_.info(), config).value();
    const auto run =
        test::run_plan(device_, plan, entry_.tensors(problem), entry_.inputs(problem, 5)).value();
    EXPECT_EQ(run.overrun, "") << problem.key() << " | " << config.text();
    std::vector<std::vector<std::byte>> outputs;
    for (const HostTensor& output : run.outputs) outputs.push_back(packed(output).data);
    return outputs;
  }

  const KernelTemplate& entry_ = *find_template(std::get<0>(GetParam()));
  Device& device_ = test::device(std::get<1>(GetParam()));
};

TEST_P(Strides, ResultsAreThoseOfPackedRowsBitForBit) {
  const Problem apart = problem(5, 256, f16, {{"x_stride", "264"}, {"y_stride", "272"}});
  const Problem together = problem(5, 256, f16, {});
  for (const Config& config : test::one_of_each(entry_, apart, device_.info(), 4)) {
    EXPECT_EQ(outputs_of(apart, config), outputs_of(together, config)) << config.text();
  }
}

TEST_P(Strides, EveryVariantIsWithinItsBound) {
  const Problem odd = problem(9, 1001, f32, {{"x_stride", "1002"}, {"y_stride", "1111"}});
  test::expect_right_for(entry_, odd, entry_.inputs(odd, 2), device_);
  const Problem one = problem(1, 72, f16, {{"x_stride", "2147483647"}});
  test::expect_right_for(entry_, one, entry_.inputs(one, 2), device_);
}

INSTANTIATE_TEST_SUITE_P(Devices, Strides,
                         ::testing::Combine(::testing::ValuesIn(strided_operations()),
                                            ::testing::ValuesIn(test::unlike_devices())),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  test::device_name(std::get<1>(instance.param));
                         });

TEST(StrideOptions, EveryOperationOnRowsHasThem) {
  EXPECT_EQ(strided_operations(),
            (std::vector<std::string>{"argmax", "softmax", "layernorm", "rmsnorm", "add_rmsnorm",
                                      "layernorm_rmsnorm"}));
}

TEST(StrideOptions, InPlaceOfAViewOfAWiderMatrix) {
  const KernelTemplate& softmax = *find_template("softmax");
  const Problem problem = row_problem(
      softmax, 6, 96, f16,
      {{"mask", "additive"}, {"place", "in"}, {"x_stride", "104"}, {"y_stride", "104"}});
  test::expect_right_for(softmax, problem, softmax.inputs(problem, 2), test::device());
}

TEST(StrideOptions, KnownAnswersOfRowsWithPaddingBetween) {
  const KernelTemplate& argmax = *find_template("argmax");
  const Problem problem = row_problem(argmax, 3, 4, {DType::f32, DType::i32}, {{"x_stride", "6"}});
  const auto specs = argmax.tensors(problem);
  const HostTensor x = test::filled(specs[0], {1, 3, 2, 0, 9, 9, -4, -3, -1, -2, 9, 9, 7, 7, 8, 8});
  for (const std::string& id : test::unlike_devices()) {
    Device& device = test::device(id);
    const Config config = argmax.default_config(problem, device.info());
    const auto run =
        test::run_plan(device, argmax.plan(problem, device.info(), config).value(), specs, {x});
    EXPECT_EQ(run.value().outputs[0].data, test::filled(specs[1], {1, 2, 2}).data) << id;
  }
}

std::string made(const char* op, std::vector<std::pair<std::string, std::string>> values) {
  values.insert(values.begin(), {{"rows", "4"}, {"cols", "96"}});
  const auto problem = make_problem(*find_template(op), {std::move(values), "f16", ""});
  return problem ? problem->key() : problem.failure().message;
}

TEST(StrideOptions, AKeyNamesThemWhereRowsAreNotPacked) {
  EXPECT_EQ(made("rmsnorm", {{"x_stride", "96"}, {"y_stride", "96"}}),
            "rmsnorm dtype=f16 out=f16 rows=4 cols=96");
  const std::string key = "rmsnorm dtype=f16 out=f16 y_stride=\"104\" rows=4 cols=96";
  EXPECT_EQ(made("rmsnorm", {{"y_stride", "0104"}}), key);
  EXPECT_EQ(Problem::parse(key).value().key(), key);
}

TEST(StrideOptions, RefusedInOneLineThatNamesTheOption) {
  const std::string range = ": must be a whole number from cols to 2147483647";
  for (const char* bad : {"", "0", "-96", "96.5", "2147483648", "99999999999999999999", "cols"}) {
    EXPECT_EQ(made("softmax", {{"y_stride", bad}}),
              "--y_stride " + std::string(*bad == 0 ? "\"\"" : bad) + range);
  }
  EXPECT_EQ(made("argmax", {{"x_stride", "95"}}), "--x_stride 95: must be at least cols, 96");
  EXPECT_EQ(made("add_rmsnorm", {{"y_stride", "8"}}), "--y_stride 8: must be at least cols, 96");
  EXPECT_EQ(made("softmax", {{"place", "in"}, {"x_stride", "104"}}),
            "--y_stride 96: with --place in, must be x_stride, 104");
  EXPECT_EQ(made("softmax", {{"place", "in"}, {"x_stride", "104"}, {"y_stride", "112"}}),
            "--y_stride 112: with --place in, must be x_stride, 104");
}

TEST(StrideOptions, AConstraintSaysWhichOneLoadsDontDivide) {
  const DeviceInfo device = *architecture_info("sm_90");
  for (const auto& [op, text] : {std::pair("rmsnorm", "held THREADS=32 ROWS=1 VEC=4 STAY=0"),
                                 std::pair("argmax", "row THREADS=64 VEC=4 ITEMS=1 ROWS=2")}) {
    const KernelTemplate& entry = *find_template(op);
    const DTypes types = entry.dtypes.front();
    const auto why = [&, text = text](const char* stride) {
      const Problem problem = row_problem(entry, 4, 96, types, {{"x_stride", stride}});
      const auto config = entry.space(problem, device).parse(text);
      const std::string message = config ? "valid" : config.failure().message;
      EXPECT_EQ(entry.default_config(problem, device)["VEC"] == 4, static_cast<bool>(config));
      return message.substr(message.find("\": ") == message.npos ? 0 : message.find("\": ") + 3);
    };
    EXPECT_EQ(why("100"), "valid");
    EXPECT_EQ(why("102"), "x_stride: VEC must divide x_stride, 102");
  }
}

TEST(StrideOptions, WorkIsThatOfTheElements) {
  for (const std::string& op : strided_operations()) {
    const KernelTemplate& entry = *find_template(op);
    const Problem apart = row_problem(entry, 10, 4, entry.dtypes[0], {{"x_stride", "900"}});
    const Problem together = row_problem(entry, 10, 4, entry.dtypes[0]);
    EXPECT_EQ(entry.work(apart).bytes, entry.work(together).bytes) << op;
    EXPECT_EQ(entry.work(apart).flops, entry.work(together).flops) << op;
    EXPECT_EQ(entry.tensors(apart)[0].bytes(), (9 * 900 + 4) * size_of(entry.dtypes[0].in)) << op;
  }
}

}  // namespace
}  // namespace greta
