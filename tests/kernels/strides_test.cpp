// Protects: rows with strides larger than their length. Results equal those of packed rows, the
// gaps, which hold NaN, are neither read nor written, and invalid strides are rejected.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "kernels/model/problem_rules.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/filled.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/kernels/row_cases.hpp"

namespace greta::test::strides_test {
namespace {

using test::Attributes;
using test::row_problem;

constexpr DTypes f16{DType::f16, DType::f16}, f32{DType::f32, DType::f32};

/// Returns problems by operation, some with strides that allow wide loads.
const std::map<std::string, std::vector<const char*>>& strided_problems() {
  static const std::map<std::string, std::vector<const char*>> problems{
      {"gemm",
       {"gemm dtype=f16 out=f16 layout=nt a_batch_stride=\"680\" c_batch_stride=\"488\" m=12 n=40 "
        "k=56 batch=3",
        "gemm dtype=f32 out=f32 b_batch_stride=\"777\" m=5 n=24 k=32 batch=2",
        "gemm dtype=f16 out=f16 layout=tt epilogue=bias,residual lda=\"40\" ldb=\"72\" ldc=\"48\" "
        "m=24 n=40 k=56",
        "gemm dtype=bf16 out=bf16 layout=tt lda=\"5\" a_offset=\"1\" ldb=\"88\" m=3 n=40 k=80",
        "gemm dtype=f32 out=f32 epilogue=residual beta=\"2\" lda=\"37\" ldb=\"25\" b_offset=\"3\" "
        "c_offset=\"1\" m=5 n=21 k=33",
        "gemm dtype=bf16 out=f32 layout=tn lda=\"80\" a_offset=\"8\" ldb=\"136\" m=72 n=128 k=64",
        "gemm dtype=f16 out=f16 layout=nt lda=\"168\" a_batch_stride=\"56\" ldc=\"120\" "
        "c_batch_stride=\"40\" m=12 n=40 k=56 batch=3"}},
      {"argmax",
       {"argmax dtype=f16 out=i32 x_stride=\"264\" rows=5 cols=256",
        "argmax dtype=f32 out=i32 x_stride=\"1002\" rows=9 cols=1001"}},
      {"sample",
       {"sample dtype=f16 out=i32 x_stride=\"264\" rows=5 cols=256",
        "sample dtype=f32 out=i32 x_stride=\"1002\" rows=9 cols=1001 history=30"}},
      {"softmax",
       {"softmax dtype=f16 out=f16 mask=additive x_stride=\"264\" y_stride=\"272\" rows=5 cols=256",
        "softmax dtype=f32 out=f32 x_stride=\"1002\" y_stride=\"1111\" rows=9 cols=1001",
        "softmax dtype=f16 out=f16 place=in x_stride=\"104\" y_stride=\"104\" rows=6 cols=96"}},
      {"layernorm",
       {"layernorm dtype=f16 out=f16 x_stride=\"264\" y_stride=\"272\" rows=5 cols=256",
        "layernorm dtype=f32 out=f32 x_stride=\"1002\" y_stride=\"1111\" rows=9 cols=1001"}},
      {"rmsnorm",
       {"rmsnorm dtype=f16 out=f16 x_stride=\"264\" y_stride=\"272\" rows=5 cols=256",
        "rmsnorm dtype=f32 out=f32 x_stride=\"1002\" y_stride=\"1111\" rows=9 cols=1001",
        "rmsnorm dtype=f16 out=f16 x_stride=\"2147483647\" rows=1 cols=72"}},
      {"add_rmsnorm",
       {"add_rmsnorm dtype=f16 out=f16 x_stride=\"264\" y_stride=\"272\" rows=5 cols=256",
        "add_rmsnorm dtype=f32 out=f32 x_stride=\"1002\" y_stride=\"1111\" rows=9 cols=1001"}},
      {"layernorm_rmsnorm",
       {"layernorm_rmsnorm dtype=f16 out=f16 x_stride=\"264\" y_stride=\"272\" rows=5 cols=256",
        "layernorm_rmsnorm dtype=f32 out=f32 x_stride=\"1002\" y_stride=\"1111\" rows=9 "
        "cols=1001"}},
      {"quantize",
       {"quantize dtype=f16 out=u8 x_stride=\"264\" q_stride=\"272\" rows=5 cols=256",
        "quantize dtype=bf16 out=u8 fused=layernorm x_stride=\"264\" q_stride=\"272\" rows=5 "
        "cols=256",
        "quantize dtype=f32 out=u8 scales=block fused=add_rmsnorm x_stride=\"1004\" "
        "q_stride=\"1008\" rows=9 cols=1000"}},
      {"rope",
       {"rope dtype=f16 out=f16 place=in x_stride=\"112\" tokens=9 heads=3 dim=24 "
        "positions=40",
        "rope dtype=f32 out=f32 style=half x_stride=\"31\" tokens=5 heads=5 dim=6 positions=7"}},
      {"kv_update",
       {"kv_update dtype=f16 out=f16 kv_stride=\"112\" tokens=9 kv_heads=3 dim=24 capacity=40",
        "kv_update dtype=f32 out=f16 kv_stride=\"31\" tokens=4 kv_heads=5 dim=6 capacity=7"}},
      {"rope_append",
       {"rope_append dtype=f16 out=f16 norm=rms style=half place=in q_stride=\"176\" "
        "kv_stride=\"176\" batch=2 tokens=5 heads=4 kv_heads=2 dim=16 positions=40 capacity=9",
        "rope_append dtype=f32 out=f16 style=half q_stride=\"31\" kv_stride=\"31\" "
        "page_size=\"16\" batch=1 "
        "tokens=4 heads=3 kv_heads=2 dim=6 positions=40 capacity=20"}},
      {"attention",
       {"attention dtype=f16 out=f16 mask=causal q_stride=\"512\" batch=2 heads=4 kv_heads=2 q=40 "
        "kv=70 dim=64",
        "attention dtype=f32 out=f32 q_stride=\"40\" batch=2 heads=4 kv_heads=1 q=3 kv=50 "
        "dim=8"}},
      {"latent_attention",
       {"latent_attention dtype=f16 out=f16 mask=causal q_stride=\"352\" batch=2 heads=4 q=2 kv=40 "
        "latent=64 rope=16",
        "latent_attention dtype=f32 out=f32 mask=tree q_stride=\"48\" batch=1 heads=2 q=3 kv=20 "
        "latent=16 rope=8"}},
      {"tree_attention",
       {"tree_attention dtype=f16 out=f16 q_stride=\"136\" batch=1 heads=4 kv_heads=1 q=7 kv=30 "
        "dim=32",
        "tree_attention dtype=f32 out=f32 q_stride=\"72\" batch=2 heads=4 kv_heads=2 q=5 kv=40 "
        "dim=16"}}};
  return problems;
}

std::vector<std::string> strided_operations() {
  std::vector<std::string> names;
  for (const auto& entry : strided_problems()) names.push_back(entry.first);
  return names;
}

class Strides : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  test::PlanRun run(const Problem& problem, const Config& config) {
    const auto plan = entry_.plan(problem, device_.info(), config).value();
    return test::run_plan(device_, plan, entry_.tensors(problem), entry_.inputs(problem, 5))
        .value();
  }

