#include "runtime/pipeline/models/text/word_splitter.hpp"

#include <fmt/format.h>

#include <utility>

#include "runtime/device/result.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace greta::runtime {
namespace {

constexpr std::size_t longest_pattern = 4096;

std::string message(int code) {
  PCRE2_UCHAR text[256];
  if (pcre2_get_error_message(code, text, sizeof(text)) < 0) return fmt::format("error {}", code);
  return reinterpret_cast<const char*>(text);
}

const pcre2_code* code_of(const std::shared_ptr<const void>& code) {
  return static_cast<const pcre2_code*>(code.get());
}

}  // namespace

std::optional<SplitBehaviour> split_behaviour_from_string(std::string_view name) {
  using enum SplitBehaviour;
  constexpr std::pair<std::string_view, SplitBehaviour> names[] = {
      {"Isolated", isolated},
      {"Removed", removed},
      {"MergedWithPrevious", merged_with_previous},
      {"MergedWithNext", merged_with_next},
      {"Contiguous", contiguous}};
  for (const auto& [known, behaviour] : names) {
    if (known == name) return behaviour;
  }
  return std::nullopt;
}

WordSplitter::WordSplitter(const std::string& pattern, const Options& options) : options_(options) {
  if (pattern.size() > longest_pattern) throw Error("the pattern is longer than 4096 bytes");
  int error = 0;
  PCRE2_SIZE at = 0;
  const std::uint32_t flags =
      options.literal ? PCRE2_UTF | PCRE2_LITERAL : PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   flags, &error, &at, nullptr);
  if (code == nullptr) {
    throw Error(fmt::format("the pattern is wrong at byte {}: {}", at, message(error)));
  }
  code_ = std::shared_ptr<const void>(code, [code](const void*) { pcre2_code_free(code); });
  // Without a just-in-time compiler, matching falls back to interpretation.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
}

std::vector<WordSplitter::Part> WordSplitter::parts(std::string_view text) const {
  const std::unique_ptr<pcre2_match_data, void (*)(pcre2_match_data*)> match(
      pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  std::vector<Part> parts;
  const auto add = [&](std::size_t first, std::size_t last, bool is_match) {
    if (last > first)
      parts.push_back({text.substr(first, last - first), is_match != options_.inverted});
  };
  std::size_t at = 0;
  while (at < text.size()) {
    // check_prompt() has checked the text.
    const int found =
        pcre2_match(code_of(code_), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                    PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, match.get(), nullptr);
    if (found == PCRE2_ERROR_NOMATCH) break;
    if (found < 0) {
      throw Error(fmt::format("the tokenizer's pattern can't split the text: {}", message(found)));
    }
    const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match.get());
    // \K may move the start of a match.
    if (span[0] < at || span[1] <= span[0]) throw Error("the tokenizer's pattern goes backwards");
    add(at, span[0], false);
    add(span[0], span[1], true);
    at = span[1];
  }
  add(at, text.size(), false);
  return parts;
}

std::vector<std::string_view> WordSplitter::split(std::string_view text) const {
  const std::vector<Part> all = parts(text);
  // Whether two neighbours are one word; of three, a match in the middle is not in two words.
  const auto joined = [&](std::size_t i) {
    const bool before = all[i].match, after = all[i + 1].match;
    switch (options_.behaviour) {
      case SplitBehaviour::contiguous:
        return before == after;
      case SplitBehaviour::merged_with_previous:
        return !before && after;
      case SplitBehaviour::merged_with_next:
        return before && !after;
      default:
        return false;
    }
  };
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (options_.behaviour == SplitBehaviour::removed && all[i].match) continue;
    const char* const first = all[i].text.data();
    while (i + 1 < all.size() && joined(i)) ++i;
    words.emplace_back(first,
                       static_cast<std::size_t>(all[i].text.data() + all[i].text.size() - first));
  }
  return words;
}

}  // namespace greta::runtime
