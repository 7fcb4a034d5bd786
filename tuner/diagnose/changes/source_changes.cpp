#include "tuner/diagnose/changes/source_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "tuner/diagnose/changes/change_order.hpp"
#include "tuner/diagnose/changes/kernel_text.hpp"
#include "tuner/diagnose/changes/missing_statements.hpp"
#include "tuner/diagnose/changes/missing_terms.hpp"
#include "tuner/diagnose/changes/other_words.hpp"
#include "tuner/diagnose/changes/source_operands.hpp"

namespace greta::tuner {
namespace {

using Kind = SourceToken::Kind;

/// Changes of one source.
class Changes {
 public:
  Changes(std::string_view source, std::vector<SourceToken> tokens)
      : source_(source), tokens_(std::move(tokens)), operands_(tokens_) {
    for (const SourceToken& token : tokens_) {
      if (token.kind == Kind::name && !is_source_keyword(token.text))
        names_[{token.definition, is_constant_name(token.text)}].insert(token.text);
      if (token.kind == Kind::number) numbers_[token.definition].insert(token.text);
      note_place(token);
    }
    for (std::size_t i = 1; i + 1 < tokens_.size(); ++i) note_repetition(i);
  }

  /// Returns changes of expressions.
  std::vector<SourceChange> of_expressions() {
    for (std::size_t i = 1; i + 1 < tokens_.size(); ++i) {
      if (tokens_[i].kind == Kind::number) add_number(i);
      if (tokens_[i].kind == Kind::sign) add_sign(i);
      if (tokens_[i].kind == Kind::name) add_name(i);
    }
    return std::move(found_);
  }
  /// Returns all changes of functions.
  std::vector<SourceChange> all(TextModel& model) {
    found_ = of_expressions();
    add_statements(model);
    add_missing_terms();
    return std::move(found_);
  }

 private:
  /// Notes the index of a thread or workgroup that a token reads, in all its dimensions.
  void note_place(const SourceToken& token) {
    const std::string name(token.text);
    if (is_one_of(name, {"gl_LocalInvocationIndex", "gl_SubgroupInvocationID"}))
      places_.insert(name);
    if (is_one_of(name, {"gl_WorkGroupID", "gl_LocalInvocationID"}) &&
        source_.substr(token.end()).starts_with(".")) {
      for (const char* const dimension : {".x", ".y", ".z"}) places_.insert(name + dimension);
    }
    if (is_one_of(name, {"thread_index", "block_x", "block_y", "block_z", "lane_index"}) &&
        source_.substr(token.end()).starts_with("()"))
      places_.insert(name + "()");
  }
  /// Notes an element of a list that repeats the one before its comma, as a copy that was not
  /// changed.
  void note_repetition(std::size_t i) {
    constexpr std::size_t least_tokens = 3;
    if (text(i) != "," || !operands_.ends_operand(i - 1) || !operands_.begins_operand(i + 1))
      return;
    const std::size_t after = operands_.after_operand(i + 1), begin = operands_.begin_of_operand(i);
    const bool whole = begin > 0 && is_one_of(text(begin - 1), {",", "(", "{"}) &&
                       is_one_of(text(after), {",", ")", "}"});
    if (whole && after >= i + 1 + least_tokens && between(begin, i) == between(i + 1, after))
      repeated_.emplace_back(tokens_[i + 1].start, tokens_[after - 1].end());
  }
  std::string_view text(std::size_t i) const { return operands_.text(i); }
  std::string between(std::size_t from, std::size_t to) const {  ///< of tokens, without the last
    const std::size_t start = tokens_[from].start;
    return std::string(source_.substr(start, tokens_[to - 1].end() - start));
  }
  void add(Rank rank, std::string kind, std::size_t start, std::size_t end, std::string by) {
    if (source_.substr(start, end - start) == by) return;
    if (!seen_.insert({start, end, by}).second) return;
    constexpr double of_repetition = 3;
    const bool repeated = std::any_of(repeated_.begin(), repeated_.end(), [&](const auto& range) {
      return range.first <= start && end <= range.second;
    });
    found_.push_back(
        {start, end - start, std::move(by), std::move(kind), rank, repeated ? of_repetition : 0});
  }
  void replace(Rank rank, const char* kind, std::size_t i, std::string by) {
    add(rank, kind, tokens_[i].start, tokens_[i].end(), std::move(by));
  }

