#include "kernels/described/fields.hpp"

#include <cmath>
#include <limits>

#include "kernels/described/compiler_options.hpp"
#include "kernels/described/names.hpp"

namespace greta::kernels::described {
namespace {

constexpr std::size_t most_values = 4096;  // of a parameter

std::string listed(std::span<const std::string_view> words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    text += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

FormulaValue value_of(const PlacedJson& item) {
  if (item.truth() != nullptr) return {*item.truth()};
  if (item.integer() != nullptr) return {*item.integer()};
  if (item.text() != nullptr) return {*item.text()};
  fail(item, fmt::format("must be an integer, a truth value or a word, not {}", item.shown()));
}

void check_values(const PlacedJson& place, const std::vector<FormulaValue>& values) {
  if (values.empty()) fail(place, "has no values");
  if (values.size() > most_values) fail(place, fmt::format("has more than {} values", most_values));
  for (const FormulaValue& value : values) {
    if (value.is.index() != values.front().is.index()) {
      fail(place, fmt::format("has {} and {}: values must be of one kind", values.front().kind(),
                              value.kind()));
    }
    if (value.list() != nullptr || (value.is_number() && !value.is_integer())) {
      fail(place, fmt::format("has {}, not integers, truth values or words", value.text()));
    }
    const bool fits =
        !value.is_integer() || (value.integer() >= std::numeric_limits<std::int32_t>::min() &&
                                value.integer() <= std::numeric_limits<std::int32_t>::max());
    if (!fits) fail(place, fmt::format("{} is not an integer of 32 bits", value.text()));
    if (std::count(values.begin(), values.end(), value) > 1) {
      fail(place, fmt::format("has {} twice", value.text()));
    }
  }
}

}  // namespace

void fail(const PlacedJson& place, const std::string& message) {
  throw BadDescription{place.failure(message)};
}

void allow_keys(const PlacedJson& object, std::span<const std::string_view> keys) {
  for (const auto& [key, value] : read_object(object)) {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    fail(value, fmt::format("the key is unknown; there are {}", listed(keys)));
  }
}

const PlacedJson& need(const PlacedJson& object, std::string_view key, std::string_view what) {
  read_object(object);
  const PlacedJson* const value = object.find(key);
  if (value == nullptr) fail(object, fmt::format("\"{}\" is missing: {}", key, what));
  return *value;
}

const PlacedJson::Members& read_object(const PlacedJson& value) {
  if (value.members() == nullptr)
    fail(value, fmt::format("must be an object, not {}", value.shown()));
  return *value.members();
}

const PlacedJson::Items& read_array(const PlacedJson& value, std::size_t most) {
  if (value.items() == nullptr) fail(value, fmt::format("must be an array, not {}", value.shown()));
  if (value.items()->size() > most) fail(value, fmt::format("has more than {} items", most));
  return *value.items();
}

std::string read_text(const PlacedJson& value, std::size_t most) {
  if (value.text() == nullptr) fail(value, fmt::format("must be a string, not {}", value.shown()));
  const std::string& text = *value.text();
  if (text.empty()) fail(value, "must not be empty");
  if (text.size() > most) fail(value, fmt::format("has more than {} characters", most));
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < ' ') fail(value, "has control characters");
  }
  return text;
}

void check_name(const PlacedJson& place, const std::string& name) {
  if (name.size() > 64 || !is_name(name))
    fail(place, "must be named by up to 64 letters, digits and _, no digit first");
}

std::string read_name(const PlacedJson& value) {
  std::string name = read_text(value);
  check_name(value, name);
  return name;
}

std::int64_t read_integer(const PlacedJson& value, std::int64_t least, std::int64_t most) {
  const bool valid =
      value.integer() != nullptr && *value.integer() >= least && *value.integer() <= most;
  if (!valid) {
    fail(value, least == most ? fmt::format("must be {}, not {}", least, value.shown())
                              : fmt::format("must be an integer from {} to {}, not {}", least, most,
                                            value.shown()));
  }
  return *value.integer();
}

double read_number(const PlacedJson& value) {
  if (value.integer() != nullptr) return static_cast<double>(*value.integer());
  if (value.real() == nullptr || !std::isfinite(*value.real())) {
    fail(value, fmt::format("must be a number, not {}", value.shown()));
  }
  return *value.real();
}

