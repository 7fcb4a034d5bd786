#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace greta {

/// What names a person or a machine, to be taken out of what is sent elsewhere.
class PrivateNames {
 public:
  /// `homes`: paths of home folders, which become "~". `users` become "USER" and `hosts` "HOST"
  /// where they stand as words. Empty ones, and those that name nobody ("root", "localhost"), are
  /// left as they are.
  PrivateNames(std::vector<std::string> homes, std::vector<std::string> users,
               std::vector<std::string> hosts);

  /// A text without them, and without the names of folders in /home.
  std::string without(std::string text) const;
  /// Whether bytes that can't be changed hold one of them.
  bool in(std::string_view bytes) const;

 private:
  struct Name {
    std::string text;
    std::string stand_in;
  };
  std::vector<Name> names_;  // longest first
};

}  // namespace greta
