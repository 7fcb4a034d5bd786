#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "runtime/pipeline/models/formats/model_tensors.hpp"
#include "runtime/pipeline/models/mapped_file.hpp"

namespace greta::runtime {

/// A file in Hugging Face's safetensors format: eight bytes with the header's length, a JSON
/// header, then the tensors' bytes without gaps. Source of the format and its rules:
/// https://github.com/huggingface/safetensors.
class SafeTensors {
 public:
  /// Throws Error with a one-line message for an invalid file: a header that is not JSON or longer
  /// than the file or 100 MB, unknown types, shapes that contradict the number of bytes, and
  /// tensors that overlap, leave gaps, or exceed the file.
  static SafeTensors open(const std::filesystem::path& path);

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, StoredTensor> tensors_;
};

}  // namespace greta::runtime
