#include "tuner/diagnose/changes/missing_terms.hpp"

#include <map>
#include <set>
#include <utility>

#include "tuner/diagnose/changes/source_operands.hpp"

namespace greta::tuner {
namespace {

/// An operator with its right operand, as the source has it somewhere.
struct WrittenTerm {
  std::string text;
  std::set<std::string_view> variables;
  std::string_view next;  ///< the word or sign that follows
  bool product = false;
};

class Terms {
 public:
  Terms(std::string_view source, const std::vector<SourceToken>& tokens)
      : source_(source), tokens_(tokens), operands_(tokens) {
    for (const SourceToken& token : tokens) {
      if (token.kind == SourceToken::Kind::name) names_[token.definition].insert(token.text);
    }
    for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
      if (is_operator(i)) read(i);
    }
  }

  std::vector<MissingTerm> all() const {
    std::vector<MissingTerm> found;
    for (std::size_t i = 1; i < tokens_.size(); ++i) {
      const bool word = tokens_[i - 1].kind == SourceToken::Kind::name;  // others are everywhere
      if (!word || !operands_.ends_operand(i - 1) || !ends_here(i)) continue;
      const auto written = written_.find(tokens_[i - 1].text);
      if (written == written_.end()) continue;
      std::map<std::string, Times> here;
      for (const WrittenTerm& term : written->second) {
        const bool before_factor = is_one_of(text(i), {"*", "/", "%"});
        if ((before_factor && !term.product) || !known(term, tokens_[i].definition)) continue;
        if (source_.substr(tokens_[i - 1].end()).starts_with(term.text)) continue;
        Times& times = here[term.text];
        ++times.all;
        times.fit += term.next == text(i) ? 1 : 0;
      }
      add_most_frequent(here, tokens_[i - 1].end(), found);
    }
    return found;
  }

 private:
  static constexpr std::size_t most_tokens = 8, most_of_place = 4;

  /// How often a term follows a word; and what follows it, too.
  struct Times {
    int all = 0, fit = 0;
  };
  static void add_most_frequent(const std::map<std::string, Times>& terms, std::size_t at,
                                std::vector<MissingTerm>& found) {
    std::vector<std::pair<std::string, Times>> sorted(terms.begin(), terms.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return std::pair(a.second.fit, a.second.all) > std::pair(b.second.fit, b.second.all);
    });
    if (sorted.size() > most_of_place) sorted.resize(most_of_place);
    for (const auto& [words, times] : sorted) found.push_back({at, words, times.fit > 0});
  }

  std::string_view text(std::size_t i) const { return operands_.text(i); }
  bool is_operator(std::size_t i) const {
    return is_one_of(text(i), {"+", "-", "*", "/", "%", "<<", ">>", "&", "|", "&&", "||"}) &&
           operands_.ends_operand(i - 1) && operands_.begins_operand(i + 1);
  }
  bool ends_here(std::size_t i) const {
    return is_operator(i) ||
           is_one_of(text(i), {";", ")", "]", ",", "?", ":", "<", ">", "<=", ">=", "==", "!="});
  }
  void read(std::size_t i) {
    const std::size_t after = operands_.after_operand(i + 1);
    if (after > i + 1 + most_tokens || after >= tokens_.size()) return;
    WrittenTerm term;
    const std::size_t start = tokens_[i + 1].start;
    term.text = " " + std::string(text(i)) + " " +
                std::string(source_.substr(start, tokens_[after - 1].end() - start));
    for (std::size_t t = i + 1; t < after; ++t) {
      const bool member = is_one_of(text(t - 1), {".", "->", "::"});
      const bool called = is_one_of(text(t + 1), {"(", "::"});
      if (tokens_[t].kind == SourceToken::Kind::name && !member && !called &&
          !is_constant_name(text(t)) && !is_source_keyword(text(t)))
        term.variables.insert(text(t));
    }
    term.next = text(after);
    term.product = is_one_of(text(i), {"*", "/", "%"});
    written_[text(i - 1)].push_back(std::move(term));
  }
  bool known(const WrittenTerm& term, std::size_t definition) const {
    const auto names = names_.find(definition);
    if (names == names_.end()) return false;
    return std::all_of(term.variables.begin(), term.variables.end(),
                       [&](std::string_view name) { return names->second.contains(name); });
  }

  std::string_view source_;
  const std::vector<SourceToken>& tokens_;
  SourceOperands operands_;
  std::map<std::size_t, std::set<std::string_view>> names_;       ///< of each definition
  std::map<std::string_view, std::vector<WrittenTerm>> written_;  ///< by the word before them
};

}  // namespace

std::vector<MissingTerm> missing_terms(std::string_view source,
                                       const std::vector<SourceToken>& tokens) {
  return Terms(source, tokens).all();
}

}  // namespace greta::tuner
