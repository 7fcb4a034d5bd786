#include "tuner/replay/json_completion.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace greta::tuner {
namespace {

// The list or object with one entry for each configuration is at this depth: within the file's
// object.
constexpr std::size_t entries_depth = 2;

/// Reads a text once and remembers which brackets are open.
class Scanner {
 public:
  explicit Scanner(std::string& text) : text_(text) {}

  void scan() {
    for (at_ = 0; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (in_string_) {
        if (c == '\\') ++at_;
        if (c == '"') in_string_ = false;
      } else if (c == '"') {
        in_string_ = true;
      } else if (c == '{' || c == '[') {
        closers_ += c == '{' ? '}' : ']';
      } else if (c == '}' || c == ']') {
        close();
      } else if (c == 'N' || c == 'I' || c == '-') {
        replace_number();
      }
    }
  }

  bool open() const { return in_string_ || !closers_.empty(); }
  std::size_t entry_end() const { return entry_end_; }
  const std::string& closers_there() const { return closers_at_entry_; }

 private:
  void close() {
    if (!closers_.empty()) closers_.pop_back();
    if (closers_.size() == entries_depth) {
      entry_end_ = at_ + 1;
      closers_at_entry_ = closers_;
    }
  }

  /// Overwrites a number that JSON lacks, with spaces up to its length.
  void replace_number() {
    static constexpr std::array<std::string_view, 3> unknown{"-Infinity", "Infinity", "NaN"};
    for (const std::string_view word : unknown) {
      if (std::string_view(text_).substr(at_, word.size()) != word) continue;
      // "NaN" is shorter than "null".
      text_.replace(at_, word.size(),
                    "null" + std::string(word.size() > 4 ? word.size() - 4 : 0, ' '));
      at_ += std::max<std::size_t>(word.size(), 4) - 1;
      return;
    }
  }

  std::string& text_;
  std::size_t at_ = 0;
  bool in_string_ = false;
  std::string closers_;  ///< of the open brackets, outermost first
  std::size_t entry_end_ = 0;
  std::string closers_at_entry_;
};

}  // namespace

CompletedJson complete_json(std::string text) {
  Scanner scanner(text);
  scanner.scan();
  const bool incomplete = scanner.open() && scanner.entry_end() > 0;
  if (incomplete) {
    text.resize(scanner.entry_end());
    const std::string& closers = scanner.closers_there();
    text.append(closers.rbegin(), closers.rend());
  }
  return {std::move(text), incomplete};
}

}  // namespace greta::tuner
