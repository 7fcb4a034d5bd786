#include "runtime/device/hip/host/elf_image.hpp"

#include <elf.h>

#include <cstring>
#include <string_view>
#include <utility>

namespace greta::device::hip::host {
namespace {

#if defined(__aarch64__)
constexpr Elf64_Half this_machine = EM_AARCH64;
#elif defined(__x86_64__)
constexpr Elf64_Half this_machine = EM_X86_64;
#elif defined(__riscv)
constexpr Elf64_Half this_machine = EM_RISCV;
#elif defined(__powerpc64__)
constexpr Elf64_Half this_machine = EM_PPC64;
#else
#error "hip-host does not know this processor"
#endif

constexpr std::string_view constant_section = "greta_constant";  // of __constant__ in thread.hpp

template <typename T>
T read(const void* image, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(image) + offset, sizeof value);
  return value;
}

Elf64_Shdr section(const void* image, std::size_t index) {
  const auto header = read<Elf64_Ehdr>(image, 0);
  return read<Elf64_Shdr>(image, header.e_shoff + index * header.e_shentsize);
}

std::string_view text(const void* image, const Elf64_Shdr& strings, std::size_t offset) {
  return static_cast<const char*>(image) + strings.sh_offset + offset;
}

/// Whether a symbol belongs to the language header, not to the kernel's text.
bool is_of_header(std::string_view name) {
  for (const char* prefix : {"greta_host_", "_ZN10greta_host", "__odr_asan", "__asan"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

/// Adds an object. `where` is the section's name. Variables within functions are named _ZZ…
void add_object(ElfSummary& summary, std::string_view where, ElfVariable variable) {
  const std::string_view name = variable.name;
  if (where == ".bss" && name == "greta_host_dynamic") summary.shared.push_back(variable);
  if (is_of_header(name)) return;
  if (where == constant_section) {
    summary.constants.push_back(std::move(variable));
  } else if (where == ".bss" && name.starts_with("_ZZ")) {
    summary.shared_bytes += static_cast<std::uint32_t>(variable.bytes);
    summary.shared.push_back(std::move(variable));
  } else if (where == ".bss" || where == ".data") {
    summary.variables.push_back(std::move(variable.name));
  }
}

}  // namespace

bool is_library(const void* image) {
  const auto header = read<Elf64_Ehdr>(image, 0);
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
         header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_type == ET_DYN &&
         header.e_machine == this_machine;
}

std::size_t library_bytes(const void* image) {
  const auto header = read<Elf64_Ehdr>(image, 0);
  return header.e_shoff + static_cast<std::size_t>(header.e_shnum) * header.e_shentsize;
}

ElfSummary summarise(std::span<const std::byte> library) {
  const void* const image = library.data();
  ElfSummary summary;
  std::uint64_t shared_start = 0;
  const auto header = read<Elf64_Ehdr>(image, 0);
  const Elf64_Shdr section_names = section(image, header.e_shstrndx);
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr table = section(image, i);
    if (table.sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr names = section(image, table.sh_link);
    for (std::size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read<Elf64_Sym>(image, table.sh_offset + at);
      const std::string_view name = text(image, names, symbol.st_name);
      if (name == "__asan_init") summary.sanitized = true;
      if (name == "__asan_init" || name == "__tsan_init") summary.symbolized = true;
      if (name == "__bss_start") shared_start = symbol.st_value;
      if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx >= SHN_LORESERVE) continue;
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      if (type == STT_FUNC) summary.code_bytes += static_cast<std::uint32_t>(symbol.st_size);
      if (type != STT_OBJECT) continue;
      const auto where = section(image, symbol.st_shndx);
      add_object(summary, text(image, section_names, where.sh_name),
                 {std::string(name), symbol.st_value, symbol.st_size});
    }
  }
  for (ElfVariable& variable : summary.shared) variable.at -= shared_start;
  return summary;
}

}  // namespace greta::device::hip::host
