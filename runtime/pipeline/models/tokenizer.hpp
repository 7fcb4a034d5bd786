#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pipeline/models/llama_config.hpp"

namespace greta::runtime {

/// Converts text to a model's tokens and back.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Returns the tokens of a text. If `bos` is set, the beginning-of-text token comes first.
  /// Special tokens in the text are recognised if the tokenizer's file lists them (tokenizer.json,
  /// GGUF). An empty text gives at most the beginning-of-text token. Throws Error for text that is
  /// not UTF-8.
  virtual std::vector<std::int32_t> encode(std::string_view text, bool bos) const = 0;

  /// Returns the bytes that a token adds to a text. They may be incomplete characters, see
  /// TextStream. Special tokens add nothing; ids without a token add U+FFFD. `first`: no token
  /// before adds any; tokenizers that prepend a space to texts drop it then.
  virtual std::string decode(std::int32_t id, bool first) const = 0;

  virtual std::int64_t vocab_size() const = 0;  ///< largest id + 1
  virtual std::int32_t bos() const = 0;
};

/// Converts a stream of tokens to text. Bytes of a character are held until it is complete, so the
/// output is always UTF-8. Bytes that belong to no character become U+FFFD.
class TextStream {
 public:
  /// `before` are the tokens before the first one, e.g. of a prompt.
  explicit TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before = {});

  std::string push(std::int32_t id);  ///< may be empty
  std::string finish();               ///< U+FFFD for an incomplete character, or an empty string

 private:
  const Tokenizer& tokenizer_;
  bool first_ = true;  ///< no token has had a text
  std::string held_;
};

/// Opens the tokenizer of a model: a tokenizer.json of Hugging Face (BPE: byte-level as in Llama 3,
/// or SentencePiece as in Llama 2), a tokenizer.model of SentencePiece, which has ".model" in its
/// name, a tok*.bin of llama2.c, a GGUF file, or a folder that contains a tokenizer.json or else a
/// tokenizer.model. Throws Error with a one-line message for damaged files, unsupported features,
/// and tokens outside of the model's vocabulary.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& from,
                                          const LlamaConfig& config);
/// Returns the path of a model's tokenizer: a GGUF file itself, tokenizer.json or tokenizer.model
/// in a folder, or tokenizer.bin or tok<vocab>.bin next to a checkpoint. Throws Error that names
/// the paths tried.
std::filesystem::path find_tokenizer(const std::filesystem::path& model, const LlamaConfig& config);

}  // namespace greta::runtime
