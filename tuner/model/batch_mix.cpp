#include "tuner/model/batch_mix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <sstream>
#include <utility>

#include "kernels/model/random.hpp"
#include "kernels/planning/number_attribute.hpp"
#include "runtime/device/system/input_file.hpp"
#include "runtime/device/text/printable.hpp"
#include "runtime/device/text/utf8.hpp"

namespace greta::tuner::model {
namespace {

constexpr std::uint64_t most_bytes = 1 << 20;
constexpr std::int64_t most_tokens = 1 << 24, most_sequences = 1 << 16;

/// A member of MixPart, and the numbers it can have.
struct Member {
  const char* name;
  std::int64_t MixPart::*value;
  std::int64_t least, most;
};

constexpr Member members[] = {{"prompt", &MixPart::prompt, 1, most_tokens},
                              {"generated", &MixPart::generated, 1, most_tokens},
                              {"count", &MixPart::count, 1, most_sequences},
                              {"prefix", &MixPart::prefix, 0, most_tokens}};

/// Reads a line without its comment. Throws Error without the line's number.
MixPart read_part(const std::string& line) {
  const auto refuse = [](std::string why) {
    throw Error(Failure{Status::invalid_argument, std::move(why), {}});
  };
  MixPart part;
  std::vector<std::string> seen;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::size_t equal = word.find('=');
    const std::string name = word.substr(0, equal);
    const auto member = std::find_if(std::begin(members), std::end(members),
                                     [&](const Member& one) { return name == one.name; });
    if (equal == std::string::npos || member == std::end(members)) {
      refuse(fmt::format("{}: must be prompt=, generated=, count= or prefix= with a number",
                         printable(word)));
    }
    const auto value = whole_number(word.substr(equal + 1));
    if (!value || *value < member->least || *value > member->most) {
      refuse(fmt::format("{}: must be between {} and {}", printable(word), member->least,
                         member->most));
    }
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) refuse(name + " occurs twice");
    seen.push_back(name);
    part.*member->value = *value;
  }
  if (part.prompt == 0) refuse("prompt= is missing");
  if (part.generated == 0) refuse("generated= is missing");
  if (part.prefix > part.prompt) {
    refuse(fmt::format("prefix={}: is more than prompt={}", part.prefix, part.prompt));
  }
  return part;
}

template <typename Of>
std::int64_t sum_over(const BatchMix& mix, Of of) {
  std::int64_t sum = 0;
  for (const MixPart& part : mix.parts) sum += part.count * of(part);
  return sum;
}

}  // namespace

std::int64_t BatchMix::sequences() const {
  return sum_over(*this, [](const MixPart&) { return 1; });
}

std::int64_t BatchMix::prompt_tokens() const {
  return sum_over(*this, [](const MixPart& part) { return part.prompt; });
}

std::int64_t BatchMix::generated_tokens() const {
  return sum_over(*this, [](const MixPart& part) { return part.generated; });
}

std::int64_t BatchMix::longest() const {
  std::int64_t most = 0;
  for (const MixPart& part : parts) most = std::max(most, part.prompt + part.generated);
  return most;
}

BatchMix read_batch_mix(const std::filesystem::path& file) {
  const std::string text = read_file(file, most_bytes).value();
  std::istringstream lines{std::string(without_byte_order_mark(text))};
  BatchMix mix;
  int number = 0;
  const auto fail = [&](const std::string& why) {
    throw Error(Failure{
        Status::invalid_argument, fmt::format("{}:{}: {}", file.string(), number, why), {}});
  };
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.resize(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      mix.parts.push_back(read_part(line));
    } catch (const Error& error) {
      fail(error.what());
    }
    if (mix.sequences() > most_sequences) {
      fail(fmt::format("more than {} sequences", most_sequences));
    }
  }
  if (mix.parts.empty()) {
    throw Error(Failure{Status::invalid_argument, file.string() + ": has no sequences", {}});
  }
  return mix;
}

std::string text_of(const BatchMix& mix) {
  std::string text;
  for (const MixPart& part : mix.parts) {
    text += fmt::format("prompt={} generated={} count={}", part.prompt, part.generated, part.count);
    text += part.prefix > 0 ? fmt::format(" prefix={}\n", part.prefix) : "\n";
  }
  return text;
}

std::vector<LlamaRequest> requests_of(const BatchMix& mix, std::int64_t vocab, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto token = [&] {
    return static_cast<std::int32_t>(uniform_below(random, static_cast<std::uint64_t>(vocab)));
  };
  std::vector<LlamaRequest> requests;
  for (const MixPart& part : mix.parts) {
    std::vector<std::int32_t> prefix(static_cast<std::size_t>(part.prefix));
    std::generate(prefix.begin(), prefix.end(), token);
    for (std::int64_t i = 0; i < part.count; ++i) {
      LlamaRequest& request = requests.emplace_back();
      request.prompt = prefix;
      while (static_cast<std::int64_t>(request.prompt.size()) < part.prompt) {
        request.prompt.push_back(token());
      }
      request.tokens = part.generated;
    }
  }
  for (std::size_t i = requests.size(); i > 1; --i) {
    std::swap(requests[i - 1], requests[uniform_below(random, i)]);
  }
  return requests;
}

}  // namespace greta::tuner::model
