// Protects: a comparison with a correct version finds exactly the edits that are wrong, in few
// trials, and the texts of kernels are those of their files.

#include "tuner/diagnose/comparison/comparison.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "db/enum_text.hpp"
#include "kernels/described/kernel_file.hpp"
#include "kernels/sampling/candidates.hpp"
#include "runtime/device/backend.hpp"
#include "tests/catalog.hpp"
#include "tests/layers.hpp"
#include "tuner/diagnose/comparison/case_sources.hpp"
#include "tuner/diagnose/comparison/reduction.hpp"

namespace greta::test::comparison_test {
namespace {

using Numbers = std::vector<std::size_t>;

std::string random_text(std::mt19937& random, std::size_t lines) {
  std::string text;
  for (std::size_t i = 0; i < lines; ++i)
    text += fmt::format("x{} = y{} + {};\n", random() % 4, random() % 4, random() % 3);
  return text;
}

TEST(TextEdits, OfRandomTextsMakeOneTheOther) {
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    const std::string from = random_text(random, random() % 12);
    std::string to = random_text(random, random() % 12);
    if (i % 3 == 0 && !to.empty()) to.pop_back();  // a last line without its end
    const auto lines = line_edits(from, to);
    EXPECT_EQ(with_edits(from, lines), to);
    EXPECT_EQ(lines.empty(), from == to);
    std::vector<TextEdit> words;
    for (const TextEdit& line : lines) {
      for (TextEdit& word : word_edits(from, line)) words.push_back(std::move(word));
    }
    EXPECT_EQ(with_edits(from, words), to);
  }
}

TEST(TextEdits, AreTheFewestLinesAndWords) {
  const std::string from = "a\nfor (i = 0; i + 1 < k; ++i)\nb\nc\n";
  const std::string to = "a\nfor (i = 0; i < k; ++i)\nb\nnew\nc\n";
  const auto lines = line_edits(from, to);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1], (TextEdit{from.find("c\n"), 0, "new\n"}));
  const auto words = word_edits(from, lines[0]);
  ASSERT_EQ(words.size(), 1U);
  EXPECT_EQ(from.substr(words[0].start, words[0].length), "+ 1 ");
  EXPECT_TRUE(words[0].by.empty());
}

TEST(TextEdits, OfTextsWithoutACommonLineAreOne) {
  std::string from, to;
  for (int i = 0; i < 5000; ++i) {
    from += fmt::format("a{}\n", i);
    to += fmt::format("b{}\n", i);
  }
  EXPECT_EQ(line_edits("same\n" + from, "same\n" + to),
            (std::vector{TextEdit{5, from.size(), to}}));
}

/// Reduces `count` edits of which all `guilty` must be reversed. Returns the number of trials.
std::size_t trials_of(std::size_t count, const std::set<std::size_t>& guilty, Numbers& found) {
  Numbers all(count);
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::size_t trials = 0;
  found = reduced(all, [&](const Numbers& some) {
    ++trials;
    return std::all_of(guilty.begin(), guilty.end(), [&](std::size_t one) {
      return std::find(some.begin(), some.end(), one) != some.end();
    });
  });
  return trials;
}

TEST(Reduction, FindsOneOrTwoGuiltyEditsOfMany) {
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    const std::size_t count = 1 + random() % 60;
    std::set<std::size_t> guilty{random() % count};
    if (i % 2 == 1) guilty.insert(random() % count);
    Numbers found;
    const std::size_t trials = trials_of(count, guilty, found);
    EXPECT_EQ(std::set<std::size_t>(found.begin(), found.end()), guilty);
    if (guilty.size() == 1) {
      EXPECT_LE(static_cast<double>(trials), 2 * std::ceil(std::log2(count))) << count;
    }
  }
}

TEST(Reduction, OfEditsThatAreWrongOnlyTogetherReversesOne) {
  for (std::size_t count = 2; count < 40; ++count) {
    Numbers all(count);
    std::iota(all.begin(), all.end(), std::size_t{0});
    const auto has = [](const Numbers& some, std::size_t one) {
      return std::find(some.begin(), some.end(), one) != some.end();
    };
    const Numbers found =
        reduced(all, [&](const Numbers& some) { return has(some, 0) || has(some, count - 1); });
    EXPECT_EQ(found.size(), 1U);
  }
}

const SourceFiles two_files{{"a.hip", "one\nx = i + 1 < k; y = old;\nthree\n"},
                            {"b.hip", "four\n"}};
const std::vector<FileEdit> two_edits{{"a.hip", {4, 24, "x = i < k; y = fresh;\n"}},
                                      {"b.hip", {0, 5, "4\n"}}};

/// Whether edits reverse the guilty one.
bool mends(const std::vector<FileEdit>& edits) {
  return std::any_of(edits.begin(), edits.end(), [](const FileEdit& one) {
    const std::string& own = two_files.at(one.file);
    return with_edits(own, {one.edit}).find("x = i < k") != std::string::npos;
  });
}

