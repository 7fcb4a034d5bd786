// Protects: the search for a change compiles many changes of a kernel at once, each in its own
// version of a statement or an expression; those that don't compile cost the others nothing.

#include "tuner/diagnose/changes/change_builds.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <regex>
#include <string>
#include <vector>

#include "tests/layers.hpp"

namespace greta::test::change_builds_test {
namespace {

const std::string sum_kernel =
    "constexpr int four() { return 4; }\n"
    "__global__ void sum(float* y, int n) {\n"
    "  float s = 0;\n"
    "  for (int i = 1; i < n; ++i) s += y[i];\n"
    "  if (n > four()) { y[0] = s; }\n"
    "  y[1] = s;\n"
    "}\n";

KernelSource source_of(const std::string& text, Language language) {
  KernelSource source;
  source.name = source.entry = language == Language::glsl ? "main" : "sum";
  source.language = language;
  source.text = text;
  return source;
}

std::vector<std::string> slots_in(const std::string& text) {
  std::vector<std::string> found;
  for (const ChangeSlot& slot : slots_of(text, "sum")) {
    if (slot.kind != ChangeSlot::Kind::insertion)
      found.push_back(text.substr(slot.start, slot.end - slot.start));
  }
  return found;
}

/// Returns groups of the changes with numbers from 1 on, each of which replaces the first place of
/// a text.
struct Changes {
  std::vector<SourceChange> changes;
  std::vector<std::uint32_t> numbers;

  Changes(const std::string& text, const std::vector<std::pair<std::string, std::string>>& all) {
    for (const auto& [before, after] : all) {
      changes.push_back({text.find(before), before.size(), after, "", 0});
      numbers.push_back(static_cast<std::uint32_t>(changes.size()));
    }
  }
  auto groups(const std::string& text, std::size_t most = 10) const {
    return change_groups(changes, numbers, slots_of(text, "sum"), most);
  }
};

/// Refuses texts with the word "bad" as a compiler does, with its line, or without.
class FakeCompiler final : public TargetCompiler {
 public:
  explicit FakeCompiler(bool says_where) : says_where_(says_where) {}
  const DeviceInfo& target() const override { return target_; }
  Result<CompiledKernel> compile(const KernelSource& source) override {
    ++count;
    const std::size_t at = source.text.find("bad");
    if (at == std::string::npos) {
      CompiledKernel compiled;
      compiled.code_object.resize(1);
      return compiled;
    }
    const std::size_t line = source.text.rfind("#line ", at);
    const std::string number =
        source.text.substr(line + 6, source.text.find('\n', line) - line - 6);
    return Failure{Status::compile, "sum", says_where_ ? "sum:" + number + ":3: error: bad" : ""};
  }
  int count = 0;

