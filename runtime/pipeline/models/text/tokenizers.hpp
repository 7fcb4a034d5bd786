#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/pipeline/models/formats/json_fields.hpp"
#include "runtime/pipeline/models/mapped_file.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"

namespace greta::runtime {

// The file formats of load_tokenizer(). All functions throw Error with a one-line message.

/// Reads a tok*.bin of llama2.c: an int32 with the longest token's length, then for each token an
/// f32 score, an int32 length and its bytes. Token 0 is unknown, 1 the beginning and 2 the end of
/// text. Encoding prepends a space and merges by the highest score. Characters without a token
/// become the tokens of their bytes, e.g. "<0xE2>". Source: Karpathy, llama2.c, run.c.
std::unique_ptr<Tokenizer> load_llama2c_tokenizer(const MappedFile& file,
                                                  const LlamaConfig& config);

/// Reads a tokenizer.json of Hugging Face's tokenizers: BPE by ranked merges, over the bytes of
/// words that a regular expression finds (Llama 3), or over the characters of a whole text with
/// tokens for bytes (Llama 2).
std::unique_ptr<Tokenizer> load_json_tokenizer(const MappedFile& file, const LlamaConfig& config);
/// The same for the parsed file.
std::unique_ptr<Tokenizer> make_json_tokenizer(const JsonFields& fields, const LlamaConfig& config);

/// Reads a tokenizer.model of SentencePiece (sentencepiece_file.hpp). Texts begin with its bos
/// unless `add_bos_token` of a tokenizer_config.json beside it is false. Tokens that it lists in
/// `added_tokens_decoder`, or else added_tokens.json, are recognised in texts, as are control
/// pieces and the unknown one; the text after one gets a space in front unless `legacy` is false.
std::unique_ptr<Tokenizer> load_sentencepiece_tokenizer(const MappedFile& file,
                                                        const LlamaConfig& config);

/// Reads the tokenizer in a GGUF file, by tokenizer.ggml.model: `llama`, which merges by scores and
/// knows spaces as "▁", or `gpt2`, ranked merges over the bytes of words. The words are those of
/// tokenizer.ggml.pre, which must be a known one. Control and user-defined tokens are recognised in
/// texts. Source of the keys' meanings: llama.cpp, llama-vocab.cpp.
std::unique_ptr<Tokenizer> load_gguf_tokenizer(const std::filesystem::path& path,
                                               const LlamaConfig& config);

/// Returns the byte of a token such as "<0xE2>".
std::optional<unsigned char> byte_of_token(std::string_view token);
/// Ids of the tokens for each byte; -1: none.
using ByteTokens = std::array<std::int32_t, 256>;

/// Throws Error for text that is not UTF-8.
void check_prompt(std::string_view text);

}  // namespace greta::runtime
