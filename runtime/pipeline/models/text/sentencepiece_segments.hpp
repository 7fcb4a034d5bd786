#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/pipeline/models/text/merges.hpp"
#include "runtime/pipeline/models/text/piece_index.hpp"
#include "runtime/pipeline/models/text/sentencepiece_file.hpp"

namespace greta::runtime {

/// Normalises texts and divides them into pieces as SentencePiece does. The model must outlive it.
/// Source: Kudo and Richardson, "SentencePiece", EMNLP 2018, and its normalizer.cc, bpe_model.cc
/// and unigram_model.cc.
class SentencePieceSegments {
 public:
  explicit SentencePieceSegments(const SentencePieceModel& model);

  /// Returns a text with "▁" for spaces. `adds_space`: whether one comes in front.
  std::string normalise(std::string_view text, bool adds_space) const;

  /// Returns the pieces of a normalised text. The unknown one stands for each character that none
  /// has.
  std::vector<TextSymbol> divide(std::string_view text) const {
    return model_.kind == SentencePieceModel::Kind::bpe ? merge(text) : most_likely(text);
  }

 private:
  TokenKind kind(std::int32_t id) const { return model_.pieces[static_cast<std::size_t>(id)].kind; }
  float score(std::int32_t id) const { return model_.pieces[static_cast<std::size_t>(id)].score; }
  /// Returns what a text begins with after normalisation, and its length in the text.
  std::pair<std::string_view, std::size_t> normalised(std::string_view text) const;
  std::vector<TextSymbol> merge(std::string_view text) const;
  std::vector<TextSymbol> most_likely(std::string_view text) const;

  const SentencePieceModel& model_;
  std::unordered_map<std::string_view, std::int32_t> ids_;  ///< of pieces that texts can have
  PieceIndex pieces_;                                       ///< the same
  PieceIndex own_;              ///< user-defined ones, which texts have wherever they can
  std::size_t longest_ = 0;     ///< of the pieces that texts can have
  float least_ = 0, most_ = 0;  ///< scores of normal ones
};

}  // namespace greta::runtime
