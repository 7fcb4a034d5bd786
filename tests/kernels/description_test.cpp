// Protects: a description of a kernel is read as it is written, each mistake in one is told with
// its line, its path, the value and what is allowed, and hostile ones do no harm.

#include "kernels/described/description.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "tests/layers.hpp"

namespace greta::test::description_test {
namespace {

std::string read_data(const char* name) {
  std::ifstream file(std::string(GRETA_TEST_DATA) + "/kernels/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}
std::string vector_add() {
  return read_data("vector_add.jsonc");
}
std::string blur() {
  return read_data("blur_t1.json");
}

std::string message_of(const std::string& text) {
  const auto read = read_description(text);
  return read ? "read" : read.failure().message;
}

TEST(Description, IsReadAsWritten) {
  const auto read = read_description(vector_add());
  ASSERT_TRUE(read) << read.failure().message;
  EXPECT_EQ(read->name, "vector_add");
  EXPECT_EQ(to_string(read->language), "cuda");
  EXPECT_EQ(read->sources, std::vector<std::string>{"vector_add.cu"});
  ASSERT_EQ(read->dimensions.size(), 1U);
  EXPECT_EQ(read->dimensions[0].fallback, 1'000'000);
  EXPECT_EQ(read->dimensions[0].examples, (std::vector<std::int64_t>{1, 1000, 4099}));
  ASSERT_EQ(read->parameters.size(), 4U);
  EXPECT_EQ(FormulaValue{read->parameters[1].values}.text(), "[1, 2, 4, 8]");
  EXPECT_EQ(FormulaValue{read->parameters[2].values}.text(), "['strided', 'blocked']");
  EXPECT_EQ(FormulaValue{read->defaults.at(0)}.text(), "[256, 1, 'strided', False]");
  ASSERT_EQ(read->constraints.size(), 1U);
  EXPECT_EQ(read->constraints[0].condition.names(), (std::vector<std::string>{"UNROLL", "ITEMS"}));
  ASSERT_EQ(read->operands.size(), 3U);
  EXPECT_EQ(read->operands[1].fill.from, -2);
  EXPECT_EQ(read->operands[2].role, Role::output);
  ASSERT_EQ(read->scalars.size(), 1U);
  EXPECT_EQ(read->scalars[0].value.text(), "n");
  ASSERT_EQ(read->launches.size(), 1U);
  EXPECT_EQ(read->launches[0].arguments, (std::vector<std::string>{"a", "b", "c", "n"}));
  EXPECT_EQ(read->launches[0].grid[0].text(), "ceil_div(n, BLOCK * ITEMS)");
  EXPECT_EQ(read->launches[0].grid[2].text(), "1");
  ASSERT_EQ(read->reference.launches.size(), 1U);
  EXPECT_EQ(read->reference.launches[0].entry, "vector_add_naive");
  EXPECT_EQ(read->reference.sources, read->sources);
}

struct Mistake {
  std::string from, to, message;  ///< `to` replaces the first `from`
};

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> list{
      // The document
      {"\"greta\": 1", "\"greta\": 2", "line 2, column 12, greta: must be 1, not 2"},
      {"\"greta\": 1,", "", "line 1, column 1: \"greta\" is missing: the version of this form, 1"},
      {"\"summary\"", "\"sumary\"", "line 4, column 13, sumary: the key is unknown; there are "},
      {"\"language\": \"cuda\"", "\"language\": \"opencl\"",
       "line 5, column 15, language: must be hip, cuda or glsl, not \"opencl\""},
      {"\"language\": \"cuda\",", "",
       "line 1, column 1: \"language\" is missing: hip, cuda or glsl"},
      {"\"name\": \"vector_add\"", "\"name\": \"vector add\"",
       "line 3, column 11, name: must be named by up to 64 letters, digits and _, no digit first"},
      {"\"name\": \"vector_add\"", "\"name\": 7",
       "line 3, column 11, name: must be a string, not 7"},
      {"\"vector_add.cu\"", "\"/etc/passwd\"",
       "line 6, column 13, source: \"/etc/passwd\" is not within the description's folder"},
      {"\"vector_add.cu\"", "[\"a.cu\", \"b/../../c.cu\"]",
       "line 6, column 22, source[1]: \"b/../../c.cu\" is not within the description's folder"},
      {"\"vector_add.cu\"", "\"\"", "line 6, column 13, source: must not be empty"},
      {"\"vector_add.cu\"", "\"a\\nb\"", "line 6, column 13, source: has control characters"},
      {"\"source\"", "\"options\": {}, \"source\"",
       "line 6, column 14, options: must be an array, not an object"},
      // Dimensions
      {"\"n\": {\"default\"", "\"9n\": {\"default\"",
       "line 8, column 11, dimensions.9n: must be named by up to 64"},
      {"\"default\": 1000000", "\"default\": 0",
       "line 8, column 22, dimensions.n.default: must be an integer from 1 to 2147483647, not 0"},
      {"\"default\": 1000000", "\"default\": 1e6",
       "line 8, column 22, dimensions.n.default: must be an integer from 1 to 2147483647, not "
       "1000000"},
      {"\"default\": 1000000", "\"least\": 10, \"most\": 9",
       "line 8, column 32, dimensions.n.most: must be an integer from 10 to 2147483647, not 9"},
      {"[1, 1000, 4099]", "[1, \"x\"]",
       "line 8, column 67, dimensions.n.examples[1]: must be an integer from 1 to 2147483647, not "
       "\"x\""},
      {"\"n\": {\"default\": 1000000, \"help\": \"elements\", \"examples\": [1, 1000, 4099]}", "",
       "line 7, column 17, dimensions: has no dimensions"},
      // Parameters
      {"[32, 64, 128, 256, 512, 1024]", "[]",
       "line 11, column 14, parameters.BLOCK: has no values"},
      {"[32, 64, 128, 256, 512, 1024]", "[32, 32]",
       "line 11, column 14, parameters.BLOCK: has 32 twice"},
      {"[32, 64, 128, 256, 512, 1024]", "[32, \"many\"]",
       "line 11, column 14, parameters.BLOCK: has an integer and a word: values must be of one "
       "kind"},
      {"[32, 64, 128, 256, 512, 1024]", "[32, 1.5]",
       "line 11, column 19, parameters.BLOCK[1]: must be an integer, a truth value or a word, not "
       "1.5"},
      {"[32, 64, 128, 256, 512, 1024]", "[5000000000]",
       "line 11, column 14, parameters.BLOCK: 5000000000 is not an integer of 32 bits"},
      {"[32, 64, 128, 256, 512, 1024]", "\"range(10\"",
       "line 11, column 14, parameters.BLOCK: in the formula \"range(10\", column 9: ',' is "
       "expected here"},
      {"[32, 64, 128, 256, 512, 1024]", "\"[n]\"",
       "line 11, column 14, parameters.BLOCK: the formula \"[n]\" reads n, which is unknown here; "
       "no names are known"},
      {"[32, 64, 128, 256, 512, 1024]", "\"3\"",
       "line 11, column 14, parameters.BLOCK: the formula \"3\" is an integer, not a list"},
      {"[32, 64, 128, 256, 512, 1024]", "\"[1 // 0]\"",
       "line 11, column 14, parameters.BLOCK: in the formula \"[1 // 0]\", column 4: a division by "
       "zero"},
      {"\"BLOCK\": [", "\"n\": [", "line 11, column 10, parameters.n: the name n is taken"},
      // Constraints
      {"\"not UNROLL or", "\"not UNROL or",
       "line 17, column 12, constraints[0].if: the formula \"not UNROL or ITEMS > 1\" reads UNROL, "
       "which is unknown here; known are n, BLOCK, ITEMS, MODE, UNROLL"},
      {"\"if\": ", "\"of\": ",
       "line 17, column 12, constraints[0].of: the key is unknown; there are "
       "if or reason"},
      {", \"reason\": \"there is nothing to unroll\"", "",
       "line 17, column 5, constraints[0]: \"reason\" is missing: why, for whoever meets it"},
      {"\"not UNROLL or ITEMS > 1\"", "\"import os\"",
       "line 17, column 12, constraints[0].if: in the formula \"import os\", column 8: 'os' is not "
       "expected here"},
      // Defaults
      {"\"BLOCK\": 256,", "\"BLOCK\": 250,",
       "line 19, column 25, defaults.BLOCK: must be one of [32, 64, 128, 256, 512, 1024], not 250"},
      {"\"BLOCK\": 256, ", "",
       "line 19, column 15, defaults: \"BLOCK\" is missing: a default has a value of each "
       "parameter"},
      {"\"BLOCK\": 256,", "\"BLOCK\": 256, \"TILE\": 1,",
       "line 19, column 38, defaults.TILE: the key is unknown; there are BLOCK, ITEMS, MODE or "
       "UNROLL"},
      // Operands
      {"\"role\": \"output\"", "\"role\": \"input\"",
       "line 20, column 15, operands: has no output"},
      {"\"role\": \"output\"", "\"role\": \"out\"",
       "line 23, column 27, operands[2].role: must be input, output or input_output, not \"out\""},
      {"\"type\": \"f32\"", "\"type\": \"float\"",
       "line 21, column 44, operands[0].type: must be f32, f16, bf16, i32, f64, i64, u32, i8 or "
       "u8, "
       "not \"float\""},
      {"\"name\": \"b\"", "\"name\": \"a\"",
       "line 22, column 14, operands[1].name: the name a is taken"},
      {"\"shape\": \"n\"", "\"shape\": \"n * BLOCK\"",
       "line 21, column 60, operands[0].shape: the formula \"n * BLOCK\" reads BLOCK, which is "
       "unknown here; known are n"},
      {"\"shape\": [\"n\"]", "\"shape\": []",
       "line 22, column 60, operands[1].shape: has no extents"},
      {"\"shape\": \"n\"", "\"shape\": null",
       "line 21, column 60, operands[0].shape: must be a number or a formula, not null"},
      {"{\"random\": [-2, 2]}", "{\"random\": [2, -2]}",
       "line 22, column 86, operands[1].fill.random: must be [from, to] with from < to"},
      {"{\"random\": [-2, 2]}", "{\"file\": \"../x.npy\"}",
       "line 22, column 84, operands[1].fill.file: \"../x.npy\" is not within the description's "
       "folder"},
      {"{\"random\": [-2, 2]}", "{\"random\": [-2, 2], \"constant\": 1}",
       "line 22, column 75, operands[1].fill: must have one of random, constant, ramp or file"},
      {"{\"random\": [-2, 2]}", "{\"zeros\": 1}",
       "line 22, column 85, operands[1].fill.zeros: the key is unknown; there are random, "
       "constant, "
       "ramp or file"},
      {"\"role\": \"output\", \"type\": \"f32\", \"shape\": \"n\"",
       "\"role\": \"output\", \"type\": \"f32\", \"shape\": \"n\", \"fill\": {\"constant\": 0}",
       "line 23, column 74, operands[2].fill: an output is filled with NaN before a launch"},
      // Scalars and launches
      {"\"n\": {\"type\": \"i32\"}", "\"n\": {\"type\": \"int\"}",
       "line 25, column 29, scalars.n.type: must be i32, u32, i64, u64, f32 or f64, not "
       "\"int\""},
      {"\"n\": {\"type\": \"i32\"}", "\"m\": {\"type\": \"i32\"}",
       "line 25, column 20, scalars.m: \"value\" is missing: a formula, except for a dimension"},
      {"\"grid\": \"ceil_div(n, BLOCK * ITEMS)\",", "",
       "line 1, column 1: \"grid\" is missing: the number of workgroups, up to three formulas"},
      {"\"grid\": \"ceil_div(n, BLOCK * ITEMS)\"", "\"grid\": [1, 1, 1, 1]",
       "line 28, column 11, grid: has more than 3 items"},
      {"\"grid\": \"ceil_div(n, BLOCK * ITEMS)\"", "\"grid\": \"ceil(n / BLOCK)\"",
       "line 28, column 11, grid: in the formula \"ceil(n / BLOCK)\", column 1: there is no "
       "function "
       "ceil; these exist: abs"},
      {"\"arguments\": [\"a\", \"b\"", "\"arguments\": [\"a\", \"d\"",
       "line 30, column 22, arguments[1]: \"d\" is neither an operand nor a scalar"},
      {"\"entry\": \"vector_add\",", "\"entry\": \"vector_add\", \"launches\": [],",
       "line 27, column 12, entry: is of each launch where there are \"launches\""},
      {"\"flops\": \"n\"", "\"flops\": \"n * ITEMS\"",
       "line 31, column 12, flops: the formula \"n * ITEMS\" reads ITEMS, which is unknown here; "
       "known are n"},
      // The reference
      {"\"reference\": {", "\"reference_\": {",
       "line 32, column 17, reference_: the key is unknown; there are "},
      {"\"workgroup\": 256", "\"workgroup\": \"BLOCKS\"",
       "line 35, column 18, reference.workgroup: the formula \"BLOCKS\" reads BLOCKS, which is "
       "unknown here; known are n, BLOCK, ITEMS, MODE, UNROLL"},
      {"\"tolerance\": {\"ulp\": 0}", "\"on\": \"gpu\", \"tolerance\": {\"ulp\": 0}",
       "line 37, column 11, reference.on: must be host or device, not \"gpu\""},
      {"\"language\": \"cuda\",", "\"language\": \"cuda\", \"options\": \"-fplugin=a.so\",",
       "line 5, column 34, options: \"-fplugin=a.so\" is not an option that a description may "
       "have"},
      {"\"role\": \"output\"", "\"role\": \"output\", \"constant\": \"c\"",
       "line 23, column 49, operands[2].constant: only an input lies in constant memory"},
      {",\n    \"tolerance\": {\"ulp\": 0}", "",
       "line 32, column 16, reference: \"tolerance\" is missing: absolute, relative or ulp"},
      {"{\"ulp\": 0}", "{}",
       "line 37, column 18, reference.tolerance: must have absolute, relative or "
       "ulp"},
      {"{\"ulp\": 0}", "{\"ulp\": -1}",
       "line 37, column 26, reference.tolerance.ulp: must not be negative"},
      {"\"entry\": \"vector_add_naive\"", "\"language\": \"glsl\", \"entry\": \"vector_add_naive\"",
       "line 32, column 16, reference: \"source\" is missing: another language needs another file"},
      {"{\"ulp\": 0}", "{\"ulp\": 0}, \"inputs\": 0", "line 37, column 40, reference.inputs: "},
      // What GLSL has not
      {"\"entry\": \"vector_add_naive\"",
       "\"language\": \"glsl\", \"source\": \"a.comp\", \"entry\": \"naive<2>\"",
       "line 33, column 54, reference.entry: must be the name of a function in GLSL"},
      {"\"entry\": \"vector_add_naive\"",
       "\"language\": \"glsl\", \"source\": \"a.comp\", \"shared_bytes\": 4, \"entry\": \"naive\"",
       "line 33, column 61, reference.shared_bytes: GLSL declares all shared memory in the source"},
      {"\"entry\": \"vector_add_naive\"", "\"golden\": \"c.npy\", \"entry\": \"vector_add_naive\"",
       "line 32, column 16, reference: golden files need nothing but a tolerance"},
  };
  return list;
}

TEST(Description, TellsEachMistake) {
  for (const Mistake& mistake : mistakes()) {
    std::string text = vector_add();
    const std::size_t at = text.find(mistake.from);
    ASSERT_NE(at, std::string::npos) << mistake.from;
    text.replace(at, mistake.from.size(), mistake.to);
    EXPECT_EQ(message_of(text).substr(0, mistake.message.size()), mistake.message) << mistake.to;
  }
}

TEST(Description, WithoutAReferenceIsRefusedWithTheShortestWayToGiveOne) {
  std::string text = vector_add();
  const std::size_t at = text.find(",\n  \"reference\"");
  ASSERT_NE(at, std::string::npos);
  text = text.substr(0, at) + "}";
  EXPECT_EQ(message_of(text).substr(0, 82),
            "line 1, column 1: \"reference\" is missing: which results are correct; the shortest ");
}

TEST(Description, GoldenFilesAreOfTheOutputs) {
  std::string text = vector_add();
  const std::size_t at = text.find("\"reference\"");
  text = text.substr(0, at) + R"("reference": {"golden": ["c.npy"], "tolerance": {"ulp": 1}}})";
  const auto read = read_description(text);
  ASSERT_TRUE(read) << read.failure().message;
  EXPECT_EQ(read->reference.golden, std::vector<std::string>{"c.npy"});
  text.replace(text.find("[\"c.npy\"]"), 9, "[\"c.npy\", \"d.npy\"]");
  EXPECT_EQ(message_of(text).substr(18),
            ", reference.golden: must be a file for each of 1 outputs");
}

TEST(T1Description, IsReadAsKernelTunerReadsIt) {
  const auto read = read_description(blur());
  ASSERT_TRUE(read) << read.failure().message;
  ASSERT_EQ(read->dimensions.size(), 2U);
  EXPECT_EQ(read->dimensions[1].name, "problem_size_y");
  EXPECT_EQ(read->dimensions[1].fallback, 100);
  ASSERT_EQ(read->parameters.size(), 3U);
  EXPECT_EQ(FormulaValue{read->parameters[0].values}.text(), "[16, 32, 64, 96]");
  EXPECT_EQ(FormulaValue{read->defaults.at(0)}.text(), "[32, 1, 5]");
  ASSERT_EQ(read->constraints.size(), 1U);
  EXPECT_EQ(read->constraints[0].reason, "must hold: 32 <= block_size_x * tile_size_x <= 256");
  ASSERT_EQ(read->operands.size(), 2U);
  EXPECT_EQ(read->operands[0].role, Role::output);
  EXPECT_EQ(read->operands[1].dtype, DType::f16);
  EXPECT_EQ(read->operands[1].shape[0].text(), "(problem_size_x+max(width)-1) * problem_size_y");
  ASSERT_EQ(read->launches.size(), 1U);
  const DescribedLaunch& launch = read->launches[0];
  EXPECT_EQ(launch.arguments, (std::vector<std::string>{"out", "in", "columns"}));
  EXPECT_EQ(launch.workgroup[0].text(), "block_size_x");
  EXPECT_EQ(launch.grid[0].text(), "ceil_div(problem_size_x, 1 * (block_size_x) * (tile_size_x))");
  EXPECT_EQ(launch.grid[1].text(), "problem_size_y");
  EXPECT_EQ(launch.grid[2].text(), "1");
}

TEST(T1Description, GlobalSizeCountsWorkgroupsOrThreads) {
  std::string text = blur();
  const std::size_t from = text.find("\"GridDivX"), to = text.find("\"Arguments");
  text.erase(from, to - from);
  const auto cuda = read_description(text);
  ASSERT_TRUE(cuda) << cuda.failure().message;
  EXPECT_EQ(cuda->launches[0].grid[0].text(), "problem_size_x // block_size_x");
  text.replace(text.find("Type\": \"CUDA\""), 13, "Type\": \"OpenCL\"");
  const auto threads = read_description(text);
  ASSERT_TRUE(threads) << threads.failure().message;
  EXPECT_EQ(threads->launches[0].grid[0].text(),
            "ceil_div(problem_size_x // block_size_x, block_size_x)");
}

TEST(T1Description, TellsEachMistake) {
  const std::vector<Mistake> list{
      {"\"CUDA\", \"KernelName\"", "\"OpenCL\", \"KernelName\"",
       "line 10, column 17, KernelSpecification.Language: OpenCL has no backend here; CUDA, HIP "
       "and "
       "GLSL have"},
      {"\"blur.cu\"", "\"../blur.cu\"", "line 10, column 61, KernelSpecification.KernelFile: "},
      {"[4096, 100]", "[0]",
       "line 11, column 21, KernelSpecification.ProblemSize[0]: must be an integer from 1 to "
       "2147483647, not 0"},
      {"\"[5]\"", "\"[w]\"",
       "line 7, column 50, ConfigurationSpace.TuningParameters[2].Values: the formula \"[w]\" "
       "reads "
       "w, which is unknown here"},
      {"32 <= block_size_x", "32 <= block_size",
       "line 8, column 35, ConfigurationSpace.Conditions[0].Expression: the formula "},
      {"\"half\"", "\"float16\"",
       "line 18, column 30, KernelSpecification.Arguments[1].Type: must be float, half, bfloat16, "
       "int32, double, int64, uint32, int8 or uint8, not \"float16\""},
      {"ProblemSize[0]*ProblemSize[1]", "ProblemSize[2]",
       "line 17, column 40, KernelSpecification.Arguments[0].Size: the formula \"ProblemSize[2]\" "
       "reads ProblemSize, which is unknown here"},
      {"\"WriteOnly\"", "\"ReadOnly\"",
       "line 15, column 18, KernelSpecification.Arguments: has no argument that is written"},
      {"\"Output\": 1", "\"MemType\": \"Constant\"",
       "line 16, column 16, KernelSpecification.Arguments[0].Name: only a vector that is read lies "
       "in constant memory"},
  };
  for (const Mistake& mistake : list) {
    std::string text = blur();
    const std::size_t at = text.find(mistake.from);
    ASSERT_NE(at, std::string::npos) << mistake.from;
    text.replace(at, mistake.from.size(), mistake.to);
    const auto read = read_description(text);
    ASSERT_FALSE(read) << mistake.to;
    EXPECT_EQ(read.failure().message.substr(0, mistake.message.size()), mistake.message)
        << mistake.to;
  }
}

TEST(T1Description, HasAReferenceInAFileBesideIt) {
  const auto t1 = read_data("vector_add_t1.json");
  const auto read = read_description(t1, read_data("vector_add_t1.reference.json"));
  ASSERT_TRUE(read) << read.failure().message;
  EXPECT_EQ(read->reference.launches.at(0).entry, "vector_add_naive");
  EXPECT_EQ(read->reference.tolerance.relative, 1e-6);
  EXPECT_EQ(read->reference.tolerance.absolute, 0);
  EXPECT_EQ(read_description(t1, "{\"entry\": 5}").failure().message,
            "line 1, column 11, entry: must be a string, not 5");
  std::string without = t1;
  without.replace(without.find("ReferenceArguments"), 18, "OtherArguments");
  EXPECT_EQ(read_description(without, read_data("vector_add_t1.reference.json"))
                .failure()
                .message.substr(0, 47),
            "line 1, column 1: \"tolerance\" is missing: absol");
}

TEST(T1Description, ConstantMemoryIsAVariableAndMayBeAnArgument) {
  std::string text = blur();
  const std::size_t at = text.find("\"FillType\": \"Random\"");
  text.insert(at, "\"MemType\": \"Constant\", ");
  auto read = read_description(text);
  ASSERT_TRUE(read) << read.failure().message;
  EXPECT_EQ(read->operands[1].constant, "in");
  EXPECT_EQ(read->launches[0].arguments, (std::vector<std::string>{"out", "in", "columns"}));
  text.replace(text.rfind("\"Vector\""), 8, "\"Constant\"");
  read = read_description(text);
  ASSERT_TRUE(read) << read.failure().message;
  EXPECT_EQ(read->operands[1].constant, "in");
  EXPECT_EQ(read->launches[0].arguments, (std::vector<std::string>{"out", "columns"}));
}

/// Descriptions whose values are exchanged, left out or replaced by something else.
TEST(Description, SurvivesMutations) {
  const std::string base = vector_add();
  const std::vector<std::string> pieces{
      "null",  "-1",      "1e300",   "\"n\"",         "[]",
      "{}",    "[[[1]]]", "\"\"",    "true",          "99999999999999999999",
      "\"(\"", ",",       "\"a\": ", "\"2**10**10\"", "\"range(10**9)\""};
  std::mt19937_64 random(3);
  int read = 0;
  const char* const count = std::getenv("GRETA_MUTATIONS");
  const int mutations = count != nullptr ? std::atoi(count) : 4'000;
  for (int i = 0; i < mutations; ++i) {
    std::string text = i % 2 == 0 ? base : blur();
    for (std::size_t changes = 1 + random() % 3; changes > 0; --changes) {
      const std::size_t from = text.find_first_of("\"[{0123456789", random() % text.size());
      if (from == std::string::npos) continue;
      const std::size_t to = std::min(text.find_first_of(",]}\n", from), text.size());
      text.replace(from, to - from, pieces[random() % pieces.size()]);
    }
    if (i % 4 > 1) text[random() % text.size()] = static_cast<char>(random() % 256);
    const std::string message = message_of(text);
    if (const auto file = PlacedJson::parse(text)) (void)read_t1(*file);
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    read += message == "read" ? 1 : 0;
  }
  EXPECT_GT(read, 10);
}

}  // namespace
}  // namespace greta::test::description_test
