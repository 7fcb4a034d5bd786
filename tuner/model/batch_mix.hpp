#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/pipeline/llama/batch_scheduler.hpp"

namespace greta::tuner::model {

/// Sequences of equal lengths.
struct MixPart {
  std::int64_t prompt = 0;     ///< tokens of a prompt
  std::int64_t generated = 0;  ///< tokens that follow it
  std::int64_t count = 1;      ///< number of sequences
  std::int64_t prefix = 0;     ///< tokens with which all prompts of the part begin

  bool operator==(const MixPart&) const = default;
};

/// Sequences of different lengths that a model serves (docs/llama.md).
struct BatchMix {
  std::vector<MixPart> parts;

  std::int64_t sequences() const;
  std::int64_t prompt_tokens() const;     ///< of all sequences
  std::int64_t generated_tokens() const;  ///< of all sequences
  std::int64_t longest() const;           ///< most tokens of a sequence
};

/// Reads a mix: a line for each part, of words NAME=NUMBER with the names of MixPart's members, of
/// which `prompt` and `generated` are required. Text after # is ignored. Throws Error, which names
/// the line.
BatchMix read_batch_mix(const std::filesystem::path& file);
/// Returns a mix as a file has it.
std::string text_of(const BatchMix& mix);

/// Returns the sequences of a mix in random order, with prompts of random tokens.
std::vector<LlamaRequest> requests_of(const BatchMix& mix, std::int64_t vocab, std::uint64_t seed);

}  // namespace greta::tuner::model
