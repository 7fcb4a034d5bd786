#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/bundle/archive.hpp"
#include "tuner/bundle/private_names.hpp"

namespace greta::tuner {

/// The files of a bundle, without private names, and why others are not there.
class BundleFiles {
 public:
  /// `most_bytes`: of all files together; only those of folders are left out for want of room.
  BundleFiles(PrivateNames names, std::size_t most_bytes)
      : names_(std::move(names)), most_bytes_(most_bytes) {}

  void add_text(const std::string& path, const std::string& text);
  /// Private names are taken out of texts; keys are GRETA's own.
  void add_json(const std::string& path, const nlohmann::ordered_json& json);
  /// The files of a folder: texts and JSON without private names; programs without those that can
  /// be no identifiers; kernels' code unless it holds one; numbers
  /// as they are. What there is no room for, or can't be read, is left out.
  void add_folder(const std::string& path, const std::filesystem::path& folder);
  /// Says of a path why it is not there, or what of it was changed.
  void remark(const std::string& path, const std::string& what);

  /// Whether nothing more of a folder has room.
  bool full() const { return bytes_ >= most_bytes_; }
  const std::vector<ArchiveFile>& all() const { return files_; }
  /// A line each.
  const std::string& remarks() const { return remarks_; }
  /// README.txt first, the others by path, all in the folder of this name.
  void arrange(const std::string& folder);

 private:
  void add(const std::string& path, std::string contents);
  void add_file(const std::string& path, const std::filesystem::path& file);

  PrivateNames names_;
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::vector<ArchiveFile> files_;
  std::string remarks_;
};

}  // namespace greta::tuner
