#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/pipeline/models/mapped_file.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"

namespace greta::runtime {

// The kinds of files behind load_tokenizer(). Both throw Error with one line.

/// A tok*.bin of llama2.c: an int32 with the longest token's length, then for each token an f32
/// score, an int32 length and its bytes. Token 0 is unknown, 1 the beginning, 2 the end. Encoding
/// puts a space in front, and merges by the highest score; characters without a token become those
/// of their bytes, "<0xE2>". Source: Karpathy, llama2.c, run.c; Kudo and Richardson,
/// "SentencePiece", EMNLP 2018.
std::unique_ptr<Tokenizer> load_score_tokenizer(std::shared_ptr<const MappedFile> file,
                                                const LlamaConfig& config);

/// A tokenizer.json of Hugging Face's tokenizers: BPE by ranked merges, over the bytes of words
/// that a regular expression finds (Llama 3), or over a whole text's characters with tokens for
/// bytes (Llama 2).
std::unique_ptr<Tokenizer> load_json_tokenizer(const MappedFile& file, const LlamaConfig& config);

/// The byte that a token as "<0xE2>" stands for.
std::optional<unsigned char> byte_of_token(std::string_view token);
/// Ids of the tokens for each byte; -1: there is none.
using ByteTokens = std::array<std::int32_t, 256>;

/// Throws Error for text that is no UTF-8.
void check_prompt(std::string_view text);

}  // namespace greta::runtime
