#include "tuner/cli/tune/new_kernel.hpp"

#include <fmt/format.h>

#include <fstream>

#include "kernels/described/description.hpp"
#include "kernels/described/names.hpp"
#include "runtime/device/text/strings.hpp"

namespace greta::tuner::cli {
namespace {

constexpr std::string_view description = R"text({
  // A kernel for `greta-tune kernel`. All keys: docs/your-kernel.md.
  "$schema": "description.schema.json",
  "greta": 1,
  "name": "NAME",
  "summary": "y = factor x",
  "language": "cuda",  // CUDA C++ or "hip"
  "source": "NAME.cu",
  // The extents of a problem, which become options: --n 1000000.
  "dimensions": {"n": {"default": 1000000, "help": "elements", "examples": [1, 4099]}},
  // What is tuned. The source sees macros of these names.
  "parameters": {"BLOCK": [64, 128, 256, 512, 1024], "ITEMS": [1, 2, 4, 8]},
  "constraints": [{"if": "BLOCK * ITEMS <= 4096", "reason": "a workgroup has at most 4096 elements"}],
  "defaults": {"BLOCK": 256, "ITEMS": 1},
  "operands": [
    {"name": "x", "role": "input", "type": "f32", "shape": "n", "fill": {"random": [-1, 1]}},
    {"name": "y", "role": "output", "type": "f32", "shape": "n"}
  ],
  "scalars": {"factor": {"type": "f32", "value": 2.5}, "n": {"type": "i32"}},
  // The launch. Formulas read dimensions and parameters.
  "entry": "NAME",
  "grid": "ceil_div(n, BLOCK * ITEMS)",
  "workgroup": "BLOCK",
  "arguments": ["x", "y", "factor", "n"],
  "flops": "n",
  // Which results are correct: a simple kernel, which runs on the CPU.
  "reference": {
    "entry": "NAME_naive",
    "grid": "ceil_div(n, 256)",
    "workgroup": 256,
    "arguments": ["x", "y", "factor", "n"],
    "tolerance": {"relative": 1e-6}
  }
}
)text";

constexpr std::string_view source = R"text(// y = factor x. BLOCK and ITEMS are parameters.

__global__ void NAME(const float* x, float* y, float factor, int n) {
  const int first = blockIdx.x * BLOCK * ITEMS + threadIdx.x;
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int at = first + i * BLOCK;
    if (at < n) y[at] = factor * x[at];
  }
}

__global__ void NAME_naive(const float* x, float* y, float factor, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) y[at] = factor * x[at];
}
)text";

void write(const std::filesystem::path& file, const std::string& text) {
  if (!(std::ofstream(file, std::ios::binary) << text).flush()) {
    throw CommandError(exit_failed, fmt::format("{}: can't be written", file.string()));
  }
}

void write_named(const std::filesystem::path& file, std::string text, const std::string& name) {
  for (std::size_t at = 0; (at = text.find("NAME", at)) != std::string::npos; at += name.size()) {
    text.replace(at, 4, name);
  }
  write(file, text);
}

}  // namespace

void write_new_kernel(const std::string& name, const std::filesystem::path& folder) {
  if (!kernels::described::is_name(name) || name.size() > 50) {
    throw CommandError(exit_usage, fmt::format("--new {}: must be up to 50 letters, digits and _, "
                                               "no digit first",
                                               name));
  }
  const auto json = folder / (name + ".jsonc"), kernel = folder / (name + ".cu");
  for (const auto& file : {json, kernel}) {
    if (std::filesystem::exists(file)) {
      throw CommandError(exit_usage, fmt::format("--new {}: {} exists", name, file.string()));
    }
  }
  write_named(json, std::string(description), name);
  write_named(kernel, std::string(source), name);
  const auto& [schema, text] = kernels::description_schemas().front();
  if (!std::filesystem::exists(folder / schema)) write(folder / schema, std::string(text));
}

}  // namespace greta::tuner::cli
