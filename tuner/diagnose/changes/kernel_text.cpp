#include "tuner/diagnose/changes/kernel_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "tuner/diagnose/changes/preprocessor.hpp"

namespace greta::tuner {
namespace {

constexpr std::array<std::string_view, 24> long_signs{
    "<<=", ">>=", "...", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=",
    "-=",  "*=",  "/=",  "%=", "&=", "|=", "^=", "++", "--", "->", "::", "##"};

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// Returns the end of white space, a comment, a string or a preprocessor line at a place; the place
/// itself if there is none.
std::size_t end_of_gap(std::string_view text, std::size_t at, bool line_begins) {
  const auto ends = [&](std::string_view by, std::size_t from) {
    const auto found = text.find(by, from);
    return found == std::string_view::npos ? text.size() : found + by.size();
  };
  const char c = text[at];
  if (std::isspace(static_cast<unsigned char>(c)) != 0) return at + 1;
  if (text.substr(at).starts_with("//")) return ends("\n", at) - 1;
  if (text.substr(at).starts_with("/*")) return ends("*/", at);
  if (c == '"' || c == '\'') {
    for (++at; at < text.size() && text[at] != c; ++at) at += text[at] == '\\' ? 1 : 0;
    return std::min(at + 1, text.size());
  }
  if (c == '#' && line_begins) {
    while (true) {
      const auto end = ends("\n", at);
      if (end < 2 || end >= text.size() || text[end - 2] != '\\') return end;
      at = end;
    }
  }
  return at;
}

std::size_t length_of_token(std::string_view text, std::size_t at) {
  std::size_t length = 0;
  if (is_digit(text[at])) {
    while (at + length < text.size()) {
      const char c = text[at + length];
      const bool sign = (c == '-' || c == '+') && length > 0 &&
                        !text.substr(at).starts_with("0x") &&
                        (text[at + length - 1] == 'e' || text[at + length - 1] == 'E');
      if (!is_name_character(c) && c != '.' && !sign) break;
      ++length;
    }
    return length;
  }
  while (at + length < text.size() && is_name_character(text[at + length])) ++length;
  if (length > 0) return length;
  for (const std::string_view sign : long_signs) {
    if (text.substr(at).starts_with(sign)) return sign.size();
  }
  return 1;
}

/// The definitions at file scope and the names that they define.
class Definitions {
 public:
  Definitions(std::vector<SourceToken>& tokens, const std::map<std::string, std::string>& macros)
      : tokens_(tokens), macros_(macros) {
    std::size_t begin = 0, depth = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string_view text = tokens[i].text;
      if (text == "{" && depth == 0 && opens_namespace(begin)) {
        add(begin, i + 1);
        begin = i + 1;
        continue;
      }
      if (text == "{" || text == "(") ++depth;
      if ((text == "}" || text == ")") && depth > 0) --depth;
      const bool ends_block =
          text == "}" && depth == 0 && (i + 1 == tokens.size() || tokens[i + 1].text != ";");
      if (depth > 0 || (text != ";" && !ends_block)) continue;
      add(begin, i + 1);
      begin = i + 1;
    }
    add(begin, tokens.size());
  }

  /// Returns which definitions the entry uses.
  std::vector<char> used_by(std::string_view entry) const {
    std::vector<char> used(count_, 0);
    std::set<std::string, std::less<>> seen;
    std::vector<std::string> open{std::string(entry.substr(0, entry.find('<')))};
    open.emplace_back();  // definitions without a name
    const bool named = std::find(names_.begin(), names_.end(), open.front()) != names_.end();
    for (std::size_t i = 0; i < count_; ++i) {  // macros may make the entry's name
      if (!named && is_kernel(i)) open.push_back(names_[i]);
    }
    while (!open.empty()) {
      const std::string name = open.back();
      open.pop_back();
      if (!seen.insert(name).second) continue;
      if (const auto macro = macros_.find(name); macro != macros_.end()) {
        for (const SourceToken& token : tokens_of(macro->second)) open.emplace_back(token.text);
      }
      for (std::size_t i = 0; i < count_; ++i) {
        if (used[i] != 0 || names_[i] != name) continue;
        used[i] = 1;
        for (std::size_t t = begins_[i]; t < begins_[i + 1]; ++t) {
          if (tokens_[t].kind == SourceToken::Kind::name) open.emplace_back(tokens_[t].text);
        }
      }
    }
    return used;
  }

