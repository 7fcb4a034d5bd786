#include "tuner/bundle/failed_choice.hpp"

#include <fmt/format.h>

#include <string_view>

#include "db/enum_text.hpp"
#include "kernels/catalog.hpp"
#include "tuner/compile/case_files.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;

/// Larger operands and expected values are drawn from their seed when the case is run.
constexpr std::size_t whole_case_bytes = std::size_t{4} << 20;

void write_sources(const LaunchPlan& plan, const fs::path& folder) {
  for (std::size_t i = 0; i < plan.sources.size(); ++i) {
    const KernelSource& source = plan.sources[i];
    const auto extension = source.language == Language::glsl ? "comp" : "hip";
    std::string text = fmt::format("// {}, entry {}, workgroup {}x{}x{}, subgroup size {}, options",
                                   source.name, source.entry, source.block[0], source.block[1],
                                   source.block[2], source.required_subgroup_size);
    for (const auto& option : source.options) text += " " + option;
    text += "\n" + source.text;
    write_bytes(folder / fmt::format("kernel-{}.{}", i, extension), text.data(), text.size());
  }
}

void write_code_objects(const CompiledChoice& compiled, const fs::path& folder) {
  for (std::size_t i = 0; i < compiled.kernels.size(); ++i) {
    const auto& binary = compiled.kernels[i].code_object;
    const bool spirv = compiled.plan.sources[i].language == Language::glsl;
    write_bytes(folder / fmt::format("kernel-{}.{}", i, spirv ? "spv" : "co"), binary.data(),
                binary.size());
  }
}

std::size_t file_bytes(const KernelCase& made) {
  std::size_t bytes = 0;
  for (const auto& buffer : made.buffers) {
    bytes += buffer.data.size() + buffer.expected.size() * sizeof(Expected);
  }
  return bytes;
}

}  // namespace

Result<void> write_failed_choice(const Catalog& catalog, const DeviceInfo& device,
                                 const CheckedChoice& choice, const OpenOptions& options,
                                 const fs::path& folder) {
  try {
    const Candidate failed{Problem::parse(choice.problem).value(), config_from_text(choice.config)};
    const Operation& operation = catalog.at(failed.problem.op);
    write_sources(operation.plan(failed.problem, device, failed.config).value(), folder);
    const auto target = create_probed_target(device, options);
    if (!target) return target.failure();
    const auto compiled = compile_plan(**target, operation, failed);
    if (!compiled) return compiled.failure();
    const auto made = make_case(operation, *compiled, choice.seed);
    if (!made) {
      write_code_objects(*compiled, folder);
      return made.failure();
    }
    const bool whole = file_bytes(*made) <= whole_case_bytes;
    return write_case(*made, folder / "case", whole ? CaseForm::whole : CaseForm::seed);
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

}  // namespace greta::tuner
