#include "tuner/diagnose/changes/missing_statements.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tuner/diagnose/changes/source_operands.hpp"

namespace greta::tuner {
namespace {

/// A statement that the source has somewhere: an assignment or a call.
struct WrittenStatement {
  std::string text;
  std::set<std::string_view> variables;
};

class StatementSearch {
 public:
  StatementSearch(std::string_view source, const std::vector<SourceToken>& tokens,
                  const std::vector<std::size_t>& ends, TextModel& model)
      : source_(source), tokens_(tokens), operands_(tokens), ends_(ends), model_(model) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (is_variable(i)) first_.try_emplace({tokens[i].definition, text(i)}, i);
    }
    read_statements();
    for (std::size_t i = 1; i + 1 < tokens.size(); ++i) {
      if (is_variable(i) && may_change(i)) changed_.insert({tokens[i].definition, text(i)});
    }
    for (std::size_t i = 2; i + 1 < tokens.size(); ++i) {
      if (declares_for_good(i)) unchanged_.push_back(i);
    }
  }

  std::vector<MissingStatement> all() {
    for (const std::size_t end : ends_) add_written(end);
    for (const std::size_t declared : unchanged_) add_assignments(declared);
    return std::move(found_);
  }

 private:
  static constexpr std::size_t most_tokens = 40, most_of_place = 4, most_of_variable = 60;
  using Candidates = std::vector<std::pair<double, MissingStatement>>;

