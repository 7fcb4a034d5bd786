#include "kernels/templates/latent_attention/inputs.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/model/random.hpp"
#include "kernels/planning/pages.hpp"
#include "kernels/templates/attention/adversarial.hpp"
#include "kernels/templates/attention/lengths.hpp"

namespace greta::kernels::latent {
namespace {

std::int64_t below(std::mt19937_64& random, std::int64_t bound) {
  return static_cast<std::int64_t>(uniform_below(random, static_cast<std::uint64_t>(bound)));
}

/// The bits of a sequence's queries.
class Bits {
 public:
  Bits(const Shape& shape, HostTensor& tensor, std::int64_t sequence)
      : shape_(shape), tensor_(tensor), first_(sequence * shape.queries) {}

  void put(std::int64_t query, const std::vector<bool>& bits) {
    for (std::int64_t word = 0; word < shape_.words(); ++word) {
      std::uint32_t value = 0;
      for (std::int64_t bit = 0; bit < 32; ++bit) {
        const auto i = static_cast<std::size_t>(word * 32 + bit);
        if (i < bits.size() && bits[i]) value |= std::uint32_t{1} << bit;
      }
      const auto at = static_cast<std::size_t>((first_ + query) * shape_.words() + word);
      store_element(DType::i32, tensor_.data.data(), at,
                    static_cast<double>(static_cast<std::int32_t>(value)));
    }
  }

 private:
  const Shape& shape_;
  HostTensor& tensor_;
  std::int64_t first_;
};

/// Writes the tree in which query i follows parents[i], an earlier one, or the prefix (-1).
void put_tree(const Shape& shape, Bits& bits, const std::vector<std::int64_t>& parents) {
  std::vector<std::vector<bool>> sees;
  for (std::int64_t i = 0; i < shape.queries; ++i) {
    const std::int64_t parent = parents[static_cast<std::size_t>(i)];
    std::vector<bool> own(static_cast<std::size_t>(shape.queries));
    if (parent >= 0) own = sees[static_cast<std::size_t>(parent)];
    own[static_cast<std::size_t>(i)] = true;
    bits.put(i, own);
    sees.push_back(std::move(own));
  }
}

/// Each query follows a random earlier one, or the prefix.
std::vector<std::int64_t> random_parents(const Shape& shape, std::mt19937_64& random) {
  std::vector<std::int64_t> parents;
  for (std::int64_t i = 0; i < shape.queries; ++i) parents.push_back(below(random, i + 1) - 1);
  return parents;
}

void harden_tree(const Shape& shape, HostTensor& tree, std::mt19937_64& random) {
  enum { kept, chain, star, all, none, any, kinds };
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    Bits bits(shape, tree, b);
    const std::int64_t kind = below(random, kinds);
    std::vector<std::int64_t> parents(static_cast<std::size_t>(shape.queries), -1);
    if (kind == chain) {
      for (std::size_t i = 0; i < parents.size(); ++i) {
        parents[i] = static_cast<std::int64_t>(i) - 1;
      }
    }
    if (kind == chain || kind == star) put_tree(shape, bits, parents);
    for (std::int64_t i = 0; kind >= all && i < shape.queries; ++i) {
      // Bits of queries that do not exist, too.
      std::vector<bool> own(static_cast<std::size_t>(shape.words() * 32), kind == all);
      for (std::size_t bit = 0; kind == any && bit < own.size(); ++bit) {
        own[bit] = below(random, 2) == 0;
      }
      bits.put(i, own);
    }
  }
}

/// Replaces the values of a latent cache, which are a part of its keys: rows of one sign or equal
/// ones, or huge or tiny values, whose queries are zero there, so that scores do not depend on
/// them.
void harden_latents(const Shape& shape, HostTensor& q, HostTensor& cache, std::mt19937_64& random) {
  enum { kept, huge, tiny, negative, equal, kinds };
  const std::int64_t kind = below(random, 2) == 0 ? 0 : below(random, kinds);
  if (kind == kept) return;
  const Magnitudes range = normal_within(shape.in, {0x1p-80, 0x1p90});
  const double common = std::exp2(8 * uniform(random) - 4);
  const auto change = [](HostTensor& tensor, std::int64_t dim, std::int64_t from, const auto& f) {
    for (std::size_t i = 0; i < tensor.spec.elements(); ++i) {
      if (static_cast<std::int64_t>(i) % dim >= from || std::isnan(tensor.at(i))) continue;
      store_element(tensor.spec.dtype, tensor.data.data(), i, f(tensor.at(i)));
    }
  };
  const bool far = kind == huge || kind == tiny;
  change(cache, shape.dim, far ? shape.v_dim : shape.dim, [&](double x) {
    if (kind == huge) return 2 * std::clamp(x, -0.5, 0.5) * range.most;
    if (kind == tiny) return std::copysign(1 + std::min(std::abs(x), 1.0), x) * range.least;
    return kind == negative ? -std::abs(x) * common : common;
  });
  if (far) change(q, shape.dim, shape.v_dim, [](double) { return 0.0; });
}

}  // namespace

HostTensor input(const Shape& shape, const TensorSpec& spec, std::uint64_t seed) {
  HostTensor tensor = random_tensor(spec, seed);
  if (spec.name == "lengths") {
    std::size_t i = 0;
    attention::for_each_length(shape, [&](const attention::Lengths& one, std::int64_t count) {
      for (std::int64_t last = 0; last < count; ++last) {
        store_element(DType::i32, tensor.data.data(), i++, static_cast<double>(one.keys));
      }
    });
  } else if (spec.name == "block_table") {
    tensor = random_block_table(spec, seed);
  } else if (spec.name == "tree") {
    std::mt19937_64 random(seed);
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      Bits bits(shape, tensor, b);
      put_tree(shape, bits, random_parents(shape, random));
    }
  } else if (spec.name == "Q") {
    const double spread = 16 / (shape.scale * std::sqrt(static_cast<double>(shape.dim)));
    const double factor = std::exp2(std::round(std::log2(std::clamp(spread, 0x1p-6, 0x1p6))));
    for (std::size_t i = 0; i < spec.elements(); ++i) {
      store_element(spec.dtype, tensor.data.data(), i, factor * tensor.at(i));
    }
  }
  return tensor;
}

void harden(const Shape& shape, std::vector<HostTensor>& inputs, const InputSeed& seed) {
  // A latent cache is hardened as keys, whose values are not used.
  std::vector<HostTensor> plain;
  std::vector<std::size_t> places;
  const auto add = [&](const char* name) {
    const auto at = std::find_if(inputs.begin(), inputs.end(),
                                 [&](const HostTensor& one) { return one.spec.name == name; });
    if (at == inputs.end()) return;
    places.push_back(static_cast<std::size_t>(at - inputs.begin()));
    plain.push_back(std::move(*at));
  };
  add("Q");
  add(shape.shared ? "cache" : "K");
  if (shape.shared) {
    TensorSpec values = plain.back().spec;
    values.cols = shape.v_dim;
    plain.push_back(random_tensor(values, seed));
    places.push_back(inputs.size());  // nowhere
  } else {
    add("V");
  }
  add("lengths");
  add("block_table");
  attention::harden_operands(shape, plain, seed);
  std::mt19937_64 random(mix64(seed));
  if (shape.shared) harden_latents(shape, plain[0], plain[1], random);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (places[i] < inputs.size()) inputs[places[i]] = std::move(plain[i]);
  }
  for (HostTensor& tensor : inputs) {
    if (tensor.spec.name == "tree") harden_tree(shape, tensor, random);
  }
}

}  // namespace greta::kernels::latent
