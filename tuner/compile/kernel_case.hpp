#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "kernels/catalog.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"
#include "tuner/compile/compiled_choice.hpp"

namespace greta::tuner {

/// Memory of a case: what it holds before the first launch, and what it must hold after the last.
struct CaseBuffer {
  std::string name;  ///< "A", "workspace"
  std::size_t bytes = 0;
  std::vector<std::byte> data;     ///< `bytes` of them; empty: all bytes are `fill`
  std::byte fill{0xFF};            ///< by default NaN in every type
  std::string dtype;               ///< of the elements where they are checked: "f32", "u32", …
  std::vector<Expected> expected;  ///< of every element; empty: not checked
  /// Of a workspace: its first bytes that are zero before the first launch and after the last
  /// one.
  std::size_t zeroed_bytes = 0;
};

/// An address within a buffer of the case.
struct CaseAddress {
  std::size_t buffer = 0;  ///< position in KernelCase::buffers
  std::uint64_t offset = 0;

  bool operator==(const CaseAddress&) const = default;
};
using CaseArgument = std::variant<CaseAddress, std::uint32_t, float, std::uint64_t>;

struct CaseLaunch {
  std::size_t code_object = 0;  ///< position in KernelCase::code_objects
  std::string kernel;           ///< its name there
  Grid grid{1, 1, 1};           ///< workgroups
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t subgroup_size = 0;  ///< that the kernel needs; 0: the driver's choice
  std::vector<CaseArgument> arguments;
};

/// Compiled kernels with everything that is needed to run them and to judge the outcome, far from
/// the compiler, the tuner and this machine.
struct KernelCase {
  std::string op;
  std::string problem;  ///< its key
  std::string config;   ///< its text
  std::string architecture;
  Language language = Language::hip;  ///< of the kernels; code objects of GLSL are SPIR-V
  std::vector<std::vector<std::byte>> code_objects;
  std::vector<CaseBuffer> buffers;
  std::vector<CaseLaunch> launches;
  std::uint64_t seed = 0;  ///< that operands were drawn from
};

/// Whether there can be cases of a problem. Fails with `invalid_argument` for one that is too
/// large for a reference of every element.
Result<void> check_case(const Operation& operation, const Problem& problem);

/// The case of a compiled plan. Operands are drawn from `seed`; expected values and bounds are
/// those of the operation's FP64 reference. Fails as check_case().
Result<KernelCase> make_case(const Operation& operation, const CompiledChoice& compiled,
                             std::uint64_t seed);

/// Draws operands and reckons expected values of a case whose buffers have neither, as
/// make_case() did: in the same GRETA the outcome is the same. Fails with `invalid_argument`
/// where the problem is none of this GRETA's, or its operands are not the case's.
Result<void> fill_case(const Catalog& catalog, KernelCase& bare, std::uint64_t seed);

/// Checks what a buffer of a case holds in the end. Every element must be within its bound of
/// what is expected; infinities must be met exactly, and NaN passes only where NaN is expected.
/// Empty when it passes, else one line with the worst element.
std::string check_buffer(const CaseBuffer& buffer, std::span<const std::byte> contents);

}  // namespace greta::tuner
