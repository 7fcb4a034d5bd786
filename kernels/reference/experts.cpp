#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/parallel.hpp"
#include "kernels/model/weight_groups.hpp"
#include "kernels/model/weight_panels.hpp"
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

constexpr double smallest_normal = 0x1p-126;

typedef Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> Lines;

/// Returns `count` rows of a packed tensor.
Lines lines_of(const HostTensor& tensor, std::int64_t first, std::int64_t count) {
  Lines lines(count, tensor.spec.cols);
  load_elements(tensor.spec.dtype, tensor.data.data(),
                static_cast<std::size_t>(first * tensor.spec.cols),
                static_cast<std::size_t>(lines.size()), lines.data());
  return lines;
}

/// A matrix of each expert, which may be quantised or scaled. Only lines that are asked for are
/// expanded: the matrices of all experts together can have gigabytes.
class Matrices {
 public:
  /// `lines` of `length` elements are an expert's. Refers to the tensors of `inputs`.
  Matrices(const Problem& problem, const std::vector<HostTensor>& inputs, const std::string& name,
           std::int64_t lines, std::int64_t length)
      : elements_(tensor_named(inputs, name)),
        format_(weight_format_from_string(format_name(problem, name))),
        lines_(lines),
        length_(length) {
    shared_ = problem.attribute("scales", "none");
    if (shared_ != "none") {
      numbers_ = byte_format_from_string(problem.attribute("format", "e4m3"));
      scales_ = &tensor_named(inputs, name + "_scales");
    }
    if (!format_ || in_blocks(*format_)) return;
    group_ = group_length(problem, *format_);
    panels_ = problem.attribute("packing", "rows") == "panels";
    scales_ = &tensor_named(inputs, name + "_scales");
    if (problem.attribute("zeros", "none") == "groups") {
      zeros_ = &tensor_named(inputs, name + "_zeros");
    }
  }

  /// Returns `count` lines of an expert, from its line `first` on.
  Lines lines(std::int64_t expert, std::int64_t first, std::int64_t count) const {
    if (numbers_) return scaled_lines(expert, first, count);
    first += expert * lines_;
    if (!format_) return lines_of(elements_, first, count);
    const HostTensor integers = stored_lines(first, count);
    QuantizedMatrix quantized{
        .format = *format_, .rows = count, .k = length_, .integers = &integers};
    HostTensor scales, zeros;
    if (scales_ != nullptr) {
      scales = rows_of_tensor(*scales_, first, count);
      quantized.group = group_;
      quantized.scales = &scales;
    }
    if (zeros_ != nullptr) {
      zeros = rows_of_tensor(*zeros_, first, count);
      quantized.zeros = &zeros;
    }
    Lines lines(count, length_);
    for (std::int64_t i = 0; i < count; ++i) {
      dequantize(quantized, i, 0, length_, lines.row(i).data());
    }
    return lines;
  }

 private:
  /// Returns quantised lines of all experts, as rows.
  HostTensor stored_lines(std::int64_t first, std::int64_t count) const {
    if (!panels_) return rows_of_tensor(elements_, first, count);
    HostTensor lines{elements_.spec, {}};
    lines.spec.rows = count;
    lines.data = some_rows_of_panels(elements_.data.data(), first, count, elements_.spec.cols);
    return lines;
  }

  /// Returns numbers of eight bits times their scales, which FP64 represents exactly.
  Lines scaled_lines(std::int64_t expert, std::int64_t first, std::int64_t count) const {
    constexpr std::int64_t block = 128;
    Lines lines(count, length_);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t own = first + i, line = expert * lines_ + own;
      const std::int64_t row = shared_ == "tensor" ? expert
                               : shared_ == "row"
                                   ? line
                                   : expert * ((lines_ + block - 1) / block) + own / block;
      for (std::int64_t k = 0; k < length_; ++k) {
        const std::int64_t col = shared_ == "block" ? k / block : 0;
        const auto byte = elements_.data[static_cast<std::size_t>(line * length_ + k)];
        lines(i, k) = decode_byte(*numbers_, std::to_integer<std::uint8_t>(byte)) *
                      scales_->at(static_cast<std::size_t>(row * scales_->spec.cols + col));
      }
    }
    return lines;
  }

  static std::string format_name(const Problem& problem, const std::string& name) {
    const std::string of_all = problem.attribute("weights", "dense");
    const std::string down = problem.attribute("down_weights", "same");
    return name == "down" && down != "same" ? down : of_all;
  }

  const HostTensor& elements_;
  const HostTensor* scales_ = nullptr;
  const HostTensor* zeros_ = nullptr;
  std::optional<WeightFormat> format_;
  std::optional<ByteFormat> numbers_;
  bool panels_ = false;
  std::string shared_;  ///< what shares a scale of these
  std::int64_t group_, lines_, length_;
};

/// A token that an expert has, with what the expert computes for it: h. Errors of dot products are
/// independent of each other, of mean zero; those of the activation need not be.
struct Hidden {
  std::int64_t token = 0;
  double weight = 0;
  Eigen::VectorXd value, independent, common;
};

/// A dot product with the root of the sum of its squared products.
struct Dot {
  double value, norm;
};

Dot dot(const Lines& lines, std::int64_t line, const Eigen::VectorXd& x) {
  const Eigen::ArrayXd products = lines.row(line).transpose().array() * x.array();
  return {products.sum(), std::sqrt(products.square().sum())};
}

