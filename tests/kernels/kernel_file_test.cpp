// Protects: a description's file brings its sources along, from its own folder only, and each
// failure names the description.

#include "kernels/described/kernel_file.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/kernels/plan_runner.hpp"
#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::kernel_file_test {
namespace {

const std::filesystem::path data = std::filesystem::path(GRETA_TEST_DATA) / "kernels";

class KernelFile : public ::testing::Test {
 protected:
  KernelFile() { std::filesystem::copy(data / "vector_add.jsonc", folder_.path()); }

  std::string message() const {
    const auto loaded = load_described(folder_ / "vector_add.jsonc", reference_devices());
    return loaded ? "loaded" : loaded.failure().message.substr((folder_ / "").string().size());
  }

  TemporaryFolder folder_;
};

TEST_F(KernelFile, LoadsAndVerifies) {
  const auto operation = load_described(data / "vector_add.jsonc", reference_devices());
  ASSERT_TRUE(operation) << operation.failure().message;
  Problem problem;
  problem.op = "vector_add";
  problem.dims = {{"n", 777}};
  Device& on = device("hip-host:0");
  expect_right(*operation, problem,
               operation->plan(problem, on.info(), operation->default_config(problem, on.info())),
               "default", 3, on);
}

TEST_F(KernelFile, AFunctionMayBeTheReference) {
  const auto refused = load_described(data / "row_sums.jsonc", reference_devices());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.failure().message.find("row_sums is checked by a function, row_sums, which a"),
            std::string::npos);
  GivenReference given;
  given.outputs = [](const Problem&, const std::vector<ShapedOperand>& operands,
                     const std::vector<HostTensor>& inputs) {
    const std::int64_t rows = operands[0].shape[0], cols = operands[0].shape[1];
    std::vector<double> sums(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows * cols; ++i) {
      sums[static_cast<std::size_t>(i / cols)] += 5 * inputs[0].at(static_cast<std::size_t>(i));
    }
    return std::vector<std::vector<double>>{sums};
  };
  const auto operation = load_described(data / "row_sums.jsonc", reference_devices(), given);
  ASSERT_TRUE(operation) << operation.failure().message;
  Problem problem;
  problem.op = "row_sums";
  problem.dims = {{"rows", 77}, {"cols", 9}, {"factor", 5}};
  Device& on = device("hip-host:0");
  expect_right(*operation, problem,
               operation->plan(problem, on.info(), operation->default_config(problem, on.info())),
               "default", 3, on);
  given.outputs = [](const Problem&, const auto&, const auto&) {
    return std::vector<std::vector<double>>{{1, 2}};
  };
  const auto short_of_elements =
      load_described(data / "row_sums.jsonc", reference_devices(), given);
  EXPECT_THROW(short_of_elements->reference(problem, {}, 1), Error);
}

TEST_F(KernelFile, ARunDoesNotNeedTheReference) {
  const auto operation =
      load_described(data / "row_sums.jsonc", reference_devices(), no_reference());
  ASSERT_TRUE(operation) << operation.failure().message;
  EXPECT_THROW(operation->reference({}, {}, 1), Error);
}

TEST_F(KernelFile, SourcesAreNeeded) {
  EXPECT_EQ(
      message(),
      "vector_add.jsonc: line 6, column 13, source: vector_add.cu: No such file or directory");
  std::filesystem::copy(data / "vector_add.cu", folder_.path());
  EXPECT_EQ(message(), "loaded");
}

TEST_F(KernelFile, LinksDoNotLeadOut) {
  std::filesystem::create_symlink("/etc/hostname", folder_ / "vector_add.cu");
  EXPECT_EQ(
      message(),
      "vector_add.jsonc: line 6, column 13, source: vector_add.cu is not within the description's "
      "folder");
}

TEST_F(KernelFile, MistakesHaveThePathOfTheFile) {
  std::ofstream(folder_ / "vector_add.jsonc") << "{\"greta\": 1,}";
  EXPECT_EQ(message().substr(0, 34), "vector_add.jsonc: line 1, column 1");
  std::filesystem::remove(folder_ / "vector_add.jsonc");
  const auto gone = load_described(folder_ / "vector_add.jsonc", reference_devices());
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.failure().status, Status::io);
}

TEST_F(KernelFile, T1IsRecognised) {
  std::filesystem::copy(data / "blur_t1.json", folder_ / "vector_add.jsonc",
                        std::filesystem::copy_options::overwrite_existing);
  std::ofstream(folder_ / "blur.cu") << "// no kernel";
  EXPECT_EQ(message().substr(0, 76),
            "vector_add.jsonc: blur has no reference, so its results cannot be verified; ");
}

}  // namespace
}  // namespace greta::test::kernel_file_test
