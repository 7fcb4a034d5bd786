#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "db/tuned_db.hpp"
#include "tuner/compile/compiled_choice.hpp"
#include "tuner/compile/kernel_case.hpp"

namespace greta::tuner {

/// The API of a project's program.
enum class ProjectPlatform { amd, nvidia, hip_host, vulkan };

/// A kernel of a project. File names are relative to its folder.
struct ProjectKernel {
  KernelSource source;  ///< with all options that it was compiled with
  std::string source_file;
  std::string binary_file;
};

/// A winner's kernels with everything that the texts of a project need.
struct KernelProject {
  StoredWinner winner;
  ProjectPlatform platform = ProjectPlatform::amd;
  DeviceInfo target;                     ///< that the kernels were compiled for
  KernelCase run;                        ///< without expected values
  std::vector<ProjectKernel> kernels;    ///< in the order of run.code_objects
  std::vector<std::size_t> checked;      ///< number of checked elements of each buffer; 0: none
  std::vector<std::string> definitions;  ///< macros of the program
  bool described = false;                ///< whether the operation is one of a description
};

/// Returns whether a file of tuner/project/program is part of a platform's projects.
bool belongs_to(ProjectPlatform platform, std::string_view file);
/// Returns the platform of a device's kernels.
ProjectPlatform platform_of(const DeviceInfo& device);
/// Returns the names of the files of a buffer within the folder.
std::string input_file_name(const CaseBuffer& buffer);
std::string expected_file_name(const CaseBuffer& buffer);

/// Returns a kernel's source as a file that compiles alone: parameters are macros at its beginning.
std::string kernel_text(const KernelProject& project, const ProjectKernel& kernel);
/// Returns launches.hpp, CMakeLists.txt and README.md.
std::string launches_text(const KernelProject& project);
std::string cmake_text(const KernelProject& project);
std::string readme_text(const KernelProject& project);

}  // namespace greta::tuner