std::size_t read_word(const PlacedJson& value, std::span<const std::string_view> words) {
  const std::string* const text = value.text();
  const auto found = std::find(words.begin(), words.end(), text == nullptr ? "" : *text);
  if (text == nullptr || found == words.end()) {
    fail(value, fmt::format("must be {}, not {}", listed(words), value.shown()));
  }
  return static_cast<std::size_t>(found - words.begin());
}

std::vector<std::string> read_texts(const PlacedJson& value) {
  if (value.text() != nullptr) return {read_text(value)};
  std::vector<std::string> texts;
  for (const PlacedJson& item : read_array(value, 256)) texts.push_back(read_text(item));
  return texts;
}

std::vector<std::string> read_options(const PlacedJson& value) {
  std::vector<std::string> options = read_texts(value);
  for (std::size_t i = 0; i < options.size(); ++i) {
    const PlacedJson& place = value.items() != nullptr ? value.items()->at(i) : value;
    if (is_allowed_option(options[i])) continue;
    fail(place, fmt::format("{} is not an option that a description may have; there are {}",
                            place.shown(), allowed_options()));
  }
  return options;
}

std::string read_file_name(const PlacedJson& value) {
  std::string name = read_text(value, 1024);
  bool inside = name[0] != '/' && name.find('\\') == std::string::npos;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('/', at), name.size());
    if (name.compare(at, end - at, "..") == 0) inside = false;
    at = end + 1;
  }
  if (!inside) fail(value, fmt::format("{} is not within the description's folder", value.shown()));
  return name;
}

std::vector<std::string> read_file_names(const PlacedJson& value) {
  if (value.text() != nullptr) return {read_file_name(value)};
  std::vector<std::string> names;
  for (const PlacedJson& item : read_array(value, 256)) names.push_back(read_file_name(item));
  return names;
}

Formula read_formula(const PlacedJson& value, const std::vector<std::string>& names) {
  const auto constant = [&](FormulaValue number) {
    Formula formula = Formula::constant(std::move(number));
    formula.set_place(value.place());
    return formula;
  };
  if (value.truth() != nullptr) return constant({*value.truth()});
  if (value.integer() != nullptr) return constant({*value.integer()});
  if (value.real() != nullptr) return constant({*value.real()});
  if (value.text() == nullptr) {
    fail(value, fmt::format("must be a number or a formula, not {}", value.shown()));
  }
  auto formula = Formula::parse(*value.text());
  if (!formula) {
    fail(value, fmt::format("in the formula {}, {}", value.shown(), formula.failure().message));
  }
  for (const std::string& name : formula->names()) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::string known;
    for (const std::string& one : names) known += (known.empty() ? "" : ", ") + one;
    fail(value, fmt::format("the formula {} reads {}, which is unknown here; {}", value.shown(),
                            name, known.empty() ? "no names are known" : "known are " + known));
  }
  formula->set_place(value.place());
  return *std::move(formula);
}

const FormulaValue* find_value(const std::vector<FormulaValue>& values, const PlacedJson& scalar) {
  const auto found = std::find_if(values.begin(), values.end(), [&](const FormulaValue& one) {
    return (scalar.truth() != nullptr && one == FormulaValue{*scalar.truth()}) ||
           (scalar.integer() != nullptr && one == FormulaValue{*scalar.integer()}) ||
           (scalar.text() != nullptr && one == FormulaValue{*scalar.text()});
  });
  return found == values.end() ? nullptr : &*found;
}

std::vector<FormulaValue> read_values(const PlacedJson& value) {
  std::vector<FormulaValue> values;
  if (value.text() == nullptr) {
    for (const PlacedJson& item : read_array(value, most_values)) values.push_back(value_of(item));
  } else {
    const auto list = read_formula(value, {}).value(std::vector<FormulaValue>{});
    if (!list)
      fail(value, fmt::format("in the formula {}, {}", value.shown(), list.failure().message));
    if (list->list() == nullptr) {
      fail(value, fmt::format("the formula {} is {}, not a list", value.shown(), list->kind()));
    }
    values = *list->list();
  }
  check_values(value, values);
  return values;
}

}  // namespace greta::kernels::described