TEST(ReducedEdits, AreTheGuiltyWordsOfTheGuiltyLine) {
  const auto found = reduced_edits(two_files, two_edits, [](const auto& edits) {
    return mends(edits) ? ChangeOutcome::correct : ChangeOutcome::wrong;
  });
  ASSERT_EQ(found.edits.size(), 1U);
  EXPECT_EQ(found.edits[0].file, "a.hip");
  EXPECT_EQ(found.edits[0].edit, (TextEdit{10, 4, ""}));
  EXPECT_TRUE(found.with_others);
}

TEST(ReducedEdits, AreFoundOfASourceThatDoesNotFinish) {
  const auto found = reduced_edits(two_files, two_edits, [](const auto& edits) {
    return mends(edits) ? ChangeOutcome::correct : ChangeOutcome::hangs;
  });
  EXPECT_EQ(found.edits.size(), 1U);
}

TEST(ReducedEdits, AreNoneOfAVersionThatIsNotCorrect) {
  std::size_t trials = 0;
  const auto try_edits = [&](const auto&) {
    ++trials;
    return ChangeOutcome::wrong;
  };
  EXPECT_TRUE(reduced_edits(two_files, two_edits, try_edits).edits.empty());
  EXPECT_EQ(trials, 2U);
}

TEST(ReducedEdits, AreNoneOfASourceThatIsCorrect) {
  const auto try_edits = [](const auto&) { return ChangeOutcome::correct; };
  EXPECT_TRUE(reduced_edits(two_files, two_edits, try_edits).edits.empty());
}

/// The texts of random kernels of each operation are made of their templates again.
TEST(CaseSources, OfEachOperationAreThoseOfThePlan) {
  for (const char* const id : {"vulkan:0", "hip-host:0"}) {
    const DeviceInfo device = open_device(id, {}).value()->info();
    std::size_t seen = 0;
    for (const Operation& operation : catalog()) {
      for (const Candidate& choice : kernels::random_candidates(operation, device, "", 2, 1)) {
        const auto plan = operation.plan(choice.problem, device, choice.config).value();
        FailedCase failed;
        failed.kernel.language = device.language;
        for (const KernelSource& source : plan.sources)
          failed.sources.push_back(kept_source(source));
        failed.files = template_files(plan.sources, find_in({}));
        const auto texts = CaseSources(failed, device).texts(failed.files);
        ASSERT_EQ(texts.size(), failed.sources.size());
        for (std::size_t i = 0; i < texts.size(); ++i) {
          EXPECT_TRUE(texts[i] == plan.sources[i].text) << choice.problem.key();
          ++seen;
        }
      }
    }
    EXPECT_GT(seen, catalog().size()) << id;
  }
}

const SourceFiles own_files{
    {"own.jsonc", R"({"greta": 1, "name": "own", "language": "hip", "source": "own.hip",
        "include": "include", "dimensions": {"n": 8}, "parameters": {"UNROLL": [0, 3]},
        "operands": [{"name": "x", "role": "input", "type": "f32", "shape": "n"},
                     {"name": "y", "role": "output", "type": "f32", "shape": "n"}],
        "entry": "own", "grid": "n", "workgroup": 1, "arguments": ["x", "y"],
        "reference": {"entry": "own", "grid": "n", "workgroup": 1, "arguments": ["x", "y"],
                      "tolerance": {"absolute": 0}}})"},
    {"own.hip",
     "#include \"twice.h\"\n__global__ void own(const float* x, float* y) {\n"
     "#pragma unroll UNROLL\n  for (int i = 0; i < 2; ++i) y[blockIdx.x] = "
     "twice(x[blockIdx.x]);\n}\n"},
    {"include/twice.h", "__device__ float twice(float x) { return 2 * x; }\n"}};

std::vector<KernelSource> planned_own(const SourceFiles& files, const DeviceInfo& device) {
  const KernelFile file = kernels::read_kernel_file("own.jsonc", files).value();
  const auto operation = kernels::make_described(file.description, file.files, {}).value();
  return operation
      .plan(Problem::parse("own dtype=f32 out=f32 n=8").value(), device,
            config_from_text("described UNROLL=0"))
      .value()
      .sources;
}

/// With a header, and a pragma that a parameter removes.
TEST(CaseSources, OfADescribedKernelAreThoseOfItsPlan) {
  const DeviceInfo device = open_device("hip-host:0", {}).value()->info();
  FailedCase failed;
  failed.kernel.problem = "own dtype=f32 out=f32 n=8";
  failed.kernel.config = "described UNROLL=0";
  failed.description = "own.jsonc";
  failed.files = own_files;
  failed.sources.push_back(kept_source(planned_own(own_files, device).at(0)));
  SourceFiles other = own_files;
  other.at("include/twice.h") = "__device__ float twice(float x) { return x + x; }\n";
  const CaseSources sources(failed, device);
  EXPECT_EQ(sources.texts(other).at(0), planned_own(other, device).at(0).text);
  EXPECT_NE(sources.texts(other).at(0), sources.texts(own_files).at(0));
  EXPECT_EQ(files_of(failed, find_in(own_files)).size(), 2U);
  failed.sources[0] += "further\n";  // not what the files give
  EXPECT_THROW(CaseSources(failed, device).texts(other), Error);
}

}  // namespace
}  // namespace greta::test::comparison_test
