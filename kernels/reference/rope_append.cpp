#include <cmath>
#include <limits>
#include <string>

#include "kernels/reference/cache_slots.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/norms.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

/// The heads of Q or K, after the norm if there is one, and their rotation.
class RotatedHeads {
 public:
  RotatedHeads(const Problem& problem, const std::vector<HostTensor>& inputs, const char* name,
               const char* weight, std::int64_t heads)
      : heads_(heads),
        dim_(problem.dim("dim")),
        half_(problem.attribute("style", "interleaved") == "half"),
        x_(keep_tensor(inputs, name)),
        positions_(keep_tensor(inputs, "positions")),
        table_(keep_tensor(inputs, "table")) {
    if (problem.attribute("norm", "none") == "none") return;
    HostTensor x = *x_, factors = *keep_tensor(inputs, weight);
    x.spec = {"X", Role::input, problem.dtype, x_->spec.rows * x_->spec.cols / dim_, dim_};
    factors.spec.name = "weight";
    norm_ = std::make_shared<const rows::RmsNorm>(problem, std::vector{x, factors});
  }

  /// Returns the element of a head of a token, to be stored as `type`.
  Expected element(DType type, std::int64_t token, std::int64_t head, std::int64_t col) const {
    const double position = positions_->at(static_cast<std::size_t>(token));
    if (position < 0 || position >= static_cast<double>(table_->spec.rows)) {
      return {std::numeric_limits<double>::quiet_NaN(), 0};
    }
    const std::int64_t pair = half_ ? col % (dim_ / 2) : col / 2;
    const bool second = half_ ? col >= dim_ / 2 : col % 2 == 1;
    const std::int64_t partner =
        half_ ? (second ? pair : pair + dim_ / 2) : (second ? col - 1 : col + 1);
    const auto angle = static_cast<std::size_t>(static_cast<std::int64_t>(position) * dim_);
    const double cosine = table_->at(angle + static_cast<std::size_t>(2 * pair));
    const double sine = table_->at(angle + static_cast<std::size_t>(2 * pair + 1));
    const std::int64_t row = token * heads_ + head;
    const rows::Value a = value(row, col), b = value(row, partner);
    const double own = a.value * cosine, other = b.value * (second ? sine : -sine);
    const double given = a.error * std::abs(cosine) + b.error * std::abs(sine);
    const double error = given + 2.001 * 0x1p-24 * (std::abs(own) + std::abs(other) + given);
    return rounded(type, own + other, error + 3 * 0x1p-126);
  }

 private:
  rows::Value value(std::int64_t row, std::int64_t col) const {
    if (norm_) return norm_->normalised(row, col);
    return {x_->at(static_cast<std::size_t>(row * dim_ + col)), 0};
  }

  std::int64_t heads_, dim_;
  bool half_;
  KeptTensor x_, positions_, table_;
  std::shared_ptr<const rows::RmsNorm> norm_;
};

/// Returns a cache to whose slots fresh(token, head, col) is appended.
template <typename Fresh>
ExpectedOutput appended(const Problem& problem, const std::vector<HostTensor>& inputs,
                        const char* name, const Fresh& fresh) {
  const KeptTensor old = keep_tensor(inputs, name), first = keep_tensor(inputs, "slots");
  const std::int64_t tokens = problem.dim("tokens"), dim = problem.dim("dim");
  const auto capacity = static_cast<double>(problem.dim("capacity"));
  const auto element = [=, slots = CacheSlots(problem, inputs)](std::int64_t row,
                                                                std::int64_t col) {
    const auto [sequence, head, slot] = slots.place(row);
    const double token = slot - first->at(static_cast<std::size_t>(sequence));
    if (slot < 0 || slot >= capacity || token < 0 || token >= static_cast<double>(tokens)) {
      return Expected{old->at(static_cast<std::size_t>(row * dim + col)), 0};
    }
    return fresh(sequence * tokens + static_cast<std::int64_t>(token), head, col);
  };
  return {old->spec, element};
}

}  // namespace

std::unique_ptr<Reference> rope_append_reference(const Problem& problem,
                                                 const std::vector<HostTensor>& inputs,
                                                 std::uint64_t) {
  const std::int64_t heads = problem.dim("heads"), kv_heads = problem.dim("kv_heads");
  const std::int64_t dim = problem.dim("dim");
  const auto queries =
      std::make_shared<const RotatedHeads>(problem, inputs, "Q", "q_weight", heads);
  const auto keys =
      std::make_shared<const RotatedHeads>(problem, inputs, "K", "k_weight", kv_heads);
  const std::int64_t rows = problem.dim("batch") * problem.dim("tokens");
  TensorSpec out{"out", Role::output, problem.dtype, rows * heads, dim};
  if (problem.attribute("place", "out") == "in") out = keep_tensor(inputs, "Q")->spec;
  const auto rotated = [=](std::int64_t row, std::int64_t col) {
    const std::int64_t index = row * out.cols + col, head = index / dim;
    return queries->element(out.dtype, head / heads, head % heads, index % dim);
  };
  const auto key = [=, type = problem.out_dtype](std::int64_t token, std::int64_t head,
                                                 std::int64_t col) {
    return keys->element(type, token, head, col);
  };
  const auto value = [=, type = problem.out_dtype, values = keep_tensor(inputs, "V")](
                         std::int64_t token, std::int64_t head, std::int64_t col) {
    const std::int64_t from = (token * kv_heads + head) * dim + col;
    return converted(values->spec.dtype, type, values->at(static_cast<std::size_t>(from)));
  };
  std::vector<ExpectedOutput> outputs{appended(problem, inputs, "K_cache", key),
                                      appended(problem, inputs, "V_cache", value)};
  outputs.insert(out.name == "Q" ? outputs.begin() : outputs.end(), {out, rotated});
  return elements_reference(std::move(outputs));
}

}  // namespace greta::kernels
