#include "kernels/described/placed_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

namespace greta::kernels {
namespace {

/// Builds the tree from the events of the library's parser. Events come in the order of the text,
/// in which a cursor finds the beginning of each token.
class PlacingReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit PlacingReader(std::string_view text) : text_(text) {}

  PlacedJson root;
  std::optional<Failure> failed;

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return scalar(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    // The parser calls this for all integers without a sign.
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return scalar(static_cast<double>(value));
    }
    return scalar(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return scalar(value);
  }
  bool string(string_t& value) override { return scalar(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // not in JSON
  bool start_object(std::size_t /*count*/) override { return open(PlacedJson::Members{}); }
  bool start_array(std::size_t /*count*/) override { return open(PlacedJson::Items{}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    const PlacedJson place = placed();
    auto& members = std::get<PlacedJson::Members>(open_.back()->is);
    const auto same = [&](const auto& member) { return member.first == value; };
    if (std::any_of(members.begin(), members.end(), same)) {
      failed = place.failure(fmt::format("the key {} occurs twice", value));
      return false;
    }
    key_ = std::move(value);
    return true;
  }

  bool parse_error(std::size_t byte, const std::string& /*token*/,
                   const nlohmann::json::exception& error) override {
    at_ = std::min(byte == 0 ? 0 : byte - 1, text_.size());
    std::string_view message = error.what();
    const std::size_t colon = message.rfind(": ");  // in front of it: the parser's own place
    const std::size_t dash = message.find(" - ");
    if (dash != std::string_view::npos) {
      message.remove_prefix(dash + 3);
    } else if (colon != std::string_view::npos) {
      message.remove_prefix(colon + 2);
    }
    PlacedJson place;
    if (error.id == out_of_range) message = "a number of more than 64 bits";
    if (error.id == out_of_range) at_ = text_.find_last_not_of("+-.0123456789eE", at_ - 1) + 1;
    set_place(place);
    failed = place.failure(printable(message));
    return false;
  }

 private:
  static constexpr int out_of_range = 406;  // the library's id of numbers beyond those of double

  static std::string printable(std::string_view message) {
    std::string text(message.substr(0, 200));
    for (char& c : text) c = c >= ' ' && c <= '~' ? c : '?';
    return text;
  }

  void set_place(PlacedJson& value) {
    for (; seen_ < at_; ++seen_) {
      line_ += text_[seen_] == '\n' ? 1 : 0;
      if (text_[seen_] == '\n') line_begin_ = seen_ + 1;
    }
    value.line = line_;
    value.column = static_cast<int>(at_ - line_begin_) + 1;
  }

  void skip_comment() {
    const bool long_one = text_.compare(at_, 2, "/*") == 0;
    const std::size_t end = text_.find(long_one ? "*/" : "\n", at_ + 2);
    at_ = end == std::string_view::npos ? text_.size() : end + (long_one ? 2 : 1);
  }

  /// Goes to the next token, passes it, and returns a value with its place.
  PlacedJson placed() {
    constexpr std::string_view between = " \t\r\n,:";
    while (at_ < text_.size() &&
           (between.find(text_[at_]) != std::string_view::npos || text_[at_] == '/')) {
      if (text_[at_] == '/') {
        skip_comment();
      } else {
        ++at_;
      }
    }
    PlacedJson value;
    set_place(value);
    const char first = at_ < text_.size() ? text_[at_] : '\0';
    if (first == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) at_ += text_[at_] == '\\' ? 1 : 0;
      ++at_;
    } else if (first == '{' || first == '}' || first == '[' || first == ']') {
      ++at_;
    } else {
      at_ = std::min(text_.find_first_of(" \t\r\n,:]}/", at_), text_.size());
    }
    at_ = std::min(at_, text_.size());
    return value;
  }

  /// Returns where the next value belongs.
  PlacedJson& place_of_next() {
    PlacedJson value = placed();
    if (open_.empty()) {
      root = std::move(value);
      return root;
    }
    PlacedJson& parent = *open_.back();
    if (auto* items = std::get_if<PlacedJson::Items>(&parent.is)) {
      value.path = fmt::format("{}[{}]", parent.path, items->size());
      return items->emplace_back(std::move(value));
    }
    auto& members = std::get<PlacedJson::Members>(parent.is);
    value.path = parent.path.empty() ? key_ : fmt::format("{}.{}", parent.path, key_);
    return members.emplace_back(key_, std::move(value)).second;
  }

  template <typename T>
  bool scalar(T value) {
    place_of_next().is = std::move(value);
    return true;
  }
  template <typename T>
  bool open(T value) {
    PlacedJson& place = place_of_next();
    place.is = std::move(value);
    open_.push_back(&place);  // its parent gets no further items until it is closed
    if (open_.size() <= PlacedJson::most_depth) return true;
    failed = place.failure(fmt::format("a document is at most {} deep", PlacedJson::most_depth));
    return false;
  }
  bool close() {
    placed();
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  std::vector<PlacedJson*> open_;
  std::string key_;
  std::size_t at_ = 0, seen_ = 0, line_begin_ = 0;
  int line_ = 1;
};

}  // namespace

Result<PlacedJson> PlacedJson::parse(std::string_view text) {
  if (text.size() > most_bytes) {
    return invalid_argument(fmt::format("a document has at most {} MiB", most_bytes >> 20));
  }
  PlacingReader reader(text);
  const bool read = nlohmann::json::sax_parse(text, &reader, nlohmann::json::input_format_t::json,
                                              /*strict=*/true, /*ignore_comments=*/true);
  if (reader.failed) return *reader.failed;
  if (!read) return invalid_argument("this is not a JSON document");
  return std::move(reader.root);
}

const PlacedJson* PlacedJson::find(std::string_view key) const {
  if (members() == nullptr) return nullptr;
  for (const auto& [name, value] : *members()) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::string_view PlacedJson::kind() const {
  constexpr std::array<std::string_view, 7> kinds{
      "null", "a truth value", "an integer", "a number", "a string", "an array", "an object"};
  return kinds.at(is.index());
}

std::string PlacedJson::shown() const {
  constexpr std::size_t most = 40;
  if (truth() != nullptr) return *truth() ? "true" : "false";
  if (integer() != nullptr) return std::to_string(*integer());
  if (real() != nullptr) return fmt::format("{}", *real());
  if (text() == nullptr) return std::string(kind());
  return fmt::format("\"{}{}\"", text()->substr(0, most), text()->size() > most ? "…" : "");
}

std::string PlacedJson::place() const {
  return fmt::format("line {}, column {}{}{}", line, column, path.empty() ? "" : ", ", path);
}

Failure PlacedJson::failure(std::string_view message) const {
  return invalid_argument(fmt::format("{}: {}", place(), message));
}

}  // namespace greta::kernels
