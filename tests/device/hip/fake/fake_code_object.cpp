#include "tests/device/hip/fake/fake_code_object.hpp"

#include <elf.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tests/layers.hpp"

namespace greta::test {

namespace {

using nlohmann::json;

template <typename Type>
Type read(const std::vector<std::byte>& from, std::size_t at) {
  Type value;
  if (at > from.size() || from.size() - at < sizeof value) throw std::runtime_error("truncated");
  std::memcpy(&value, from.data() + at, sizeof value);
  return value;
}

std::string architecture_of(unsigned flags) {
  static const std::map<unsigned, std::string> machines{
      {0x3f, "gfx90a"},  {0x4c, "gfx942"},  {0x4f, "gfx950"},  {0x41, "gfx1100"},
      {0x46, "gfx1101"}, {0x47, "gfx1102"}, {0x44, "gfx1103"}, {0x4a, "gfx1151"},
      {0x48, "gfx1200"}, {0x4e, "gfx1201"}};
  const auto found = machines.find(flags & 0xff);
  return found == machines.end() ? "" : found->second;
}

/// Returns the metadata of the note that contains it.
json metadata_of(const std::vector<std::byte>& elf, const Elf64_Shdr& notes) {
  constexpr unsigned metadata_note = 32;
  const auto padded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
  for (std::size_t at = notes.sh_offset;
       at + sizeof(Elf64_Nhdr) <= notes.sh_offset + notes.sh_size;) {
    const auto note = read<Elf64_Nhdr>(elf, at);
    const std::size_t text = at + sizeof note + padded(note.n_namesz);
    if (note.n_type == metadata_note) {
      const auto* const bytes = reinterpret_cast<const std::uint8_t*>(elf.data()) + text;
      read<char>(elf, text + note.n_descsz - 1);
      return json::from_msgpack(bytes, bytes + note.n_descsz);
    }
    at = text + padded(note.n_descsz);
  }
  return {};
}

FakeKernel kernel_of(const json& told) {
  FakeKernel kernel;
  kernel.argument_bytes = told.at(".kernarg_segment_size");
  kernel.max_threads = told.at(".max_flat_workgroup_size");
  kernel.shared_bytes = told.at(".group_segment_fixed_size");
  kernel.scratch_bytes = told.at(".private_segment_fixed_size");
  kernel.registers = told.at(".vgpr_count");
  for (const json& one : told.value(".args", json::array())) {
    const std::string kind = one.at(".value_kind");
    if (kind.starts_with("hidden_")) continue;
    kernel.parameters.push_back({one.at(".offset"), one.at(".size"), kind == "global_buffer"});
  }
  return kernel;
}

}  // namespace

FakeCodeObject read_code_object(const std::vector<std::byte>& elf) {
  constexpr unsigned amd_gpu = 224;
  const auto header = read<Elf64_Ehdr>(elf, 0);
  if (header.e_machine != amd_gpu) throw std::runtime_error("not for AMD GPUs");
  FakeCodeObject code{architecture_of(header.e_flags), {}};
  for (std::size_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_NOTE) continue;
    const json metadata = metadata_of(elf, section);
    if (!metadata.is_object()) continue;
    for (const json& kernel : metadata.at("amdhsa.kernels")) {
      code.kernels[kernel.at(".name")] = kernel_of(kernel);
    }
  }
  return code;
}

}  // namespace greta::test
