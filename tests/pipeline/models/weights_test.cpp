// Protects: weights of llama2.c and Hugging Face are read correctly, and files that contradict the
// configuration are rejected.

#include <gtest/gtest.h>

#include "runtime/pipeline/models/formats/safetensors.hpp"
#include "runtime/pipeline/models/llama_weights.hpp"
#include "tests/layers.hpp"
#include "tests/pipeline/model_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::weights_test {
namespace {

using test::expect_refused;
using test::read_file;
using test::refused_mutations;
using test::safetensors_of;
using test::sum_of;
using test::TemporaryFolder;
using test::TinyLlama;
using test::write_file;

const std::string stories = std::string(GRETA_TEST_DATA) + "/stories260K/stories260K.bin";

TEST(Checkpoint, Stories260KIsRead) {
  const LlamaModel model = load_llama(stories);
  EXPECT_EQ(model.config.dim, 64);
  EXPECT_EQ(model.config.layers, 5);
  EXPECT_EQ(model.config.kv_heads, 4);
  EXPECT_EQ(model.config.head_dim, 8);
  EXPECT_EQ(model.config.rope_style, RopeStyle::interleaved);
  EXPECT_TRUE(model.config.tied_embeddings);
  EXPECT_EQ(model.weights.head.data, model.weights.embedding.data);
  EXPECT_EQ(model.weights.layers[4].down.rows, 64);
  EXPECT_EQ(model.weights.layers[4].down.cols, 172);
  // Only two RoPE tables follow the final norm.
  const std::byte* end = model.files[0]->bytes().data() + model.files[0]->bytes().size();
  EXPECT_EQ(model.weights.final_norm.data + 4 * 64 + 4 * 512 * 8, end);
}

std::string tiny_checkpoint(std::int32_t vocab) {
  const std::int32_t header[7] = {4, 6, 1, 2, 1, vocab, 3};
  const std::size_t rows = static_cast<std::size_t>(std::abs(vocab)) * (vocab < 0 ? 2 : 1);
  // Norms; wq and wo; wk and wv; the feed-forward network; the RoPE tables.
  const std::size_t numbers = rows * 4 + 3 * 4 + 2 * 16 + 2 * 8 + 3 * 24 + 3 * 2;
  std::string bytes(reinterpret_cast<const char*>(header), sizeof(header));
  return bytes + test::random_weights(DType::f32, static_cast<std::int64_t>(numbers), 1, 5);
}

TEST(Checkpoint, NegativeVocabMeansAHeadOfItsOwn) {
  const TemporaryFolder folder;
  write_file(folder / "tied.bin", tiny_checkpoint(5));
  write_file(folder / "own.bin", tiny_checkpoint(-5));
  EXPECT_TRUE(load_llama(folder / "tied.bin").config.tied_embeddings);
  const LlamaModel own = load_llama(folder / "own.bin");
  EXPECT_FALSE(own.config.tied_embeddings);
  const std::byte* end = own.files[0]->bytes().data() + own.files[0]->bytes().size();
  EXPECT_EQ(own.weights.head.data + own.weights.head.bytes(), end);
}

TEST(Checkpoint, RefusesWhatIsNone) {
  const TemporaryFolder folder;
  const auto with = [&](const std::string& bytes) {
    return [&folder, bytes] {
      write_file(folder / "model.bin", bytes);
      load_llama(folder / "model.bin");
    };
  };
  const std::string good = tiny_checkpoint(5);
  with(good)();
  expect_refused(with(""), "too short");
  expect_refused(with(good + 'x'), "its header asks for");
  expect_refused(with(good.substr(0, good.size() - 1)), "its header asks for");
  expect_refused(with(std::string(28, '\0')), "must divide");
  expect_refused(with(std::string(28, '\xff')), "must divide");
  expect_refused(with("24ka" + good), "version 1 or 2");
  expect_refused(with("GGUF" + good), "is not a GGUF file that can be read: its version is 4");
  expect_refused(with(safetensors_of(TinyLlama().tensors())), "safetensors file; give the folder");
  expect_refused(with("{\"model_type\": \"llama\"}"), "JSON file; give the folder");
  expect_refused([&] { load_llama(folder / "nowhere"); }, "No such file");
  expect_refused([&] { load_llama("/dev/null"); }, "is not a regular file");
}

TEST(Checkpoint, MutationsAreReadOrRefused) {
  const TemporaryFolder folder;
  const auto file = folder / "model.bin";
  write_file(file, tiny_checkpoint(5));
  const int refused = refused_mutations(file, 2000, true, [&] { sum_of(load_llama(file)); });
  EXPECT_GT(refused, 1000);
}

TEST(HuggingFace, ShardsAndSingleFilesAreTheSameModel) {
  const TemporaryFolder single, sharded;
  TinyLlama tiny;
  tiny.dtype = DType::bf16;
  tiny.write(single.path());
  tiny.write_sharded(sharded.path());
  const LlamaModel one = load_llama(single.path()), two = load_llama(sharded.path());
  EXPECT_EQ(one.files.size(), 1U);
  EXPECT_EQ(two.files.size(), 2U);
  EXPECT_EQ(sum_of(one), sum_of(two));
  EXPECT_EQ(one.weights.layers[1].wk.dtype, DType::bf16);
  EXPECT_EQ(one.weights.layers[1].wk.rows, 8);
  EXPECT_EQ(one.config.rope_style, RopeStyle::half);
  const auto tensors = tiny.tensors();
  const std::string& down = tensors[9].data;
  EXPECT_EQ(std::memcmp(one.weights.layers[0].down.data, down.data(), down.size()), 0);
}

TEST(HuggingFace, TiedModelsMayStoreTheirHead) {
  const TemporaryFolder folder;
  TinyLlama tiny;
  tiny.tied = true;
  tiny.write(folder.path());
  const LlamaModel model = load_llama(folder.path());
  EXPECT_EQ(model.weights.head.data, model.weights.embedding.data);
  auto tensors = tiny.tensors();
  auto head = tensors[0];
  head.name = "lm_head.weight";
  tensors.push_back(head);
  write_file(folder / "model.safetensors", safetensors_of(tensors));
  EXPECT_TRUE(load_llama(folder.path()).config.tied_embeddings);
  const auto sum = sum_of(load_llama(folder.path()));
  tensors[0] = tensors.back();
  tensors.pop_back();
  write_file(folder / "model.safetensors", safetensors_of(tensors));  // the head alone
  EXPECT_EQ(sum_of(load_llama(folder.path())), sum);
}

// Files of a model that was stored without its head, as Qwen3-Embedding.
TEST(HuggingFace, NamesMayLackTheirPrefix) {
  const TemporaryFolder folder;
  TinyLlama tiny{.tied = true, .kind = "qwen3"};
  tiny.write(folder.path());
  const auto sum = sum_of(load_llama(folder.path()));
  auto tensors = tiny.tensors();
  for (FileTensor& tensor : tensors) tensor.name.erase(0, std::string("model.").size());
  write_file(folder / "model.safetensors", safetensors_of(tensors));
  EXPECT_EQ(sum_of(load_llama(folder.path())), sum);
  tensors.back().name = "model.norm.weight";  // of all names or of none
  write_file(folder / "model.safetensors", safetensors_of(tensors));
  expect_refused([&] { load_llama(folder.path()); }, "has no tensor 'norm.weight'");
}

// Of caches of fp8, which checkpoints of all kinds of weights may have.
TEST(HuggingFace, ScalesOfCachesAreNotUsed) {
  const TemporaryFolder folder;
  const TinyLlama tiny;
  tiny.write(folder.path());
  const auto sum = sum_of(load_llama(folder.path()));
  for (const char* name : {"self_attn.k_scale", "self_attn.v_proj.v_scale", "mlp.k_scale"}) {
    auto tensors = tiny.tensors();
    tensors.push_back(tensors[0]);
    tensors.back().name = std::string("model.layers.0.") + name;
    write_file(folder / "model.safetensors", safetensors_of(tensors));
    if (std::string_view(name).starts_with("self_attn")) {
      EXPECT_EQ(sum_of(load_llama(folder.path())), sum) << name;
    } else {
      expect_refused([&] { load_llama(folder.path()); }, "mlp.k_scale' is not a part");
    }
  }
}

TEST(Checkpoint, MayBeTheOnlyOneOfAFolder) {
  const TemporaryFolder folder;
  write_file(folder / "model.bin", tiny_checkpoint(5));
  write_file(folder / "tokenizer.bin", "");
  const LlamaModel model = load_llama(folder.path());
  EXPECT_EQ(model.path, folder / "model.bin");
  EXPECT_EQ(sum_of(model), sum_of(load_llama(folder / "model.bin")));
  write_file(folder / "other.bin", tiny_checkpoint(5));
  expect_refused([&] { load_llama(folder.path()); }, "config.json");
}

TEST(HuggingFace, GenerationConfigAddsEnds) {
  const TemporaryFolder folder;
  TinyLlama().write(folder.path());
  write_file(folder / "generation_config.json", R"({"eos_token_id": [2, 9]})");
  EXPECT_EQ(load_llama(folder.path()).config.eos, (std::vector<std::int32_t>{2, 9}));
  write_file(folder / "generation_config.json", R"({"eos_token_id": [300]})");
  expect_refused([&] { load_llama(folder.path()); }, "300 is not one of 300");
}

// Tensors that are missing, have another shape, or would not be used would all give a model that
// runs and is wrong.
TEST(HuggingFace, RefusesTensorsThatContradictTheConfig) {
  const TemporaryFolder folder;
  const TinyLlama tiny;
  tiny.write(folder.path());
  const auto with = [&](const auto& change) {
    return [&folder, &tiny, change] {
      auto tensors = tiny.tensors();
      change(tensors);
      write_file(folder / "model.safetensors", safetensors_of(tensors));
      load_llama(folder.path());
    };
  };
  using Tensors = std::vector<test::FileTensor>;
  expect_refused(with([](Tensors& t) { t.pop_back(); }), "no tensor 'lm_head.weight'");
  expect_refused(with([](Tensors& t) { t[2].shape = {8, 32}; }), "is [8, 32]");
  expect_refused(with([](Tensors& t) { t[1].shape = {1, 16}; }), "must be [16]");
  expect_refused(with([](Tensors& t) { t[3].type = "I32"; }), "of type I32");
  expect_refused(with([](Tensors& t) {
                   t.push_back({"model.layers.0.self_attn.q_proj.bias", "F32", {1}, "1234"});
                 }),
                 "not a part of this architecture");
  with([](Tensors& t) {
    t.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {1}, "1234"});
  })();
}

