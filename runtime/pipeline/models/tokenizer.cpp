#include "runtime/pipeline/models/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/device/result.hpp"
#include "runtime/device/text/utf8.hpp"
#include "runtime/pipeline/models/formats/llama_files.hpp"
#include "runtime/pipeline/models/mapped_file.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {

TextStream::TextStream(const Tokenizer& tokenizer, std::span<const std::int32_t> before)
    : tokenizer_(tokenizer), first_(std::all_of(before.begin(), before.end(), [&](std::int32_t id) {
        return tokenizer.decode(id, false).empty();
      })) {}

std::string TextStream::push(std::int32_t id) {
  held_ += tokenizer_.decode(id, first_);
  first_ = first_ && tokenizer_.decode(id, false).empty();
  std::string text;
  std::size_t at = 0;
  while (at < held_.size()) {
    const Utf8Start start = first_character(std::string_view(held_).substr(at));
    if (start.kind == Utf8Start::Kind::incomplete) break;
    if (start.kind == Utf8Start::Kind::character) {
      text.append(held_, at, start.bytes);
    } else {
      text += replacement_character;
    }
    at += start.bytes;
  }
  held_.erase(0, at);
  return text;
}

std::string TextStream::finish() {
  const bool incomplete = !held_.empty();
  held_.clear();
  return incomplete ? std::string(replacement_character) : std::string();
}

std::optional<unsigned char> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') return std::nullopt;
  unsigned char byte = 0;
  const char* end = token.data() + 5;
  const auto [rest, error] = std::from_chars(token.data() + 3, end, byte, 16);
  if (error != std::errc() || rest != end) return std::nullopt;
  return byte;
}

void check_prompt(std::string_view text) {
  if (const auto at = invalid_utf8(text)) {
    throw Error(fmt::format("the text isn't UTF-8 from byte {} on", *at));
  }
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& from,
                                          const LlamaConfig& config) {
  std::error_code none;
  const bool is_folder = std::filesystem::is_directory(from, none);
  const std::filesystem::path path = is_folder ? find_tokenizer(from, config) : from;
  if (is_gguf(path)) return load_gguf_tokenizer(path, config);
  const auto file = MappedFile::open(path, most_tokenizer_bytes);
  const std::string_view text = file->text();
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  const bool json = start != std::string_view::npos && text[start] == '{';
  if (json) return load_json_tokenizer(*file, config);
  const bool pieces = file->path().filename().string().find(".model") != std::string::npos;
  return pieces ? load_sentencepiece_tokenizer(*file, config)
                : load_llama2c_tokenizer(*file, config);
}

std::filesystem::path find_tokenizer(const std::filesystem::path& model,
                                     const LlamaConfig& config) {
  std::error_code none;
  if (std::filesystem::is_regular_file(model, none) && is_gguf(model)) return model;
  const bool is_folder = std::filesystem::is_directory(model, none);
  const std::filesystem::path folder = is_folder ? model : model.parent_path();
  const std::string numbered = fmt::format("tok{}.bin", config.vocab);
  const std::vector<std::string> names =
      is_folder ? std::vector<std::string>{"tokenizer.json", "tokenizer.model"}
                : std::vector<std::string>{"tokenizer.bin", numbered};
  for (const std::string& name : names) {
    if (std::filesystem::exists(folder / name, none)) return folder / name;
  }
  throw Error(fmt::format("{}: found no tokenizer: no {} in {}", model.string(),
                          fmt::join(names, " or "), folder.empty() ? "." : folder.string()));
}

}  // namespace greta::runtime
