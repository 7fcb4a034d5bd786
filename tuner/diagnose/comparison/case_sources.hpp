#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/described/description.hpp"
#include "runtime/device/device.hpp"
#include "tuner/diagnose/failed_case.hpp"

namespace greta::tuner {

/// Returns the text of a file of templates, or of a description's folder; null: there is none.
using FindFile = std::function<const std::string*(const std::string& name)>;

/// Returns a function that finds files in a set, which must outlive it.
FindFile find_in(const SourceFiles& files);

/// Returns a version's files that a kernel has otherwise or not at all; none if there are none.
KnownGood other_files(std::string name, SourceFiles files, const SourceFiles& own);

/// Returns the files of kernels/templates that kernels are made of: those by which kernels are
/// named, and what they include. Embedded ones take the place of those that `find` does not have. A
/// vendor's library has none.
SourceFiles template_files(const std::vector<KernelSource>& sources, const FindFile& find);

/// Returns the files of which a described kernel is made, as `find` has them: without its
/// description, data and reference. Throws Error if one is missing.
SourceFiles source_files(const Description& description, const FindFile& find);

/// Returns the files of which a case's kernels are made, as `find` has them. Throws Error if
/// one is missing.
SourceFiles files_of(const FailedCase& failed, const FindFile& find);

/// Makes the texts of a case's kernels of other versions of their files.
class CaseSources {
 public:
  /// `device` is one that runs the kernels. The case must outlive it. Throws Error if the case's
  /// sources are not made of its files.
  CaseSources(const FailedCase& failed, DeviceInfo device);

  /// Returns the text of each kernel, made of these files. Throws Error.
  std::vector<std::string> texts(const SourceFiles& files) const;

 private:
  /// Definitions and what else precedes the files' part of a text: in the case, where it is of the
  /// device on which the kernel failed, and in what made_of() returns.
  struct Head {
    std::string kept, made;
  };

  std::vector<std::string> made_of(const SourceFiles& files) const;

  const FailedCase& failed_;
  DeviceInfo device_;
  std::vector<KernelSource> sources_;
  std::vector<Head> heads_;
};

}  // namespace greta::tuner
