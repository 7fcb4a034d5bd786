#include <cstring>
#include <memory>
#include <vector>

#include "kernels/model/weight_packing.hpp"
#include "kernels/model/weight_panels.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

using Bytes = std::shared_ptr<std::vector<std::byte>>;

/// Returns the rows of integers of AWQ and GPTQ.
Bytes integers_of(const PackedMatrix& m, bool zeros, const std::vector<HostTensor>& inputs) {
  std::vector<std::int32_t> order;
  for (const HostTensor& tensor : inputs) {
    if (tensor.spec.name != "order") continue;
    order.resize(tensor.spec.elements());
    std::memcpy(order.data(), tensor.data.data(), 4 * order.size());
  }
  auto integers = std::make_shared<std::vector<std::byte>>(m.n * m.row_bytes());
  repack_integers(m, keep_tensor(inputs, "qweight")->data.data(),
                  order.empty() ? nullptr : order.data(), integers->data());
  if (m.bits == 8 && !zeros) make_signed(integers->data(), std::ssize(*integers));
  return integers;
}

}  // namespace

std::unique_ptr<Reference> repack_weights_reference(const Problem& problem,
                                                    const std::vector<HostTensor>& inputs,
                                                    std::uint64_t) {
  const PackedMatrix m = packed_matrix_of(problem);
  const bool has_zeros = problem.attribute("zeros", "none") == "groups";
  const Bytes integers =
      m.in_rows() ? std::make_shared<std::vector<std::byte>>(keep_tensor(inputs, "qweight")->data)
                  : integers_of(m, has_zeros, inputs);
  if (problem.attribute("to", "rows") == "panels") {
    const std::vector<std::byte> rows = *integers;
    rows_to_panels(rows.data(), m.n, m.row_bytes(), integers->data());
  }
  const auto weights_of = [&](DType type, std::int64_t cols) -> ExpectedOutput {
    return {{"B", Role::output, type, m.n, cols}, [=](std::int64_t row, std::int64_t col) {
              const auto at = static_cast<std::size_t>(row * cols + col);
              return Expected{load_element(type, integers->data(), at), 0};
            }};
  };
  if (m.in_rows()) {
    const TensorSpec& rows = tensor_named(inputs, "qweight").spec;
    return elements_reference({weights_of(rows.dtype, rows.cols)});
  }
  const auto scale = [&](const TensorSpec& out) {
    return [type = out.dtype, n = m.n, scales = keep_tensor(inputs, "qscales")](std::int64_t row,
                                                                                std::int64_t col) {
      return converted(scales->spec.dtype, type,
                       scales->at(static_cast<std::size_t>(col * n + row)));
    };
  };
  const TensorSpec scales{"scales", Role::output, problem.out_dtype, m.n, m.groups()};
  std::vector<ExpectedOutput> outputs{weights_of(DType::u8, m.row_bytes()),
                                      {scales, scale(scales)}};
  if (has_zeros) {
    const auto zero = [m, stored = keep_tensor(inputs, "qzeros")](std::int64_t row,
                                                                  std::int64_t col) {
      return Expected{
          static_cast<double>(packed_zero_point(m, stored->data.data(), row, col) & 255), 0};
    };
    outputs.push_back({{"zeros", Role::output, DType::u8, m.n, m.groups()}, zero});
  }
  return elements_reference(std::move(outputs));
}

}  // namespace greta::kernels