 private:
  bool opens_namespace(std::size_t begin) const {
    const std::string_view first = tokens_[begin].text;
    const bool block = begin + 1 < tokens_.size() && tokens_[begin + 1].text == "{";
    return first == "namespace" || (first == "extern" && block);  // a "C" is no token
  }
  /// Whether a name stands for a text with `__global__`, through macros.
  bool means_kernel(const std::string& name, int depth = 0) const {
    constexpr int deepest = 4;
    if (name == "__global__") return true;
    const auto macro = macros_.find(name);
    if (macro == macros_.end() || depth == deepest) return false;
    const auto words = tokens_of(macro->second);
    return std::any_of(words.begin(), words.end(), [&](const SourceToken& token) {
      return token.kind == SourceToken::Kind::name &&
             means_kernel(std::string(token.text), depth + 1);
    });
  }
  bool is_kernel(std::size_t definition) const {
    for (std::size_t t = begins_[definition]; t < begins_[definition + 1]; ++t) {
      if (tokens_[t].text == "{") return false;
      if (means_kernel(std::string(tokens_[t].text))) return true;
    }
    return false;
  }
  void add(std::size_t begin, std::size_t end) {
    if (begin == end) return;
    for (std::size_t i = begin; i < end; ++i) tokens_[i].definition = count_;
    names_.push_back(name_of(begin, end));
    begins_.resize(count_ + 1);
    begins_[count_] = begin;
    begins_.push_back(end);
    ++count_;
  }
  /// Returns the name of a function, structure or variable; empty if it has none.
  std::string name_of(std::size_t begin, std::size_t end) const {
    std::size_t angles = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const SourceToken& token = tokens_[i];
      if (token.text == "<") ++angles;
      if (token.text == ">" && angles > 0) --angles;
      if (token.text == ">>") angles -= std::min<std::size_t>(angles, 2);
      if (angles > 0) continue;
      if (token.text == "operator") return "";
      const bool structure = token.text == "struct" || token.text == "class" ||
                             token.text == "using" || token.text == "enum";
      if (structure && i + 1 < end) return std::string(tokens_[i + 1].text);
      const bool after = token.text == "(" || token.text == "=" || token.text == "[" ||
                         token.text == ";" || token.text == "{" || token.text == ":";
      if (!after || i == begin || tokens_[i - 1].kind != SourceToken::Kind::name) continue;
      const std::string_view name = tokens_[i - 1].text;
      if (name == "layout" || name == "__launch_bounds__" || name == "__attribute__" ||
          name == "alignas" || name == "__align__" || macros_.contains(std::string(name)))
        continue;
      return std::string(name);
    }
    return "";
  }

  std::vector<SourceToken>& tokens_;
  const std::map<std::string, std::string>& macros_;
  std::vector<std::size_t> begins_;
  std::vector<std::string> names_;
  std::size_t count_ = 0;
};

/// A macro that compiled lines define.
struct MacroText {
  std::string_view name;
  std::vector<SourceToken> text;
};

/// Whether a text may be a whole expression, other than a name.
bool is_expression(const std::vector<SourceToken>& text) {
  if (text.empty() || (text.size() == 1 && text[0].kind == SourceToken::Kind::name)) return false;
  const auto is_no_part = [](const SourceToken& token) {
    return token.text == ";" || token.text == "{" || token.text == "#" || token.text == "##" ||
           token.text == "=" || token.text.starts_with("__");
  };
  const std::string_view last = text.back().text;
  return std::none_of(text.begin(), text.end(), is_no_part) &&
         (text.back().kind != SourceToken::Kind::sign || last == ")" || last == "]");
}

