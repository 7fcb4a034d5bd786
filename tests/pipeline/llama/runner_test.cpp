// Protects: a Llama on a device. It generates the text that the weights' authors published, gives
// the same logits every time, whether tokens come together or one by one, keeps every stage within
// its bound, and names a broken stage.
#include "runtime/pipeline/llama/runner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"
#include "kernels/chains/chains.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/pipeline/compute/prepared.hpp"
#include "runtime/pipeline/llama/trace_check.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/filled.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/llama/open_runtime.hpp"
#include "tests/pipeline/model_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::runner_test {
namespace {

using Ids = std::vector<std::int32_t>;

// The first 60 tokens after each prompt, as documented with tests/data/stories260K.
const Ids from_bos{403, 407, 261, 378, 432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426,
                   338, 401, 396, 267, 337, 410, 408, 419, 292, 411, 322, 265, 282, 295, 433,
                   426, 385, 328, 432, 358, 394, 261, 370, 432, 352, 266, 268, 388, 426, 338,
                   391, 266, 267, 337, 335, 312, 432, 398, 312, 286, 267, 414, 270, 333, 415};
const Ids once{1, 403, 407, 261, 378};  // "Once upon a time"
const Ids from_once{432, 383, 286, 261, 376, 298, 315, 421, 395, 317, 426, 338, 401, 396, 267,
                    337, 410, 408, 419, 292, 411, 322, 265, 282, 295, 433, 426, 385, 328, 432,
                    358, 394, 261, 370, 432, 352, 266, 268, 388, 426, 338, 391, 266, 267, 337,
                    335, 312, 432, 398, 312, 286, 267, 414, 270, 333, 415, 426, 13,  438, 310};

/// Returns devices with each language and each subgroup width once.
std::vector<std::string> devices() {
  std::vector<std::string> ids;
  std::vector<std::string> kinds;
  for (Backend* backend : backends()) {
    for (const ProbedDevice& device : backend->probe().devices) {
      const std::string kind = std::string(to_string(device.info.language)) +
                               std::to_string(device.info.subgroup_size) + device.info.name;
      const bool known = std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
      if (!device.usable || known) continue;
      kinds.push_back(kind);
      ids.push_back(device.info.id());
    }
  }
  return ids;
}

class Llama : public ::testing::TestWithParam<std::string> {
 protected:
  static const LlamaModel& model() {
    static const LlamaModel loaded = load_llama(GRETA_TEST_DATA "/stories260K/stories260K.bin");
    return loaded;
  }

  void SetUp() override { runtime_ = open_runtime(GetParam()); }

  std::unique_ptr<LlamaRunner> runner(DType dtype = DType::f32, std::int64_t capacity = 128,
                                      bool graph = true) {
    LlamaOptions options;
    options.capacity = capacity;
    options.graph = graph;
    return std::make_unique<LlamaRunner>(*runtime_, upload_weights(*runtime_, model(), dtype),
                                         options);
  }

  static Ids generate(LlamaRunner& llama, const Ids& prompt, std::size_t count) {
    Ids ids;
    llama.feed(prompt);
    while (ids.size() < count) {
      ids.push_back(llama.likeliest().front());
      if (ids.size() < count) llama.feed({&ids.back(), 1});
    }
    return ids;
  }

