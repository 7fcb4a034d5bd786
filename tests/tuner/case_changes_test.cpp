// Protects: a change of lines that several kernels of a case have is made in all of them; a barrier
// comes early if a race shows, and late if the race detector found none.

#include "tuner/diagnose/changes/case_changes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/layers.hpp"

namespace greta::test::case_changes_test {
namespace {

const std::string shared_lines =
    "uint place(uint i) {\n"
    "  uint first = i;\n"
    "  uint next = first;\n"
    "  uint last = next;\n"
    "  return last / 3;\n"
    "}\n\n\n\n";

FailedCase case_of_two_kernels() {
  FailedCase failed;
  failed.kernel.language = Language::glsl;
  for (const char* const own :
       {"void main() { y[0] = place(1); }\n", "uint z;\nvoid main() { y[1] = place(2); }\n"}) {
    failed.sources.push_back("// sum, entry main, workgroup 1 x 1 x 1, subgroup size 0, options\n" +
                             shared_lines + own);
  }
  failed.runs.resize(2);
  return failed;
}

std::size_t place_of(const CaseChanges& changes, const std::string& by, const char* before) {
  const auto& all = changes.all();
  const auto found = std::find_if(all.begin(), all.end(), [&](const KernelChange& one) {
    const std::string& text = changes.text(one.kernel);
    return one.change.by == by && text.substr(one.change.start, one.change.length) == before;
  });
  EXPECT_NE(found, all.end());
  return static_cast<std::size_t>(found - all.begin());
}

TEST(CaseChanges, OfLinesOfSeveralKernelsAreMadeInAll) {
  const FailedCase failed = case_of_two_kernels();
  CaseChanges changes(failed, {}, {});
  const std::size_t place = place_of(changes, "*", "/");
  const KernelChange& one = changes.all()[place];
  ASSERT_EQ(one.others.size(), 1U);
  EXPECT_EQ(one.others[0].first, 1U);
  EXPECT_EQ(one.others[0].second.applied_to(changes.text(1)).find("last * 3"),
            changes.text(1).find("last / 3"));
  const auto groups = changes.groups_of(place, place + 1);
  ASSERT_EQ(groups.size(), 1U);
  ASSERT_EQ(groups[0].others.size(), 1U);
  ASSERT_EQ(groups[0].others[0].changes.size(), 1U);
  EXPECT_EQ(groups[0].others[0].changes[0].number, groups[0].changes[0].number);
}

TEST(CaseChanges, OfALineOfOneKernelAreOfItAlone) {
  const FailedCase failed = case_of_two_kernels();
  const CaseChanges changes(failed, {}, {});
  EXPECT_TRUE(changes.all()[place_of(changes, "0", "1")].others.empty());
}

TEST(CaseChanges, BarriersComeEarlyIfARaceShows) {
  FailedCase failed = case_of_two_kernels();
  const std::size_t unknown = place_of(CaseChanges(failed, {}, {}), " barrier();", "");
  failed.sanitizers.ran = true;
  const std::size_t no_race = place_of(CaseChanges(failed, {}, {}), " barrier();", "");
  failed.runs[1].outputs.emplace_back();
  const std::size_t race = place_of(CaseChanges(failed, {}, {}), " barrier();", "");
  EXPECT_LT(race, unknown);
  EXPECT_GT(no_race, unknown);
}

}  // namespace
}  // namespace greta::test::case_changes_test