  std::string_view text(std::size_t i) const { return operands_.text(i); }
  bool is_variable(std::size_t i) const {
    const bool member = i > 0 && is_one_of(text(i - 1), {".", "->", "::"});
    return tokens_[i].kind == SourceToken::Kind::name && !member &&
           !is_one_of(text(i + 1), {"(", "::"}) && !is_constant_name(text(i)) &&
           !is_source_keyword(text(i));
  }
  /// Whether a statement assigns to a variable or calls a function, and declares nothing.
  bool may_be_copied(std::size_t from, std::size_t to) const {
    if (to < from + 3 || to > from + most_tokens) return false;
    const bool name = tokens_[from].kind == SourceToken::Kind::name &&
                      tokens_[from + 1].kind == SourceToken::Kind::sign;
    if (!name || is_source_keyword(text(from)) || is_one_of(text(from + 1), {"<", "&", ":"}))
      return false;
    if (is_one_of(text(from), {"asm", "barrier", "break", "continue", "goto"})) return false;
    for (std::size_t i = from; i < to; ++i) {
      if (is_one_of(text(i), {"{", "}"})) return false;
    }
    const std::size_t after = operands_.after_operand(from);
    const bool called = text(after) == ";" && text(after - 1) == ")";
    return called || assigns(text(after));
  }
  void read_statements() {
    std::set<std::string> seen;
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (text(i) == "(") ++depth;
      if (text(i) == ")") --depth;
      if (depth == 0 && is_one_of(text(i), {"{", "}", "else", ":"})) begin = i + 1;
      if (depth == 0 && text(i) == ")" && is_control(begin)) begin = i + 1;
      if (depth != 0 || text(i) != ";") continue;
      if (may_be_copied(begin, i + 1)) {
        const std::size_t start = tokens_[begin].start;
        WrittenStatement written{std::string(source_.substr(start, tokens_[i].end() - start)), {}};
        for (std::size_t t = begin; t < i; ++t) {
          if (is_variable(t)) written.variables.insert(text(t));
        }
        if (seen.insert(written.text).second) written_.push_back(std::move(written));
      }
      begin = i + 1;
    }
  }
  bool is_control(std::size_t i) const {
    return is_one_of(text(i), {"if", "for", "while", "switch"});
  }
  /// Whether a function's variable is known before a place.
  bool knows(std::size_t definition, std::string_view name, std::size_t place) const {
    const auto first = first_.find({definition, name});
    return first != first_.end() && first->second <= place;
  }
  /// Whether a statement is there already, before or after a place.
  bool is_there(const std::string& statement, std::size_t at) const {
    const auto rest = source_.substr(at);
    const auto next = rest.find_first_not_of(" \t\n");
    return source_.substr(0, at).ends_with(statement) ||
           (next != std::string_view::npos && rest.substr(next).starts_with(statement));
  }
  MissingStatement at_end(std::size_t end, const std::string& statement) const {
    const bool empty = text(end) == ";" && end > 0 && is_one_of(text(end - 1), {")", "else"});
    const bool body = empty && (text(end - 1) == "else" || controls(end - 1));
    if (body) return {tokens_[end].start, 1, statement};
    return {tokens_[end].end(), 0, " " + statement};
  }
  /// Whether a closing parenthesis is that of a condition.
  bool controls(std::size_t close) const {
    int depth = 0;
    for (std::size_t i = close;; --i) {
      if (text(i) == ")") ++depth;
      if (text(i) == "(" && --depth == 0) return i > 0 && is_control(i - 1);
      if (i == 0) return false;
    }
  }
  void offer(std::size_t end, const std::string& statement, Candidates& candidates) {
    MissingStatement one = at_end(end, statement);
    if (is_there(statement, one.at)) return;
    const auto gain = model_.gain(one.at, one.at + one.length, statement);
    candidates.emplace_back(gain.likelihood / std::max(1.0, gain.tokens), std::move(one));
  }
  void keep_best(Candidates& candidates, std::size_t most) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    if (candidates.size() > most) candidates.resize(most);
    for (auto& [likelihood, one] : candidates) found_.push_back(std::move(one));
  }
  void add_written(std::size_t end) {
    const std::size_t definition = tokens_[end].definition;
    Candidates candidates;
    for (const WrittenStatement& one : written_) {
      const bool known =
          std::all_of(one.variables.begin(), one.variables.end(),
                      [&](std::string_view name) { return knows(definition, name, end); });
      if (known) offer(end, one.text, candidates);
    }
    keep_best(candidates, most_of_place);
  }

  /// Whether a token declares a variable that may change and never does.
  bool declares_for_good(std::size_t i) const {
    if (!is_variable(i) || tokens_[i - 1].kind != SourceToken::Kind::name) return false;
    if (!is_one_of(text(i + 1), {"=", ";"}) || is_one_of(text(i - 1), {"return", "else", "using"}))
      return false;
    for (std::size_t at = i - 1; at > 0 && !is_one_of(text(at), {";", "{", "}", "("}); --at) {
      if (is_one_of(text(at), {"const", "constexpr", "using", "typedef", "uniform"})) return false;
    }
    return !changed_.contains({tokens_[i].definition, text(i)});
  }
  /// Whether a variable is assigned to at a token, or its address is taken.
  bool may_change(std::size_t i) const {
    if (is_one_of(text(i - 1), {"&", "++", "--"})) return true;
    if (tokens_[i - 1].kind == SourceToken::Kind::name) return false;  // what it begins with
    return assigns(text(operands_.after_operand(i)));
  }
  void add_assignments(std::size_t declared) {
    const std::size_t definition = tokens_[declared].definition;
    const std::string name(text(declared));
    Candidates candidates;
    for (const std::size_t end : ends_) {
      if (tokens_[end].definition != definition || end < declared + 2) continue;
      offer(end, "++" + name + ";", candidates);
      for (const auto& [key, first] : first_) {
        if (key.first != definition || first >= end || key.second == name) continue;
        for (const char* const sign : {" = ", " += "})
          offer(end, name + sign + std::string(key.second) + ";", candidates);
      }
    }
    keep_best(candidates, most_of_variable);
  }

  std::string_view source_;
  const std::vector<SourceToken>& tokens_;
  SourceOperands operands_;
  const std::vector<std::size_t>& ends_;
  TextModel& model_;
  /// The first token with a function's variable.
  std::map<std::pair<std::size_t, std::string_view>, std::size_t> first_;
  std::vector<WrittenStatement> written_;
  std::set<std::pair<std::size_t, std::string_view>> changed_;  ///< variables of functions
  std::vector<std::size_t> unchanged_;                          ///< tokens that declare variables
  std::vector<MissingStatement> found_;
};

}  // namespace

std::vector<MissingStatement> missing_statements(std::string_view source,
                                                 const std::vector<SourceToken>& tokens,
                                                 const std::vector<std::size_t>& ends,
                                                 TextModel& model) {
  return StatementSearch(source, tokens, ends, model).all();
}

}  // namespace greta::tuner