  /// Returns this number of tokens, or fewer on the second and later devices of an API, which are
  /// slow.
  static std::size_t some(std::size_t tokens) {
    return GetParam().ends_with(":0") ? tokens : std::min<std::size_t>(tokens, 12);
  }
  static Ids first(const Ids& ids, std::size_t count) {
    return {ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  std::unique_ptr<Runtime> runtime_;
};

// The suite must not pass because there is no device to test.
TEST(LlamaDevices, AreOfBothLanguages) {
  const auto ids = devices();
  for (const char* backend : {"vulkan:", "hip-host:"}) {
    EXPECT_TRUE(std::any_of(ids.begin(), ids.end(), [&](const std::string& id) {
      return id.starts_with(backend);
    })) << backend;
  }
}

TEST_P(Llama, TellsThePublishedStory) {
  const auto llama = runner();
  EXPECT_EQ(generate(*llama, {1}, some(60)), first(from_bos, some(60)));
  llama->reset();
  EXPECT_EQ(generate(*llama, once, some(60)), first(from_once, some(60)));
}

TEST_P(Llama, TellsItWithoutGraphsAsWell) {
  EXPECT_EQ(generate(*runner(DType::f32, 64, false), once, 12), first(from_once, 12));
}

TEST_P(Llama, TellsTheSameInHalfPrecision) {
  if (!runtime_->device().info().f16_storage) {
    EXPECT_FALSE(runtime_->device().info().is_cpu()) << "lavapipe and hip-host have it";
    EXPECT_THROW(runner(DType::f16), Error);
    return;
  }
  EXPECT_EQ(generate(*runner(DType::f16), once, some(40)), first(from_once, some(40)));
}

TEST_P(Llama, FiveRunsGiveEqualBits) {
  const auto llama = runner(DType::f32, 64);
  std::vector<std::vector<float>> all;
  for (int run = 0; run < 5; ++run) {
    llama->reset();
    generate(*llama, once, 4);
    all.push_back(llama->logits());
  }
  for (const auto& logits : all) EXPECT_EQ(logits, all.front());
}

TEST_P(Llama, TokensTogetherAndOneByOneGiveTheSame) {
  const auto together = runner(DType::f32, 64), apart = runner(DType::f32, 64);
  Ids ids = once;
  ids.insert(ids.end(), from_once.begin(), from_once.begin() + 15);
  for (std::size_t count = 1; count <= ids.size(); ++count) {
    together->reset();
    together->feed({ids.data(), count});
    apart->feed({&ids[count - 1], 1});
    ASSERT_EQ(together->likeliest().front(), apart->likeliest().front()) << count << " tokens";
    const auto a = together->logits(), b = apart->logits();
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      worst = std::max(worst, static_cast<double>(std::abs(a[i] - b[i])));
    }
    EXPECT_LT(worst, 2e-4) << count << " tokens";  // logits are up to 20
  }
}

// What is drawn is what sample's reference draws of the logits, with the seed of each sequence and
// the number of its tokens.
TEST_P(Llama, DrawsTokensByTheirSeeds) {
  LlamaOptions options;
  options.capacity = 32;
  options.batch = 2;
  options.sample = true;
  LlamaRunner llama(*runtime_, upload_weights(*runtime_, model(), DType::f32), options);
  const std::int64_t vocab = llama.config().vocab;
  const kernels::Operation& operation = built_in("sample");
  const Problem problem{"sample", DType::f32, DType::i32, {}, {{"rows", 2}, {"cols", vocab}}};
  const auto specs = operation.tensors(problem);
  llama.feed(Ids{1, 1});
  const std::vector<float> logits = llama.logits();
  EXPECT_EQ(llama.likeliest()[0], std::max_element(logits.begin(), logits.begin() + vocab) -
                                      logits.begin());  // initially
  std::set<std::int32_t> drawn;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    llama.reset();
    llama.sample({.temperature = 4, .top_p = 0.99, .seed = seed << 32 | 7, .top_k = 40});
    llama.feed(Ids{1, 403, 1, 403});
    const std::vector<float> x = llama.logits();
    const auto high = static_cast<double>(seed);
    const auto reference =
        operation.reference(problem,
                            {test::filled(specs[0], {x.begin(), x.end()}),
                             test::filled(specs[1], {4, 40, 0.99F, 0, 4, 40, 0.99F, 0}),
                             test::filled(specs[2], {7, high, 2, 7, high + 1, 2})},
                            1);
    const auto tokens = llama.likeliest();
    const std::vector<double> both(tokens.begin(), tokens.end());
    const auto verdict = reference->check({test::filled(specs[3], both)});
    EXPECT_TRUE(verdict.passed) << verdict.detail;
    drawn.insert(tokens.begin(), tokens.end());
  }
  EXPECT_GE(drawn.size(), 3U);
  llama.sample({});
  expect_refused([&] { llama.sample({.temperature = -1}); }, "temperature is -1");
  expect_refused([&] { llama.sample({.repetition = 1.5}); }, "LlamaOptions::penalties is not set");
  expect_refused([&] { runner()->sample({}); }, "LlamaOptions::sample is not set");
}

TEST_P(Llama, FillsItsCacheToTheLastToken) {
  const auto llama = runner(DType::f32, 24);
  const Ids ids = generate(*llama, once, 20);
  EXPECT_EQ(llama->position(), 24);
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), from_once.begin()));
  const std::int32_t more = 1;
  EXPECT_THROW(llama->feed({&more, 1}), Error);
  EXPECT_EQ(llama->position(), 24);
  // A prompt whose pass is padded must not be padded beyond the capacity.
  llama->reset();
  Ids prompt = once;
  prompt.insert(prompt.end(), from_once.begin(), from_once.begin() + 18);
  llama->feed(prompt);
  EXPECT_EQ(llama->likeliest().front(), from_once[18]);
}

