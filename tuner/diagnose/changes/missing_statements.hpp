#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tuner/diagnose/changes/kernel_text.hpp"
#include "tuner/diagnose/changes/text_model.hpp"

namespace greta::tuner {

/// A statement that a function may lack.
struct MissingStatement {
  std::size_t at = 0, length = 0;  ///< what is replaced, in bytes: an empty statement, or nothing
  std::string text;
};

/// Returns statements that functions may lack: those that other places of the source have, all of
/// whose variables are known, and assignments to variables that nothing changes after their
/// declaration. Of each place and each such variable, only the few that fit the text around best.
/// `ends` are the tokens that end statements and blocks.
std::vector<MissingStatement> missing_statements(std::string_view source,
                                                 const std::vector<SourceToken>& tokens,
                                                 const std::vector<std::size_t>& ends,
                                                 TextModel& model);

}  // namespace greta::tuner
