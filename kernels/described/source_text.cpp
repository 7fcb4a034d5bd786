#include "kernels/described/source_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

namespace greta::kernels::described {
namespace {

constexpr std::size_t most_text_bytes = std::size_t{16} << 20;

/// Headers whose contents compilers at run time have built in.
constexpr std::array<std::string_view, 7> built_in{
    "hip/hip_runtime.h", "hip/hip_runtime_api.h", "hip/hip_vector_types.h",    "cuda.h",
    "cuda_runtime.h",    "cuda_runtime_api.h",    "device_launch_parameters.h"};

void skip_blanks(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
}

/// The name in an `#include` line.
std::optional<std::string> included(std::string_view line) {
  const auto rest = directive(line, "include");
  if (!rest || rest->empty() || (rest->front() != '"' && rest->front() != '<')) return std::nullopt;
  const std::size_t end = rest->find(rest->front() == '"' ? '"' : '>', 1);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(rest->substr(1, end - 1));
}

class TextBuilder {
 public:
  TextBuilder(const std::vector<std::string>& folders, const FindSource& find,
              SourceLanguage language)
      : folders_(folders), find_(find), language_(language) {}

  Result<void> add(const std::string& name) {
    const std::string* const content = find_(name);
    if (content == nullptr) {
      return invalid_argument(fmt::format("the source {} is missing", name));
    }
    return add(name, *content);
  }

  std::string take() { return std::move(text_); }

 private:
  Result<void> add(const std::string& name, std::string_view rest) {
    around_.push_back(name);
    add_line_number(name, 1);
    for (int number = 1; !rest.empty(); ++number) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      const auto header = included(line);
      const auto pragma = directive(line, "pragma");
      if (header) {
        if (auto done = add_include(name, *header, line, number); !done) return done;
      } else if (pragma && pragma->starts_with("once")) {
        once_.insert(name);
        text_ += '\n';
      } else {
        text_.append(line).append("\n");
      }
      if (text_.size() > most_text_bytes) {
        return invalid_argument(
            fmt::format("the sources have more than {} MiB", most_text_bytes >> 20));
      }
    }
    around_.pop_back();
    return {};
  }

  Result<void> add_include(const std::string& includer, const std::string& header,
                           std::string_view line, int number) {
    if (std::find(built_in.begin(), built_in.end(), header) != built_in.end()) {
      text_ += '\n';
      return {};
    }
    std::vector<std::filesystem::path> places{std::filesystem::path(includer).parent_path()};
    places.insert(places.end(), folders_.begin(), folders_.end());
    for (const auto& place : places) {
      const std::string name = (place / header).lexically_normal().string();
      if (name.starts_with("..") || name.starts_with('/')) continue;
      const std::string* const content = find_(name);
      if (content == nullptr) continue;
      const bool open = std::find(around_.begin(), around_.end(), name) != around_.end();
      if (!open && once_.count(name) == 0) {
        if (auto done = add(name, *content); !done) return done;
      }
      add_line_number(includer, number + 1);
      return {};
    }
    if (language_ == SourceLanguage::glsl) {
      return invalid_argument(
          fmt::format("{}:{}: there is no file {} in its folder or those of \"include\"", includer,
                      number, header));
    }
    text_.append(line).append("\n");
    return {};
  }

  void add_line_number(std::string name, int number) {
    std::replace(name.begin(), name.end(), '"', '_');
    text_ += fmt::format("#line {} \"{}\"\n", number, name);
  }

  const std::vector<std::string>& folders_;
  const FindSource& find_;
  SourceLanguage language_;
  std::string text_;
  std::vector<std::string> around_;  // files that are being included
  std::set<std::string> once_;
};

}  // namespace

std::optional<std::string_view> directive(std::string_view line, std::string_view word) {
  skip_blanks(line);
  if (!line.starts_with('#')) return std::nullopt;
  line.remove_prefix(1);
  skip_blanks(line);
  if (!line.starts_with(word)) return std::nullopt;
  line.remove_prefix(word.size());
  skip_blanks(line);
  return line;
}

Result<std::string> whole_text(const std::vector<std::string>& names,
                               const std::vector<std::string>& folders, const FindSource& find,
                               SourceLanguage language) {
  TextBuilder builder(folders, find, language);
  for (const std::string& name : names) {
    if (auto done = builder.add(name); !done) return done.failure();
  }
  return builder.take();
}

}  // namespace greta::kernels::described