TEST_P(Llama, RefusesWhatItCannotFeed) {
  const auto llama = runner(DType::f32, 24);
  for (const Ids& bad : {Ids{}, Ids{512}, Ids{-1}, Ids(25, 1)}) {
    EXPECT_THROW(llama->feed(bad), Error);
    EXPECT_EQ(llama->position(), 0);
  }
  EXPECT_THROW(runner(DType::f32, 513), Error);  // the model has 512 positions
}

TEST_P(Llama, EveryStageIsWithinItsBound) {
  const auto llama = runner(DType::f32, 64);
  TraceTypes types;
  const LlamaTraceCheck check(model(), types);
  for (const Ids& ids : {once, Ids{432}, Ids{383}}) {
    const LlamaTrace trace = llama->trace(ids);
    const auto findings = check.check(
        trace, [&](std::int64_t layer) { return llama->probe_attention(trace, layer); });
    // Norms, rotated keys, gates and ups of a decode step are in no memory. Attention has two
    // stages besides those that are stored.
    const std::size_t kept = ids.size() == 1 ? dense_layer_stages - 5 : dense_layer_stages;
    EXPECT_EQ(findings.size(), 5 * (kept + 2) + 3);
    const auto failure = first_failure(findings);
    EXPECT_FALSE(failure) << failure->text();
  }
}

TEST_P(Llama, ABrokenWeightIsFoundWhereItIs) {
  LlamaDeviceWeights weights = upload_weights(*runtime_, model(), DType::f32);
  const Tensor gate = weights.layers[3].gate_up.slice(5, 1).values;
  std::vector<float> row(static_cast<std::size_t>(gate.shape().elements()), 0.5F);
  runtime_->upload(gate.reshape({gate.shape().elements()}), std::as_bytes(std::span(row))).value();
  LlamaOptions options;
  options.capacity = 64;
  LlamaRunner llama(*runtime_, weights, options);
  const auto failure = first_failure(LlamaTraceCheck(model(), {}).check(llama.trace(once)));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->layer, 3);
  EXPECT_EQ(failure->stage, LlamaStage::gate);
  EXPECT_EQ(failure->col, 5);
  const Ids next{432};
  const auto decoding = first_failure(LlamaTraceCheck(model(), {}).check(llama.trace(next)));
  ASSERT_TRUE(decoding);
  EXPECT_EQ(decoding->layer, 3);
  EXPECT_EQ(decoding->stage, LlamaStage::silu_mul);
  EXPECT_EQ(decoding->col, 5);
}

