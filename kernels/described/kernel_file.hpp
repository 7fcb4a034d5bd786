#pragma once

#include <filesystem>

#include "kernels/described/described_reference.hpp"

namespace greta::kernels {

/// A description with the contents of the files that it names.
struct KernelFile {
  std::filesystem::path path;  ///< of the description
  Description description;
  DescribedFiles files;
  DescribedFiles own;  ///< the file itself, and the one with the reference of T1, if there is one
};
/// Reads a description from a file, in GRETA's form or T1, with the files that it names. Files are
/// read only if they lie within the description's folder, symbolic links included, up to
/// `most_file_bytes`. Fails with `io` for files that can't be read, and otherwise with
/// `invalid_argument`, with the description's path in front.
Result<KernelFile> read_kernel_file(const std::filesystem::path& path);

/// Does the same for files that were read before: `files` has the description, `name`, and all
/// files that it names, with their names relative to it.
Result<KernelFile> read_kernel_file(const std::string& name, const DescribedFiles& files);

/// Makes the operation of a description that was read. Fails as make_verified() does, with the
/// description's path in front.
Result<Operation> load_described(const KernelFile& file, const ReferenceDevice& device,
                                 const std::optional<GivenReference>& given = {});
/// Reads a description and makes its operation.
Result<Operation> load_described(const std::filesystem::path& path, const ReferenceDevice& device,
                                 const std::optional<GivenReference>& given = {});

/// Returns a reference for programs that run a described kernel and never verify it: asking it for
/// outputs fails.
GivenReference no_reference();

constexpr std::uint64_t most_file_bytes = std::uint64_t{1} << 32;

/// Returns a device for reference kernels, opened when it is first needed: hip-host for HIP and
/// CUDA C++, the first Vulkan device for GLSL. Compiled kernels are kept in `cache_directory`, if
/// there is one.
ReferenceDevice reference_devices(const std::filesystem::path& cache_directory = {});

}  // namespace greta::kernels
