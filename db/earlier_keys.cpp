#include "db/earlier_keys.hpp"

namespace greta::db {
namespace {

constexpr std::string_view causal = " causal=1", not_causal = " causal=0", mask = " mask=causal";

/// Replaces one text by another if it occurs as whole words. Returns whether it does.
bool replace(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  const std::size_t end = at + from.size();
  if (at == std::string::npos || (end < text.size() && text[end] != ' ')) return false;
  text.replace(at, from.size(), to);
  return true;
}

/// Returns the end of the third word, after which attributes begin: "attention dtype=f16 out=f16".
std::size_t end_of_types(std::string_view key) {
  std::size_t end = 0;
  for (int word = 0; word < 3 && end != std::string_view::npos; ++word) {
    end = key.find(' ', end + (word > 0 ? 1 : 0));
  }
  return end == std::string_view::npos ? key.size() : end;
}

}  // namespace

std::string today_dims(std::string_view earlier) {
  std::string dims(earlier);
  if (!replace(dims, causal, "")) replace(dims, not_causal, "");
  return dims;
}

std::string today_key(std::string_view earlier) {
  std::string key(earlier);
  if (key.starts_with("attention ")) {
    if (replace(key, causal, "")) {
      key.insert(end_of_types(key), mask);
    } else {
      replace(key, not_causal, "");
    }
  } else if (key.starts_with("rope ")) {
    if (!replace(key, " output=in_place", " place=in")) replace(key, " output=new", "");
  }
  return key;
}

}  // namespace greta::db
