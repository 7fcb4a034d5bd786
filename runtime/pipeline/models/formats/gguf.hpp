#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "runtime/pipeline/models/formats/gguf_metadata.hpp"
#include "runtime/pipeline/models/formats/model_tensors.hpp"
#include "runtime/pipeline/models/mapped_file.hpp"

namespace greta::runtime {

/// A file in GGUF, version 2 or 3, little-endian: the magic "GGUF", the version, the numbers of
/// tensors and of metadata values; the values; the tensors' names, shapes, types and offsets; from
/// the next multiple of general.alignment on, their bytes. Source of the format:
/// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
///
/// open() keeps views into the mapped file and copies only tensor names, so its memory is at most a
/// constant times the size of the file's header.
class GgufFile {
 public:
  /// Throws Error with a one-line message for an invalid file: other versions; counts that the file
  /// has no room for; lengths beyond its end; unknown types of values; arrays in arrays; keys and
  /// tensor names that occur twice or aren't printable ASCII; more than 4 extents, shapes that
  /// overflow or have no whole blocks in a row; offsets that are not aligned, lie outside of the
  /// file, or make tensors overlap. Tensors of unknown types are kept without dtype and blocks.
  static GgufFile open(const std::filesystem::path& path);

  const GgufMetadata& metadata() const { return metadata_; }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }

 private:
  GgufFile(std::shared_ptr<const MappedFile> file, std::string name)
      : file_(std::move(file)), metadata_(std::move(name)) {}

  std::shared_ptr<const MappedFile> file_;
  GgufMetadata metadata_;
  std::map<std::string, StoredTensor> tensors_;
};

/// "F32, F16, BF16, Q4_0, …": the types of tensors that GRETA reads.
std::string gguf_types_text();

}  // namespace greta::runtime