 private:
  bool says_where_;
  DeviceInfo target_;
};

TEST(ChangeSlots, AreStatementsAndExpressionsThatMayChange) {
  // Not in them: declarations as a whole, and what a compiler has to know.
  EXPECT_EQ(
      slots_in(sum_kernel),
      (std::vector<std::string>{"0", "1", "i < n", "++i", "s += y[i];", "n > four()", "y[0] = s;",
                                "y[1] = s;", "if (n > four()) { y[0] = s; }\n  y[1] = s;"}));
}

TEST(ChangeSlots, AreElementsOfListsAndPairsOfStatements) {
  const auto slots = slots_in(
      "__global__ void sum(float* y, int n) {\n"
      "  const Place at{n + 1, place(Line{n - 1})};\n"
      "  [[unroll]] for (int i = 0; i < n; ++i) {\n"
      "    y[i] = 1;\n"
      "    if (n > 2) y[0] = 2;\n"
      "  }\n"
      "}\n");
  const auto has = [&](const std::string& text) {
    return std::find(slots.begin(), slots.end(), text) != slots.end();
  };
  EXPECT_TRUE(has("n + 1"));
  EXPECT_TRUE(has("n - 1"));
  EXPECT_TRUE(has("i < n"));
  EXPECT_TRUE(has("y[i] = 1;\n    if (n > 2) y[0] = 2;"));
}

TEST(ChangeSlots, AreInFunctionsAfterAConstantMember) {
  const auto slots = slots_in(
      "struct Sum {\n"
      "  static constexpr int four = 4;\n"
      "  constexpr int five() { return four + 1; }\n"
      "  float of(const float* y) const { return y[0] + y[1]; }\n"
      "};\n"
      "__global__ void sum(float* y, int n) { y[2] = Sum().of(y); }\n");
  EXPECT_EQ(slots, (std::vector<std::string>{"y[0] + y[1]", "y[2] = Sum().of(y);"}));
}

TEST(ChangeBuilds, TextHasAVersionForEachNumber) {
  Changes changes(sum_kernel, {{"1; i", ""}, {"<", "<="}, {"y[1]", "y[2]"}});
  changes.changes[0] = {sum_kernel.find("1; i"), 1, "0", "", 0};
  const auto groups = changes.groups(sum_kernel);
  ASSERT_EQ(groups.size(), 1U);
  const std::string text =
      std::regex_replace(text_with_changes(source_of(sum_kernel, Language::hip), groups[0]),
                         std::regex("\n#line \\d+|\n"), " ");
  EXPECT_NE(text.find("int i = (GRETA_HOST_CHOSEN == 1u ? (  0  ) : (1 ))"), std::string::npos)
      << text;
  EXPECT_NE(text.find("(GRETA_HOST_CHOSEN == 2u ? (  i <= n  ) : (i < n ))"), std::string::npos);
  EXPECT_NE(text.find("{ if (GRETA_HOST_CHOSEN == 3u) {   y[2] = s;   } else  { y[1] = s;  } }"),
            std::string::npos);
}

TEST(ChangeBuilds, TheNumberIsASpecializationConstantOfGlsl) {
  const std::string text = "#version 460\nvoid main() {\n  uint a = 1;\n}\n";
  const std::vector<SourceChange> changes{{text.find("1;"), 1, "2", "", 0}};
  const auto groups = change_groups(changes, {7}, slots_of(text, "main"), 10);
  ASSERT_EQ(groups.size(), 1U);
  const std::string made = text_with_changes(source_of(text, Language::glsl), groups[0], true);
  EXPECT_TRUE(made.starts_with("#version 460\nlayout(constant_id = 1999) const uint ")) << made;
}

/// Refuses sources in which the number is read from memory.
class ConstantCompiler final : public TargetCompiler {
 public:
  const DeviceInfo& target() const override { return target_; }
  Result<CompiledKernel> compile(const KernelSource& source) override {
    if (source.text.find("GretaHostNumber") != std::string::npos)
      return Failure{Status::compile, "main", "an extent must be constant"};
    CompiledKernel compiled;
    compiled.code_object.resize(1);
    return compiled;
  }

 private:
  DeviceInfo target_;
};

TEST(ChangeBuilds, TheNumberIsReadFromMemoryInGlslWhereItCanBe) {
  const std::string text = "#version 460\nvoid main() {\n  uint a = 1;\n  barrier();\n}\n";
  const auto group_of = [&](const SourceChange& change) {
    static std::vector<SourceChange> changes;
    changes = {change};
    return change_groups(changes, {7}, slots_of(text, "main"), 10).at(0);
  };
  const SourceChange other{text.find("1;"), 1, "2", "", 0};
  const SourceChange added{text.find("\n  barrier"), 0, " barrier();", "", 0};
  const SourceChange removed{text.find("barrier()"), 10, ";", "", 0};
  const KernelSource source = source_of(text, Language::glsl);
  const std::string made = text_with_changes(source, group_of(other));
  EXPECT_NE(made.find("void main() { greta_host_change = GretaHostNumber("), std::string::npos)
      << made;
  FakeCompiler compiler(true);
  EXPECT_FALSE(build_changes(compiler, source, group_of(other)).at(0).as_constant);
  EXPECT_TRUE(build_changes(compiler, source, group_of(added)).at(0).as_constant);
  EXPECT_TRUE(build_changes(compiler, source, group_of(removed)).at(0).as_constant);
  ConstantCompiler refusing;
  EXPECT_TRUE(build_changes(refusing, source, group_of(other)).at(0).as_constant);
}

TEST(ChangeBuilds, TheNumberIsPutIntoSpirv) {
  const std::uint32_t decorate = 4U << 16 | 71, constant = 4U << 16 | 50, spec_id = 1;
  std::vector<std::uint32_t> words{0x07230203, 0x10300, 0, 9, 0};
  for (const std::uint32_t word : {decorate, 5U, spec_id, 3U, decorate, 6U, spec_id, 1999U,  //
                                   constant, 1U, 5U, 11U, constant, 1U, 6U, 12U})
    words.push_back(word);
  std::vector<std::byte> binary(words.size() * sizeof(std::uint32_t));
  std::memcpy(binary.data(), words.data(), binary.size());
  for (const std::uint32_t number : {8U, 9U}) {
    ASSERT_TRUE(choose_change(binary, number));
    words.back() = number;
    EXPECT_EQ(std::memcmp(binary.data(), words.data(), binary.size()), 0);
  }
  binary.resize(binary.size() - 32);
  EXPECT_FALSE(choose_change(binary, 9));
}

TEST(ChangeBuilds, ALineThatGoesOnEndsAVersionsLine) {
  // A backslash would make a directive a part of the line before it.
  const std::string text = "__global__ void sum(float* y) {\n  y[0] = 1 + \\\n    2;\n}\n";
  const Changes changes(text, {{"1", "3"}});
  const auto groups = changes.groups(text);
  ASSERT_EQ(groups.size(), 1U);
  const std::string made = text_with_changes(source_of(text, Language::hip), groups[0]);
  EXPECT_NE(made.find("y[0] = 3 + \n#line 1000064\n    2;"), std::string::npos) << made;
}

TEST(ChangeBuilds, MarksAreWithinWhatTheyMark) {
  const KernelSource source = source_of(sum_kernel, Language::hip);
  const auto slots = slots_of(source.text, "sum");
  std::vector<char> without(slots.size(), 0);
  const std::string made =
      std::regex_replace(text_with_marks(source, slots, without), std::regex("\\d+"), "N");
  const std::string mark = "GRETA_HOST_MARK(N)";
  for (const std::string& part :
       {"float s = (" + mark + ", N);" + mark + ";", "(" + mark + ", i < n)",
        "{ " + mark + "; s += y[i]; }" + mark + ";",
        "{ { " + mark + "; y[N] = s; }" + mark + "; }"})
    EXPECT_NE(made.find(part), std::string::npos) << part << " in " << made;
  without.assign(slots.size(), 1);
  EXPECT_NE(text_with_marks(source, slots, without).find(sum_kernel), std::string::npos);
}

TEST(ChangeBuilds, SlotsThatOverlapAreInSeveralGroups) {
  const std::string text =
      "__global__ void sum(float* y) {\n  visit([&](int i) { y[i] = 1; }, 2);\n}\n";
  const Changes changes(text, {{"1", "0"}, {"2", "3"}, {"y[i]", "y[0]"}});
  const auto groups = changes.groups(text);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].size(), 2U);  // both in the inner statement
  EXPECT_EQ(changes.groups(text, 1).size(), 3U);
}

