#include "db/sqlite/quoting.hpp"

namespace greta::db {
namespace {

/// Quotes a text for SQL: a quote within it is doubled.
std::string quoted(std::string_view text, char quote) {
  std::string sql(1, quote);
  for (const char c : text) {
    sql += c;
    if (c == quote) sql += quote;
  }
  return sql + quote;
}

}  // namespace

std::string identifier(std::string_view name) {
  return quoted(name, '"');
}

std::string text_literal(std::string_view text) {
  return quoted(text, '\'');
}

}  // namespace greta::db