// A launch takes as long as reading several megabytes.
TEST_P(Llama, ADecodeStepHasAtMostSixLaunchesALayer) {
  std::map<std::string, std::size_t> launches;  // by layer
  const auto llama = runner();
  for (const RecordedOperation& operation : llama->pass(1).operations()) {
    if (!operation.label.starts_with("layer ")) continue;
    ASSERT_NE(operation.prepared, nullptr) << operation.label;
    launches[operation.label.substr(0, operation.label.find(' ', 6))] +=
        operation.prepared->plan.launches();
  }
  EXPECT_EQ(launches.size(), 5U);
  for (const auto& [layer, count] : launches) EXPECT_LE(count, 6U) << layer;
}

/// An alternative of a chain, as a rule, and the stages that it leaves no results of in a pass of
/// one token, beside those of which there are none in any.
struct Alternative {
  const char* rule;
  std::vector<std::string> labels;  ///< of operations that a layer has with it
};

const std::vector<Alternative>& alternatives() {
  static const std::vector<Alternative> all{
      {"gate_up: gated", {"ffn_norm", "gate_up + silu_mul"}},
      {"gate_up rows<=8: normed", {"ffn_norm + gate_up", "silu_mul"}},
      {"gate_up: parts", {"ffn_norm", "gate_up", "silu_mul"}},
      {"qkv: parts", {"attn_norm", "qkv"}},
      {"qkv: split", {"attn_norm", "q", "k", "v"}},
      {"rope_kv: fused", {"rope + kv_update"}},
      {"rope_kv: parts", {"rope", "kv_update"}}};
  return all;
}

// Each alternative of a chain computes the same: all of its stages are within their bounds of FP64,
// of a prompt and of decoding, and it is what the rule says.
TEST_P(Llama, EachAlternativeOfAChainIsRight) {
  const LlamaTraceCheck check(model(), {});
  for (const Alternative& alternative : alternatives()) {
    SCOPED_TRACE(alternative.rule);
    SetUp();
    ASSERT_TRUE(runtime_->use(alternative.rule));
    const auto llama = runner(DType::f32, 64);
    for (const auto& ids : {first(from_once, 12), Ids{from_once[12]}}) {
      const auto findings = check.check(llama->trace(ids));
      const auto wrong = first_failure(findings);
      EXPECT_FALSE(wrong) << wrong->text();
    }
    std::set<std::string> labels;
    for (const RecordedOperation& one : llama->pass(1).operations()) labels.insert(one.label);
    for (const std::string& label : alternative.labels) {
      EXPECT_TRUE(labels.contains("layer 1 " + label)) << label;
    }
    const std::string chain = std::string(alternative.rule).substr(0, 3);
    for (const auto& [problem, answer, instead] : llama->pass(1).chains()) {
      if (!problem.op.starts_with(chain)) continue;
      EXPECT_EQ(answer.origin, LookupOrigin::forced) << problem.key();
    }
  }
}

// The norm of a sum that is computed with it, of rows before they are rounded to 16 bits.
TEST_P(Llama, SumsAreNormalisedBeforeTheyAreRounded) {
  for (const DType type : {DType::f32, DType::f16}) {
    if (type == DType::f16 && !runtime_->device().info().f16_storage) continue;
    SetUp();
    for (const char* rule : {"residual_norm: add_norm", "gate_up: parts", "qkv: parts"}) {
      ASSERT_TRUE(runtime_->use(rule));
    }
    const TraceTypes types{type, type, type, DType::f32};
    const auto llama = runner(type, 64);
    for (const auto& ids : {first(from_once, 12), Ids{from_once[12]}}) {
      const LlamaTrace trace = llama->trace(ids);
      EXPECT_TRUE(trace.layers[0].unrounded.contains(LlamaStage::ffn_norm));
      EXPECT_TRUE(trace.layers[1].unrounded.contains(LlamaStage::attn_norm));
      const auto wrong = first_failure(LlamaTraceCheck(model(), types).check(trace));
      EXPECT_FALSE(wrong) << wrong->text();
    }
  }
}

