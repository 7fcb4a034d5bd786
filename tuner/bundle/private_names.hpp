#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Removes names of persons and machines from text that leaves the machine.
class PrivateNames {
 public:
  /// `homes` are paths of home folders, which become "~". `users` become "USER" and `hosts` "HOST"
  /// if they occur as whole words. Names of one character and those among the `common` words occur
  /// in ordinary text; they are only replaced beside an @ and as part of an absolute path outside
  /// the system's folders ("/usr"). Empty names and those that identify nobody ("root",
  /// "localhost") are ignored.
  PrivateNames(std::vector<std::string> homes, std::vector<std::string> users,
               std::vector<std::string> hosts, const std::vector<std::string>& common = {});

  /// Returns a text without the names, and without the names of folders in /home.
  std::string without(std::string text) const;
  /// Returns a program without the names. Every name is treated as a common word, since it may be
  /// an identifier.
  std::string without_in_program(std::string text) const;
  /// Returns whether binary data contains one of the names.
  bool in(std::string_view bytes) const;

 private:
  struct Name {
    std::string text;
    std::string stand_in;
    bool path = false;
    bool common = false;  ///< also an ordinary word
  };
  /// Returns the next position from `from` on. With `sure`, only unambiguous occurrences count.
  static std::size_t find(std::string_view text, const Name& name, bool sure, std::size_t from);
  std::string replaced(std::string text, bool program) const;

  std::vector<Name> names_;  // longest first
};

/// Returns the words of a text. PrivateNames only matches whole words.
std::vector<std::string> words_of(std::string_view text);

}  // namespace greta::tuner
