#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::device::hip {

// Functions that read ELF files with arbitrary content. None of them reads past the end.

using Bytes = std::span<const std::byte>;

/// Returns a part of `bytes`, or nothing if it would reach past their end.
inline Bytes slice(Bytes bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) return {};
  return bytes.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

template <typename T>
std::optional<T> read(Bytes bytes, std::uint64_t offset) {
  const Bytes part = slice(bytes, offset, sizeof(T));
  if (part.empty()) return std::nullopt;
  T value;
  std::memcpy(&value, part.data(), sizeof(T));
  return value;
}

inline std::string_view text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns the string at an offset of a string table.
inline std::string_view string_at(Bytes table, std::uint64_t offset) {
  const std::string_view all = text(table);
  if (offset >= all.size()) return {};
  const auto rest = all.substr(static_cast<std::size_t>(offset));
  return rest.substr(0, rest.find('\0'));
}

/// Returns the header of a little-endian 64-bit ELF file for a machine, or nothing.
inline std::optional<Elf64_Ehdr> elf_header(Bytes file, Elf64_Half machine) {
  const auto elf = read<Elf64_Ehdr>(file, 0);
  if (!elf || !text(file).starts_with(ELFMAG) || elf->e_ident[EI_CLASS] != ELFCLASS64 ||
      elf->e_ident[EI_DATA] != ELFDATA2LSB || elf->e_machine != machine) {
    return std::nullopt;
  }
  return elf;
}

/// Returns the entries of a header table without those that lie outside of the file.
template <typename Header>
std::vector<Header> headers(Bytes file, std::uint64_t offset, unsigned entry_size, unsigned count) {
  std::vector<Header> found;
  if (entry_size != sizeof(Header)) return found;
  for (unsigned i = 0; i < count; ++i) {
    const auto header = read<Header>(file, offset + std::uint64_t{i} * sizeof(Header));
    if (!header) break;
    found.push_back(*header);
  }
  return found;
}

inline std::vector<Elf64_Shdr> section_headers(Bytes file, const Elf64_Ehdr& elf) {
  return headers<Elf64_Shdr>(file, elf.e_shoff, elf.e_shentsize, elf.e_shnum);
}

/// Whether this is a 64-bit ELF file, for any machine, that contains everything that its headers
/// refer to. Drivers do not check this themselves.
inline bool is_whole_elf(Bytes file) {
  const auto elf = read<Elf64_Ehdr>(file, 0);
  if (!elf || !text(file).starts_with(ELFMAG) || elf->e_ident[EI_CLASS] != ELFCLASS64) return false;
  const auto sections = section_headers(file, *elf);
  const auto segments = headers<Elf64_Phdr>(file, elf->e_phoff, elf->e_phentsize, elf->e_phnum);
  if (sections.size() != elf->e_shnum || segments.size() != elf->e_phnum) return false;
  const auto inside = [&file](std::uint64_t offset, std::uint64_t size) {
    return offset <= file.size() && size <= file.size() - offset;
  };
  for (const auto& section : sections) {
    if (section.sh_type == SHT_NOBITS) continue;
    if (!inside(section.sh_offset, section.sh_size)) return false;
  }
  for (const auto& segment : segments) {
    if (!inside(segment.p_offset, segment.p_filesz)) return false;
  }
  return true;
}

/// A symbol and its index in its table.
struct FoundSymbol {
  Elf64_Sym symbol;
  std::uint32_t index;
};

/// Calls take(symbol, name) with the symbols of a type (STT_FUNC, STT_OBJECT) in all symbol tables,
/// until it returns true.
template <typename Take>
void find_in_symbols(Bytes file, const std::vector<Elf64_Shdr>& sections, unsigned type,
                     const Take& take) {
  for (const auto& section : sections) {
    if (section.sh_type != SHT_DYNSYM && section.sh_type != SHT_SYMTAB) continue;
    if (section.sh_link >= sections.size()) continue;
    const auto& names = sections[section.sh_link];
    const Bytes table = slice(file, names.sh_offset, names.sh_size);
    const Bytes symbols = slice(file, section.sh_offset, section.sh_size);
    std::uint32_t index = 0;
    while (const auto symbol = read<Elf64_Sym>(symbols, index * sizeof(Elf64_Sym))) {
      const bool wanted = ELF64_ST_TYPE(symbol->st_info) == type;
      if (wanted && take(FoundSymbol{*symbol, index}, string_at(table, symbol->st_name))) return;
      ++index;
    }
  }
}

/// Finds a symbol of a type by its name. Returns nothing if no symbol table contains it.
inline std::optional<FoundSymbol> find_symbol(Bytes file, const std::vector<Elf64_Shdr>& sections,
                                              std::string_view name, unsigned type) {
  std::optional<FoundSymbol> result;
  find_in_symbols(file, sections, type, [&](const FoundSymbol& found, std::string_view its_name) {
    if (its_name == name) result = found;
    return result.has_value();
  });
  return result;
}

/// Finds a function by its name. Returns nothing if no symbol table contains it.
inline std::optional<FoundSymbol> find_function_symbol(Bytes file,
                                                       const std::vector<Elf64_Shdr>& sections,
                                                       std::string_view name) {
  return find_symbol(file, sections, name, STT_FUNC);
}

}  // namespace greta::device::hip
