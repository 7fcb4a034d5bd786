#include "runtime/pipeline/models/formats/model_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/device/result.hpp"

namespace greta::runtime {
namespace {

/// Returns matrix `index` of those that lie one after the other in a view.
WeightView matrix_of(const WeightView& all, std::int64_t index, std::int64_t rows) {
  WeightView one = all;
  one.rows = rows;
  one.data += all.offset(static_cast<std::size_t>(index * rows * all.cols));
  return one;
}

/// Takes a matrix of each expert.
std::vector<WeightView> take_each(ModelTensors& tensors, const TakeProjection& projection,
                                  const std::string& name, std::int64_t count, std::int64_t rows,
                                  std::int64_t cols) {
  std::vector<WeightView> list;
  if (name.find("{}") == std::string::npos) {
    WeightView all = tensors.take(name, {count, rows, cols});
    for (std::int64_t i = 0; i < count; ++i) list.push_back(matrix_of(all, i, rows));
    return list;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    list.push_back(projection(fmt::format(fmt::runtime(name), i), {rows, cols}));
  }
  return list;
}

/// Makes experts numbers on devices that grouped products do not take as they are. They take fp8 of
/// one format, with scales of blocks whole ones of each matrix; and blocks, unless some matrices of
/// the layer are in blocks that no product reads.
void decode_others(const LlamaConfig& c, std::vector<LlamaExpert>& experts) {
  const MatrixFormat first = experts.front().gate.format();
  bool alike = !first.scaled || !first.scaled->blocks || c.has_whole_blocks(), unread = false;
  for (const LlamaExpert& expert : experts) {
    for (const WeightView* view : {&expert.gate, &expert.up, &expert.down}) {
      alike = alike && view->format() == first;
      unread = unread || (view->blocks && view->format().plain());
    }
  }
  for (LlamaExpert& expert : experts) {
    for (WeightView* view : {&expert.gate, &expert.up, &expert.down}) {
      view->decoded = view->decoded || (view->scaled && !alike) || (view->blocks && unread);
    }
  }
}

/// Takes the router and the experts of a layer. Devices have routers as numbers.
void take_experts(ModelTensors& tensors, const TakeProjection& projection, const LlamaConfig& c,
                  const ExpertNames& names, const std::string& prefix, LlamaLayer& layer) {
  const LlamaExperts& e = c.experts;
  const auto each = [&](std::string_view name, std::int64_t rows, std::int64_t cols) {
    return take_each(tensors, projection, prefix + std::string(name), e.count, rows, cols);
  };
  layer.router = tensors.take(prefix + std::string(names.router), {e.count, c.dim});
  layer.router.decoded = true;
  const std::vector<WeightView> gates = each(names.gate, e.hidden_dim, c.dim);
  const std::vector<WeightView> ups = each(names.up, e.hidden_dim, c.dim);
  const std::vector<WeightView> downs = each(names.down, c.dim, e.hidden_dim);
  for (std::size_t i = 0; i < gates.size(); ++i) {
    layer.experts.push_back({gates[i], ups[i], downs[i]});
  }
  decode_others(c, layer.experts);
  if (e.shared_hidden_dim == 0) return;
  const std::string router = prefix + std::string(names.shared_router);
  layer.shared_router = names.shared_router_is_vector ? tensors.take(router, {c.dim})
                                                      : tensors.take(router, {1, c.dim});
  layer.shared_router.decoded = true;
}

LlamaLayer take_layer(ModelTensors& tensors, const LlamaConfig& c, const LlamaNames& names,
                      std::int64_t index, const TakeProjection& projection) {
  const std::string prefix = fmt::format(fmt::runtime(names.layer), index);
  const auto take = [&](std::string_view name, const std::vector<std::int64_t>& shape) {
    const std::string full = prefix + std::string(name);
    return shape.size() == 2 ? projection(full, shape) : tensors.take(full, shape);
  };
  LlamaLayer layer;
  layer.attn_norm = take(names.attn_norm, {c.dim});
  layer.wq = take(names.wq, {c.q_dim(), c.dim});
  layer.wk = take(names.wk, {c.kv_dim(), c.dim});
  layer.wv = take(names.wv, {c.kv_dim(), c.dim});
  layer.wo = take(names.wo, {c.dim, c.q_dim()});
  layer.ffn_norm = take(names.ffn_norm, {c.dim});
  const bool experts = c.has_experts(index);
  if (const std::int64_t ffn = c.ffn_dim(index); ffn > 0) {
    layer.gate = take(experts ? names.experts.shared_gate : names.gate, {ffn, c.dim});
    layer.up = take(experts ? names.experts.shared_up : names.up, {ffn, c.dim});
    layer.down = take(experts ? names.experts.shared_down : names.down, {c.dim, ffn});
  }
  if (experts) take_experts(tensors, projection, c, names.experts, prefix, layer);
  if (c.qkv_bias) {
    layer.bq = take(names.bq, {c.q_dim()});
    layer.bk = take(names.bk, {c.kv_dim()});
    layer.bv = take(names.bv, {c.kv_dim()});
  }
  if (c.out_bias) layer.bo = take(names.bo, {c.dim});
  if (c.has_mlp_bias(index)) {
    layer.b_gate = take(names.b_gate, {c.hidden_dim});
    layer.b_up = take(names.b_up, {c.hidden_dim});
    layer.b_down = take(names.b_down, {c.dim});
  }
  if (c.qk_norm) {
    layer.q_norm = take(names.q_norm, {c.head_dim});
    layer.k_norm = take(names.k_norm, {c.head_dim});
  }
  return layer;
}

}  // namespace

const StoredTensor& ModelTensors::stored(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw Error(fmt::format("{}: has no tensor '{}'", name_, name));
  return found->second;
}

const StoredTensor& ModelTensors::take_stored(const std::string& name,
                                              const std::vector<std::int64_t>& shape) {
  const StoredTensor& tensor = stored(name);
  if (tensor.shape != shape) {
    throw Error(fmt::format("{}: tensor '{}' is [{}]; by its config it must be [{}]", name_, name,
                            fmt::join(tensor.shape, ", "), fmt::join(shape, ", ")));
  }
  taken_.insert(name);
  return tensor;
}

const StoredTensor& ModelTensors::take_any(const std::string& name) {
  return take_stored(name, stored(name).shape);
}

WeightView ModelTensors::take(const std::string& name, const std::vector<std::int64_t>& shape) {
  const StoredTensor& tensor = stored(name);
  if (!tensor.blocks && (!tensor.dtype || !kernels_convert(*tensor.dtype))) {
    throw Error(fmt::format("{}: tensor '{}' is of type {}; allowed: {}", name_, name, tensor.type,
                            types_));
  }
  static_cast<void>(take_stored(name, shape));
  return {tensor.dtype.value_or(DType::f16), shape.size() == 1 ? 1 : shape[0], shape.back(),
          tensor.data.data(), tensor.blocks};
}

void ModelTensors::check_rest(const std::function<bool(std::string_view)>& ignored) const {
  for (const auto& [name, tensor] : tensors_) {
    if (taken_.count(name) > 0 || ignored(name)) continue;
    throw Error(fmt::format("{}: tensor '{}' is not a part of this architecture", name_,
                            name.substr(0, 100)));
  }
}

LlamaWeights take_llama(ModelTensors& tensors, const LlamaConfig& config, const LlamaNames& names,
                        const TakeProjection& projection) {
  const TakeProjection take =
      projection ? projection
                 : [&](const std::string& name, const std::vector<std::int64_t>& shape) {
                     return tensors.take(name, shape);
                   };
  const std::string embedding(names.embedding), head(names.head);
  const bool only_head = config.tied_embeddings && !tensors.has(embedding) && tensors.has(head);
  const std::vector<std::int64_t> table{config.vocab, config.dim};
  LlamaWeights weights;
  weights.embedding = tensors.take(only_head ? head : embedding, table);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    weights.layers.push_back(take_layer(tensors, config, names, layer, take));
  }
  weights.final_norm = tensors.take(std::string(names.final_norm), {config.dim});
  weights.head = config.tied_embeddings ? weights.embedding : take(head, table);
  weights.embedding.decoded = true;  // rows are gathered as numbers, also where the head is tied
  return weights;
}

}  // namespace greta::runtime
