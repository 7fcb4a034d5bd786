#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/pipeline/models/formats/gguf_metadata.hpp"
#include "runtime/pipeline/models/formats/model_tensors.hpp"
#include "runtime/pipeline/models/mapped_file.hpp"

namespace greta::runtime {

/// A file in GGUF, version 2 or 3, little-endian: the magic "GGUF", the version, the numbers of
/// tensors and of metadata values; the values; the tensors' names, shapes, types and offsets; from
/// the next multiple of general.alignment on, their bytes. Source of the format:
/// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
///
/// A model may be split into several such files, whose names end with "-00001-of-00003.gguf" and so
/// on: the first one has the metadata, and each has a part of the tensors, the number `split.no` of
/// its part from 0 on, the number `split.count` of parts, and `split.tensors.count` of all tensors.
/// Source: llama.cpp, gguf-split.
///
/// open() keeps views into the mapped files and copies only tensor names, so its memory is at most
/// a constant times the size of the files' headers.
class GgufFile {
 public:
  /// Opens a file, or all parts of a split model if it is any one of them. Throws Error with a
  /// one-line message for an invalid file: other versions; counts that the file has no room for;
  /// lengths beyond its end; unknown types of values; arrays in arrays; keys and tensor names that
  /// occur twice or aren't printable ASCII; more than 4 extents, shapes that overflow or have no
  /// whole blocks in a row; offsets that are not aligned, lie outside of the file, or make tensors
  /// overlap; and for parts that are missing or of another model. Tensors of types that GRETA
  /// doesn't compute with are kept without dtype and blocks.
  static GgufFile open(const std::filesystem::path& path);

  /// Those of the first part.
  const GgufMetadata& metadata() const { return metadata_; }
  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::vector<std::shared_ptr<const MappedFile>>& files() const { return files_; }

 private:
  explicit GgufFile(const std::filesystem::path& path) : metadata_(path.string()) {}
  static GgufFile open_part(const std::filesystem::path& path);
  void add_part(const std::filesystem::path& path, std::int64_t number, std::int64_t count);

  std::vector<std::shared_ptr<const MappedFile>> files_;
  GgufMetadata metadata_;
  std::map<std::string, StoredTensor> tensors_;
};

/// "F32, F16, BF16, Q4_0, …": the types of tensors that GRETA reads.
std::string gguf_types_text();

}  // namespace greta::runtime
