#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pipeline/models/text/character_map.hpp"
#include "runtime/pipeline/models/text/score_tokenizer.hpp"

namespace greta::runtime {

/// What a tokenizer.model of SentencePiece says.
struct SentencePieceModel {
  enum class Kind { unigram, bpe };
  Kind kind = Kind::unigram;
  std::vector<ScoredToken> pieces;  ///< by id, with "▁" for spaces; texts differ and aren't empty
  std::int32_t unknown = 0;         ///< the only piece of that kind
  std::int32_t bos = 1;             ///< -1: none
  bool byte_fallback = false;       ///< pieces have all 256 bytes
  std::string unknown_surface = " \u2047 ";  ///< what the unknown piece is decoded to
  CharacterMap characters;
  bool adds_space = true;            ///< in front of texts (add_dummy_prefix)
  bool removes_extra_spaces = true;  ///< all but one between words, and those around the text
};

/// Reads a serialised ModelProto (sentencepiece_model.proto of SentencePiece). Throws Error, which
/// begins with `name`, for other files, and for what can't be honoured: models of whole words and
/// of characters, `treat_whitespace_as_suffix`, spaces that aren't escaped, and a denormaliser.
SentencePieceModel read_sentencepiece(std::string_view bytes, const std::string& name);

}  // namespace greta::runtime
