#include "runtime/device/hip/code_object.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "runtime/device/hip/elf_bytes.hpp"
#include "runtime/device/text/json_builder.hpp"

namespace greta::device::hip {
namespace {

using nlohmann::json;

constexpr std::string_view bundle_magic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view compressed_magic = "CCOB";
constexpr std::string_view note_owner{"AMDGPU\0", 7};
constexpr std::uint32_t metadata_note = 32;  // NT_AMDGPU_METADATA
// Compilers use five levels. The parser recurses for each.
constexpr std::size_t deepest_metadata = 32;

// EF_AMDGPU_MACH of the architectures in hardware/architectures.hpp.
constexpr std::array<std::pair<std::uint32_t, std::string_view>, 16> machines{{{0x2f, "gfx906"},
                                                                               {0x30, "gfx908"},
                                                                               {0x3f, "gfx90a"},
                                                                               {0x4c, "gfx942"},
                                                                               {0x4f, "gfx950"},
                                                                               {0x36, "gfx1030"},
                                                                               {0x37, "gfx1031"},
                                                                               {0x38, "gfx1032"},
                                                                               {0x41, "gfx1100"},
                                                                               {0x46, "gfx1101"},
                                                                               {0x47, "gfx1102"},
                                                                               {0x44, "gfx1103"},
                                                                               {0x43, "gfx1150"},
                                                                               {0x4a, "gfx1151"},
                                                                               {0x48, "gfx1200"},
                                                                               {0x4e, "gfx1201"}}};

/// Returns the metadata note in a segment of notes, or nothing if there is none.
Bytes find_metadata(Bytes notes) {
  const auto padded = [](std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; };
  std::uint64_t at = 0;
  while (const auto note = read<Elf64_Nhdr>(notes, at)) {
    const std::uint64_t name = at + sizeof(Elf64_Nhdr);
    const std::uint64_t description = name + padded(note->n_namesz);
    if (note->n_type == metadata_note && text(slice(notes, name, note->n_namesz)) == note_owner) {
      return slice(notes, description, note->n_descsz);
    }
    at = description + padded(note->n_descsz);
  }
  return {};
}

/// Parses MessagePack. Returns a discarded value if the input is not valid.
json parse_metadata(Bytes bytes) {
  const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
  JsonBuilder builder(deepest_metadata);
  if (!json::sax_parse(begin, begin + bytes.size(), &builder, json::input_format_t::msgpack)) {
    return json::value_t::discarded;
  }
  return std::move(builder.value());
}

/// Returns the metadata of one kernel, or nullptr.
const json* find_kernel(const json& metadata, const std::string& entry) {
  const auto kernels = metadata.find("amdhsa.kernels");
  if (kernels == metadata.end() || !kernels->is_array()) return nullptr;
  for (const json& kernel : *kernels) {
    const auto name = kernel.find(".name");
    if (name != kernel.end() && *name == entry) return &kernel;
  }
  return nullptr;
}

/// Returns the metadata of a code object.
Result<json> read_metadata(Bytes code_object) {
  const auto elf = elf_header(code_object, EM_AMDGPU);
  if (!elf) return invalid_argument("this is not an AMD code object");
  for (const auto& segment :
       headers<Elf64_Phdr>(code_object, elf->e_phoff, elf->e_phentsize, elf->e_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    const Bytes note = find_metadata(slice(code_object, segment.p_offset, segment.p_filesz));
    if (note.empty()) continue;
    return parse_metadata(note);
  }
  return invalid_argument("the code object has no metadata");
}

/// Returns the metadata of a kernel of a code object.
Result<json> read_kernel(Bytes code_object, const std::string& entry) {
  const auto metadata = read_metadata(code_object);
  if (!metadata) return metadata.failure();
  const json* const kernel = find_kernel(*metadata, entry);
  if (kernel != nullptr) return *kernel;
  return invalid_argument(fmt::format("the code object's metadata has no kernel {}", entry));
}

std::uint32_t number(const json& kernel, const char* key) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
  const auto found = kernel.find(key);
  if (found == kernel.end() || !found->is_number_unsigned()) return 0;
  return static_cast<std::uint32_t>(std::min(found->get<std::uint64_t>(), most));
}

/// Returns the size of a function's code in bytes, or 0 if the symbol table does not contain it.
std::uint32_t code_bytes(Bytes file, const Elf64_Ehdr& elf, const std::string& entry) {
  const auto found = find_function_symbol(file, section_headers(file, elf), entry);
  return found ? static_cast<std::uint32_t>(found->symbol.st_size) : 0;
}

/// Returns the bytes at an address of the loaded code object; empty if no segment has them.
Bytes at_address(Bytes file, const Elf64_Ehdr& elf, std::uint64_t address, std::uint64_t size) {
  for (const auto& segment : headers<Elf64_Phdr>(file, elf.e_phoff, elf.e_phentsize, elf.e_phnum)) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const std::uint64_t within = address - segment.p_vaddr;
    if (within > segment.p_filesz || size > segment.p_filesz - within) continue;
    return slice(slice(file, segment.p_offset, segment.p_filesz), within, size);
  }
  return {};
}

/// Whether a bundle's entry, e.g. "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-", is for an architecture.
bool is_for(std::string_view entry, std::string_view architecture) {
  if (!entry.starts_with("hip")) return false;  // the host's part
  const auto features = entry.find(':');
  const auto target = entry.substr(0, features);
  return target.substr(target.rfind('-') + 1) == architecture;
}

}  // namespace

