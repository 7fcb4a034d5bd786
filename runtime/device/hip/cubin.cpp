#include "runtime/device/hip/cubin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "runtime/device/hip/elf_bytes.hpp"

namespace greta::device::hip {
namespace {

constexpr Elf64_Half cuda_machine = 190;  // EM_CUDA
constexpr std::uint64_t instruction_bytes = 16;
// From compute capability 9.0 on, the size of a workgroup's shared memory section includes the part
// that the system reserves. The presence of this section indicates that.
constexpr std::string_view reserved_section = ".nv.shared.reserved.0";
constexpr std::uint64_t reserved_bytes = 1024;

/// An entry of .nv.info. In the format `words`, `size` bytes follow the header. Other formats have
/// no data after it.
struct InfoHeader {
  std::uint8_t format, attribute;
  std::uint16_t size;
};
constexpr std::uint8_t words = 4;  // EIFMT_SVAL

enum Attribute : std::uint8_t {
  frame_size = 0x11,      // EIATTR_FRAME_SIZE: for the function alone
  min_stack_size = 0x12,  // EIATTR_MIN_STACK_SIZE: including callees
  register_count = 0x2f,  // EIATTR_REGCOUNT
};

/// The data of some attributes: a number for a function.
struct FunctionNumber {
  std::uint32_t symbol, number;
};

struct Cubin {
  Bytes file;
  std::vector<Elf64_Shdr> sections;
  Bytes names;  ///< section names

  const Elf64_Shdr* section(std::string_view name) const {
    const auto found = std::find_if(
        sections.begin(), sections.end(),
        [&](const Elf64_Shdr& header) { return string_at(names, header.sh_name) == name; });
    return found == sections.end() ? nullptr : &*found;
  }

  /// Returns a section's contents, which are empty for SHT_NOBITS.
  Bytes contents(const Elf64_Shdr& header) const {
    return header.sh_type == SHT_NOBITS ? Bytes() : slice(file, header.sh_offset, header.sh_size);
  }

  /// Returns the value of a function's attribute in .nv.info.
  std::optional<std::uint32_t> number(Attribute attribute, std::uint32_t symbol) const {
    const Elf64_Shdr* const info = section(".nv.info");
    if (info == nullptr) return std::nullopt;
    const Bytes entries = contents(*info);
    std::uint64_t at = 0;
    while (const auto entry = read<InfoHeader>(entries, at)) {
      at += sizeof(InfoHeader);
      if (entry->format != words) continue;
      const auto value = read<FunctionNumber>(entries, at);
      if (entry->attribute == attribute && value && value->symbol == symbol) return value->number;
      at += entry->size;
    }
    return std::nullopt;
  }
};

/// Whether an instruction is HMMA, IMMA or DMMA, or of warpgroups HGMMA, IGMMA or QGMMA (of fp8),
/// whatever its operands. The opcode is in the first nine bits.
bool is_matrix_instruction(std::uint16_t start) {
  constexpr unsigned hmma = 0x3c, imma = 0x37, dmma = 0x3f, hgmma = 0x1f0;
  constexpr unsigned igmma = 0x1f1, qgmma = 0x1f3;
  const unsigned opcode = start & 0x1ffU;
  return opcode == hmma || opcode == imma || opcode == dmma || opcode == hgmma || opcode == igmma ||
         opcode == qgmma;
}

std::uint32_t count_matrix_instructions(Bytes code) {
  std::uint32_t count = 0;
  for (std::uint64_t at = 0; const auto start = read<std::uint16_t>(code, at);
       at += instruction_bytes) {
    if (is_matrix_instruction(*start)) ++count;
  }
  return count;
}

std::uint32_t shared_memory_bytes(const Cubin& cubin, const std::string& entry) {
  const Elf64_Shdr* const own = cubin.section(".nv.shared." + entry);
  if (own == nullptr) return 0;
  const std::uint64_t reserved = cubin.section(reserved_section) == nullptr ? 0 : reserved_bytes;
  return static_cast<std::uint32_t>(own->sh_size - std::min(own->sh_size, reserved));
}

}  // namespace

Result<KernelStatistics> read_cubin_statistics(std::span<const std::byte> file,
                                               const std::string& entry) {
  const auto elf = elf_header(file, cuda_machine);
  if (!elf) return invalid_argument("this is not a cubin");
  Cubin cubin{file, section_headers(file, *elf), {}};
  if (elf->e_shstrndx < cubin.sections.size()) {
    cubin.names = cubin.contents(cubin.sections[elf->e_shstrndx]);
  }
  const auto kernel = find_function_symbol(file, cubin.sections, entry);
  if (!kernel || kernel->symbol.st_shndx >= cubin.sections.size()) {
    return invalid_argument(fmt::format("the cubin has no kernel {}", entry));
  }
  const Elf64_Shdr& code_section = cubin.sections[kernel->symbol.st_shndx];
  const Bytes code =
      slice(cubin.contents(code_section), kernel->symbol.st_value, kernel->symbol.st_size);
  const auto registers = cubin.number(register_count, kernel->index);
  if (code.empty() || !registers) {
    return invalid_argument(fmt::format("the cubin lacks the {} of {}",
                                        code.empty() ? "code" : "number of registers", entry));
  }
  KernelStatistics statistics;
  statistics.registers = *registers;
  statistics.scratch_bytes = std::max(cubin.number(frame_size, kernel->index).value_or(0),
                                      cubin.number(min_stack_size, kernel->index).value_or(0));
  statistics.shared_memory_bytes = shared_memory_bytes(cubin, entry);
  statistics.code_bytes = static_cast<std::uint32_t>(code.size());
  statistics.matrix_instructions = count_matrix_instructions(code);
  return statistics;
}

}  // namespace greta::device::hip
