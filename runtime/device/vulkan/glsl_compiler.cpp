#include "runtime/device/vulkan/glsl_compiler.hpp"

#include <fmt/format.h>
#include <glslang/Public/ResourceLimits.h>
#include <glslang/Public/ShaderLang.h>
#include <glslang/SPIRV/GlslangToSpv.h>
#include <glslang/build_info.h>
#include <spirv-tools/libspirv.h>

#include <algorithm>
#include <mutex>
#include <spirv-tools/optimizer.hpp>
#include <sstream>
#include <utility>

#include "runtime/device/text/strings.hpp"
#include "runtime/device/vulkan/cooperative_matrix.hpp"
#include "runtime/device/vulkan/khr_matrices.hpp"
#include "runtime/device/vulkan/spirv_info.hpp"

namespace greta::device::vulkan {

namespace {

/// Returns the first line of a log that reports an error, without glslang's prefix.
std::string first_error(const std::string& log) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("ERROR: ")) return line.substr(7);
    if (line.find("error") != std::string::npos) return line;
  }
  return "the compiler gave no reason";
}

Failure refused(const KernelSource& source, std::string log) {
  std::string message = fmt::format("{}: {}", source.name, first_error(log));
  return {Status::compile, std::move(message), std::move(log)};
}

/// The option with which the compiler goes on after an error, to report the others as well.
constexpr std::string_view all_errors = "-ferror-limit=0";

/// Returns a "#define NAME VALUE" line for each option "-DNAME=VALUE".
Result<std::string> preamble(const KernelSource& source) {
  std::string text;
  for (const auto& option : source.options) {
    if (option == all_errors) continue;
    if (!option.starts_with("-D") || option.size() == 2) {
      return refused(source, fmt::format("ERROR: option {}: only -DNAME[=VALUE] is known", option));
    }
    const auto equals = option.find('=');
    text += equals == std::string::npos
                ? fmt::format("#define {}\n", option.substr(2))
                : fmt::format("#define {} {}\n", option.substr(2, equals - 2),
                              option.substr(equals + 1));
  }
  return text;
}

Result<Spirv> translate(const KernelSource& source) {
  static std::once_flag once;
  std::call_once(once, [] { glslang::InitializeProcess(); });

  const auto defines = preamble(source);
  if (!defines) return defines.failure();
  glslang::TShader shader(EShLangCompute);
  const char* const text = source.text.data();
  const int length = static_cast<int>(source.text.size());
  const char* const name = source.name.c_str();
  shader.setStringsWithLengthsAndNames(&text, &length, &name, 1);
  shader.setPreamble(defines->c_str());
  shader.setEnvInput(glslang::EShSourceGlsl, EShLangCompute, glslang::EShClientVulkan, 460);
  shader.setEnvClient(glslang::EShClientVulkan, glslang::EShTargetVulkan_1_3);
  shader.setEnvTarget(glslang::EShTargetSpv, glslang::EShTargetSpv_1_6);
  const auto& words = source.options;
  const bool goes_on = std::find(words.begin(), words.end(), all_errors) != words.end();
  const auto messages = static_cast<EShMessages>(EShMsgSpvRules | EShMsgVulkanRules |
                                                 (goes_on ? EShMsgCascadingErrors : EShMsgDefault));
  const bool parsed = shader.parse(GetDefaultResources(), 460, false, messages);
  std::string log = shader.getInfoLog();
  if (!parsed) return refused(source, std::move(log));

  glslang::TProgram program;
  program.addShader(&shader);
  const bool linked = program.link(messages);
  log += program.getInfoLog();
  if (!linked) return refused(source, std::move(log));

  Spirv spirv;
  spv::SpvBuildLogger logger;
  glslang::SpvOptions options;
  options.disableOptimizer = true;  // spirv-opt runs below and reports its own messages
  glslang::GlslangToSpv(*program.getIntermediate(EShLangCompute), spirv, &logger, &options);
  log += logger.getAllMessages();
  if (spirv.empty()) return refused(source, std::move(log));
  return spirv;
}

