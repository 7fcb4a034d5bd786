#include "runtime/device/vulkan/khr_matrices.hpp"

#include <fmt/format.h>

#include <array>
#include <glslang/SPIRV/spirv.hpp>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/device/vulkan/spirv_info.hpp"

namespace greta::device::vulkan {

namespace {

using Words = std::span<const std::uint32_t>;

// Values that the SPIR-V header of glslang 12 lacks.
enum Khr : std::uint32_t {
  op_type_matrix = 4456,
  op_load = 4457,
  op_store = 4458,
  op_multiply_add = 4459,
  op_length = 4460,
  capability_matrix = 6022,
  capability_bf16_type = 5116,
  capability_bf16_matrix = 5118,
  encoding_bf16 = 0,
  use_a = 0,
  use_b = 1,
  use_accumulator = 2,
  row_major = 0,
  column_major = 1,
};

constexpr std::size_t bound_at = 3;  // index in the header; all ids are smaller than this word
constexpr std::string_view nv_extension = "SPV_NV_cooperative_matrix";

std::string_view text_of(Words words) {
  return reinterpret_cast<const char*>(words.data());  // the string is zero-terminated
}

/// Reads a module's instructions in order and writes those of the converted module.
class MatrixTranslation {
 public:
  explicit MatrixTranslation(const std::vector<std::uint32_t>& spirv)
      : in_(spirv), out_(spirv.begin(), spirv.begin() + spirv_header_words) {}

  Result<std::vector<std::uint32_t>> run() {
    for (std::size_t at = spirv_header_words; at < in_.size();) {
      const std::uint32_t length = in_[at] >> 16U;
      if (length == 0 || at + length > in_.size()) return refuse("a broken instruction");
      const Words instruction = Words(in_).subspan(at, length);
      const auto op = static_cast<spv::Op>(in_[at] & 0xFFFFU);
      if (auto done = translate(op, instruction.subspan(1)); !done) return done.failure();
      if (!written_) out_.insert(out_.end(), instruction.begin(), instruction.end());
      at += length;
    }
    return std::move(out_);
  }

 private:
  static Failure refuse(std::string_view what) {
    const std::string message = fmt::format("can't make KHR cooperative matrices: {}", what);
    return {Status::compile, message, message};
  }

  void write(std::uint32_t op, const std::vector<std::uint32_t>& operands) {
    const auto length = static_cast<std::uint32_t>(operands.size() + 1);
    out_.push_back(length << 16U | op);
    out_.insert(out_.end(), operands.begin(), operands.end());
    written_ = true;
  }
  void write_extension(std::string_view name) {
    std::vector<std::uint32_t> words(name.size() / 4 + 1);
    name.copy(reinterpret_cast<char*>(words.data()), name.size());
    write(spv::OpExtension, words);
  }

  std::uint32_t new_id() { return out_[bound_at]++; }

  /// Sets written_ if the instruction is replaced or dropped.
  Result<void> translate(spv::Op op, Words w) {
    written_ = false;
    switch (op) {
      case spv::OpCapability:
        if (w[0] == spv::CapabilityCooperativeMatrixNV) write_capabilities();
        return {};
      case spv::OpExtension:
        if (text_of(w) == nv_extension) write_extensions();
        return {};
      case spv::OpDecorate:
        if (w[1] == spv::DecorationSpecId) roles_[w[0]] = MatrixRole{w[2]};
        written_ = w[1] == spv::DecorationSpecId;  // no SpecId remains
        return {};
      case spv::OpTypeInt:
        if (w[1] == 32 && w[2] == 0) write_constants(w);
        return {};
      case spv::OpTypeFloat:
        if (w[1] == 32) f32_ = w[0];
        if (w[1] == 16) f16_ = w[0];
        return {};
      case spv::OpSpecConstant:
        write(spv::OpConstant, {w.begin(), w.end()});
        return {};
      case spv::OpConstantTrue:
      case spv::OpConstantFalse:
        layouts_[w[1]] = op == spv::OpConstantTrue ? column_major : row_major;
        return {};
      default:
        return translate_matrices(op, w);
    }
  }

