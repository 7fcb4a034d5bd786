#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "kernels/model/parallel.hpp"
#include "kernels/reference/activation.hpp"
#include "kernels/reference/dequantized.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/gemm_error.hpp"
#include "kernels/reference/gemm_parts.hpp"
#include "kernels/reference/references.hpp"
#include "kernels/reference/roundoff.hpp"

namespace greta::kernels {
namespace {

using reference::slack;
using reference::u;

constexpr double smallest = 0x1p-126;

typedef Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> Lines;

/// Returns `count` rows of a packed tensor. f32, f16 and bf16 are exact in f32.
Lines lines_of(const HostTensor& tensor, std::int64_t first, std::int64_t count) {
  Lines lines(count, tensor.spec.cols);
  for (std::int64_t i = 0; i < lines.size(); ++i) {
    lines.data()[i] =
        static_cast<float>(tensor.at(static_cast<std::size_t>(first * tensor.spec.cols + i)));
  }
  return lines;
}

/// Returns `count` lines of `length` elements of a matrix, which may be quantised.
Lines matrix_lines(const Problem& problem, const std::vector<HostTensor>& inputs,
                   const std::string& name, std::int64_t first, std::int64_t count,
                   std::int64_t length) {
  const HostTensor& matrix = tensor_named(inputs, name);
  const std::string down = problem.attribute("down_weights", "same");
  const auto format = weight_format_from_string(
      name == "down" && down != "same" ? down : problem.attribute("weights", "dense"));
  if (!format) return lines_of(matrix, first, count);
  const HostTensor integers = rows_of_tensor(packed(matrix), first, count);
  QuantizedMatrix quantized{.format = *format, .rows = count, .k = length, .integers = &integers};
  HostTensor scales, zeros;
  if (!in_blocks(*format)) {
    scales = rows_of_tensor(tensor_named(inputs, name + "_scales"), first, count);
    quantized.group = std::stoll(problem.attribute("group", "128"));
    quantized.scales = &scales;
    if (problem.attribute("zeros", "none") == "groups") {
      zeros = rows_of_tensor(tensor_named(inputs, name + "_zeros"), first, count);
      quantized.zeros = &zeros;
    }
  }
  const std::vector<float> values = dequantized(quantized);
  Lines lines(count, length);
  std::copy(values.begin(), values.end(), lines.data());
  return lines;
}

/// An expert's matrices.
struct Expert {
  Lines gate_up, down;
};

/// h of a pair of a token and an expert. Errors of dot products are independent of each other, of
/// mean zero; those of the activation need not be.
struct Hidden {
  const Expert* expert = nullptr;  ///< null: the pair adds nothing
  double weight = 0;
  Eigen::VectorXd value, independent, common;
};

/// A dot product with the root of the sum of its squared products.
struct Dot {
  double value, norm;
};

Dot dot(const Lines& lines, std::int64_t line, const Eigen::VectorXd& x) {
  const Eigen::ArrayXd products = lines.row(line).transpose().cast<double>().array() * x.array();
  return {products.sum(), std::sqrt(products.square().sum())};
}

/// Computes h = silu(gate) * up and its errors from the bounds of two dot products, as those of a
/// gated product (GemmErrorModel), in two parts.
void compute(Hidden& h, const Eigen::VectorXd& x, std::int64_t hidden) {
  const double gamma = slack * dot_product_error(x.size());
  const double flushed = 2 * static_cast<double>(x.size()) * smallest;
  for (Eigen::VectorXd* part : {&h.value, &h.independent, &h.common}) part->resize(hidden);
  for (std::int64_t j = 0; j < hidden; ++j) {
    const Dot gate = dot(h.expert->gate_up, j, x), up = dot(h.expert->gate_up, hidden + j, x);
    const double activated = activate(ActivationFunction::silu, gate.value);
    const double changed =
        activation_change(ActivationFunction::silu, gate.value, gamma * gate.norm + flushed);
    const double evaluated = activation_error(ActivationFunction::silu, gate.value) + smallest;
    const double of_up = gamma * up.norm, value = activated * up.value;
    h.value[j] = value;
    h.independent[j] = std::abs(up.value) * changed + std::abs(activated) * of_up;
    h.common[j] = std::abs(up.value) * evaluated + std::abs(activated) * (flushed + smallest) +
                  (changed + evaluated) * (of_up + flushed + smallest) + u * std::abs(value) +
                  smallest;
  }
}

class ExpertsData {
 public:
  ExpertsData(const Problem& problem, const std::vector<HostTensor>& inputs)
      : out_(problem.out_dtype),
        top_k_(problem.dim("top_k")),
        hidden_(problem.dim("hidden")),
        dim_(problem.dim("dim")),
        pairs_(static_cast<std::size_t>(problem.dim("tokens") * top_k_)) {
    choose(problem, inputs);
    const KeptTensor x = keep_tensor(inputs, "x");
    parallel_parts(std::ssize(pairs_), [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t pair = first; pair < last; ++pair) {
        Hidden& h = pairs_[static_cast<std::size_t>(pair)];
        if (h.expert == nullptr) continue;
        const Eigen::VectorXd row =
            lines_of(*x, pair / top_k_, 1).row(0).transpose().cast<double>();
        compute(h, row, hidden_);
      }
    });
  }