/// Registers spirv-opt's performance passes without loop unrolling, redundancy elimination and the
/// passes that follow from them. For the default f32 matrix multiplication kernel at 4096³
/// (SPIRV-Tools of Debian 12) this list takes 12 ms of processor time. The complete list takes 257
/// ms and generates a module twice as large.
void register_passes(spvtools::Optimizer& optimizer) {
  optimizer.RegisterPass(spvtools::CreateWrapOpKillPass())
      .RegisterPass(spvtools::CreateDeadBranchElimPass())
      .RegisterPass(spvtools::CreateMergeReturnPass())
      .RegisterPass(spvtools::CreateInlineExhaustivePass())
      .RegisterPass(spvtools::CreateEliminateDeadFunctionsPass())
      .RegisterPass(spvtools::CreatePrivateToLocalPass())
      .RegisterPass(spvtools::CreateScalarReplacementPass())
      .RegisterPass(spvtools::CreateLocalAccessChainConvertPass())
      .RegisterPass(spvtools::CreateLocalSingleBlockLoadStoreElimPass())
      .RegisterPass(spvtools::CreateLocalSingleStoreElimPass())
      .RegisterPass(spvtools::CreateSSARewritePass())
      .RegisterPass(spvtools::CreateCCPPass())
      .RegisterPass(spvtools::CreateDeadBranchElimPass())
      .RegisterPass(spvtools::CreateCombineAccessChainsPass())
      .RegisterPass(spvtools::CreateSimplificationPass())
      .RegisterPass(spvtools::CreateVectorDCEPass())
      .RegisterPass(spvtools::CreateDeadInsertElimPass())
      .RegisterPass(spvtools::CreateAggressiveDCEPass())
      .RegisterPass(spvtools::CreateBlockMergePass());
}

/// Whether the words consist of a header and complete instructions.
bool has_form(const Spirv& spirv) {
  constexpr std::uint32_t magic = 0x07230203;
  if (spirv.size() < spirv_header_words || spirv[0] != magic) return false;
  std::size_t at = spirv_header_words;
  while (at < spirv.size() && spirv[at] >> 16 != 0) at += spirv[at] >> 16;
  return at == spirv.size();
}

/// Registers only the passes that keep private variables in registers; drivers do the rest.
void register_cautious_passes(spvtools::Optimizer& optimizer) {
  optimizer.RegisterPass(spvtools::CreateInlineExhaustivePass())
      .RegisterPass(spvtools::CreateEliminateDeadFunctionsPass())
      .RegisterPass(spvtools::CreatePrivateToLocalPass());
}

/// Validates and optimises a module.
Result<Spirv> finish(const KernelSource& source, const Spirv& spirv) {
  std::string log;
  spvtools::Optimizer optimizer(SPV_ENV_VULKAN_1_3);
  optimizer.SetMessageConsumer([&](spv_message_level_t level, const char*,
                                   const spv_position_t& position, const char* message) {
    const bool error = level <= SPV_MSG_ERROR;
    log += fmt::format("{}spirv-opt: {}: {}\n", error ? "ERROR: " : "", position.index, message);
  });
  // Some releases of spirv-opt break cooperative matrices (llama.cpp's issue 10734).
  const bool cautious = declares(spirv, SpirvCapability::cooperative_matrix_nv);
  cautious ? register_cautious_passes(optimizer) : register_passes(optimizer);
  spvtools::ValidatorOptions rules;
  rules.SetScalarBlockLayout(true);  // every usable device has this feature
  spvtools::OptimizerOptions options;
  options.set_validator_options(rules);
  Spirv optimised;
  if (!optimizer.Run(spirv.data(), spirv.size(), &optimised, options)) {
    return refused(source, std::move(log));
  }
  return optimised;
}

}  // namespace

const std::string& glsl_compiler_version() {
  static const std::string version =
      fmt::format("glslang {}.{}.{}, SPIRV-Tools {}", GLSLANG_VERSION_MAJOR, GLSLANG_VERSION_MINOR,
                  GLSLANG_VERSION_PATCH, spvSoftwareVersionString());
  return version;
}

Result<Spirv> compile_glsl(const KernelSource& source) {
  if (source.language != Language::glsl) {
    return refused(source,
                   fmt::format("ERROR: the language {} is not glsl", to_string(source.language)));
  }
  if (source.entry != "main") {
    return refused(source, fmt::format("ERROR: the entry {} is not main", source.entry));
  }
  auto spirv = translate(source);
  if (!spirv) return spirv;
  auto finished = finish(source, *spirv);
  const std::string khr = "-D" + matrix_macro(CooperativeMatrix::khr);
  const auto& options = source.options;
  const bool has_khr = std::find(options.begin(), options.end(), khr) != options.end();
  if (!finished || !has_khr || !declares(*finished, SpirvCapability::cooperative_matrix_nv))
    return finished;
  return to_khr_matrices(*finished);
}

Result<void> check_module(const Spirv& spirv) {
  if (!has_form(spirv)) return Failure{Status::compile, "no SPIR-V module", {}};
  if (declares(spirv, SpirvCapability::cooperative_matrix_khr)) return {};
  std::string log;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_3);
  tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t&,
                               const char* message) { log += fmt::format("{}\n", message); });
  spvtools::ValidatorOptions rules;
  rules.SetScalarBlockLayout(true);
  if (tools.Validate(spirv.data(), spirv.size(), rules)) return {};
  return Failure{Status::compile, "no valid SPIR-V: " + first_line(log), log};
}

}  // namespace greta::device::vulkan
