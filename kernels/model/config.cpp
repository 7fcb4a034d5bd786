#include "kernels/model/config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/device/result.hpp"
#include "runtime/device/text/hash.hpp"

namespace greta::kernels {
namespace {

template <typename AnyConfig>
auto find(AnyConfig& config, std::string_view name) {
  // Constraints call this for each of millions of combinations: sizes and last letters are compared
  // first, which differ more often than the first ones. The rest is too short for a call.
  auto at = config.values.begin();
  const auto end = config.values.end();
  if (name.empty()) return end;
  for (; at != end; ++at) {
    const std::string& own = at->first;
    if (own.size() == name.size() && own.back() == name.back() &&
        std::equal(name.begin(), name.end() - 1, own.begin())) {
      break;
    }
  }
  return at;
}

template <typename AnyConfig>
auto& value_of(AnyConfig& config, std::string_view name) {
  const auto found = find(config, name);
  if (found == config.values.end()) {
    throw Error(fmt::format("configuration \"{}\" has no parameter {}", config.text(), name));
  }
  return found->second;
}

}  // namespace

int Config::operator[](std::string_view name) const {
  return value_of(*this, name);
}

int& Config::value(std::string_view name) {
  return value_of(*this, name);
}

bool Config::has(std::string_view name) const {
  return find(*this, name) != values.end();
}

std::string Config::text() const {
  std::string out = variant;
  for (const auto& [name, value] : values) out += fmt::format(" {}={}", name, value);
  return out;
}

std::string Config::shown() const {
  if (words == nullptr) return text();
  std::string out = variant;
  for (const auto& [name, value] : values)
    out += fmt::format(" {}={}", name, shown_value(*words, name, value));
  return out;
}

std::string shown_value(const ValueWords& words, std::string_view parameter, int value) {
  const auto known = words.find(parameter);
  const auto place = static_cast<std::size_t>(value);
  const bool is_word = known != words.end() && value >= 0 && place < known->second.size();
  return is_word ? known->second[place] : std::to_string(value);
}

std::uint64_t Config::hash() const {
  Hash hash;
  hash.add(variant);
  for (const auto& [name, value] : values) {
    hash.add(name).add(static_cast<std::uint64_t>(value));
  }
  return hash.low();
}

}  // namespace greta::kernels
