#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/device/result.hpp"

namespace greta::tuner {

/// Returns whether bytes begin like a gzip stream.
bool is_gzip(std::string_view bytes);
struct Decompressed {
  std::string text;
  bool complete = true;  ///< false: the stream lacks its end
};

/// Decompresses a gzip stream of one or several members, or what there is of one whose end is
/// missing. Fails with `io` and the reason if it is damaged, or longer than `most_bytes` when
/// decompressed.
Result<Decompressed> decompress_beginning(std::string_view bytes, std::uint64_t most_bytes);
/// Decompresses a gzip stream of one or several members. Fails with `io` and the reason if it is
/// damaged, incomplete, or longer than `most_bytes` when decompressed.
Result<std::string> decompress(std::string_view bytes, std::uint64_t most_bytes);
/// Returns a gzip stream of one member, the same for the same bytes.
std::string compress(std::string_view bytes);

}  // namespace greta::tuner
