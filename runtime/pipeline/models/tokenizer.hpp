#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/pipeline/models/llama_config.hpp"

namespace greta::runtime {

/// Text to a model's tokens and back.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Throws Error for text that is not UTF-8. `bos`: put the beginning of text in front. Special
  /// tokens that are spelled out in the text are taken as such where the tokenizer's file lists
  /// them (tokenizer.json). An empty text gives no more than the beginning.
  virtual std::vector<std::int32_t> encode(std::string_view text, bool bos) const = 0;

  /// The bytes that a token adds behind `previous`, -1 at the start: not always whole characters,
  /// see TextStream. Special tokens add nothing; ids that no token has U+FFFD. Behind bos, or at
  /// the start, tokenizers that put a space in front of texts drop it.
  virtual std::string decode(std::int32_t id, std::int32_t previous) const = 0;

  virtual std::int64_t vocab_size() const = 0;  ///< the largest id + 1
  virtual std::int32_t bos() const = 0;
};

/// Turns tokens into text as they come. Bytes of a character are held until it is complete, so
/// that what is given out is always UTF-8; bytes that can't belong to any become U+FFFD.
class TextStream {
 public:
  /// `previous`: the token before the first one, as of a prompt; -1: none.
  explicit TextStream(const Tokenizer& tokenizer, std::int32_t previous = -1)
      : tokenizer_(tokenizer), previous_(previous) {}

  std::string push(std::int32_t id);  ///< may be empty
  std::string finish();               ///< U+FFFD for an incomplete character, or nothing

 private:
  const Tokenizer& tokenizer_;
  std::int32_t previous_;
  std::string held_;
};

/// Opens the tokenizer of a model: a tokenizer.json of Hugging Face (BPE: byte-level as Llama 3's,
/// or SentencePiece's as Llama 2's), a tok*.bin of llama2.c, or a folder that has a
/// tokenizer.json. Throws Error with one line for a file that is damaged or needs what isn't there,
/// and for tokens that the model's vocabulary doesn't have.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& path,
                                          const LlamaConfig& config);
/// Where a model's tokenizer is: tokenizer.json in a folder; beside a checkpoint tokenizer.bin, or
/// tok<vocab>.bin. Throws Error that names what was looked for.
std::filesystem::path find_tokenizer(const std::filesystem::path& model, const LlamaConfig& config);

}  // namespace greta::runtime
