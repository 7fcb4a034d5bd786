#include "runtime/pipeline/models/text/added_tokens.hpp"

#include <utf8proc.h>

namespace greta::runtime {
namespace {

/// In UTF-8.
constexpr std::string_view spaces[] = {
    "\t",           "\n",           "\v",           "\f",           "\r",           " ",
    "\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81", "\xe2\x80\x82",
    "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86", "\xe2\x80\x87", "\xe2\x80\x88",
    "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8", "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f",
    "\xe3\x80\x80"};

template <typename Is>
std::size_t space_at(const Is& is) {
  const auto* const found = std::find_if(std::begin(spaces), std::end(spaces), is);
  return found == std::end(spaces) ? 0 : found->size();
}

}  // namespace

std::size_t leading_space(std::string_view text) {
  const std::size_t size = text.size();
  const auto begins = [&](std::string_view space) { return text.starts_with(space); };
  for (std::size_t next = 0; (next = space_at(begins)) > 0;) text.remove_prefix(next);
  return size - text.size();
}

std::size_t trailing_space(std::string_view text) {
  const std::size_t size = text.size();
  const auto ends = [&](std::string_view space) { return text.ends_with(space); };
  for (std::size_t next = 0; (next = space_at(ends)) > 0;) text.remove_suffix(next);
  return size - text.size();
}

bool begins_in_word(std::string_view text) {
  utf8proc_int32_t point = -1;
  utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &point);
  constexpr utf8proc_int32_t non_joiner = 0x200c, joiner = 0x200d;
  if (point == non_joiner || point == joiner) return true;
  const auto category = point < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(point);
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC;
}

bool ends_in_word(std::string_view text) {
  std::size_t at = text.size();
  while (at > 0 && (static_cast<unsigned char>(text[--at]) & 0xc0) == 0x80) continue;
  return begins_in_word(text.substr(at));
}

}  // namespace greta::runtime
