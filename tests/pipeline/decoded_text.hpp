#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/pipeline/models/llama_config.hpp"
#include "runtime/pipeline/models/tokenizer.hpp"
#include "tests/layers.hpp"

/// What tests of all tokenizers share.
namespace greta::test {

/// Returns the configuration of a model with so many tokens.
inline runtime::LlamaConfig config_of(std::int64_t vocab) {
  runtime::LlamaConfig config;
  config.vocab = vocab;
  return config;
}

/// Returns the text of tokens that are decoded one by one.
inline std::string decoded(const runtime::Tokenizer& tokenizer,
                           const std::vector<std::int32_t>& ids) {
  runtime::TextStream stream(tokenizer);
  std::string text;
  for (const std::int32_t id : ids) text += stream.push(id);
  return text + stream.finish();
}

}  // namespace greta::test