  bool is_spaced(std::size_t i) const {
    const std::size_t start = tokens_[i].start, end = tokens_[i].end();
    return std::isspace(static_cast<unsigned char>(source_[start - 1])) != 0 &&
           std::isspace(static_cast<unsigned char>(source_[end])) != 0;
  }
  static constexpr long long most_number = std::numeric_limits<long long>::max() / 2;

  void add_number(std::size_t i) {
    const std::string number(text(i));
    if (number.find('.') != std::string::npos ||
        (number.find('e') != std::string::npos && !number.starts_with("0x"))) {
      return add_real(i, number);
    }
    char* end = nullptr;
    const long long value = std::strtoll(number.c_str(), &end, 0);
    if (value > most_number) return;
    const std::string suffix = end;
    const auto offer = [&](Rank rank, long long other) {
      if (other >= 0) replace(rank, "wrong constant", i, std::to_string(other) + suffix);
    };
    offer(likely, value - 1);
    offer(likely, value + 1);
    for (const long long other : {0LL, 1LL, 2LL, 4LL, 2 * value, value / 2}) {
      if (other != value) offer(possible, other);
    }
    if (value == 0) {
      for (const long long other : {8LL, 16LL, 32LL}) offer(possible, other);
      for (const long long other : {15LL, 31LL, 64LL}) offer(seldom, other);
    }
    for (const std::string_view name : names_[{tokens_[i].definition, true}])
      replace(seldom, "wrong constant", i, std::string(name));
    for (const std::string_view other : numbers_[tokens_[i].definition])
      replace(value == 0 ? seldom : unlikely, "wrong constant", i, std::string(other));
  }
  void add_real(std::size_t i, const std::string& number) {
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    const std::string suffix = end;
    const auto offer = [&](Rank rank, double other) {
      std::string words = fmt::format("{:.9g}", other);
      if (words.find_first_of(".en") == std::string::npos) words += ".0";
      replace(rank, "wrong constant", i, words + suffix);
    };
    for (const double other : {0.0, 1.0, 0.5, 2.0}) offer(likely, other);
    for (const double factor : {-1.0, 2.0, 0.5, 0.8, 1.25, 10.0, 0.1})
      offer(possible, factor * value);
  }