/// Returns the words of a source's macros, except parameters and those in conditions.
std::vector<MacroText> macros_of(std::string_view source) {
  const CompiledLines lines = compiled_lines(source);
  std::set<std::string_view> conditions;
  std::vector<MacroText> macros;
  bool parameters = true;  // of the kernel, before all others
  for (std::size_t at = 0, line = 0; at < source.size();) {
    std::size_t end = at, first = line;
    do {
      end = std::min(source.find('\n', end + (end > at ? 1 : 0)), source.size());
      ++line;
    } while (end < source.size() && source[end - 1] == '\\');
    const std::string_view whole = source.substr(at, end - at);
    const auto hash = whole.find_first_not_of(" \t");
    const bool directive = hash != std::string_view::npos && whole[hash] == '#';
    std::vector<SourceToken> words;
    if (directive) words = tokens_of(whole.substr(hash + 1));
    for (SourceToken& word : words) word.start += at + hash + 1;
    std::erase_if(words, [](const SourceToken& word) { return word.text == "\\"; });
    const std::string_view kind = words.empty() ? std::string_view() : words[0].text;
    parameters = parameters && (!directive ? hash == std::string_view::npos
                                           : kind == "define" || kind == "version");
    if (kind == "if" || kind == "elif") {
      for (const SourceToken& word : words) conditions.insert(word.text);
    } else if (kind == "define" && words.size() > 2 && !parameters && lines.active[first] != 0) {
      std::size_t begin = 2;
      if (words[2].text == "(" && words[2].start == words[1].end()) {
        while (begin < words.size() && words[begin].text != ")") ++begin;
        ++begin;
      }
      begin = std::min(begin, words.size());
      macros.push_back(
          {words[1].text, {words.begin() + static_cast<std::ptrdiff_t>(begin), words.end()}});
    }
    at = end + 1;
  }
  std::erase_if(macros, [&](const MacroText& macro) { return conditions.contains(macro.name); });
  return macros;
}

}  // namespace

bool is_constant_name(std::string_view name) {
  return std::none_of(name.begin(), name.end(),
                      [](unsigned char c) { return std::islower(c) != 0; }) &&
         std::any_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isupper(c) != 0; });
}

bool is_source_keyword(std::string_view name) {
  static const std::set<std::string_view> words{
      "if",         "else",         "for",           "while",     "do",         "return",
      "break",      "continue",     "const",         "constexpr", "static",     "struct",
      "class",      "template",     "typename",      "using",     "void",       "bool",
      "int",        "uint",         "unsigned",      "float",     "double",     "char",
      "auto",       "switch",       "case",          "default",   "true",       "false",
      "sizeof",     "inline",       "shared",        "in",        "out",        "inout",
      "operator",   "public",       "private",       "enum",      "__device__", "__global__",
      "__shared__", "__restrict__", "static_assert", "namespace", "layout",     "unroll",
      "vec2",       "vec4",         "uvec2",         "uvec4",     "mutable",    "extern",
      "u64",        "i64",          "uint64_t",      "int64_t",   "uint32_t",   "int32_t",
      "std",        "half"};
  return words.contains(name) || name.starts_with("__");
}

std::vector<SourceToken> tokens_of(std::string_view source) {
  std::vector<SourceToken> found;
  bool line_begins = true;
  for (std::size_t at = 0; at < source.size();) {
    const std::size_t after = end_of_gap(source, at, line_begins);
    if (after > at) {
      if (source.substr(at, after - at).find('\n') != std::string_view::npos) line_begins = true;
      at = after;
      continue;
    }
    const std::size_t length = length_of_token(source, at);
    const char first = source[at];
    const auto kind = is_digit(first)            ? SourceToken::Kind::number
                      : is_name_character(first) ? SourceToken::Kind::name
                                                 : SourceToken::Kind::sign;
    found.push_back({kind, at, source.substr(at, length), 0});
    line_begins = false;
    at += length;
  }
  return found;
}

std::vector<SourceToken> used_tokens(std::string_view source, std::string_view entry) {
  const CompiledLines lines = compiled_lines(source);
  std::vector<SourceToken> tokens;
  std::size_t line = 0, at = 0;
  for (const SourceToken& token : tokens_of(source)) {
    for (; at < token.start; ++at) line += source[at] == '\n' ? 1 : 0;
    if (lines.active[line] != 0) tokens.push_back(token);
  }
  const auto used = Definitions(tokens, lines.macros).used_by(entry);
  std::erase_if(tokens, [&](const SourceToken& token) { return used[token.definition] == 0; });
  return tokens;
}

std::vector<std::vector<SourceToken>> used_macros(std::string_view source, std::string_view entry) {
  std::set<std::string_view> names;
  for (const SourceToken& token : used_tokens(source, entry)) {
    if (token.kind == SourceToken::Kind::name) names.insert(token.text);
  }
  std::vector<MacroText> macros = macros_of(source);
  std::vector<std::vector<SourceToken>> used;
  for (bool more = true; more;) {  // a macro may use others
    more = false;
    for (MacroText& macro : macros) {
      if (macro.name.empty() || !names.contains(macro.name)) continue;
      for (const SourceToken& token : macro.text) {
        if (token.kind == SourceToken::Kind::name) names.insert(token.text);
      }
      if (is_expression(macro.text)) used.push_back(std::move(macro.text));
      macro.name = {};
      more = true;
    }
  }
  return used;
}

}  // namespace greta::tuner
