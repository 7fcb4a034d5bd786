#include "runtime/pipeline/models/text/sentencepiece_file.hpp"

#include <fmt/format.h>

#include <cmath>
#include <set>
#include <unordered_set>

#include "runtime/device/result.hpp"
#include "runtime/device/text/utf8.hpp"
#include "runtime/pipeline/models/text/protobuf_fields.hpp"
#include "runtime/pipeline/models/text/tokenizers.hpp"

namespace greta::runtime {
namespace {

/// Numbers of fields in sentencepiece_model.proto.
namespace model_field {
enum : std::uint32_t { pieces = 1, trainer = 2, normalizer = 3, denormalizer = 5 };
}
namespace piece_field {
enum : std::uint32_t { text = 1, score = 2, kind = 3 };
}
namespace trainer_field {
enum : std::uint32_t {
  model_type = 3,
  spaces_as_suffix = 24,
  byte_fallback = 35,
  bos_id = 41,
  unknown_surface = 44,
};
}
namespace normalizer_field {
enum : std::uint32_t { charsmap = 2, adds_space = 3, removes_extra_spaces = 4, escapes_spaces = 5 };
}

/// Returns whether it is a list for tiktoken: lines of a token in base64, a space, and its number.
bool is_tiktoken(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  const std::size_t space = line.find(' ');
  if (space == 0 || space % 4 != 0 || space + 1 >= line.size()) return false;
  const auto consists_of = [](std::string_view text, std::string_view characters) {
    return text.find_first_not_of(characters) == std::string_view::npos;
  };
  constexpr std::string_view base64 =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
  return consists_of(line.substr(0, space), base64) &&
         consists_of(line.substr(space + 1), "0123456789\r");
}

class ModelReader {
 public:
  explicit ModelReader(std::string name) : name_(std::move(name)) {}

  SentencePieceModel read(std::string_view bytes) {
    if (is_tiktoken(bytes)) refuse("it is a list of tokens for tiktoken");
    each(bytes, [&](const ProtobufField& field) {
      if (field.number > 16 || field.type != 2) refuse("it has other fields");
      if (field.number == model_field::pieces) read_piece(field.bytes);
      if (field.number == model_field::trainer) read_trainer(field.bytes);
      if (field.number == model_field::normalizer) read_normalizer(field.bytes);
      if (field.number == model_field::denormalizer) read_denormalizer(field.bytes);
    });
    check();
    return std::move(model_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(fmt::format("{}: is not a model of SentencePiece: {}", name_, what));
  }
  [[noreturn]] void not_honoured(const std::string& what) const {
    throw Error(fmt::format("{}: {}", name_, what));
  }

  template <typename Visit>
  void each(std::string_view message, const Visit& visit) const {
    ProtobufReader reader(message, name_ + ": is not a model of SentencePiece");
    while (const auto field = reader.next()) visit(*field);
  }

  /// Returns whether it is this field. Refuses one of another type.
  bool is(const ProtobufField& field, std::uint32_t number, std::uint32_t type) const {
    if (field.number != number) return false;
    if (field.type != type) refuse(fmt::format("field {} is of type {}", number, field.type));
    return true;
  }

  void read_piece(std::string_view message) {
    ScoredToken piece;
    const std::size_t id = model_.pieces.size();
    each(message, [&](const ProtobufField& field) {
      if (is(field, piece_field::text, 2)) piece.text = field.bytes;
      if (is(field, piece_field::score, 5)) piece.score = field.number32();
      if (!is(field, piece_field::kind, 0)) return;
      if (field.value < 1 || field.value > 6) {
        refuse(fmt::format("piece {} is of kind {}", id, field.value));
      }
      piece.kind = static_cast<TokenKind>(field.value);
    });
    if (std::isnan(piece.score)) refuse(fmt::format("the score of piece {} is NaN", id));
    if (piece.text.empty()) refuse(fmt::format("piece {} is empty", id));
    if (invalid_utf8(piece.text)) refuse(fmt::format("piece {} isn't UTF-8", id));
    model_.pieces.push_back(std::move(piece));
  }

  void read_trainer(std::string_view message) {
    each(message, [&](const ProtobufField& field) {
      if (is(field, trainer_field::model_type, 0)) {
        if (field.value != 1 && field.value != 2) {
          not_honoured(fmt::format("model_type is {}; allowed: 1 (unigram), 2 (BPE)", field.value));
        }
        model_.kind =
            field.value == 2 ? SentencePieceModel::Kind::bpe : SentencePieceModel::Kind::unigram;
      }
      if (is(field, trainer_field::spaces_as_suffix, 0) && field.flag()) {
        not_honoured("treat_whitespace_as_suffix is true; allowed: false");
      }
      if (is(field, trainer_field::byte_fallback, 0)) model_.byte_fallback = field.flag();
      if (is(field, trainer_field::bos_id, 0)) model_.bos = static_cast<std::int32_t>(field.value);
      if (is(field, trainer_field::unknown_surface, 2)) model_.unknown_surface = field.bytes;
    });
  }

  void read_normalizer(std::string_view message) {
    each(message, [&](const ProtobufField& field) {
      if (is(field, normalizer_field::charsmap, 2)) {
        model_.characters = CharacterMap(field.bytes, name_);
      }
      if (is(field, normalizer_field::adds_space, 0)) model_.adds_space = field.flag();
      if (is(field, normalizer_field::removes_extra_spaces, 0)) {
        model_.removes_extra_spaces = field.flag();
      }
      if (is(field, normalizer_field::escapes_spaces, 0) && !field.flag()) {
        not_honoured("escape_whitespaces is false; allowed: true");
      }
    });
  }

  void read_denormalizer(std::string_view message) const {
    each(message, [&](const ProtobufField& field) {
      if (is(field, normalizer_field::charsmap, 2) && !field.bytes.empty()) {
        not_honoured("the denormalizer has a precompiled_charsmap; allowed: none");
      }
    });
  }

  void check() {
    std::unordered_set<std::string_view> texts;
    std::set<unsigned char> bytes;
    std::int64_t unknown = 0;
    const auto count = static_cast<std::int32_t>(model_.pieces.size());
    for (std::int32_t id = 0; id < count; ++id) {
      const ScoredToken& piece = model_.pieces[static_cast<std::size_t>(id)];
      if (!texts.insert(piece.text).second) refuse(fmt::format("piece {} occurs twice", id));
      if (piece.kind == TokenKind::unknown) {
        model_.unknown = id;
        ++unknown;
      }
      if (piece.kind != TokenKind::byte) continue;
      const auto byte = byte_of_token(piece.text);
      if (!byte) refuse(fmt::format("piece {} is not a byte", id));
      bytes.insert(*byte);
    }
    if (unknown != 1) refuse(fmt::format("it has {} unknown pieces, not 1", unknown));
    if (model_.byte_fallback && bytes.size() != 256) {
      refuse(fmt::format("it has {} of 256 bytes, although byte_fallback is true", bytes.size()));
    }
    const bool control =
        model_.bos >= 0 && model_.bos < count &&
        model_.pieces[static_cast<std::size_t>(model_.bos)].kind == TokenKind::control;
    if (!control) model_.bos = -1;
  }

  std::string name_;
  SentencePieceModel model_;
};

}  // namespace

SentencePieceModel read_sentencepiece(std::string_view bytes, const std::string& name) {
  return ModelReader(name).read(bytes);
}

}  // namespace greta::runtime