  Expected element(std::int64_t token, std::int64_t col) const {
    const auto length = static_cast<double>(top_k_ * hidden_);
    const double gamma = dot_product_error(top_k_ * hidden_) + u * std::sqrt(length);
    double value = 0, squares = 0, error = 0;
    for (std::int64_t slot = 0; slot < top_k_; ++slot) {
      const Hidden& h = pairs_[static_cast<std::size_t>(token * top_k_ + slot)];
      if (h.expert == nullptr) continue;
      const Eigen::ArrayXd factors =
          h.weight * h.expert->down.row(col).transpose().cast<double>().array();
      const Eigen::ArrayXd products = factors * h.value.array();
      value += products.sum();
      squares += products.square().sum();
      // Flushed products of h and down are multiplied by the weight.
      const double flushed = (2 * static_cast<double>(hidden_) * std::abs(h.weight) + 2) * smallest;
      error += std::sqrt((factors * h.independent.array()).square().sum()) +
               (factors.abs() * h.common.array()).sum() + flushed;
    }
    return rounded(out_, value, slack * (gamma * std::sqrt(squares) + error));
  }

 private:
  void choose(const Problem& problem, const std::vector<HostTensor>& inputs) {
    const HostTensor &ids = tensor_named(inputs, "ids"), &weights = tensor_named(inputs, "weights");
    for (std::size_t pair = 0; pair < pairs_.size(); ++pair) {
      const double id = ids.at(pair), weight = weights.at(pair);
      if (id < 0 || id >= static_cast<double>(problem.dim("experts")) || weight == 0) continue;
      const auto expert = static_cast<std::int64_t>(id);
      Expert& read = experts_[expert];
      if (read.down.size() == 0) {
        read = {matrix_lines(problem, inputs, "gate_up", expert * 2 * hidden_, 2 * hidden_, dim_),
                matrix_lines(problem, inputs, "down", expert * dim_, dim_, hidden_)};
      }
      pairs_[pair].expert = &read;
      pairs_[pair].weight = weight;
    }
  }

  DType out_;
  std::int64_t top_k_, hidden_, dim_;
  std::map<std::int64_t, Expert> experts_;
  std::vector<Hidden> pairs_;
};

}  // namespace

std::unique_ptr<Reference> experts_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs, std::uint64_t) {
  const auto data = std::make_shared<const ExpertsData>(problem, inputs);
  const TensorSpec out{"out", Role::output, problem.out_dtype, problem.dim("tokens"),
                       problem.dim("dim")};
  return elements_reference(
      {{out, [data](std::int64_t token, std::int64_t col) { return data->element(token, col); }}});
}

}  // namespace greta::kernels
