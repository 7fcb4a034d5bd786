#pragma once

#include <cstdint>
#include <vector>

#include "runtime/pipeline/models/formats/gguf_metadata.hpp"

namespace greta::runtime {

/// The tokens at the ends of texts, by a GGUF file.
struct GgufEnds {
  std::int32_t bos = -1;          ///< -1: there is none
  bool adds_bos = false;          ///< whether texts begin with it
  std::vector<std::int32_t> eos;  ///< of a text, of a turn, and of a message
};

/// Reads them, with the defaults of llama.cpp. Throws Error with a one-line message.
GgufEnds gguf_ends(const GgufMetadata& metadata);

}  // namespace greta::runtime
