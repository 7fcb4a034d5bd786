// Protects: a change of lines that several kernels of a case have is made in all of them; a barrier
// comes early if a race shows, and late if the race detector found none; what can be in no group
// takes no place before what can; where changes change the wrong elements, further ones come early.

#include "tuner/diagnose/changes/case_changes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/layers.hpp"
#include "tuner/diagnose/changes/change_effects.hpp"

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
  const auto groups = changes.groups_of({place});
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

TEST(CaseChanges, WithoutASlotAreLast) {
  FailedCase failed = case_of_two_kernels();
  failed.sources.resize(1);
  failed.sources[0] += "const uint limit = 7;\n";  // not of a function
  failed.sources[0].replace(failed.sources[0].find("place(1)"), 8, "place(limit)");
  const CaseChanges changes(failed, {}, {});
  const auto& all = changes.all();
  EXPECT_TRUE(all.front().has_slot());
  EXPECT_FALSE(all[place_of(changes, "6", "7")].has_slot());
  EXPECT_TRUE(std::is_partitioned(all.begin(), all.end(),
                                  [](const KernelChange& one) { return one.has_slot(); }));
}

std::vector<std::vector<std::byte>> contents_of(const std::vector<std::uint32_t>& values) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(values.data());
  return {{bytes, bytes + values.size() * sizeof(std::uint32_t)}};
}

TEST(ChangeEffects, AreSharesOfWrongAndCorrectElements) {
  KernelCase run;
  run.buffers = {{"y", 16, 0, {}, std::byte{0}, "u32", {{1, 0}, {2, 0}, {3, 0}, {4, 0}}, 0}};
  const EffectJudge judge(run, contents_of({1, 2, 0, 0}), {});
  const ChangeEffect one = judge.effect_of(contents_of({1, 9, 3, 0}));
  EXPECT_TRUE(one.known);
  EXPECT_EQ(one.right, 0.5F);
  EXPECT_EQ(one.wrong, 0.5F);
  EXPECT_EQ(one.mended, 0.5F);
  const EffectJudge of_one(run, contents_of({1, 2, 0, 0}), {{0, 0, 1, 0}});
  EXPECT_EQ(of_one.effect_of(contents_of({1, 9, 3, 0})).wrong, 1.0F);
}

TEST(ChangeEffects, APlaceThatChangesAllWrongElementsIsMoreLikely) {
  PlaceEvidence evidence;
  const PlaceEvidence::Place idle{0, 1}, all{0, 2}, some{0, 3}, mends{0, 4}, unknown{0, 5};
  evidence.add(idle, {true, 0, 0.5F, 0});
  evidence.add(all, {true, 1, 0.5F, 0});
  evidence.add(some, {true, 0.5F, 0.5F, 0});
  evidence.add(mends, {true, 1, 0, 0.5F});
  evidence.add(unknown, {});
  EXPECT_GT(evidence.worth_of(mends), evidence.worth_of(all));
  EXPECT_GT(evidence.worth_of(all), evidence.worth_of(unknown));
  EXPECT_GT(evidence.worth_of(unknown), evidence.worth_of(idle));
  EXPECT_GT(evidence.worth_of(all), evidence.worth_of(some));
}

}  // namespace
}  // namespace greta::test::case_changes_test
