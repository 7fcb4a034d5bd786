#include "kernels/reference/gemm.hpp"
#include "kernels/reference/gemm_parts.hpp"

namespace greta::kernels {

std::unique_ptr<Reference> gemm_batch_reference(const Problem& problem,
                                                const std::vector<HostTensor>& inputs,
                                                std::uint64_t seed) {
  const std::int64_t batch = problem.dim("batch"), m = problem.dim("m"), n = problem.dim("n");
  Problem one = problem;
  one.dims.pop_back();
  const bool shared = problem.attribute("shared", "none") == "b";
  std::vector<HostTensor> all;
  for (const HostTensor& input : inputs) all.push_back(packed(input));
  std::vector<ProductPart> parts;
  for (std::int64_t number = 0; number < batch; ++number) {
    std::vector<HostTensor> own;
    for (const HostTensor& input : all) {
      const std::string& name = input.spec.name;
      const bool common = name == "weight" || name == "bias" || (name == "B" && shared);
      const std::int64_t rows = input.spec.rows / (common ? 1 : batch);
      own.push_back(rows_of_tensor(input, common ? 0 : number * rows, rows));
    }
    parts.push_back({"product " + std::to_string(number), number * m, m,
                     gemm_reference(one, own, seed + static_cast<std::uint64_t>(number))});
  }
  return reference_of_parts(std::move(parts), batch * m, n, gemm_fully_checked(problem));
}

}  // namespace greta::kernels
