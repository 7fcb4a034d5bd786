#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// What names a person or a machine, to be taken out of what is sent elsewhere.
class PrivateNames {
 public:
  /// `homes`: paths of home folders, which become "~". `users` become "USER" and `hosts` "HOST"
  /// where they stand as words. Names of one character, and those that are among
  /// `common` words, would be found in texts that name nobody: they are replaced beside an @, and
  /// as a part of an absolute path that is not in one of the system's folders ("/usr"). Empty ones,
  /// and those that name nobody ("root", "localhost"), are left as they are.
  PrivateNames(std::vector<std::string> homes, std::vector<std::string> users,
               std::vector<std::string> hosts, const std::vector<std::string>& common = {});

  /// A text without them, and without the names of folders in /home.
  std::string without(std::string text) const;
  /// A program without them: every name is taken for a common word, since it may be an identifier.
  std::string without_in_program(std::string text) const;
  /// Whether bytes that can't be changed hold one of them.
  bool in(std::string_view bytes) const;

 private:
  struct Name {
    std::string text;
    std::string stand_in;
    bool path = false;
    bool common = false;  ///< a word of other meanings, too
  };
  /// Where it stands from `from` on. `sure`: only where it can be nothing else.
  static std::size_t find(std::string_view text, const Name& name, bool sure, std::size_t from);
  std::string replaced(std::string text, bool program) const;

  std::vector<Name> names_;  // longest first
};

/// The words of a text: what PrivateNames looks for is whole ones.
std::vector<std::string> words_of(std::string_view text);

}  // namespace greta::tuner
