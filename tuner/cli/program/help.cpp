#include "tuner/cli/program/help.hpp"

#include <map>
#include <string>

namespace greta::tuner::cli {
namespace {

/// Values of options by the option's name; of positional ones by theirs.
const std::map<std::string, std::string>& value_names() {
  static const std::map<std::string, std::string> names{
      {"base", "FILE"},
      {"arch", "ARCHITECTURE"},
      {"batch", "COUNT"},
      {"pages", "COUNT"},
      {"budget", "BUDGET"},
      {"bundle", "FILE"},
      {"capacity", "TOKENS"},
      {"capture", "FILE"},
      {"files", "FILE"},
      {"cases", "FOLDER"},
      {"code-object", "FILE"},
      {"compiler", "FILE"},
      {"config", "CONFIG"},
      {"csv", "FILE"},
      {"csv-wide", "FILE"},
      {"db", "FILE"},
      {"deadline", "SECONDS"},
      {"device", "DEVICE"},
      {"dims", "DIMENSIONS"},
      {"driver", "WORD"},
      {"dtype", "TYPE"},
      {"emit-case", "FOLDER"},
      {"export", "FILE"},
      {"file", "FILE"},
      {"filter", "EXPRESSION"},
      {"fix", "NAME=VALUE"},
      {"space", "FILE"},
      {"seeds", "COUNT"},
      {"rank", "COUNT"},
      {"ahead", "COUNT"},
      {"jobs", "COUNT"},
      {"flush", "MIB"},
      {"form", "FORM"},
      {"format", "FORMAT"},
      {"from", "FILE"},
      {"gen-len", "TOKENS"},
      {"heads", "COUNT"},
      {"hidden", "COUNT"},
      {"kernel", "FOLDER"},
      {"problem", "WORD"},
      {"since", "FILE"},
      {"layers", "COUNT"},
      {"limit", "COUNT"},
      {"listing", "FILE"},
      {"model", "FOLDER"},
      {"new", "FILE"},
      {"only", "NUMBERS"},
      {"op", "OPERATION"},
      {"out", "FILE"},
      {"out-dtype", "TYPE"},
      {"patience", "SECONDS"},
      {"preset", "PRESET"},
      {"problems", "COUNT"},
      {"prompt", "PROMPT"},
      {"prompt-len", "TOKENS"},
      {"random", "COUNT"},
      {"range", "NAME=VALUES"},
      {"repeat", "COUNT"},
      {"report", "FILE"},
      {"rounds", "COUNT"},
      {"sample", "COUNT"},
      {"seed", "INTEGER"},
      {"settle", "SECONDS"},
      {"shard", "PART"},
      {"shipped", "FILE"},
      {"objective", "time|energy"},
      {"sort", "ORDER"},
      {"sources", "FOLDER"},
      {"strategy", "STRATEGY"},
      {"temperature", "NUMBER"},
      {"templates", "FOLDER"},
      {"threshold", "PERCENT"},
      {"timeout", "SECONDS"},
      {"tokenizer", "FILE"},
      {"tokens", "COUNT"},
      {"top-p", "NUMBER"},
      {"top-k", "COUNT"},
      {"min-p", "NUMBER"},
      {"trace", "FILE"},
      {"try", "CONFIG"},
      {"variant", "VARIANT"},
      {"contribute", "FILE"},
      {"points", "COUNT"},
      {"record", "FILE"},
      {"repetition-penalty", "NUMBER"},
      {"frequency-penalty", "NUMBER"},
      {"presence-penalty", "NUMBER"},
  };
  return names;
}

bool has_name(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type != "TEXT" && type != "INT" && type != "UINT" && type != "FLOAT";
}

}  // namespace

void name_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_expected_max() == 0 || has_name(*option)) continue;
    const auto& long_names = option->get_lnames();
    const auto found =
        value_names().find(long_names.empty() ? option->get_name(true) : long_names.front());
    if (found != value_names().end()) option->type_name(found->second);
  }
  for (CLI::App* command : app.get_subcommands({})) name_values(*command);
}

}  // namespace greta::tuner::cli
