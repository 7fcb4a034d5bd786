#include "runtime/device/vulkan/spirv_info.hpp"

#include <algorithm>
#include <glslang/SPIRV/spirv.hpp>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace greta::device::vulkan {

namespace {

using Words = std::span<const std::uint32_t>;

/// The sizes of a module's types, collected while its instructions are read in order.
class Types {
 public:
  void define(std::uint32_t id, std::uint64_t size) { sizes_[id] = size; }
  void constant(std::uint32_t id, std::uint32_t value) { constants_[id] = value; }
  void offset(std::uint32_t type, std::uint32_t member, std::uint32_t bytes) {
    offsets_[{type, member}] = bytes;
  }
  void stride(std::uint32_t type, std::uint32_t bytes) { strides_[type] = bytes; }

  std::uint64_t size(std::uint32_t id) const { return find(sizes_, id); }
  std::uint32_t value(std::uint32_t constant) const {
    return static_cast<std::uint32_t>(find(constants_, constant));
  }

  void define_array(std::uint32_t id, std::uint32_t element, std::uint32_t length) {
    const std::uint64_t stride = find(strides_, id);
    define(id, find(constants_, length) * (stride != 0 ? stride : size(element)));
  }
  /// Computes the size from explicit offsets, or from packed members as in drivers' layout of
  /// shared memory, which adds at most 4-byte alignment to the sum.
  void define_struct(std::uint32_t id, Words members) {
    std::uint64_t end = 0;
    for (std::uint32_t member = 0; member < members.size(); ++member) {
      const auto offset = offsets_.find({id, member});
      const std::uint64_t start = offset != offsets_.end() ? offset->second : end;
      end = std::max(end, start + size(members[member]));
    }
    define(id, end);
  }

 private:
  template <typename Map>
  static std::uint64_t find(const Map& map, std::uint32_t id) {
    const auto found = map.find(id);
    return found == map.end() ? 0 : found->second;
  }

  std::unordered_map<std::uint32_t, std::uint64_t> sizes_;
  std::unordered_map<std::uint32_t, std::uint32_t> constants_;
  std::unordered_map<std::uint32_t, std::uint32_t> strides_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> offsets_;
};

/// Reads an instruction that defines a type, a constant or a decoration. Its operands follow the
/// word with opcode and length.
void read_type(Types& types, spv::Op opcode, Words operands) {
  switch (opcode) {
    case spv::OpTypeBool:
      return types.define(operands[0], 4);
    case spv::OpTypeInt:
    case spv::OpTypeFloat:
      return types.define(operands[0], operands[1] / 8);
    case spv::OpTypeVector:
    case spv::OpTypeMatrix:
      return types.define(operands[0], types.size(operands[1]) * operands[2]);
    case spv::OpTypeArray:
      return types.define_array(operands[0], operands[1], operands[2]);
    case spv::OpTypeStruct:
      return types.define_struct(operands[0], operands.subspan(1));
    case spv::OpConstant:
      return types.constant(operands[1], operands[2]);
    case spv::OpDecorate:
      if (operands[1] == spv::DecorationArrayStride) types.stride(operands[0], operands[2]);
      return;
    case spv::OpMemberDecorate:
      if (operands[2] == spv::DecorationOffset) {
        types.offset(operands[0], operands[1], operands[3]);
      }
      return;
    default:
      return;
  }
}

}  // namespace

bool declares(std::span<const std::uint32_t> spirv, SpirvCapability wanted) {
  constexpr std::uint32_t capability = 2U << 16 | 17U;  // OpCapability: two words, opcode 17
  // Capabilities come first in a module.
  for (std::size_t at = spirv_header_words; at + 1 < spirv.size() && spirv[at] == capability;
       at += 2) {
    if (spirv[at + 1] == static_cast<std::uint32_t>(wanted)) return true;
  }
  return false;
}

SpirvInfo inspect(Words spirv) {
  constexpr std::uint64_t pointer_bytes = 8;
  SpirvInfo info;
  Types types;
  std::unordered_map<std::uint32_t, std::uint32_t> pointees;
  std::array<std::uint32_t, 3> local_size_ids{};  // ids of constants that are defined later
  for (std::size_t at = spirv_header_words; at < spirv.size();) {
    const auto opcode = static_cast<spv::Op>(spirv[at] & spv::OpCodeMask);
    const std::size_t length = spirv[at] >> spv::WordCountShift;
    if (length == 0 || at + length > spirv.size()) break;
    const Words operands = spirv.subspan(at + 1, length - 1);
    at += length;
    if (opcode == spv::OpExecutionMode && operands[1] == spv::ExecutionModeLocalSize) {
      std::copy_n(operands.begin() + 2, 3, info.local_size.begin());
    } else if (opcode == spv::OpExecutionModeId && operands[1] == spv::ExecutionModeLocalSizeId) {
      std::copy_n(operands.begin() + 2, 3, local_size_ids.begin());
    } else if (opcode == spv::OpTypePointer) {
      pointees[operands[0]] = operands[2];
      types.define(operands[0], pointer_bytes);
    } else if (opcode == spv::OpTypeForwardPointer) {
      types.define(operands[0], pointer_bytes);
    } else if (opcode == spv::OpVariable) {
      const std::uint64_t bytes = types.size(pointees[operands[0]]);
      if (operands[2] == spv::StorageClassWorkgroup) info.shared_memory_bytes += bytes;
      if (operands[2] == spv::StorageClassPushConstant) info.push_constant_bytes = bytes;
    } else {
      read_type(types, opcode, operands);
    }
  }
  if (local_size_ids[0] != 0) {
    std::transform(local_size_ids.begin(), local_size_ids.end(), info.local_size.begin(),
                   [&](std::uint32_t id) { return types.value(id); });
  }
  return info;
}

}  // namespace greta::device::vulkan
