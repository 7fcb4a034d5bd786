#pragma once

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/bundle/archive.hpp"
#include "tuner/bundle/private_names.hpp"

namespace greta::tuner {

/// The files of a bundle, without private names, and remarks on files that are missing.
class BundleFiles {
 public:
  /// `most_bytes` limits the total size; only files of folders are left out for lack of space.
  BundleFiles(PrivateNames names, std::size_t most_bytes)
      : names_(std::move(names)), most_bytes_(most_bytes) {}

  void add_text(const std::string& path, const std::string& text);
  /// Adds JSON. Private names are removed from its strings, but not from keys, which are GRETA's.
  void add_json(const std::string& path, const nlohmann::ordered_json& json);
  /// Adds the files of a folder. Private names are removed from text and JSON, and from programs if
  /// they can't be identifiers. Kernel binaries that contain one are left out. Unreadable files and
  /// those for which there is no space are left out.
  void add_folder(const std::string& path, const std::filesystem::path& folder);
  /// Records why a path is missing or what was changed in it.
  void remark(const std::string& path, const std::string& what);

  /// Returns whether there is no space for more files of folders.
  bool full() const { return bytes_ >= most_bytes_; }
  const std::vector<ArchiveFile>& all() const { return files_; }
  /// Returns the remarks, one per line.
  const std::string& remarks() const { return remarks_; }
  /// Puts README.txt first and the others in order of their paths, all below a folder of this name.
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
