// Protects: the text of a kernel has each file that it includes, also where a conditional that is
// false includes it first.
#include "kernels/planning/render.hpp"

#include <gtest/gtest.h>

#include "tests/layers.hpp"

namespace greta::test::render_test {
namespace {

std::size_t count(const std::string& text, const std::string& wanted) {
  std::size_t found = 0;
  for (auto at = text.find(wanted); at != std::string::npos; at = text.find(wanted, at + 1)) {
    ++found;
  }
  return found;
}

TEST(Render, FilesOfConditionalsHaveGuards) {
  for (const std::string kernel : {"gemm/tma.hip", "gemm/matrix.hip"}) {
    SCOPED_TRACE(kernel);
    const std::string text = render(kernel, {});
    // Needed with CLUSTER > 1 by one file, and with FOLD == 2 by another.
    const std::size_t places = count(text, "\nstruct Inbox {");
    EXPECT_GE(places, kernel == "gemm/matrix.hip" ? 1U : 2U);
    EXPECT_EQ(count(text,
                    "\n#if !defined(GRETA_HAS_common_cluster_hip)\n"
                    "#define GRETA_HAS_common_cluster_hip\n"),
              places);
  }
}

TEST(Render, OtherFilesAreThereOnce) {
  const std::string text = render("gemm/tma.hip", {{"BM", "64"}});
  EXPECT_EQ(count(text, "\nstruct Position {"), 1U);  // several files include gemm/tile_order.hip
  EXPECT_EQ(count(text, "#pragma once"), 0U);
  EXPECT_EQ(text.find("#define BM 64\n"), 0U);
}

}  // namespace
}  // namespace greta::test::render_test
