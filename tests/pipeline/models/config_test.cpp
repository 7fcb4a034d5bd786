// Protects: model configurations are read correctly, and unsupported ones are rejected by name.

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/pipeline/models/llama_config.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/model_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::config_test {
namespace {

using test::expect_refused;
using test::TinyLlama;

LlamaConfig read(const nlohmann::json& json) {
  return llama_config_from_json(json.dump(), "config.json");
}
LlamaConfig read_with(const nlohmann::json& more) {
  TinyLlama tiny;
  tiny.more = more;
  return read(tiny.config());
}

// The numbers that Meta published.
TEST(LlamaConfig, NamedOnesHaveTheirNumberOfParameters) {
  EXPECT_EQ(named_llama("llama-2-7b")->parameters(), 6738415616);
  EXPECT_EQ(named_llama("llama-3-8b")->parameters(), 8030261248);
  EXPECT_FALSE(named_llama("llama-1"));
  for (const std::string& name : llama_names()) named_llama(name)->check();
}

TEST(LlamaConfig, IsReadFromHuggingFace) {
  const LlamaConfig config = read_with({{"eos_token_id", {2, 7}}, {"head_dim", 16}});
  EXPECT_EQ(config.dim, 16);
  EXPECT_EQ(config.hidden_dim, 24);
  EXPECT_EQ(config.q_dim(), 64);
  EXPECT_EQ(config.kv_dim(), 32);
  EXPECT_EQ(config.max_positions, 32);
  EXPECT_EQ(config.rope_style, RopeStyle::half);
  EXPECT_EQ(config.rope_theta, 10000);
  EXPECT_EQ(config.eos, (std::vector<std::int32_t>{2, 7}));
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_EQ(read_with({{"torch_dtype", "float32"}}).dtype, DType::f32);
  EXPECT_NO_THROW(read_with({{"hidden_act", "swish"}})) << "which is silu";
  EXPECT_EQ(read_with({{"dtype", "bfloat16"}}).dtype, DType::bf16);
  EXPECT_FALSE(read_with({{"torch_dtype", "auto"}}).dtype);
}

TEST(LlamaConfig, RopeScalingIsReadInBothForms) {
  const nlohmann::json llama3 = {{"rope_type", "llama3"},
                                 {"factor", 8.0},
                                 {"low_freq_factor", 1.0},
                                 {"high_freq_factor", 4.0},
                                 {"original_max_position_embeddings", 8192}};
  const LlamaConfig older = read_with({{"rope_theta", 500000.0}, {"rope_scaling", llama3}});
  nlohmann::json parameters = llama3;
  parameters["rope_theta"] = 500000.0;
  const LlamaConfig newer = read_with({{"rope_parameters", parameters}});
  for (const LlamaConfig& config : {older, newer}) {
    EXPECT_EQ(config.rope_theta, 500000);
    EXPECT_EQ(config.rope_scaling.kind, RopeScaling::Kind::llama3);
    EXPECT_EQ(config.rope_scaling.factor, 8);
    EXPECT_EQ(config.rope_scaling.original_positions, 8192);
  }
  const LlamaConfig linear = read_with({{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}});
  EXPECT_EQ(linear.rope_scaling.kind, RopeScaling::Kind::linear);
  const LlamaConfig none = read_with({{"rope_scaling", nullptr}});
  EXPECT_EQ(none.rope_scaling.kind, RopeScaling::Kind::none);
}

TEST(LlamaConfig, OtherArchitecturesDifferInFewThings) {
  const LlamaConfig mistral = read_with({{"model_type", "mistral"}, {"sliding_window", 20}});
  EXPECT_EQ(mistral.max_positions, 20) << "further tokens would be attended to in a window";
  EXPECT_EQ(read_with({{"model_type", "mistral"}, {"sliding_window", nullptr}}).max_positions, 32);
  EXPECT_FALSE(mistral.qkv_bias || mistral.qk_norm);
  const LlamaConfig qwen2 = read_with({{"model_type", "qwen2"}, {"sliding_window", 20}});
  EXPECT_TRUE(qwen2.qkv_bias && !qwen2.qk_norm);
  EXPECT_EQ(qwen2.max_positions, 32) << "the window is not used";
  EXPECT_EQ(qwen2.bos, -1);
  const LlamaConfig qwen3 = read_with({{"model_type", "qwen3"}});
  EXPECT_TRUE(qwen3.qk_norm && !qwen3.qkv_bias);
}

// A file without some keys means what transformers takes for them.
TEST(LlamaConfig, EachModelHasItsOwnDefaults) {
  const auto without = [](const char* kind, std::int64_t heads) {
    nlohmann::json json = TinyLlama{.heads = heads, .kind = kind}.config();
    json["hidden_size"] = heads * 8;
    for (const char* key : {"num_key_value_heads", "rms_norm_eps", "rope_theta", "head_dim",
                            "max_position_embeddings"}) {
      json.erase(key);
    }
    return read(json);
  };
  const LlamaConfig llama = without("llama", 6), mixtral = without("mixtral", 16),
                    qwen3 = without("qwen3", 32), experts = without("qwen3_moe", 8);
  EXPECT_EQ(llama.kv_heads, 6);
  EXPECT_EQ(llama.max_positions, 2048);
  EXPECT_EQ(mixtral.kv_heads, 8);
  EXPECT_EQ(mixtral.norm_epsilon, 1e-5);
  EXPECT_EQ(mixtral.rope_theta, 1e6);
  EXPECT_EQ(mixtral.max_positions, 131072);
  EXPECT_EQ(qwen3.kv_heads, 32);
  EXPECT_EQ(qwen3.head_dim, 128);
  EXPECT_EQ(qwen3.norm_epsilon, 1e-6);
  EXPECT_EQ(experts.kv_heads, 4);
  EXPECT_EQ(experts.head_dim, 8);
}

// Up to the length of a window, and where dynamic scaling has not begun, all models are the same.
TEST(LlamaConfig, WindowsAndDynamicScalingLimitPositions) {
  const auto positions = [](const nlohmann::json& more) { return read_with(more).max_positions; };
  nlohmann::json qwen = {{"model_type", "qwen2"},
                         {"sliding_window", 20},
                         {"use_sliding_window", true},
                         {"max_window_layers", 1}};
  EXPECT_EQ(positions(qwen), 20);
  qwen["max_window_layers"] = 2;  // of two layers
  EXPECT_EQ(positions(qwen), 32);
  qwen["model_type"] = "qwen3_moe";  // of which all layers have the window
  qwen.update({{"num_experts", 4}, {"num_experts_per_tok", 2}, {"moe_intermediate_size", 8}});
  EXPECT_EQ(positions(qwen), 20);
  qwen["model_type"] = "qwen2";
  qwen["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_EQ(positions(qwen), 20);
  qwen.erase("sliding_window");
  qwen["max_position_embeddings"] = 32768;
  EXPECT_EQ(positions(qwen), 4096);
  const LlamaConfig dynamic = read_with({{"rope_scaling", {{"type", "dynamic"}, {"factor", 2}}}});
  EXPECT_EQ(dynamic.rope_scaling.kind, RopeScaling::Kind::none);
  EXPECT_EQ(dynamic.max_positions, 32);
}

TEST(LlamaConfig, YarnIsRead) {
  const LlamaConfig plain = read_with({{"rope_scaling", {{"type", "yarn"}, {"factor", 4}}}});
  EXPECT_EQ(plain.rope_scaling.kind, RopeScaling::Kind::yarn);
  EXPECT_EQ(plain.rope_scaling.original_positions, 32);
  EXPECT_EQ(plain.max_positions, 128) << "those that the scaling adds";
  EXPECT_DOUBLE_EQ(plain.rope_scaling.attention_factor, 1.138629436111989);
  const LlamaConfig more = read_with({{"rope_parameters",
                                       {{"rope_type", "yarn"},
                                        {"factor", 4},
                                        {"original_max_position_embeddings", 8},
                                        {"beta_fast", 20},
                                        {"mscale", 1},
                                        {"mscale_all_dim", 1},
                                        {"truncate", false}}}});
  EXPECT_EQ(more.max_positions, 32);
  EXPECT_EQ(more.rope_scaling.fast_rotations, 20);
  EXPECT_EQ(more.rope_scaling.attention_factor, 1);
  EXPECT_FALSE(more.rope_scaling.whole_pairs);
}

// A key that is null is not one that is missing.
TEST(LlamaConfig, NullsMeanWhatTheLibraryTakesThemFor) {
  nlohmann::json json = TinyLlama{.kind = "mistral"}.config();
  json["max_position_embeddings"] = 131072;
  EXPECT_EQ(read(json).max_positions, 4096) << "the window that such models have";
  json["sliding_window"] = nullptr;
  EXPECT_EQ(read(json).max_positions, 131072);
  json["num_key_value_heads"] = nullptr;
  EXPECT_EQ(read(json).kv_heads, 4) << "as many as of queries";
  const nlohmann::json scaling = {{"rope_type", "yarn"}, {"factor", 4}};
  const LlamaConfig yarn =
      read_with({{"rope_scaling", scaling}, {"original_max_position_embeddings", 16}});
  EXPECT_EQ(yarn.rope_scaling.original_positions, 16) << "beside the other parameters";
}

// A model that would be run incorrectly is rejected, and the difference is named.
TEST(LlamaConfig, RefusesWhatTheArchitectureDoesNotHave) {
  const std::pair<nlohmann::json, const char*> cases[] = {
      {{{"model_type", "gpt_oss"}},
       "model_type is 'gpt_oss'; allowed: llama, mistral, mixtral, qwen2, qwen2_moe, qwen3, "},
      {{{"hidden_act", "gelu"}}, "hidden_act is 'gelu'"},
      {{{"model_type", "mistral"}, {"attention_bias", true}},
       "attention_bias is true; allowed with"},
      {{{"model_type", "qwen3"}, {"mlp_bias", true}},
       "mlp_bias is true; allowed with qwen3: false"},
      {{{"quantization_config", {{"bits", 4}}}}, "quantization_config: quant_method is ''"},
      {{{"partial_rotary_factor", 0.5}}, "partial_rotary_factor"},
      {{{"rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.5}}}},
       "rope_parameters: partial_rotary_factor isn't 1"},
      {{{"rope_scaling", {{"type", "longrope"}}}}, "longrope"},
      {{{"rope_scaling", {{"type", "yarn"}, {"factor", 2}, {"beta_fast", 1}}}}, "beta_fast 1"},
      {{{"rope_scaling", {{"type", "yarn"}, {"factor", 2}, {"attention_factor", 0}}}},
       "attention_factor is 0"},
      {{{"rope_parameters", {{"full_attention", {{"rope_theta", 5}}}}}}, "has full_attention"},
      {{{"rope_scaling", {{"type", "linear"}}}}, "has no factor"},
      {{{"rope_scaling", {{"type", "linear"}, {"factor", 0}}}}, "factor is 0"},
      {{{"hidden_size", 18}}, "must divide"},
      {{{"hidden_size", -16}}, "hidden_size is -16"},
      {{{"hidden_size", 16.5}}, "hidden_size is 16.5"},
      {{{"hidden_size", "16"}}, "hidden_size is \"16\""},
      {{{"hidden_size", nullptr}}, "has no hidden_size"},
      {{{"hidden_size", 1ULL << 63}}, "hidden_size"},
      {{{"vocab_size", 2000000000}}, "vocab is 2000000000"},
      {{{"num_key_value_heads", 3}}, "num_key_value_heads 3"},
      {{{"head_dim", 5}}, "head_dim is 5"},
      {{{"rms_norm_eps", 0}}, "rms_norm_eps is 0"},
      {{{"rope_theta", -1}}, "rope_theta is -1"},
      {{{"bos_token_id", 300}}, "300 of 300"},
      {{{"eos_token_id", {1, 300}}}, "300 of 300"},
      {{{"eos_token_id", {-1}}}, "eos_token_id"},
      {{{"tie_word_embeddings", 1}}, "tie_word_embeddings is 1"},
  };
  for (const auto& [more, words] : cases) {
    expect_refused([&, &json = more] { read_with(json); }, words);
  }
  const auto text = [](const char* json) {
    return [json] { llama_config_from_json(json, "config.json"); };
  };
  expect_refused(text(""), "config.json: isn't JSON");
  expect_refused(text("[1]"), "is not a JSON object");
  expect_refused(text("{\"rms_norm_eps\": NaN}"), "isn't JSON");
  expect_refused(text("{\"rms_norm_eps\": 1e999}"), "too large");
  expect_refused(text("{\"a\": 1, \"a\": 2}"), "\"a\" occurs twice");
}

TEST(LlamaConfig, DeepNestingIsNoTrouble) {
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  std::string json = TinyLlama().config().dump();
  json.pop_back();
  for (const char* key : {"hidden_act", "head_dim", "rope_scaling"}) {
    const std::string text = json + ",\"" + key + "\":" + deep + "}";
    expect_refused([&] { llama_config_from_json(text, "config.json"); }, key);
  }
  expect_refused([&] { llama_config_from_json(deep, "config.json"); }, "is not a JSON object");
}

TEST(Rope, FrequenciesAreThoseOfTheirFormulas) {
  LlamaConfig config;
  config.head_dim = 4;
  config.rope_theta = 10000;
  EXPECT_EQ(rope_frequencies(config), (std::vector<double>{1, 0.01}));
  config.rope_scaling = {RopeScaling::Kind::linear, 4, 1, 4, 8192};
  EXPECT_EQ(rope_frequencies(config), (std::vector<double>{0.25, 0.0025}));
  // Wavelengths of 2 pi, 2 pi 1000 and 2 pi 10^6 positions; the limits are 8192 / 4 and 8192. 6283
  // lies between them: 8192 / 6283.185 = 1.3037973, of which (1.3037973 - 1) / 3 is kept.
  config.head_dim = 6;
  config.rope_theta = 1e9;
  config.rope_scaling = {RopeScaling::Kind::llama3, 8, 1, 4, 8192};
  const std::vector<double> scaled = rope_frequencies(config);
  const double kept = 0.10126576;
  EXPECT_DOUBLE_EQ(scaled[0], 1);
  EXPECT_NEAR(scaled[1], 0.001 * (kept + (1 - kept) / 8), 1e-11);
  EXPECT_NEAR(scaled[2], 1e-6 / 8, 1e-18);
}

// Pair 0 turns 5 times in 32 positions and is kept. log(32 / 2 pi) / log(10000) * 8 = 1.41 pairs
// turn at least once, so that pair 2 is the first one that is divided: pair 1 lies between them.
TEST(Rope, YarnDividesFrequenciesOfLongWavelengths) {
  LlamaConfig config;
  config.head_dim = 16;
  config.rope_scaling = {.kind = RopeScaling::Kind::yarn, .factor = 4, .original_positions = 32};
  config.rope_scaling.attention_factor = yarn_attention_factor(4);
  const std::vector<double> scaled = rope_frequencies(config);
  EXPECT_DOUBLE_EQ(scaled[0], 1);
  EXPECT_DOUBLE_EQ(scaled[1], 0.19764235376052372);  // (1 + 1 / 4) / 2 of 0.316
  EXPECT_DOUBLE_EQ(scaled[2], 0.025);
  EXPECT_DOUBLE_EQ(scaled[7], 7.905694150420948e-05);
  EXPECT_FLOAT_EQ(rope_table(config, 1)[0], 1.1386294F);
}

TEST(Rope, TableHoldsCosinesAndSines) {
  LlamaConfig config;
  config.head_dim = 4;
  const std::vector<float> table = rope_table(config, 3);
  ASSERT_EQ(table.size(), 12U);
  EXPECT_EQ(table[0], 1);
  EXPECT_EQ(table[1], 0);
  EXPECT_FLOAT_EQ(table[8], -0.41614684F);    // cos 2
  EXPECT_FLOAT_EQ(table[9], 0.90929743F);     // sin 2
  EXPECT_FLOAT_EQ(table[11], 0.0199986667F);  // sin 0.02
}

}  // namespace
}  // namespace greta::test::config_test