TEST(HuggingFace, RefusesFoldersThatLackFiles) {
  const TemporaryFolder folder;
  expect_refused([&] { load_llama(folder.path()); }, "config.json: No such file");
  write_file(folder / "config.json", TinyLlama().config().dump());
  expect_refused([&] { load_llama(folder.path()); }, "has neither model.safetensors nor");
}

TEST(HuggingFace, RefusesAnIndexThatContradictsItsShards) {
  const TemporaryFolder folder;
  TinyLlama().write_sharded(folder.path());
  const auto index = folder / "model.safetensors.index.json";
  const std::string good = read_file(index);
  const auto with = [&](const std::string& name, const nlohmann::json& shard) {
    return [&, name, shard] {
      nlohmann::json json = nlohmann::json::parse(good);
      json["weight_map"][name] = shard;
      write_file(index, json.dump());
      load_llama(folder.path());
    };
  };
  const std::string norm = "model.norm.weight";
  expect_refused(with(norm, "../model-00001-of-00002.safetensors"), "must be a file of the folder");
  expect_refused(with(norm, ".."), "must be a file of the folder");
  expect_refused(with(norm, std::string("a\0b", 3)), "'a\\x00b' isn't");
  expect_refused(with(norm, 7), "allowed: a text");
  expect_refused(with("more.weight", "other.safetensors"), "other.safetensors: No such file");
  expect_refused(with(norm, "other.safetensors"), "doesn't say that 'model.norm.weight'");
  expect_refused(with("more.weight", "model-00001-of-00002.safetensors"), "'more.weight' isn't in");
}