  Result<void> translate_matrices(spv::Op op, Words w) {
    switch (op) {
      case spv::OpTypeCooperativeMatrixNV:
        return write_type(w);
      case spv::OpCooperativeMatrixLoadNV:  // type, id, pointer, stride, order, access
        return write_access(op_load, w.first(3), w[3], w[4], w.subspan(5));
      case spv::OpCooperativeMatrixStoreNV:  // pointer, object, stride, order, access
        return write_access(op_store, w.first(2), w[2], w[3], w.subspan(4));
      case spv::OpCooperativeMatrixMulAddNV:
        write(op_multiply_add, {w.begin(), w.end()});
        return {};
      case spv::OpCooperativeMatrixLengthNV:
        write(op_length, {w.begin(), w.end()});
        return {};
      default:
        return {};
    }
  }

  /// Searches the module ahead, because roles are decorations, which come after capabilities and
  /// extensions.
  bool find_bf16() const {
    for (std::size_t at = spirv_header_words; at < in_.size() && in_[at] >> 16U != 0;
         at += in_[at] >> 16U) {
      if (in_[at] == (4U << 16U | spv::OpDecorate) && in_[at + 2] == spv::DecorationSpecId &&
          in_[at + 3] >= static_cast<std::uint32_t>(MatrixRole::a_bf16)) {
        return true;
      }
    }
    return false;
  }

  void write_capabilities() {
    write(spv::OpCapability, {capability_matrix});
    if (!has_bf16_) return;
    write(spv::OpCapability, {capability_bf16_type});
    write(spv::OpCapability, {capability_bf16_matrix});
  }
  void write_extensions() {
    write_extension("SPV_KHR_cooperative_matrix");
    if (has_bf16_) write_extension("SPV_KHR_bfloat16");
  }

  /// Writes the type of unsigned integers and the constants that the instructions use.
  void write_constants(Words u32) {
    write(spv::OpTypeInt, {u32.begin(), u32.end()});
    for (std::uint32_t value = 0; value < constants_.size(); ++value) {
      constants_[value] = new_id();
      write(spv::OpConstant, {u32[0], constants_[value], value});
    }
  }

  bool has_role(std::uint32_t constant, MatrixRole f16, MatrixRole bf16) const {
    const auto found = roles_.find(constant);
    return found != roles_.end() && (found->second == f16 || found->second == bf16);
  }

  Result<void> write_type(Words w) {  // id, element, scope, rows, columns
    const bool is_a = has_role(w[3], MatrixRole::a_f16, MatrixRole::a_bf16);
    const bool is_b = has_role(w[4], MatrixRole::b_f16, MatrixRole::b_bf16);
    if (is_a == is_b ? is_a || w[1] != f32_ : w[1] != f16_) {
      return refuse(
          "a matrix that is neither an operand of 16 bits with one role nor a sum of f32");
    }
    const bool bf16 = (is_a && roles_[w[3]] == MatrixRole::a_bf16) ||
                      (is_b && roles_[w[4]] == MatrixRole::b_bf16);
    if (bf16 && bf16_ == 0) {
      bf16_ = new_id();
      write(spv::OpTypeFloat, {bf16_, 16, encoding_bf16});
    }
    const std::uint32_t use = is_a ? use_a : is_b ? use_b : use_accumulator;
    write(op_type_matrix, {w[0], bf16 ? bf16_ : w[1], w[2], w[3], w[4], constants_[use]});
    return {};
  }

  Result<void> write_access(std::uint32_t op, Words first, std::uint32_t stride,
                            std::uint32_t order, Words access) {
    const auto found = layouts_.find(order);
    if (found == layouts_.end()) return refuse("an order of elements that is not constant");
    std::vector<std::uint32_t> operands(first.begin(), first.end());
    operands.push_back(constants_[found->second]);
    operands.push_back(stride);
    operands.insert(operands.end(), access.begin(), access.end());
    write(op, operands);
    return {};
  }

  const std::vector<std::uint32_t>& in_;
  const bool has_bf16_ = find_bf16();
  std::vector<std::uint32_t> out_;
  bool written_ = false;
  std::uint32_t f32_ = 0, f16_ = 0, bf16_ = 0;      // ids of types
  std::array<std::uint32_t, 3> constants_{};        // ids of the constants 0, 1 and 2
  std::map<std::uint32_t, MatrixRole> roles_;       // by id of the constant
  std::map<std::uint32_t, std::uint32_t> layouts_;  // layouts by id of the boolean constant
};

}  // namespace

Result<std::vector<std::uint32_t>> to_khr_matrices(const std::vector<std::uint32_t>& spirv) {
  return MatrixTranslation(spirv).run();
}

}  // namespace greta::device::vulkan
