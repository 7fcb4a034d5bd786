#include <algorithm>
#include <iterator>

#include "kernels/model/parallel.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/reference/gemm_parts.hpp"
#include "kernels/reference/references.hpp"

namespace greta::kernels {
namespace {

bool is_masked(const Problem& problem) {
  return problem.attribute("form", "contiguous") == "masked";
}

/// Returns the rows of C that each group has, in their order, without groups that have none.
std::vector<ProductPart> parts_of(const Problem& problem, const std::vector<HostTensor>& inputs,
                                  std::vector<std::int64_t>& groups_of_parts) {
  const std::int64_t groups = problem.dim("groups"), m = problem.dim("m");
  const HostTensor& counts = tensor_named(inputs, is_masked(problem) ? "rows" : "ends");
  std::vector<ProductPart> parts;
  std::int64_t start = 0;
  for (std::int64_t group = 0; group < groups; ++group) {
    const auto said = static_cast<std::int64_t>(counts.at(static_cast<std::size_t>(group)));
    const std::int64_t possible = std::clamp<std::int64_t>(said, 0, m);
    const std::int64_t first = is_masked(problem) ? group * m : start;
    const std::int64_t rows = is_masked(problem) ? possible : possible - start;
    start = possible;
    if (rows <= 0) continue;
    parts.push_back({"group " + std::to_string(group), first, rows, nullptr});
    groups_of_parts.push_back(group);
  }
  return parts;
}

}  // namespace

bool grouped_gemm_fully_checked(const Problem& problem) {
  const auto extent = [&](const char* name) { return static_cast<double>(problem.dim(name)); };
  const bool gated = problem.attribute("epilogue", "none") != "none";
  const double groups = extent("groups"), n = (gated ? 2 : 1) * extent("n"), k = extent("k");
  const double m = is_masked(problem) ? groups * extent("m") : extent("m");
  return m * n * k <= 0x1p31 && m * n <= 0x1p24 && (m + groups * n) * k <= 0x1p28;
}

namespace {

/// Returns the reference of all groups. `reference_of`: that of a part with a group's matrices,
/// given its rows of A and a number of its own.
template <typename ReferenceOf>
std::unique_ptr<Reference> reference_of_groups(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               ReferenceOf reference_of) {
  std::vector<std::int64_t> groups;
  std::vector<ProductPart> parts = parts_of(problem, inputs, groups);
  const std::int64_t threads = parallel_threads();
  std::int64_t rows = 0;
  for (const ProductPart& part : parts) rows += part.rows;
  std::vector<std::size_t> small, large;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const bool much = parts[i].rows * threads > rows;  // more than a core's share of all rows
    (much ? large : small).push_back(i);
  }
  const auto compute = [&](std::size_t i) {
    parts[i].reference = reference_of(parts[i], groups[i], i);
  };
  // Large groups, and few, are computed one after the other, each on all cores.
  std::for_each(large.begin(), large.end(), compute);
  if (std::ssize(small) < threads) {
    std::for_each(small.begin(), small.end(), compute);
  } else {
    parallel_parts(std::ssize(small), [&](std::int64_t first, std::int64_t last) {
      std::for_each(small.begin() + first, small.begin() + last, compute);
    });
  }
  return reference_of_parts(std::move(parts), tensor_named(inputs, "A").spec.rows, problem.dim("n"),
                            grouped_gemm_fully_checked(problem));
}

/// Returns the rows of A, or of its scales, that a part has.
HostTensor rows_of_part(const std::vector<HostTensor>& inputs, const char* name,
                        const ProductPart& part) {
  return rows_of_tensor(tensor_named(inputs, name), part.first, part.rows);
}

/// Returns the part of an operand that a group has, all of which have as many rows.
HostTensor rows_of_group(const Problem& problem, const HostTensor& tensor, std::int64_t group) {
  const std::int64_t rows = tensor.spec.rows / problem.dim("groups");
  return rows_of_tensor(tensor, group * rows, rows);
}

/// Returns a group's product as a problem of another operation, which has these attributes.
Problem product_of(const Problem& problem, const char* operation, std::int64_t rows,
                   std::initializer_list<const char*> attributes) {
  Problem one{operation, problem.dtype, problem.out_dtype, {}, {}};
  for (const auto& attribute : problem.attributes) {
    const bool has = std::any_of(attributes.begin(), attributes.end(),
                                 [&](const char* name) { return attribute.first == name; });
    if (has) one.attributes.push_back(attribute);
  }
  one.dims = {{"m", rows}, {"n", problem.dim("n")}, {"k", problem.dim("k")}};
  return one;
}

}  // namespace

std::unique_ptr<Reference> grouped_gemm_reference(const Problem& problem,
                                                  const std::vector<HostTensor>& inputs,
                                                  std::uint64_t seed) {
  const HostTensor& b = tensor_named(inputs, "B");
  return reference_of_groups(
      problem, inputs, [&](const ProductPart& part, std::int64_t group, std::size_t number) {
        Problem one = product_of(problem, "gemm", part.rows, {"epilogue"});
        one.attributes.emplace_back("layout", problem.attribute("layout", "nt"));
        return gemm_reference(one,
                              {rows_of_part(inputs, "A", part), rows_of_group(problem, b, group)},
                              seed + number);
      });
}

std::unique_ptr<Reference> quantized_grouped_gemm_reference(const Problem& problem,
                                                            const std::vector<HostTensor>& inputs,
                                                            std::uint64_t seed) {
  return reference_of_groups(
      problem, inputs, [&](const ProductPart& part, std::int64_t group, std::size_t number) {
        const Problem one = product_of(problem, "quantized_gemm", part.rows,
                                       {"weights", "group", "zeros", "epilogue", "packing"});
        std::vector<HostTensor> operands{rows_of_part(inputs, "A", part)};
        for (const HostTensor& tensor : inputs) {
          const std::string& name = tensor.spec.name;
          if (name != "B" && name != "scales" && name != "zeros") continue;
          operands.push_back(rows_of_group(problem, tensor, group));
        }
        return quantized_gemm_reference(one, operands, seed + number);
      });
}

std::unique_ptr<Reference> scaled_grouped_gemm_reference(const Problem& problem,
                                                         const std::vector<HostTensor>& inputs,
                                                         std::uint64_t seed) {
  const bool of_groups = problem.attribute("scales", "tensor") == "tensor";
  return reference_of_groups(
      problem, inputs, [&](const ProductPart& part, std::int64_t group, std::size_t number) {
        const Problem one =
            product_of(problem, "scaled_gemm", part.rows, {"format", "scales", "epilogue"});
        const auto of_group = [&](const char* name) {
          return rows_of_group(problem, tensor_named(inputs, name), group);
        };
        HostTensor scales_a =
            of_groups ? of_group("scales_a") : rows_of_part(inputs, "scales_a", part);
        return scaled_gemm_reference(one,
                                     {rows_of_part(inputs, "A", part), of_group("B"),
                                      std::move(scales_a), of_group("scales_b")},
                                     seed + number);
      });
}

}  // namespace greta::kernels