Result<std::vector<std::byte>> extract_code_object(std::vector<std::byte> binary,
                                                   const std::string& architecture) {
  const Bytes all = binary;
  if (text(all).starts_with(ELFMAG)) return binary;
  if (text(all).starts_with(compressed_magic))
    return invalid_argument("a compressed offload bundle");
  if (!text(all).starts_with(bundle_magic)) {
    return invalid_argument(fmt::format("{} bytes that are not a code object", all.size()));
  }
  struct Entry {
    std::uint64_t offset, size, name_size;
  };
  std::uint64_t at = bundle_magic.size();
  const auto count = read<std::uint64_t>(all, at).value_or(0);
  at += sizeof count;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto entry = read<Entry>(all, at);
    if (!entry) break;
    at += sizeof(Entry);
    const auto name = text(slice(all, at, entry->name_size));
    const Bytes code = slice(all, entry->offset, entry->size);
    if (is_for(name, architecture) && text(code).starts_with(ELFMAG)) {
      return std::vector(code.begin(), code.end());
    }
    if (name.empty()) break;
    at += entry->name_size;
  }
  return invalid_argument("an offload bundle without a code object for " + architecture);
}

Result<KernelStatistics> read_statistics(std::span<const std::byte> code_object,
                                         const std::string& entry) {
  const auto kernel = read_kernel(code_object, entry);
  if (!kernel) return kernel.failure();
  KernelStatistics statistics;
  statistics.registers = number(*kernel, ".vgpr_count");
  statistics.accumulator_registers = number(*kernel, ".agpr_count");
  statistics.scalar_registers = number(*kernel, ".sgpr_count");
  statistics.shared_memory_bytes = number(*kernel, ".group_segment_fixed_size");
  statistics.scratch_bytes = number(*kernel, ".private_segment_fixed_size");
  statistics.spilled_registers = number(*kernel, ".vgpr_spill_count");
  statistics.spilled_scalar_registers = number(*kernel, ".sgpr_spill_count");
  statistics.code_bytes = code_bytes(code_object, *read<Elf64_Ehdr>(code_object, 0), entry);
  return statistics;
}

Result<KernelDescriptor> read_descriptor(std::span<const std::byte> code_object,
                                         const std::string& entry) {
  constexpr std::uint64_t size = 64, resources = 52, properties = 56;
  const auto elf = elf_header(code_object, EM_AMDGPU);
  if (!elf) return invalid_argument("this is not an AMD code object");
  const auto found =
      find_symbol(code_object, section_headers(code_object, *elf), entry + ".kd", STT_OBJECT);
  const Bytes bytes = found ? at_address(code_object, *elf, found->symbol.st_value, size) : Bytes();
  const auto resource = read<std::uint32_t>(bytes, resources);
  const auto property = read<std::uint16_t>(bytes, properties);
  if (!resource || !property) {
    return invalid_argument(fmt::format("the code object has no descriptor of {}", entry));
  }
  const auto has = [](std::uint32_t word, unsigned bit) { return (word >> bit & 1U) != 0; };
  KernelDescriptor descriptor;
  descriptor.private_segment_buffer = has(*property, 0);
  descriptor.dispatch_pointer = has(*property, 1);
  descriptor.queue_pointer = has(*property, 2);
  descriptor.argument_pointer = has(*property, 3);
  descriptor.dispatch_id = has(*property, 4);
  descriptor.flat_scratch = has(*property, 5);
  descriptor.private_segment_size = has(*property, 6);
  descriptor.user_registers = *resource >> 1 & 31U;
  for (unsigned i = 0; i < 3; ++i) descriptor.workgroup_id[i] = has(*resource, 7 + i);
  return descriptor;
}

Result<CodeObjectContents> read_contents(std::span<const std::byte> code_object) {
  const auto metadata = read_metadata(code_object);
  if (!metadata) return metadata.failure();
  CodeObjectContents contents;
  const std::uint32_t machine = read<Elf64_Ehdr>(code_object, 0)->e_flags & 0xFFU;
  const auto* const known =
      std::find_if(machines.begin(), machines.end(),
                   [machine](const auto& entry) { return entry.first == machine; });
  if (known == machines.end()) {
    return invalid_argument(
        fmt::format("a code object for an unknown architecture (EF_AMDGPU_MACH {:#x})", machine));
  }
  contents.architecture = known->second;
  const auto kernels = metadata->find("amdhsa.kernels");
  if (kernels == metadata->end() || !kernels->is_array()) return contents;
  for (const json& kernel : *kernels) {
    const auto name = kernel.find(".name");
    if (name == kernel.end() || !name->is_string()) continue;
    contents.kernels.push_back(
        {name->get<std::string>(), number(kernel, ".max_flat_workgroup_size")});
  }
  return contents;
}

Result<std::uint32_t> read_argument_bytes(std::span<const std::byte> code_object,
                                          const std::string& entry) {
  const auto kernel = read_kernel(code_object, entry);
  if (!kernel) return kernel.failure();
  const auto arguments = kernel->find(".args");
  if (arguments == kernel->end() || !arguments->is_array()) return 0U;
  std::uint64_t bytes = 0;
  for (const json& argument : *arguments) {
    const auto kind = argument.find(".value_kind");
    const bool hidden = kind != argument.end() && kind->is_string() &&
                        kind->get_ref<const std::string&>().starts_with("hidden_");
    if (hidden) continue;
    bytes = std::max(bytes, std::uint64_t{number(argument, ".offset")} + number(argument, ".size"));
  }
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, UINT32_MAX));
}

}  // namespace greta::device::hip
