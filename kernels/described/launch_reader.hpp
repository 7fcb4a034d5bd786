#pragma once

#include <array>
#include <string>
#include <vector>

#include "kernels/described/description.hpp"

namespace greta::kernels::described {

SourceLanguage read_language(const PlacedJson& value);
/// The shortest `reference`, for messages.
std::string shortest_reference();

/// Reads launches and the reference of a description whose operands and scalars are known. Throws
/// BadDescription.
class LaunchReader {
 public:
  /// `names`: what formulas may read. `has_workspace`: launches may have the workspace as an
  /// argument. The description and the names must outlive the reader.
  LaunchReader(const Description& description, const std::vector<std::string>& names,
               bool has_workspace)
      : description_(description), names_(names), has_workspace_(has_workspace) {}

  /// The launches of an object: one, or "launches".
  std::vector<DescribedLaunch> read_launches(const PlacedJson& object,
                                             SourceLanguage language) const;
  /// Reads a `reference`. A tolerance that `reference` has needs not be given.
  void read_reference(const PlacedJson& object, DescribedReference& reference) const;

 private:
  DescribedLaunch read_launch(const PlacedJson& object, SourceLanguage language) const;
  std::array<Formula, 3> read_three(const PlacedJson& value) const;
  bool is_argument(const std::string& name) const;

  const Description& description_;
  const std::vector<std::string>& names_;
  bool has_workspace_;
};

}  // namespace greta::kernels::described