  const Operation& entry_ = built_in(std::get<0>(GetParam()));
  Device& device_ = test::device(std::get<1>(GetParam()));
};

TEST_P(Strides, EveryVariantIsRightAndGivesWhatItDoesForPackedRowsBitForBit) {
  for (const char* key : strided_problems().at(entry_.name)) {
    const Problem apart = Problem::parse(key).value(), together = of_packed_rows(entry_, apart);
    check_problem(entry_, apart).value();
    const auto reference = entry_.reference(apart, entry_.inputs(apart, 5), 5);
    for (const Config& config : test::one_of_each(entry_, apart, device_.info(), 4)) {
      SCOPED_TRACE(std::string(key) + " | " + config.text());
      const test::PlanRun got = run(apart, config), want = run(together, config);
      EXPECT_EQ(got.overrun, "");
      const Verdict verdict = reference->check(got.outputs);
      EXPECT_TRUE(verdict.passed) << verdict.detail;
      ASSERT_EQ(got.outputs.size(), want.outputs.size());
      for (std::size_t i = 0; i < got.outputs.size(); ++i) {
        EXPECT_TRUE(packed(got.outputs[i]).data == want.outputs[i].data);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Strides,
                         ::testing::Combine(::testing::ValuesIn(strided_operations()),
                                            ::testing::ValuesIn(test::unlike_devices())),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  test::device_name(std::get<1>(instance.param));
                         });

TEST(StrideOptions, EveryOperationThatHasThemIsTested) {
  for (const Operation& entry : catalog()) {
    const bool has = std::any_of(entry.attributes.begin(), entry.attributes.end(),
                                 [](const Attribute& a) { return a.packed != nullptr; });
    EXPECT_EQ(has, strided_problems().contains(entry.name)) << entry.name;
  }
}

TEST(StrideOptions, KnownAnswersOfRowsWithPaddingBetween) {
  const Operation& argmax = built_in("argmax");
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
  const auto problem = make_problem(built_in(op), {std::move(values), "f16", ""});
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
              "y_stride " + std::string(*bad == 0 ? "\"\"" : bad) + range);
  }
  EXPECT_EQ(made("argmax", {{"x_stride", "95"}}), "x_stride 95: must be at least cols, 96");
  EXPECT_EQ(made("add_rmsnorm", {{"y_stride", "8"}}), "y_stride 8: must be at least cols, 96");
  const auto other = [](const char* key) {
    const Problem problem = Problem::parse(key).value();
    return check_problem(built_in(problem.op), problem).failure().message;
  };
  EXPECT_EQ(other("rope dtype=f32 out=f32 x_stride=\"23\" tokens=2 heads=3 dim=8 positions=9"),
            "x_stride 23: must be at least heads x dim, 24");
  EXPECT_EQ(
      other("kv_update dtype=f32 out=f32 kv_stride=\"8\" tokens=2 kv_heads=3 dim=8 capacity=9"),
      "kv_stride 8: must be at least kv_heads x max(dim, v_dim), 24");
  const auto with_long_values = make_problem(built_in("kv_update"), {{{"tokens", "2"},
                                                                      {"kv_heads", "3"},
                                                                      {"dim", "8"},
                                                                      {"capacity", "9"},
                                                                      {"kv_stride", "24"},
                                                                      {"v_dim", "16"}},
                                                                     "",
                                                                     ""});
  EXPECT_EQ(with_long_values ? "good" : with_long_values.failure().message,
            "kv_stride 24: must be at least kv_heads x max(dim, v_dim), 48");
  EXPECT_EQ(other("rope_append dtype=f32 out=f32 kv_stride=\"8\" batch=1 tokens=2 heads=3 "
                  "kv_heads=3 dim=8 positions=9 capacity=9"),
            "kv_stride 8: must be at least kv_heads x dim, 24");
  EXPECT_EQ(other("rope_append dtype=f32 out=f32 q_stride=\"25\" batch=1 tokens=2 heads=3 "
                  "kv_heads=3 dim=8 positions=9 capacity=9"),
            "q_stride 25: must be even, for pairs of neighbours");
  EXPECT_EQ(other("rope dtype=f32 out=f32 x_stride=\"25\" tokens=2 heads=3 dim=8 positions=9"),
            "x_stride 25: must be even, for pairs of neighbours");
  EXPECT_EQ(other("attention dtype=f32 out=f32 q_stride=\"36\" batch=1 heads=4 kv_heads=1 q=3 kv=5 "
                  "dim=8"),
            "q_stride 36: must be a multiple of 8");
  EXPECT_EQ(made("softmax", {{"place", "in"}, {"x_stride", "104"}}),
            "y_stride 96: must be x_stride, 104, where place is in");
  EXPECT_EQ(made("softmax", {{"place", "in"}, {"x_stride", "104"}, {"y_stride", "112"}}),
            "y_stride 112: must be x_stride, 104, where place is in");
}

TEST(StrideOptions, RowsInPlaceKeepBothStrides) {
  const auto made = [](const std::string& rows) {
    const auto problem = make_problem(
        built_in("softmax"),
        {{{"place", "in"}, {"x_stride", "17"}, {"y_stride", "17"}, {"rows", rows}, {"cols", "13"}},
         "",
         ""});
    return problem ? problem->key() : problem.failure().message;
  };
  // Y has no operand of its own, but the kernels write rows at its stride.
  EXPECT_EQ(made("7"),
            "softmax dtype=f32 out=f32 place=in x_stride=\"17\" y_stride=\"17\" rows=7 cols=13");
  EXPECT_EQ(made("1"), "softmax dtype=f32 out=f32 place=in rows=1 cols=13");
}

TEST(StrideOptions, RowsLongerThanAnyStrideArePacked) {
  const auto made = [](const std::string& stride) {
    const ProblemRequest request{
        {{"tokens", "1"}, {"heads", "20000000"}, {"dim", "128"}, {"x_stride", stride}}, "", ""};
    const auto problem = make_problem(built_in("rope"), request);
    return problem ? problem->key() : problem.failure().message;
  };
  const std::string key = "rope dtype=f16 out=f16 tokens=1 heads=20000000 dim=128 positions=4096";
  EXPECT_EQ(made("2560000000"), key);
  const std::string only = ": must be heads x dim, 2560000000: rows this long are always packed";
  for (const char* bad : {"2560000008", "2147483640", "0", "many"}) {
    EXPECT_EQ(made(bad), "x_stride " + std::string(bad) + only);
  }
}

TEST(StrideOptions, AConstraintSaysWhichOneLoadsDontDivide) {
  const DeviceInfo device = *architecture_info("sm_90");
  for (const auto& [op, text] : {std::pair("rmsnorm", "held THREADS=32 ROWS=1 VEC=4 STAY=0"),
                                 std::pair("argmax", "row THREADS=64 VEC=4 ITEMS=1 ROWS=2")}) {
    const Operation& entry = built_in(op);
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
  for (const auto& [op, keys] : strided_problems()) {
    const Operation& entry = built_in(op);
    const Problem apart = Problem::parse(keys[0]).value(), together = of_packed_rows(entry, apart);
    EXPECT_EQ(entry.work(apart).bytes, entry.work(together).bytes) << op;
    EXPECT_EQ(entry.work(apart).flops, entry.work(together).flops) << op;
    EXPECT_GT(entry.tensors(apart)[0].bytes(), entry.tensors(together)[0].bytes()) << op;
  }
}

}  // namespace
}  // namespace greta::test::strides_test
