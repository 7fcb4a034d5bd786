#include <fmt/format.h>

#include <array>
#include <cstring>

#include "runtime/device/result.hpp"
#include "runtime/pipeline/models/formats/llama_files.hpp"

namespace greta::runtime {
namespace {

constexpr std::size_t header_numbers = 7;
constexpr std::size_t header_bytes = header_numbers * sizeof(std::int32_t);

/// Rejects other file formats by their first bytes.
void refuse_others(const MappedFile& file) {
  const std::string_view text = file.text();
  const auto refuse = [&](const char* what) {
    throw Error(fmt::format("{}: {}", file.path().string(), what));
  };
  if (text.starts_with("24ka")) {  // 0x616b3432, little-endian
    refuse("is a checkpoint of llama2.c of version 1 or 2; allowed: the legacy version 0");
  }
  if (text.size() > 8 && text[8] == '{') refuse("is a safetensors file; give the folder it is in");
  if (text.starts_with("{")) refuse("is a JSON file; give the folder it is in");
}

LlamaConfig config_of(const MappedFile& file) {
  const auto bytes = file.bytes();
  if (bytes.size() < header_bytes) throw Error("it is too short");
  std::array<std::int32_t, header_numbers> header{};
  std::memcpy(header.data(), bytes.data(), header_bytes);
  LlamaConfig config;
  config.dim = header[0];
  config.hidden_dim = header[1];
  config.layers = header[2];
  config.heads = header[3];
  config.kv_heads = header[4];
  config.tied_embeddings = header[5] > 0;
  config.vocab = std::abs(std::int64_t{header[5]});
  config.max_positions = header[6];
  config.rope_style = RopeStyle::interleaved;
  // The beginning of the next text also ends one.
  for (const std::int32_t id : {1, 2}) {
    if (id < config.vocab) config.eos.push_back(id);
  }
  if (config.vocab == 1) config.bos = -1;
  if (config.heads < 1 || config.dim % config.heads != 0) {
    throw Error(fmt::format("dim is {} and heads {}; the second must divide the first", config.dim,
                            config.heads));
  }
  config.head_dim = config.dim / config.heads;
  config.check();
  return config;
}

/// Returns the tensors of a file one after the other.
class CheckpointWeights {
 public:
  explicit CheckpointWeights(const std::byte* data) : next_(data) {}

  WeightView take(std::int64_t rows, std::int64_t cols) {
    const WeightView view{DType::f32, rows, cols, next_};
    next_ += view.bytes();
    return view;
  }
  /// Takes one tensor per layer.
  void take(std::vector<LlamaLayer>& layers, WeightView LlamaLayer::*tensor, std::int64_t rows,
            std::int64_t cols) {
    for (LlamaLayer& layer : layers) layer.*tensor = take(rows, cols);
  }

 private:
  const std::byte* next_;
};

LlamaWeights weights_of(const LlamaConfig& c, const std::byte* data) {
  CheckpointWeights tensors(data);
  LlamaWeights weights;
  weights.embedding = tensors.take(c.vocab, c.dim);
  std::vector<LlamaLayer>& layers = weights.layers;
  layers.resize(static_cast<std::size_t>(c.layers));
  tensors.take(layers, &LlamaLayer::attn_norm, 1, c.dim);
  tensors.take(layers, &LlamaLayer::wq, c.q_dim(), c.dim);
  tensors.take(layers, &LlamaLayer::wk, c.kv_dim(), c.dim);
  tensors.take(layers, &LlamaLayer::wv, c.kv_dim(), c.dim);
  tensors.take(layers, &LlamaLayer::wo, c.dim, c.q_dim());
  tensors.take(layers, &LlamaLayer::ffn_norm, 1, c.dim);
  tensors.take(layers, &LlamaLayer::gate, c.hidden_dim, c.dim);
  tensors.take(layers, &LlamaLayer::down, c.dim, c.hidden_dim);
  tensors.take(layers, &LlamaLayer::up, c.hidden_dim, c.dim);
  weights.final_norm = tensors.take(1, c.dim);
  tensors.take(c.max_positions, c.head_dim);  // the RoPE tables
  weights.head = c.tied_embeddings ? weights.embedding : tensors.take(c.vocab, c.dim);
  return weights;
}

}  // namespace

LlamaModel load_checkpoint(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  refuse_others(*file);
  LlamaModel model;
  try {
    model.config = config_of(*file);
    const LlamaConfig& c = model.config;
    const std::int64_t numbers = c.parameters() + c.max_positions * c.head_dim;
    const std::size_t expected = header_bytes + 4 * static_cast<std::size_t>(numbers);
    if (file->bytes().size() != expected) {
      throw Error(fmt::format("it has {} bytes, where its header asks for {}", file->bytes().size(),
                              expected));
    }
  } catch (const Error& error) {
    throw Error(
        fmt::format("{}: is not a checkpoint of llama2.c: {}", path.string(), error.what()));
  }
  model.weights = weights_of(model.config, file->bytes().data() + header_bytes);
  model.path = path;
  model.files = {file};
  return model;
}

}  // namespace greta::runtime
