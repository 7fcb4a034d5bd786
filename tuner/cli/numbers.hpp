#pragma once

#include <cstdint>
#include <string>

namespace greta {

/// The value of --seed; random where it is empty. Throws CommandError.
std::uint64_t read_seed(const std::string& text);
/// The value of an option that counts something. Throws CommandError that names the option.
std::uint64_t read_count(const std::string& option, const std::string& text, std::uint64_t most);

}  // namespace greta
