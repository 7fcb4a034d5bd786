#include "tuner/diagnose/changes/missing_terms.hpp"

#include <algorithm>
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
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].kind != SourceToken::Kind::name) continue;
      names_[tokens[i].definition].insert(tokens[i].text);
      ++times_[{tokens[i].definition, tokens[i].text}];
      if (declares(i)) declared_.push_back(i);
    }
    for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
      if (is_operator(i)) read(i);
    }
    sort_terms(factors_);
    sort_terms(summands_);
  }

  std::vector<MissingTerm> all() const {
    std::vector<MissingTerm> found;
    for (std::size_t i = 1; i < tokens_.size(); ++i) {
      if (!operands_.ends_operand(i - 1) || !ends_here(i)) continue;
      add_written(i, found);
      add_unused(i, found);
      add_frequent(i, found);
    }
    return found;
  }

 private:
  using Likelihood = MissingTerm::Likelihood;
  static constexpr std::size_t most_tokens = 8, most_of_place = 4, most_frequent = 8;

  /// Returns what the operand that ends before a token is called: the word that it is, or that of
  /// the function or array.
  std::string key_of(std::size_t i) const {
    if (tokens_[i - 1].kind == SourceToken::Kind::name) return std::string(text(i - 1));
    if (!is_one_of(text(i - 1), {")", "]"})) return {};
    std::size_t at = operands_.begin_of_operand(i);
    std::string key;
    for (; at + 1 < i && !is_one_of(text(at), {"(", "["}); ++at) key = text(at);
    return key.empty() ? key : key + std::string(text(i - 1));
  }
  /// Whether a token is the name of a variable or a parameter that is declared there.
  bool declares(std::size_t i) const {
    if (i == 0 || is_constant_name(text(i)) || is_source_keyword(text(i))) return false;
    const bool type = tokens_[i - 1].kind == SourceToken::Kind::name &&
                      !is_one_of(text(i - 1), {"return", "else", "case", "struct", "typename",
                                               "using", "class", "enum", "namespace"});
    return type && is_one_of(text(i + 1), {",", ")", "=", ";", "["});
  }
  /// Adds terms that follow the same word elsewhere.
  void add_written(std::size_t i, std::vector<MissingTerm>& found) const {
    const auto written = written_.find(key_of(i));
    if (written == written_.end()) return;
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
  /// Adds variables of the function that nothing reads.
  void add_unused(std::size_t i, std::vector<MissingTerm>& found) const {
    for (const std::size_t declared : declared_) {
      const auto definition = tokens_[declared].definition;
      if (definition != tokens_[i].definition || declared >= i || declared + 1 == i ||
          times_.at({definition, text(declared)}) > 1)
        continue;
      for (const char sign : {'+', '*', '-'}) {
        found.push_back({tokens_[i - 1].end(),
                         std::string(" ") + sign + " " + std::string(text(declared)),
                         Likelihood::fits});
      }
    }
  }
  /// Adds the factors and summands that are most frequent in the source, where no factor is.
  void add_frequent(std::size_t i, std::vector<MissingTerm>& found) const {
    const std::size_t begin = operands_.begin_of_operand(i);
    const std::string_view before = begin > 0 ? text(begin - 1) : std::string_view();
    const bool inside = is_one_of(before, {"+", "(", "[", ",", "=", "-", "return", "+="});
    if (!inside || is_one_of(text(i), {"*", "/", "%", "&&", "||", "==", "!="})) return;
    const bool address = is_one_of(text(i), {"]", "+", ")"}) || is_one_of(before, {"["});
    for (const bool product : {true, false}) {
      std::size_t count = 0;
      for (const auto& [term, times] : product ? factors_ : summands_) {
        if (!known(term, tokens_[i].definition)) continue;
        if (++count > most_frequent) break;
        const bool first = count <= 3 && address && product;
        found.push_back({tokens_[i - 1].end(), term.text,
                         first ? Likelihood::elsewhere : Likelihood::frequent});
      }
    }
  }

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
    for (const auto& [words, times] : sorted)
      found.push_back({at, words, times.fit > 0 ? Likelihood::fits : Likelihood::elsewhere});
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
    if (after <= i + 4 && is_one_of(text(i), {"+", "*"}))
      count_term(term.product ? factors_ : summands_, term);
    if (const std::string key = key_of(i); !key.empty()) written_[key].push_back(std::move(term));
  }
  using Counted = std::vector<std::pair<WrittenTerm, int>>;
  static void count_term(Counted& terms, const WrittenTerm& term) {
    const auto same = std::find_if(terms.begin(), terms.end(), [&](const auto& other) {
      return other.first.text == term.text;
    });
    if (same == terms.end()) {
      terms.emplace_back(term, 1);
    } else {
      ++same->second;
    }
  }
  static void sort_terms(Counted& terms) {
    std::stable_sort(terms.begin(), terms.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
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
  std::map<std::size_t, std::set<std::string_view>> names_;        ///< of each definition
  std::map<std::pair<std::size_t, std::string_view>, int> times_;  ///< of names in definitions
  std::vector<std::size_t> declared_;                        ///< tokens that declare variables
  std::map<std::string, std::vector<WrittenTerm>> written_;  ///< by key_of() what is before them
  Counted factors_, summands_;                               ///< the most frequent first
};

}  // namespace

std::vector<MissingTerm> missing_terms(std::string_view source,
                                       const std::vector<SourceToken>& tokens) {
  return Terms(source, tokens).all();
}

}  // namespace greta::tuner