/// Computes element j of h = silu(gate) * up and its errors from the bounds of two dot products of
/// `length` elements, as those of a gated product (GemmErrorModel), in two parts.
void compute(Hidden& h, std::int64_t j, const Dot& gate, const Dot& up, std::int64_t length) {
  const double gamma = slack * dot_product_error(length);
  const double flushed = 2 * static_cast<double>(length) * smallest_normal;
  const double activated = activate(ActivationFunction::silu, gate.value);
  const double changed =
      activation_change(ActivationFunction::silu, gate.value, gamma * gate.norm + flushed);
  const double evaluated = activation_error(ActivationFunction::silu, gate.value) + smallest_normal;
  const double of_up = gamma * up.norm, value = activated * up.value;
  h.value[j] = value;
  h.independent[j] = std::abs(up.value) * changed + std::abs(activated) * of_up;
  h.common[j] = std::abs(up.value) * evaluated + std::abs(activated) * (flushed + smallest_normal) +
                (changed + evaluated) * (of_up + flushed + smallest_normal) + u * std::abs(value) +
                smallest_normal;
}

/// Calls body(first, count) for blocks of lines, on all cores.
void for_blocks(std::int64_t lines,
                const std::function<void(std::int64_t first, std::int64_t count)>& body) {
  constexpr std::int64_t block = 64;
  parallel_parts((lines + block - 1) / block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin * block; first < std::min(end * block, lines); first += block)
      body(first, std::min(block, lines - first));
  });
}

/// Sums of the outputs, to which one expert after the other adds its tokens.
class ExpertsData {
 public:
  ExpertsData(const Problem& problem, const std::vector<HostTensor>& inputs)
      : out_(problem.out_dtype),
        top_k_(problem.dim("top_k")),
        hidden_(problem.dim("hidden")),
        dim_(problem.dim("dim")),
        x_(lines_of(*keep_tensor(inputs, "x"), 0, problem.dim("tokens"))),
        sums_(static_cast<std::size_t>(problem.dim("tokens") * dim_)) {
    const Matrices gate_up(problem, inputs, "gate_up", 2 * hidden_, dim_);
    const Matrices down(problem, inputs, "down", dim_, hidden_);
    for (auto& [expert, tokens] : choices(problem, inputs)) {
      multiply(gate_up, expert, tokens);
      add(down, expert, tokens);
    }
  }

  Expected element(std::int64_t token, std::int64_t col) const {
    const auto length = static_cast<double>(top_k_ * hidden_);
    const double gamma = dot_product_error(top_k_ * hidden_) + u * std::sqrt(length);
    const Sum& sum = sums_[static_cast<std::size_t>(token * dim_ + col)];
    return rounded(out_, sum.value, slack * (gamma * std::sqrt(sum.squares) + sum.error));
  }

 private:
  struct Sum {
    double value = 0, squares = 0, error = 0;
  };

  /// Returns each expert's tokens. Pairs of no expert and of no weight add nothing.
  static std::map<std::int64_t, std::vector<Hidden>> choices(
      const Problem& problem, const std::vector<HostTensor>& inputs) {
    const HostTensor &ids = tensor_named(inputs, "ids"), &weights = tensor_named(inputs, "weights");
    const std::int64_t top_k = problem.dim("top_k"), pairs = problem.dim("tokens") * top_k;
    std::map<std::int64_t, std::vector<Hidden>> chosen;
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const auto at = static_cast<std::size_t>(pair);
      const double id = ids.at(at), weight = weights.at(at);
      if (id < 0 || id >= static_cast<double>(problem.dim("experts")) || weight == 0) continue;
      chosen[static_cast<std::int64_t>(id)].push_back({pair / top_k, weight, {}, {}, {}});
    }
    return chosen;
  }

  /// Computes h of an expert's tokens.
  void multiply(const Matrices& gate_up, std::int64_t expert, std::vector<Hidden>& tokens) const {
    for (Hidden& h : tokens) {
      for (Eigen::VectorXd* part : {&h.value, &h.independent, &h.common}) part->resize(hidden_);
    }
    for_blocks(hidden_, [&](std::int64_t first, std::int64_t count) {
      const Lines gates = gate_up.lines(expert, first, count);
      const Lines ups = gate_up.lines(expert, hidden_ + first, count);
      for (Hidden& h : tokens) {
        const Eigen::VectorXd x = x_.row(h.token).transpose();
        for (std::int64_t j = 0; j < count; ++j)
          compute(h, first + j, dot(gates, j, x), dot(ups, j, x), dim_);
      }
    });
  }

  /// Adds an expert's products of h and down.
  void add(const Matrices& down, std::int64_t expert, const std::vector<Hidden>& tokens) {
    for_blocks(dim_, [&](std::int64_t first, std::int64_t count) {
      const Lines lines = down.lines(expert, first, count);
      for (const Hidden& h : tokens) {
        // Flushed products of h and down are multiplied by the weight.
        const double flushed =
            (2 * static_cast<double>(hidden_) * std::abs(h.weight) + 2) * smallest_normal;
        for (std::int64_t line = 0; line < count; ++line) {
          const Eigen::ArrayXd factors = h.weight * lines.row(line).transpose().array();
          const Eigen::ArrayXd products = factors * h.value.array();
          Sum& sum = sums_[static_cast<std::size_t>(h.token * dim_ + first + line)];
          sum.value += products.sum();
          sum.squares += products.square().sum();
          sum.error += std::sqrt((factors * h.independent.array()).square().sum()) +
                       (factors.abs() * h.common.array()).sum() + flushed;
        }
      }
    });
  }

  DType out_;
  std::int64_t top_k_, hidden_, dim_;
  Lines x_;
  std::vector<Sum> sums_;
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
