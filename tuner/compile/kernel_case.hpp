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

/// A buffer of a case: its contents before the first launch and the expected ones after the last.
struct CaseBuffer {
  std::string name;  ///< "A", "workspace"
  std::size_t bytes = 0;
  std::size_t offset = 0;          ///< bytes from a multiple of 256 to the first one
  std::vector<std::byte> data;     ///< `bytes` of data; empty: all bytes are `fill`
  std::byte fill{0xFF};            ///< the default is NaN in every type
  std::string dtype;               ///< element type if checked: "f32", "u32", …
  std::vector<Expected> expected;  ///< expected values of all elements; empty: not checked
  /// For a workspace: size of its leading part that is zero before the first launch and after the
  /// last.
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
  std::string kernel;           ///< its name in the code object
  Grid grid{1, 1, 1};           ///< number of workgroups
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  std::uint32_t subgroup_size = 0;  ///< required by the kernel; 0: the driver's choice
  std::vector<CaseArgument> arguments;
};

/// Compiled kernels with everything that is needed to run them and check the results without the
/// compiler, the tuner and this machine.
struct KernelCase {
  std::string op;
  std::string problem;  ///< problem key
  std::string config;   ///< configuration as text
  std::string architecture;
  Language language = Language::hip;  ///< language of the kernels; code objects of GLSL are SPIR-V
  std::vector<std::vector<std::byte>> code_objects;
  std::vector<CaseBuffer> buffers;
  std::vector<CaseLaunch> launches;
  std::uint64_t seed = 0;  ///< the operands were drawn from it
};

/// Checks that a problem can have cases. Fails with `invalid_argument` if it is too large for a
/// reference of every element.
Result<void> check_case(const Operation& operation, const Problem& problem);
/// Fails with `invalid_argument` if code objects and arguments are not all that the launches need:
/// a kernel reads variables in constant memory, or a vendor's library computes.
Result<void> check_plan_of_case(const LaunchPlan& plan);

/// Creates the case of a compiled plan. Operands are drawn from `seed`; expected values and bounds
/// come from the operation's FP64 reference. Fails like check_case().
Result<KernelCase> make_case(const Operation& operation, const CompiledChoice& compiled,
                             std::uint64_t seed);

/// Creates a case of given operands and of all elements that are expected of each output. It has no
/// launches if nothing is compiled or a case can't hold them (check_plan_of_case()).
KernelCase make_case_of(const Operation& operation, CompiledChoice compiled,
                        std::vector<HostTensor> inputs,
                        std::vector<std::vector<Expected>> expected);

/// Like make_case() without expected values, for a problem of any size. `inputs` are those of
/// Operation::inputs().
KernelCase make_unchecked_case(const Operation& operation, const CompiledChoice& compiled,
                               std::vector<HostTensor> inputs);

/// Draws the operands and computes the expected values of a case whose buffers have neither. With
/// the same version of GRETA the outcome equals that of make_case(). Fails with `invalid_argument`
/// if this version does not know the problem, or its operands differ from the case's.
Result<void> fill_case(const Catalog& catalog, KernelCase& bare, std::uint64_t seed);

/// Checks the final contents of a buffer. Every element must be within its bound of the expected
/// value; infinities must match exactly, and NaN passes only if NaN is expected. Returns an empty
/// string on success, else one line with the worst element.
std::string check_buffer(const CaseBuffer& buffer, std::span<const std::byte> contents);

}  // namespace greta::tuner