  void add_sign(std::size_t i) {
    const std::string_view sign = text(i);
    const bool binary = operands_.ends_operand(i - 1) && operands_.begins_operand(i + 1);
    const bool angled = is_one_of(sign, {"<", ">"});
    if (binary && (!angled || is_spaced(i))) {
      add_other_signs(i);
      if (is_one_of(sign, {"+", "-", "*", "/", "%"})) summands_.push_back(i);
      add_terms(i);
      add_exchanged(i);
    }
    if (!binary && is_one_of(sign, {"!", "-", "~"}) && operands_.begins_operand(i + 1))
      add(likely, "wrong operator", tokens_[i].start, tokens_[i].end(), "");
    if (sign == "[" && text(i + 1) != "]") add_index(i);
    if (is_one_of(sign, {"=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "<<=", ">>="}))
      add_assignments(i);
    if (sign == "(" && is_one_of(text(i - 1), {"if", "while"})) add_negation(i);
    if (sign == "?") add_choice(i);
    if (sign == ",") add_arguments(i);
    if (is_one_of(sign, {")", "]", ";", ","}) && operands_.ends_operand(i - 1)) add_ends(i);
  }

  void add_other_signs(std::size_t i) {
    for (const OtherWord& other : other_operators(text(i)))
      replace(other.rank, "wrong operator", i, std::string(other.text));
  }

  /// Leaves out an operand with its operator.
  void add_terms(std::size_t i) {
    if (!is_one_of(text(i), {"+", "-", "*", "/", "%", "&&", "||", "&", "|", "^", "<<", ">>"}))
      return;
    const bool sum = is_one_of(text(i), {"+", "-"});
    const std::size_t after = operands_.after_operand(i + 1), begin = operands_.begin_of_operand(i);
    add(sum ? likely : possible, "superfluous term", tokens_[i - 1].end(), tokens_[after - 1].end(),
        "");
    if (text(i) == "-") {
      add(possible, "superfluous term", tokens_[begin].start, tokens_[i].start, "");
    } else {
      add(possible, "superfluous term", tokens_[begin].start, tokens_[i + 1].start, "");
    }
  }
  void add_exchanged(std::size_t i) {
    if (!is_one_of(text(i), {"-", "/", "%", "<<", ">>", "<", ">", "<=", ">="})) return;
    const std::size_t after = operands_.after_operand(i + 1), begin = operands_.begin_of_operand(i);
    add(likely, "exchanged operands", tokens_[begin].start, tokens_[after - 1].end(),
        fmt::format("{} {} {}", between(i + 1, after), text(i), between(begin, i)));
  }
  void add_index(std::size_t i) {
    const std::size_t after = operands_.after_bracket(i);
    if (after <= i + 2) return;
    const std::string index = between(i + 1, after - 1);
    for (const char* const step : {" - 1", " + 1"})
      add(possible, "wrong index", tokens_[i + 1].start, tokens_[after - 2].end(),
          fmt::format("({}){}", index, step));
  }
  void add_assignments(std::size_t i) {
    // A variable that is declared there can't be added to.
    const std::size_t begin = operands_.begin_of_operand(i);
    const bool statement = begin > 0 && is_one_of(text(begin - 1), {";", "{", "}", ")"});
    for (const char* const other : {"=", "+=", "-=", "*=", "|=", "/=", "&=", "^=", "<<=", ">>="}) {
      const Rank rank = !is_one_of(other, {"=", "+="}) ? seldom : statement ? likely : possible;
      replace(rank, "wrong operator", i, other);
    }
  }
  void add_negation(std::size_t i) {
    const std::size_t after = operands_.after_bracket(i);
    if (after <= i + 2) return;
    const bool negated = text(i + 1) == "!" && operands_.after_operand(i + 1) == after - 1;
    if (!negated)  // else the sign may be omitted
      add(likely, "wrong condition", tokens_[i].end(), tokens_[after - 1].start,
          fmt::format("!({})", between(i + 1, after - 1)));
    if (text(i + 1) == "!" && text(i + 2) == "(" && operands_.after_bracket(i + 2) == after - 1)
      add(likely, "wrong condition", tokens_[i].end(), tokens_[after - 1].start,
          between(i + 3, after - 2));
  }
  void add_choice(std::size_t i) {
    std::size_t colon = i + 1, end = 0;
    int depth = 0;
    for (std::size_t at = i + 1; at < tokens_.size(); ++at) {
      if (is_one_of(text(at), {"(", "[", "{"})) ++depth;
      if (is_one_of(text(at), {")", "]", "}"}) && --depth < 0) end = at;
      if (depth == 0 && text(at) == ":" && colon == i + 1) colon = at;
      if (depth == 0 && is_one_of(text(at), {";", ","})) end = at;
      if (end > 0) break;
    }
    if (colon <= i + 1 || end <= colon + 1) return;
    add(likely, "exchanged operands", tokens_[i + 1].start, tokens_[end - 1].end(),
        fmt::format("{} : {}", between(colon + 1, end), between(i + 1, colon)));
  }
  /// Exchanges neighbouring arguments.
  void add_arguments(std::size_t i) {
    if (!operands_.ends_operand(i - 1) || !operands_.begins_operand(i + 1)) return;
    const std::size_t after = operands_.after_operand(i + 1), begin = operands_.begin_of_operand(i);
    if (!is_one_of(text(after), {",", ")"}) || begin == 0 ||
        !is_one_of(text(begin - 1), {",", "("}))
      return;
    add(likely, "exchanged operands", tokens_[begin].start, tokens_[after - 1].end(),
        fmt::format("{}, {}", between(i + 1, after), between(begin, i)));
  }
  /// Adds to, or multiplies, what ends an expression.
  void add_ends(std::size_t i) {
    const std::size_t at = tokens_[i - 1].end();
    const std::size_t begin = operands_.begin_of_operand(i);
    const bool limit = begin > 0 && is_one_of(text(begin - 1), {"<", "<=", ">", ">="});
    for (const char* const step : {" - 1", " + 1"})
      add(limit ? likely : seldom, "wrong limit", at, at, step);
    terms_.push_back(i);
  }

  void add_name(std::size_t i) {
    const std::string_view name = text(i);
    add_type(i);
    if (is_source_keyword(name)) return;
    for (const std::string_view other : confused_names(name))
      replace(likely, "wrong variable", i, std::string(other));
    const bool member = is_one_of(text(i - 1), {".", "->", "::"});
    if (member && is_one_of(name, {"x", "y", "z", "w"})) {
      for (const char* const other : {"x", "y", "z", "w"})
        replace(possible, "wrong variable", i, other);
    }
    const bool called = text(i + 1) == "(";
    const bool upper = is_constant_name(name);
    if (member || (called && !upper)) return;
    for (const std::string_view other : names_[{tokens_[i].definition, upper}]) {
      const Rank rank = differ_in_a_letter(name, other) ? likely : upper ? possible : unlikely;
      replace(rank, upper ? "wrong constant" : "wrong variable", i, std::string(other));
    }
  }
  void add_type(std::size_t i) {
    const Rank rank = text(i + 1) == "(" ? possible : seldom;  // a conversion, or a variable
    for (const std::string_view other : other_types(text(i)))
      replace(rank, "wrong type", i, std::string(other));
  }

  /// Whether names are as similar as TM and TN, lda and ldb, a_row and b_row.
  static bool differ_in_a_letter(std::string_view a, std::string_view b) {
    if (a.size() != b.size() || a.size() < 2) return false;
    int count = 0;
    for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
    return count == 1;
  }

  static Rank rank_of(MissingTerm::Likelihood likelihood) {
    switch (likelihood) {
      case MissingTerm::Likelihood::fits:
        return likely;
      case MissingTerm::Likelihood::elsewhere:
        return possible;
      case MissingTerm::Likelihood::frequent:
        return seldom;
    }
    return seldom;
  }
  static bool is_barrier(std::string_view name) {
    for (const char* const word : {"barrier", "Barrier", "syncthreads", "syncwarp", "wait"}) {
      if (name.find(word) != std::string_view::npos) return true;
    }
    return false;
  }

  /// Adds barriers after the end of a statement. The first ones are those of the whole workgroup.
  void add_barriers(const std::set<std::string>& barriers, std::size_t end) {
    for (const std::string& barrier : barriers) {
      const bool whole = barrier.ends_with("barrier();") || barrier == "__syncthreads();";
      add(whole ? likely : possible, "missing barrier", tokens_[end].end(), tokens_[end].end(),
          " " + barrier);
    }
  }
  /// Exchanges neighbouring statements, leaves one out, and adds barriers and terms.
  void add_statements(TextModel& model) {
    std::vector<std::pair<std::size_t, std::size_t>> statements;  // first token and that after
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (text(i) == "(") ++depth;
      if (text(i) == ")") --depth;
      const bool label = text(i) == ":" && is_one_of(text(begin), {"case", "default", "public"});
      if ((is_one_of(text(i), {"{", "}"}) || label) && depth == 0) begin = i + 1;
      if (text(i) == "}" && depth == 0) blocks_.push_back(i);
      if (text(i) != ";" || depth != 0) continue;
      statements.emplace_back(begin, i + 1);
      begin = i + 1;
    }
    const bool hip = source_.find("__global__") != std::string_view::npos;
    std::set<std::string> barriers{hip ? "__syncthreads();" : "barrier();"};  // with arguments
    for (const auto& [from, to] : statements) {
      std::size_t name = from;
      while (is_one_of(text(name + 1), {".", "->", "::"})) name += 2;
      if (is_barrier(text(name)) && text(to - 2) == ")") barriers.insert(between(from, to));
    }
    for (std::size_t s = 0; s < statements.size(); ++s) {
      const auto [from, to] = statements[s];
      const std::string own = between(from, to);
      const bool empty = from + 1 == to;
      if (!empty && !is_one_of(text(from), {"return", "const", "using", "static_assert"}))
        add(possible, "superfluous statement", tokens_[from].start, tokens_[to - 1].end(), ";");
      add_barriers(barriers, to - 1);
      if (s + 1 == statements.size() || statements[s + 1].first != to) continue;
      const std::size_t next = statements[s + 1].second;
      add(likely, "exchanged statements", tokens_[from].start, tokens_[next - 1].end(),
          between(to, next) + " " + own);
    }
    for (const std::size_t i : blocks_) add_barriers(barriers, i);
    std::vector<std::size_t> ends = blocks_;
    for (const auto& [from, to] : statements) ends.push_back(to - 1);
    for (MissingStatement& one : missing_statements(source_, tokens_, ends, model))
      add(seldom, "missing statement", one.at, one.at + one.length, std::move(one.text));
  }
  void add_missing_terms() {
    for (const std::size_t i : summands_) {
      for (const std::string& name : places_)
        add(seldom, "missing term", tokens_[i - 1].end(), tokens_[i - 1].end(),
            fmt::format(" + {}", name));
    }
    const auto terms = written_terms();
    for (const MissingTerm& term : missing_terms(source_, tokens_))
      add(rank_of(term.likelihood), "missing term", term.at, term.at, term.text);
    for (const std::size_t i : terms_) {
      const std::size_t at = tokens_[i - 1].end(), definition = tokens_[i].definition;
      for (const std::string_view name : names_[{definition, true}])
        add(seldom, "missing term", at, at, fmt::format(" * {}", name));
      for (const std::string& name : places_)
        add(seldom, "missing term", at, at, fmt::format(" + {}", name));
      for (const std::string_view name : names_[{definition, false}])
        add(name.size() <= most_of_short_name ? seldom : unlikely, "missing term", at, at,
            fmt::format(" + {}", name));
      for (const auto& [sign, word] : terms) {
        const bool variable = !is_constant_name(word) && std::isdigit(word.front()) == 0;
        if (!variable || names_[{definition, false}].contains(word))
          add(unlikely, "missing term", at, at, fmt::format(" {} {}", sign, word));
      }
    }
  }

  /// Returns the operators and words or numbers that the source has as a term somewhere.
  std::set<std::pair<std::string_view, std::string_view>> written_terms() const {
    std::set<std::pair<std::string_view, std::string_view>> terms;
    for (std::size_t i = 1; i + 2 < tokens_.size(); ++i) {
      const bool term = is_one_of(text(i), {"+", "-", "*"}) && operands_.ends_operand(i - 1) &&
                        tokens_[i + 1].kind != Kind::sign && !is_source_keyword(text(i + 1));
      if (term && operands_.after_operand(i + 1) == i + 2) terms.insert({text(i), text(i + 1)});
    }
    return terms;
  }

  std::string_view source_;
  std::vector<SourceToken> tokens_;
  SourceOperands operands_;
  /// Of each definition, the names of constants, or others.
  std::map<std::pair<std::size_t, bool>, std::set<std::string_view>> names_;
  std::map<std::size_t, std::set<std::string_view>> numbers_;  ///< of each definition
  static constexpr std::size_t most_of_short_name = 5;

  std::set<std::string> places_;  ///< of threads and workgroups, which all functions can read
  std::vector<std::pair<std::size_t, std::size_t>> repeated_;  ///< note_repetition(), in bytes
  std::vector<std::size_t> terms_;                             ///< tokens that end an expression
  std::vector<std::size_t> summands_;  ///< tokens after an operand, which are an operator
  std::vector<std::size_t> blocks_;    ///< tokens that end a block
  std::set<std::tuple<std::size_t, std::size_t, std::string>> seen_;
  std::vector<SourceChange> found_;
};

}  // namespace

std::vector<SourceChange> changes_of(std::string_view source, std::string_view entry) {
  const std::vector<SourceToken> tokens = used_tokens(source, entry);
  std::vector<std::vector<SourceToken>> macros = used_macros(source, entry);
  std::vector<SourceToken> all = tokens;
  for (const auto& macro : macros) all.insert(all.end(), macro.begin(), macro.end());
  std::sort(all.begin(), all.end(),
            [](const SourceToken& a, const SourceToken& b) { return a.start < b.start; });
  TextModel model(all);
  std::vector<SourceChange> found = Changes(source, tokens).all(model);
  for (std::vector<SourceToken>& macro : macros) {
    const std::size_t end = macro.back().end();
    macro.insert(macro.begin(), {Kind::sign, macro.front().start, "=", 0});
    macro.insert(macro.end(), 2, {Kind::sign, end, ";", 0});
    for (SourceChange& change : Changes(source, std::move(macro)).of_expressions())
      found.push_back(std::move(change));
  }
  order_changes(found, model);
  return found;
}

}  // namespace greta::tuner