TEST(SafeTensors, RefusesWhatBreaksTheirRules) {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& bytes) {
    return [&folder, bytes] {
      write_file(folder / "a.safetensors", bytes);
      SafeTensors::open(folder / "a.safetensors");
    };
  };
  const auto one = [&](const nlohmann::json& shape, const nlohmann::json& offsets,
                       const char* type = "F16", std::size_t bytes = 12) {
    const nlohmann::json header = {
        {"a", {{"dtype", type}, {"shape", shape}, {"data_offsets", offsets}}}};
    return open(safetensors_of(header, std::string(bytes, 'x')));
  };
  using List = std::vector<std::int64_t>;
  one(List{2, 3}, List{0, 12})();
  one(List{}, List{0, 2}, "F16", 2)();
  expect_refused(open("1234567"), "too short");
  expect_refused(open(std::string(8, '\xff')), "its header has 18446744073709551615 bytes");
  expect_refused(open(std::string("\x05\0\0\0\0\0\0\0{}", 10)), "its header has 5 bytes");
  expect_refused(open(std::string("\x02\0\0\0\0\0\0\0{]", 10)), "isn't JSON");
  expect_refused(one(List{2, 3}, List{0, 12}, "F13"), "'F13' isn't known");
  expect_refused(one(List{2, 2}, List{0, 12}), "takes 8 bytes");
  expect_refused(one(List{2, 3}, List{12, 0}), "aren't two offsets");
  expect_refused(one(List{2, 3}, List{0, 14}), "aren't two offsets");
  expect_refused(one(List{2, 3}, List{0, 12, 12}), "aren't two offsets");
  expect_refused(one(List{2, -3}, List{0, 12}), "not a number of at least 0");
  expect_refused(one(List{1LL << 62, 4}, List{0, 12}), "too large");
  expect_refused(one(List{2, 3}, List{0, 12}, "F16", 13), "1 bytes after");
  expect_refused(one(List{2, 3}, List{1, 13}, "F16", 13), "leaves a gap");
  const auto two = [&](List first, List second) {
    const nlohmann::json header = {
        {"a", {{"dtype", "U8"}, {"shape", {4}}, {"data_offsets", first}}},
        {"b", {{"dtype", "U8"}, {"shape", {4}}, {"data_offsets", second}}}};
    return open(safetensors_of(header, std::string(8, 'x')));
  };
  two({4, 8}, {0, 4})();
  expect_refused(two({0, 4}, {3, 7}), "overlaps");
  expect_refused(two({0, 4}, {0, 4}), "overlaps");
  expect_refused(open(safetensors_of(nlohmann::json{{"a", 1}}, "")), "is not a JSON object");
}

TEST(HuggingFace, MutationsAreReadOrRefused) {
  const TemporaryFolder folder;
  TinyLlama tiny;
  tiny.dim = 4;
  tiny.hidden = 4;
  tiny.layers = 1;
  tiny.heads = 2;
  tiny.kv_heads = 1;
  tiny.vocab = 4;
  tiny.write(folder.path());
  const auto load = [&] { sum_of(load_llama(folder.path())); };
  const auto weights = folder / "model.safetensors";
  EXPECT_GT(refused_mutations(weights, 3000, true, load), 2000);
  EXPECT_GT(refused_mutations(folder / "config.json", 2000, true, load), 500);
  std::filesystem::remove(weights);
  tiny.write_sharded(folder.path());
  const auto index = folder / "model.safetensors.index.json";
  EXPECT_GT(refused_mutations(index, 1000, true, load), 500);
}

}  // namespace
}  // namespace greta::test::weights_test