// What a database says of a chain is recorded, for its rows and not for others.
TEST_P(Llama, AStoredChoiceIsUsed) {
  const DeviceInfo info = runtime_->device().info();
  StoredWinner choice;
  choice.problem = gate_up_chain(DType::f32, 1, model().config.hidden_dim, model().config.dim);
  choice.device = info;
  choice.device_id = info.id();
  choice.provenance = {"0", chains().at("gate_up").key(), info.driver, info.compiler,
                       "2026-11-25T12:00:00Z"};
  choice.winner.config = {"normed", {}};
  choice.winner.default_us = 3;
  choice.winner.speedup = choice.winner.speedup_low = choice.winner.speedup_high = 1.5;
  choice.winner.rounds = 6;
  choice.winner.measurement.median_us = 2;
  choice.winner.verdict.passed = true;
  const TemporaryFolder folder;
  Contents contents;
  contents.results = {choice};
  contents.devices = {{info, "2026-11-25T12:00:00Z", "2026-11-25T12:00:00Z"}};
  TunedDb::open(folder / "own.db", TunedDb::Mode::read_write).write(contents);
  LookupFiles files = LookupFiles::none();
  files.own = folder / "own.db";
  runtime_ = Runtime::beside(*runtime_, files).value();
  const auto llama = runner(DType::f32, 64);
  std::map<std::string, std::string> chosen;
  for (const auto& [chain, answer, instead] : llama->pass(1).chains()) {
    chosen[chain.op] = answer.config.variant + ", " + answer.origin_text();
  }
  EXPECT_EQ(chosen.at("gate_up"), "normed, exact");
  EXPECT_EQ(chosen.at("qkv"), "fused, default");
  std::set<std::string> labels;
  for (const RecordedOperation& one : llama->pass(1).operations()) labels.insert(one.label);
  EXPECT_TRUE(labels.contains("layer 1 ffn_norm + gate_up"));
  EXPECT_FALSE(labels.contains("layer 1 ffn_norm + gate_up + silu_mul"));
  for (const auto& [chain, answer, instead] : llama->pass(16).chains()) {
    if (chain.op == "gate_up") {
      EXPECT_EQ(answer.config.variant, "parts") << "16 rows allow no norm within a product";
    }
  }
}

// A rule for an alternative that the pass does not allow is an error, not another alternative.
TEST_P(Llama, AnAlternativeThatIsNotPossibleIsRefused) {
  ASSERT_TRUE(runtime_->use("gate_up: fused"));
  const auto llama = runner(DType::f32, 64);
  EXPECT_NO_THROW(llama->feed(Ids{1}));
  try {
    llama->feed(first(from_once, 12));
    ADD_FAILURE() << "16 rows are not normalised within a product";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("few_rows"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(runtime_->use("gate_up: nonsense"));
  EXPECT_FALSE(runtime_->use("qkv: parts")) << "its chains are decided already";
}

TEST_P(Llama, SequencesOfABatchDontTouchEachOther) {
  LlamaOptions options;
  options.capacity = 64;
  options.batch = 2;
  LlamaRunner llama(*runtime_, upload_weights(*runtime_, model(), DType::f32), options);
  Ids both = once;
  both.insert(both.end(), {1, 403, 407, 261, 378});
  both[9] = 432;  // the second one differs in its last token
  llama.feed(both);
  EXPECT_EQ(llama.likeliest()[0], from_once[0]);
  const auto alone = runner(DType::f32, 64);
  alone->feed(Ids(both.begin() + 5, both.end()));
  EXPECT_EQ(llama.likeliest()[1], alone->likeliest().front());
  llama.feed(Ids{from_once[0], 261});  // a step of decoding
  EXPECT_EQ(llama.likeliest()[0], from_once[1]);
  alone->feed(Ids{261});
  EXPECT_EQ(llama.likeliest()[1], alone->likeliest().front());
}

INSTANTIATE_TEST_SUITE_P(Devices, Llama, ::testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace greta::test::runner_test
