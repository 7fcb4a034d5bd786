#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tuner/compile/target_compiler.hpp"
#include "tuner/diagnose/changes/change_slots.hpp"
#include "tuner/diagnose/changes/source_changes.hpp"

namespace greta::tuner {

/// A change whose slot is known.
struct SlottedChange {
  std::uint32_t number = 0;  ///< by which it is chosen, not 0
  const SourceChange* change = nullptr;
  ChangeSlot slot;
};

/// A build of a kernel with several changes, one of which is in force when it runs.
struct ChangeBuild {
  std::vector<std::uint32_t> numbers;  ///< of the changes that it contains
  std::vector<std::byte> code_object;
  bool as_constant = false;  ///< the number is in the code object (choose_change())
};

/// Returns the smallest slot that can have a change's text in place of its own; null: none.
const ChangeSlot* slot_of(const SourceChange& change, const std::vector<ChangeSlot>& slots);

/// Divides changes into groups of at most `most`, in each of which slots are equal or have nothing
/// in common. Changes without a slot are in no group.
std::vector<std::vector<SlottedChange>> change_groups(const std::vector<SourceChange>& changes,
                                                      const std::vector<std::uint32_t>& numbers,
                                                      const std::vector<ChangeSlot>& slots,
                                                      std::size_t most);

/// Whether a change adds or moves a barrier, or its slot has one.
bool has_barrier(const std::string& text, const SourceChange& change, const ChangeSlot& slot);

/// Returns a kernel's source with a group of changes. The number of the one in force is read from
/// an address (put_address_of_number()), or, if that is wanted of GLSL, a specialization constant,
/// so that drivers compile none of the other versions (choose_change()); with 0, the source is
/// unchanged.
///
/// The method is that of mutant schemata: R. H. Untch, A. J. Offutt, M. J. Harrold: Mutation
/// analysis using mutant schemata, ISSTA 1993.
std::string text_with_changes(const KernelSource& source, const std::vector<SlottedChange>& group,
                              bool as_constant = false);

/// Builds a group. Changes that don't compile are left out; a group is divided where the compiler's
/// messages don't say which these are. The number of a kernel in GLSL is a constant if there are
/// barriers in the group: lavapipe runs all versions and drops the results of those that are not in
/// force, but would wait at their barriers.
std::vector<ChangeBuild> build_changes(TargetCompiler& compiler, const KernelSource& source,
                                       const std::vector<SlottedChange>& group);

/// Puts the number of the change that is in force into SPIR-V. Returns false if there is no place.
bool choose_change(std::vector<std::byte>& spirv, std::uint32_t number);
/// Puts the address of the number into a library of hip-host or SPIR-V. Returns false if there is
/// no place for it.
bool put_address_of_number(std::vector<std::byte>& binary, std::uint64_t address);

/// Returns a kernel's source in HIP that marks each of these slots that is executed, in the byte of
/// its place among them from an address on (choose_marks()). Lines keep their numbers.
std::string text_with_marks(const KernelSource& source, const std::vector<ChangeSlot>& slots,
                            const std::vector<char>& without);
/// Puts the address of the marks into a library of hip-host. Returns false if it has no place.
bool choose_marks(std::vector<std::byte>& library, const void* marks);

}  // namespace greta::tuner