TEST(ChangeBuilds, LeaveOutWhatDoesNotCompile) {
  const Changes changes(sum_kernel, {{"<", "<="}, {"s += y[i]", "s += bad"}, {"y[1]", "y[2]"}});
  const auto groups = changes.groups(sum_kernel);
  ASSERT_EQ(groups.size(), 1U);
  for (const bool says_where : {true, false}) {
    FakeCompiler compiler(says_where);
    std::vector<std::uint32_t> numbers;
    for (const ChangeBuild& build :
         build_changes(compiler, source_of(sum_kernel, Language::hip), groups[0]))
      numbers.insert(numbers.end(), build.numbers.begin(), build.numbers.end());
    EXPECT_EQ(numbers, (std::vector<std::uint32_t>{1, 3}));
    EXPECT_LE(compiler.count, says_where ? 2 : 5);
  }
}

TEST(ChangeBuilds, AllLinesOfALongChangeHaveItsNumber) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "s += 1;\n";
  const Changes changes(sum_kernel, {{"s += y[i];", "{ " + lines + "bad; }"}, {"y[1]", "y[2]"}});
  const auto groups = changes.groups(sum_kernel);
  ASSERT_EQ(groups.size(), 1U);
  FakeCompiler compiler(true);
  const auto builds = build_changes(compiler, source_of(sum_kernel, Language::hip), groups[0]);
  ASSERT_EQ(builds.size(), 1U);
  EXPECT_EQ(builds[0].numbers, (std::vector<std::uint32_t>{2}));
}

TEST(ChangeBuilds, AddressesArePutIntoALibrary) {
  const std::vector<std::uint32_t> words{5, 0x7c31e95bU, 0xd6408f2aU, 0, 0, 0, 0, 6};
  std::vector<std::byte> library(words.size() * sizeof(std::uint32_t));
  std::memcpy(library.data(), words.data(), library.size());
  const char marks = 0;
  ASSERT_TRUE(put_address_of_number(library, 0x900000008U));
  ASSERT_TRUE(choose_marks(library, &marks));
  std::vector<std::uint32_t> after(words.size());
  std::memcpy(after.data(), library.data(), library.size());
  const auto address = reinterpret_cast<std::uintptr_t>(&marks);
  EXPECT_EQ(after, (std::vector<std::uint32_t>{5, 0x7c31e95bU, 0xd6408f2aU, 8, 9,
                                               static_cast<std::uint32_t>(address),
                                               static_cast<std::uint32_t>(address >> 32), 6}));
  library.resize(20);
  EXPECT_TRUE(put_address_of_number(library, 1));
  EXPECT_FALSE(choose_marks(library, &marks));  // there is no room for a second address
}

}  // namespace
}  // namespace greta::test::change_builds_test
