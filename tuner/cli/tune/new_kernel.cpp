#include "tuner/cli/tune/new_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
  "language": "LANGUAGE",  // "hip", "cuda" or "glsl"
  "source": "NAME.EXTENSION",
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
  // Which results are correct: a simple kernel, which PLACE.
  "reference": {
    "entry": "NAME_naive",
    "grid": "ceil_div(n, 256)",
    "workgroup": 256,
    "arguments": ["x", "y", "factor", "n"],
    "tolerance": {"relative": 1e-6}
  }
}
)text";

constexpr std::string_view cpp_source = R"text(// y = factor x. BLOCK and ITEMS are parameters.

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

constexpr std::string_view glsl_source = R"text(#version 460
#extension GL_EXT_buffer_reference : require
// y = factor x. BLOCK and ITEMS are parameters.

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };

// The arguments, in the order of the description: operands are addresses.
layout(push_constant) uniform Arguments {
  Floats x, y;
  float factor;
  int n;
};

void NAME() {
  const int first = int(gl_WorkGroupID.x) * BLOCK * ITEMS + int(gl_LocalInvocationID.x);
  for (int i = 0; i < ITEMS; ++i) {
    const int at = first + i * BLOCK;
    if (at < n) y.v[at] = factor * x.v[at];
  }
}

void NAME_naive() {
  const int at = int(gl_GlobalInvocationID.x);
  if (at < n) y.v[at] = factor * x.v[at];
}
)text";

struct NewLanguage {
  std::string_view name, extension, source, place;
};
constexpr std::array new_languages{
    NewLanguage{"cuda", "cu", cpp_source, "runs on the CPU"},
    NewLanguage{"hip", "hip", cpp_source, "runs on the CPU"},
    NewLanguage{"glsl", "comp", glsl_source, "runs on the first Vulkan device"},
};

void write_form(const std::filesystem::path& file, std::string_view form, const std::string& name,
                const NewLanguage& language) {
  std::string text(form);
  replace_all(text, "LANGUAGE", language.name);
  replace_all(text, "EXTENSION", language.extension);
  replace_all(text, "PLACE", language.place);
  replace_all(text, "NAME", name);
  write(file, text);
}

}  // namespace

std::vector<std::string> new_kernel_languages() {
  std::vector<std::string> names;
  for (const NewLanguage& language : new_languages) names.emplace_back(language.name);
  return names;
}

std::string write_new_kernel(const std::string& name, const std::string& language_name,
                             const std::filesystem::path& folder) {
  if (!kernels::described::is_name(name) || name.size() > 50) {
    throw CommandError(exit_usage, fmt::format("--new {}: must be up to 50 letters, digits and _, "
                                               "no digit first",
                                               name));
  }
  const NewLanguage& language =
      *std::find_if(new_languages.begin(), new_languages.end(),
                    [&](const NewLanguage& one) { return one.name == language_name; });
  const auto json = folder / (name + ".jsonc");
  const auto kernel = folder / fmt::format("{}.{}", name, language.extension);
  for (const auto& file : {json, kernel}) {
    if (std::filesystem::exists(file)) {
      throw CommandError(exit_usage, fmt::format("--new {}: {} exists", name, file.string()));
    }
  }
  write_form(json, description, name, language);
  write_form(kernel, language.source, name, language);
  const auto& [schema, text] = kernels::description_schemas().front();
  if (!std::filesystem::exists(folder / schema)) write(folder / schema, std::string(text));
  return kernel.filename().string();
}

}  // namespace greta::tuner::cli
