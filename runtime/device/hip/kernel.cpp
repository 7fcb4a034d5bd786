#include "runtime/device/hip/kernel.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/hardware/architectures.hpp"
#include "runtime/device/hip/entry_symbol.hpp"
#include "runtime/device/launch_checks.hpp"
#include "runtime/device/telemetry.hpp"
#include "runtime/device/text/hash.hpp"

namespace greta::device::hip {

namespace {

[[noreturn]] void refuse(const KernelSource& source, const std::string& why) {
  throw Refusal(Status::compile, fmt::format("{}: {}", source.name, why));
}

std::uint32_t attribute(const Context& context, hipFunction_t function, int number) {
  int value = 0;
  context.check(context.functions().hipFuncGetAttribute(&value, number, function),
                "hipFuncGetAttribute");
  return static_cast<std::uint32_t>(value);
}

bool is_about_the_image(hipError_t error) {
  return error == hipErrorInvalidImage || error == hipErrorNoBinaryForGpu ||
         error == hipErrorInvalidKernelFile || error == 222;  // PTX from a newer compiler
}

Constant find_constant(const Context& context, const KernelSource& source, hipModule_t loaded,
                       const std::string& name) {
  Constant constant;
  void* address = nullptr;
  const hipError_t error =
      context.functions().hipModuleGetGlobal(&address, &constant.bytes, loaded, name.c_str());
  if (error == hipErrorNotFound) {
    refuse(source, fmt::format("there is no variable \"{}\" in constant memory", name));
  }
  context.check(error, "hipModuleGetGlobal");
  constant.address = static_cast<std::byte*>(address);
  return constant;
}

/// Loads a code object and finds the kernel in it.
std::shared_ptr<Function> find_function(const std::shared_ptr<Context>& context,
                                        const KernelSource& source,
                                        std::span<const std::byte> code_object) {
  const Functions& hip = context->functions();
  hipModule_t loaded = nullptr;
  hipError_t error = hip.hipModuleLoadData(&loaded, code_object.data());
  if (is_about_the_image(error)) {
    refuse(source, fmt::format("the driver does not take its code object for {}: {}",
                               context->info().architecture, describe_error(hip, error)));
  }
  context->check(error, "hipModuleLoadData");
  auto function = std::make_shared<Function>();
  function->code_object.assign(code_object.begin(), code_object.end());
  function->owner = {context, loaded};
  error = hip.hipModuleGetFunction(&function->handle, loaded, source.entry.c_str());
  if (error == hipErrorNotFound) {
    refuse(source, fmt::format("there is no kernel \"{}\" in it", source.entry));
  }
  context->check(error, "hipModuleGetFunction");
  for (const std::string& name : source.constants) {
    function->constants.push_back(find_constant(*context, source, loaded, name));
  }
  function->block = source.block;
  function->argument_bytes = source.argument_bytes;
  function->argument_offsets = source.argument_offsets;
  function->dynamic_shared_bytes = source.dynamic_shared_bytes;
  function->may_overlap = source.awaits_launches && hip.launch_overlapping &&
                          overlaps_launches(context->info().architecture);
  return function;
}

/// Reads the kernel's statistics from the code object. This also validates it before a driver uses
/// it.
KernelStatistics read_statistics(const Context& context, const KernelSource& source,
                                 std::span<const std::byte> code_object) {
  if (code_object.empty()) refuse(source, "an empty code object");
  const auto& read = context.platform().read_statistics;
  if (!read) return {};
  const auto statistics = read(code_object, source.entry);
  if (!statistics) refuse(source, statistics.failure().message);
  return *statistics;
}

/// Adds the values that only the driver reports, and the dynamic shared memory of the launch.
void complete_statistics(KernelStatistics& statistics, const Context& context,
                         const Function& function) {
  if (!context.platform().read_statistics) {
    const hipFunction_t handle = function.handle;
    statistics.registers = attribute(context, handle, HIP_FUNC_ATTRIBUTE_NUM_REGS);
    statistics.scratch_bytes = attribute(context, handle, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    statistics.shared_memory_bytes =
        attribute(context, handle, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  }
  statistics.shared_memory_bytes += function.dynamic_shared_bytes;
}

/// Compares the kernel's requirements with the device's limits and the source's declarations.
void check_resources(const Context& context, const KernelSource& source, const Function& function,
                     const KernelStatistics& needs, std::optional<std::uint32_t> argument_bytes) {
  // Where the driver places arguments by its own rule, tensor maps may lie that much further on.
  const std::uint32_t shifted =
      source.argument_offsets.empty() ? 0 : std::uint32_t{tensor_map_alignment};
  if (argument_bytes && *argument_bytes > source.argument_bytes + shifted) {
    refuse(source, fmt::format("the text declares {} bytes of arguments, its source says {}",
                               *argument_bytes, source.argument_bytes));
  }
  if (needs.shared_memory_bytes > context.info().shared_memory_bytes) {
    refuse(source, fmt::format("{} bytes of shared memory, the device has {}",
                               needs.shared_memory_bytes, context.info().shared_memory_bytes));
  }
  const std::uint64_t threads = std::uint64_t{source.block[0]} * source.block[1] * source.block[2];
  const std::uint32_t most =
      attribute(context, function.handle, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  if (threads > most) {
    refuse(source, fmt::format("a workgroup of {}, its code allows {} threads",
                               fmt::join(source.block, "x"), most));
  }
  const auto& allow = context.functions().allow_resources;
  if (source.dynamic_shared_bytes != 0 && allow) {
    context.check(allow(function.handle, static_cast<int>(source.dynamic_shared_bytes)),
                  "hipFuncSetAttribute");
  }
}

std::unique_ptr<HipKernel> make_kernel(const std::shared_ptr<Context>& context,
                                       const KernelSource& written, std::string key,
                                       bool from_cache, std::span<const std::byte> code_object) {
  KernelSource source = written;
  if (!context->info().is_cpu()) source.entry = entry_symbol(code_object, written.entry);
  auto statistics = read_statistics(*context, source, code_object);
  auto function = find_function(context, source, code_object);
  complete_statistics(statistics, *context, *function);
  check_resources(*context, source, *function, statistics,
                  context->platform().argument_bytes(code_object, source.entry, function->handle));
  return std::make_unique<HipKernel>(context, std::move(key), from_cache, std::move(function),
                                     statistics);
}

/// Returns the number of slices of K that a product's only option sets: "SPLITK=2"; 0: none.
std::uint32_t slices_of(const KernelSource& product) {
  constexpr std::string_view name = "SPLITK=";
  if (product.options.empty()) return 0;
  const std::string& option = product.options.front();
  std::uint32_t slices = 0;
  const char* const end = option.data() + option.size();
  if (product.options.size() > 1 || !option.starts_with(name) ||
      std::from_chars(option.data() + name.size(), end, slices).ptr != end) {
    throw Refusal(Status::invalid_argument, fmt::format("a product has no option {}", option));
  }
  return slices;
}

std::unique_ptr<const PreparedCall> prepared(const Context& context, const KernelSource& source) {
  if (const auto* const attention = std::get_if<AttentionCall>(&*source.call)) {
    return context.attention_library()->prepare(*attention, context.functions());
  }
  return std::make_unique<PreparedProduct>(
      context.matrix_library(), std::get<MatrixProduct>(*source.call), slices_of(source));
}

/// Returns a call of a vendor's library as a kernel.
std::unique_ptr<HipKernel> prepare_call(const std::shared_ptr<Context>& context,
                                        const KernelSource& source) {
  const StallWatch preparing(StallWatch::unlimited);  // the library loads its kernels
  auto function = std::make_shared<Function>();
  // Nothing of a lost device may be destroyed.
  const auto destroy = [context](const PreparedCall* call) {
    if (!context->lost() && context->set_device() == hipSuccess) delete call;
  };
  function->call = {prepared(*context, source).release(), destroy};
  function->block = source.block;
  function->argument_bytes = source.argument_bytes;
  return std::make_unique<HipKernel>(
      context,
      source.content_key(library_of(*source.call, context->info()), context->info().architecture),
      false, std::move(function), KernelStatistics{});
}

}  // namespace

Result<std::string> HipKernel::listing() const {
  if (function_->call) {
    std::string algorithm = function_->call->algorithm();
    return algorithm.empty() ? Kernel::listing() : Result<std::string>(std::move(algorithm));
  }
  const auto& disassemble = context_->platform().disassemble;
  return disassemble ? disassemble(function_->code_object, context_->options()) : Kernel::listing();
}

std::unique_ptr<HipKernel> compile(const std::shared_ptr<Context>& context, Compiler& compiler,
                                   KernelCache& cache, const KernelSource& source) {
  const telemetry::Span span("device.compile");
  const std::string& architecture = context->info().architecture;
  check_source(context->info(), source);
  std::string key = source.content_key(compiler.version(), architecture);
  auto binary = cache.load(key);
  const bool from_cache = binary.has_value();
  telemetry::count(from_cache ? "device.cache_hits" : "device.cache_misses");
  if (!from_cache) {
    const StallWatch compiling(StallWatch::unlimited);  // compilers have their own deadline
    auto compiled = compiler.compile(source, architecture);
    if (!compiled) throw Refusal(compiled.failure());
    binary = std::move(compiled->binary);
  }
  auto kernel = make_kernel(context, source, key, from_cache, *binary);
  if (!from_cache) cache.store(key, *binary);
  return kernel;
}

std::unique_ptr<HipKernel> load(const std::shared_ptr<Context>& context, const KernelSource& source,
                                std::span<const std::byte> code_object) {
  KernelSource described = source;
  described.language = context->info().language;
  check_source(context->info(), described);
  if (source.call) return prepare_call(context, source);
  Hash hash;
  hash.add(source.entry);
  hash.add({reinterpret_cast<const char*>(code_object.data()), code_object.size()});
  return make_kernel(context, source, hash.hex(), false, code_object);
}

}  // namespace greta::device::hip
