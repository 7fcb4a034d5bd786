#include "tuner/interchange/gemm_place.hpp"

#include <fmt/format.h>

#include <string>

namespace greta::tuner {

Result<void> add_place(char matrix, std::int64_t lines, std::int64_t ld,
                       std::optional<std::int64_t> distance, ProblemRequest& request) {
  const std::string name(1, matrix);
  if (ld > 0 && !(lines == 1 && distance)) request.set("ld" + name, std::to_string(ld));
  if (!distance) return {};
  if (*distance != 0) {
    request.set(name + "_batch_stride", std::to_string(*distance));
  } else if (matrix == 'b') {
    request.set("shared", "b");
  } else {
    return Failure{Status::invalid_argument,
                   fmt::format("a batch with one common {} (of row-major products)",
                               matrix == 'a' ? 'A' : 'C'),
                   {}};
  }
  return {};
}

}  // namespace greta::tuner
