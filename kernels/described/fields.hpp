#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/described/formula.hpp"
#include "kernels/described/placed_json.hpp"

/// Reading the fields of a description; each throws BadDescription with the place of an error.
namespace greta::kernels::described {

struct BadDescription {
  Failure failure;
};
[[noreturn]] void fail(const PlacedJson& place, const std::string& message);
/// Returns what read() returns, or the failure that it throws as BadDescription.
template <typename Read>
auto caught(const Read& read) -> Result<decltype(read())> {
  try {
    return read();
  } catch (const BadDescription& bad) {
    return bad.failure;
  }
}

/// Throws for keys that are not among these, which a typing error may have made.
void allow_keys(const PlacedJson& object, std::span<const std::string_view> keys);
/// Returns the member; throws where there is none.
const PlacedJson& need(const PlacedJson& object, std::string_view key, std::string_view what);

const PlacedJson::Members& read_object(const PlacedJson& value);
const PlacedJson::Items& read_array(const PlacedJson& value, std::size_t most);
/// Of 1 to `most` printable characters.
std::string read_text(const PlacedJson& value, std::size_t most = 4096);
/// A name as C has them.
std::string read_name(const PlacedJson& value);
void check_name(const PlacedJson& place, const std::string& name);
std::int64_t read_integer(const PlacedJson& value, std::int64_t least, std::int64_t most);
double read_number(const PlacedJson& value);
/// One of these words; returns its index.
std::size_t read_word(const PlacedJson& value, std::span<const std::string_view> words);
/// A string, or an array of them.
std::vector<std::string> read_texts(const PlacedJson& value);
/// Options of a compiler.
std::vector<std::string> read_options(const PlacedJson& value);
/// A file within the description's folder: no absolute path, no "..".
std::string read_file_name(const PlacedJson& value);
std::vector<std::string> read_file_names(const PlacedJson& value);

/// A formula: a number, a truth value, or a string that is one. Its names must be among these.
Formula read_formula(const PlacedJson& value, const std::vector<std::string>& names);
/// The value that a scalar of the file means, if it is among these; else null.
const FormulaValue* find_value(const std::vector<FormulaValue>& values, const PlacedJson& scalar);
/// The values of a parameter: an array, or a string that is a formula of a list.
std::vector<FormulaValue> read_values(const PlacedJson& value);

}  // namespace greta::kernels::described
