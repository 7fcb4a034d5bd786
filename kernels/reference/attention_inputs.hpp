#pragma once

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

#include "kernels/reference/references.hpp"

/// What the reference of attention reads: a problem's sizes and options, and where its tensors have
/// the tokens of each sequence.
namespace greta::kernels {

/// One attention problem with its inputs.
struct Attention {
  Attention(const Problem& problem, const std::vector<HostTensor>& inputs)
      : batch(problem.dim("batch")),
        heads(problem.dim("heads")),
        kv_heads(has_latents(problem) ? 1 : problem.dim("kv_heads")),
        queries(problem.dim("q")),
        capacity(problem.dim("kv")),
        dim(tensor_named(inputs, has_latents(problem) ? "cache" : "K").spec.cols),
        v_dim(has_latents(problem) ? problem.dim("latent") : tensor_named(inputs, "V").spec.cols),
        causal(problem.attribute("mask", "none") == "causal"),
        in(problem.dtype),
        out(problem.out_dtype),
        q(packed(tensor_named(inputs, "Q"))),
        k(tensor_named(inputs, has_latents(problem) ? "cache" : "K")),
        v(tensor_named(inputs, has_latents(problem) ? "cache" : "V")),
        packs(problem.attribute("sequences", "padded") == "packed") {
    find_sequences(inputs);
    if (problem.op == "tree_attention" || problem.attribute("mask", "none") == "tree") {
      tree = &tensor_named(inputs, "tree");
    }
    if (problem.attribute("sinks", "none") != "none") sinks = &tensor_named(inputs, "sinks");
    const std::string window_text = problem.attribute("window", "none");
    if (window_text != "none") window = std::stoll(window_text);
    const std::string page_text = problem.attribute("page_size", "none");
    if (page_text != "none") {
      page = std::stoll(page_text);
      table = &tensor_named(inputs, "block_table");
    }
    const std::string cap_text = problem.attribute("softcap", "none");
    if (cap_text != "none") cap = static_cast<double>(std::strtof(cap_text.c_str(), nullptr));
    const std::string given = problem.attribute("scale", "auto");
    scale = given == "auto" ? 1 / std::sqrt(static_cast<double>(dim))
                            : std::strtof(given.c_str(), nullptr);
  }

  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t rows() const { return (packs ? queries : batch * queries) * heads; }
  std::int64_t row(std::int64_t sequence, std::int64_t query, std::int64_t head) const {
    return (of(sequence).first_query + query) * heads + head;
  }
  /// Return the key after the last one that a query attends to, and the first one.
  std::int64_t visible(std::int64_t sequence, std::int64_t query) const {
    const std::int64_t count = of(sequence).keys;
    return causal ? std::max<std::int64_t>(0, count - of(sequence).queries + query + 1) : count;
  }
  std::int64_t first_visible(std::int64_t sequence, std::int64_t query) const {
    return window == 0 ? 0 : std::max<std::int64_t>(0, visible(sequence, query) - window);
  }
  /// Whether a query attends to one of these keys: with a tree, to those before the new ones, to
  /// its own, and to those that its bits name.
  bool attends(std::int64_t sequence, std::int64_t query, std::int64_t key) const {
    const std::int64_t node = key - (of(sequence).keys - queries);
    if (tree == nullptr || node < 0 || node == query) return true;
    const std::int64_t row = sequence * queries + query;
    const auto word = static_cast<std::int64_t>(
        tree->at(static_cast<std::size_t>(row * tree->spec.cols + node / 32)));
    return (static_cast<std::uint32_t>(word) >> node % 32 & 1U) != 0;
  }
  /// Returns the row of K and V that a key has.
  std::int64_t key_row(std::int64_t sequence, std::int64_t kv_head, std::int64_t key) const {
    if (packs) return (of(sequence).first_key + key) * kv_heads + kv_head;
    if (page == 0) return (sequence * kv_heads + kv_head) * capacity + key;
    const std::int64_t pages = table->spec.cols;
    const auto at = static_cast<std::size_t>(sequence * pages + key / page);
    const auto number = static_cast<std::int64_t>(table->at(at));
    return (number * kv_heads + kv_head) * page + key % page;
  }

  std::int64_t batch, heads, kv_heads, queries, capacity, dim, v_dim;
  bool causal;
  DType in, out;
  double scale;
  std::int64_t window = 0;  ///< 0: none
  double cap = 0;           ///< of the scores; 0: none
  const HostTensor* sinks = nullptr;
  const HostTensor* tree = nullptr;  ///< bits of the new keys that a query attends to
  std::int64_t page = 0;             ///< keys of a page; 0: no pages
  const HostTensor* table = nullptr;
  const HostTensor q;
  const HostTensor &k, &v;
  bool packs;

  /// Of packed sequences, the last one has the tokens after the others, and no keys.
  struct Sequence {
    std::int64_t first_query, queries, first_key, keys;
  };
  std::vector<Sequence> sequences;
  const Sequence& of(std::int64_t number) const {
    return sequences[static_cast<std::size_t>(number)];
  }

 private:
  /// Whether a value is the first elements of its key.
  static bool has_latents(const Problem& problem) { return problem.op == "latent_attention"; }

  void find_sequences(const std::vector<HostTensor>& inputs) {
    if (!packs) {
      const HostTensor& lengths = tensor_named(inputs, "lengths");
      for (std::int64_t b = 0; b < batch; ++b) {
        const auto length = static_cast<std::int64_t>(lengths.at(static_cast<std::size_t>(b)));
        sequences.push_back(
            {b * queries, queries, 0, std::clamp<std::int64_t>(length, 0, capacity)});
      }
      return;
    }
    const auto start = [&](const char* name, std::int64_t number, std::int64_t tokens) {
      if (number == 0) return std::int64_t{0};
      if (number > batch) return tokens;
      const double said = tensor_named(inputs, name).at(static_cast<std::size_t>(number));
      return std::clamp(static_cast<std::int64_t>(said), std::int64_t{0}, tokens);
    };
    for (std::int64_t b = 0; b <= batch; ++b) {
      const std::int64_t query = start("cu_seqlens_q", b, queries);
      const std::int64_t key = start("cu_seqlens_k", b, capacity);
      const std::int64_t end = b == batch ? key : start("cu_seqlens_k", b + 1, capacity);
      const std::int64_t query_end = start("cu_seqlens_q", b + 1, queries);
      sequences.push_back(
          {query, std::max(query_end, query) - query, key, std::max(end, key) - key});
    }
  }
};

}  // namespace greta::kernels
