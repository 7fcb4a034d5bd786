#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/dtype.hpp"
#include "runtime/pipeline/models/mapped_file.hpp"

namespace greta::runtime {

/// One tensor of a safetensors file.
struct SafeTensor {
  std::string type;            ///< as the file names it: "F16"
  std::optional<DType> dtype;  ///< nothing for a type that is not in the table
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

/// A file in Hugging Face's format safetensors: eight bytes with the header's length, a header in
/// JSON, then the tensors' bytes without gaps. Source of the format and of its rules:
/// https://github.com/huggingface/safetensors.
class SafeTensors {
 public:
  /// Throws Error with one line for a file that breaks the rules: a header that is no JSON or
  /// longer than the file or than 100 MB, unknown types, shapes that contradict the number of
  /// bytes, and tensors that overlap, leave gaps, or end behind the file's end.
  static SafeTensors open(const std::filesystem::path& path);

  const std::map<std::string, SafeTensor>& tensors() const { return tensors_; }
  const std::shared_ptr<const MappedFile>& file() const { return file_; }

 private:
  std::shared_ptr<const MappedFile> file_;
  std::map<std::string, SafeTensor> tensors_;
};

}  // namespace greta::runtime
