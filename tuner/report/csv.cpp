#include "tuner/report/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "db/earlier_keys.hpp"
#include "runtime/device/system/input_file.hpp"
#include "tuner/report/csv_field.hpp"

namespace greta::tuner {
namespace {

// Parses names and values, "layout=nt epilogue=bias". A word without a name belongs to the previous
// value.
std::vector<std::pair<std::string, std::string>> read_pairs(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (!text.empty()) {
    const auto word = text.substr(0, text.find(' '));
    const auto equals = word.find('=');
    if (equals != std::string_view::npos) {
      pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else if (!pairs.empty()) {
      pairs.back().second += " " + std::string(word);
    } else {
      throw Error(fmt::format("{} is not NAME=VALUE", word));
    }
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return pairs;
}

DType dtype_from_field(const std::string& text) {
  const auto dtype = dtype_from_string(text);
  if (!dtype) throw Error(text + " is not an element type");
  return *dtype;
}

void read_dtype(const std::string& text, Subject& subject) {
  subject.typed = !text.empty();
  if (!text.empty()) subject.problem.dtype = subject.problem.out_dtype = dtype_from_field(text);
}

void read_out_dtype(const std::string& text, Subject& subject) {
  if (!text.empty()) subject.problem.out_dtype = dtype_from_field(text);
}

void read_dims(const std::string& text, Subject& subject) {
  for (const auto& [name, value] : read_pairs(text)) {
    subject.problem.dims.emplace_back(name, csv::read_number<std::int64_t>(value));
  }
}

void read_attributes(const std::string& text, Subject& subject) {
  subject.problem.attributes = read_pairs(text);
}

constexpr std::size_t later_columns = 8;  // columns that older files may lack

struct Column {
  const char* name;
  std::function<std::string(const MeasuredResult&)> write;
  std::function<void(MeasuredResult&, const std::string&)> read;
};

template <typename Value>
Value& member(Value& value) {
  return value;
}
template <typename Owner, typename First, typename... Rest>
auto& member(Owner& owner, First first, Rest... rest) {
  return member(owner.*first, rest...);
}

// `path` leads to the member with the value.
template <typename... Path>
Column column(const char* name, Path... path) {
  return {name,
          [=](const MeasuredResult& result) { return csv::to_field(member(result, path...)); },
          [=](MeasuredResult& result, const std::string& text) {
            csv::read_field(text, member(result, path...));
          }};
}

// A column with times in µs.
template <typename... Path>
Column times(const char* name, Path... path) {
  Column made = column(name, path...);
  made.read = [read = made.read, path...](MeasuredResult& result, const std::string& text) {
    read(result, text);
    csv::check_times(member(result, path...));
  };
  return made;
}

// A column that is always quoted.
template <typename... Path>
Column text(const char* name, Path... path) {
  Column made = column(name, path...);
  made.write = [=](const MeasuredResult& result) { return csv::quoted(member(result, path...)); };
  return made;
}

// A column with a part of the problem.
Column problem_column(const char* name, std::string ProblemWords::*word,
                      std::string (*format)(const std::string&),
                      void (*read)(const std::string&, Subject&)) {
  return {name, [=](const MeasuredResult& result) { return format(result.subject.words().*word); },
          [=](MeasuredResult& result, const std::string& text) { read(text, result.subject); }};
}

// Counters as "CUPTI 13.0, GH100; 10 passes; l2_bytes=1.5e6; …"; empty: none.
std::string counters_text(const std::optional<Counters>& counters) {
  if (!counters) return {};
  std::string text = fmt::format("{}; {} passes", counters->source, counters->passes);
  for (const auto& [name, value] : counters->figures)
    text += fmt::format("; {}={:.6g}", name, value);
  return text;
}

std::optional<Counters> read_counters(const std::string& text) {
  if (text.empty()) return std::nullopt;
  Counters counters;
  std::istringstream parts(text);
  std::string part;
  for (int at = 0; std::getline(parts, part, ';'); ++at) {
    const auto first = part.find_first_not_of(' ');
    part.erase(0, std::min(first, part.size()));
    const auto equals = part.find('=');
    if (at == 0) {
      counters.source = part;
    } else if (at == 1) {
      counters.passes = csv::read_number<int>(part.substr(0, part.find(' ')));
    } else if (equals == std::string::npos) {
      throw Error("counters: " + part + " is not NAME=VALUE");
    } else {
      counters.figures[part.substr(0, equals)] = csv::read_number<double>(part.substr(equals + 1));
    }
  }
  return counters;
}

// A column with the work per microsecond, in units of `unit`.
Column rate(const char* name, double unit, double Work::*amount) {
  return {name,
          [=](const MeasuredResult& result) {
            const double us = result.us.median;
            return csv::to_field(us > 0 ? result.work.*amount / us / unit : 0);
          },
          [=](MeasuredResult& result, const std::string& text) {
            if (!text.empty())
              result.work.*amount = csv::read_number<double>(text) * result.us.median * unit;
          }};
}

const std::vector<Column>& columns() {
  using R = MeasuredResult;
  using S = Subject;
  using T = TimeSummary;
  static const std::vector<Column> list{
      column("op", &R::subject, &S::problem, &Problem::op),
      problem_column("dtype", &ProblemWords::dtype, csv::to_field, read_dtype),
      problem_column("out_dtype", &ProblemWords::out_dtype, csv::to_field, read_out_dtype),
      problem_column("problem", &ProblemWords::dims, csv::to_field, read_dims),
      problem_column("attributes", &ProblemWords::attributes, csv::quoted, read_attributes),
      column("backend", &R::subject, &S::backend),
      text("device", &R::subject, &S::device),
      column("config", &R::subject, &S::config),
      column("origin", &R::subject, &S::origin),
      column("status", &R::failure),
      times("us", &R::us, &T::median),
      times("low_us", &R::us, &T::low),
      times("high_us", &R::us, &T::high),
      times("p99_us", &R::us, &T::p99),
      column("spread_pct", &R::us, &T::spread_percent),
      rate("tflops", 1e6, &Work::flops),
      rate("gbps", 1e3, &Work::bytes),
      column("roofline", &R::roofline),
      column("error", &R::verdict, &Verdict::error),
      column("bound", &R::verdict, &Verdict::bound),
      column("speedup", &R::speedup, &Interval::estimate),
      column("speedup_low", &R::speedup, &Interval::low),
      column("speedup_high", &R::speedup, &Interval::high),
      column("cache", &R::subject, &S::cache),
      column("samples", &R::count),
      text("driver", &R::subject, &S::driver),
      text("compiler", &R::subject, &S::compiler),
      column("greta_version", &R::subject, &S::greta_version),
      column("date", &R::date),
      text("clocks", &R::clocks),
      times("samples_us", &R::samples, &Samples::blocks_us),
      times("control_us", &R::samples, &Samples::control_us),
      times("cpu_us", &R::samples, &Samples::cpu_us),
      times("cpu_control_us", &R::samples, &Samples::cpu_control_us),
      column("processes", &R::processes),
      column("revision", &R::subject, &S::greta_revision),
      text("preset", &R::preset),
      text("expect", &R::expect),
      {"counters", [](const R& result) { return csv::quoted(counters_text(result.counters)); },
       [](R& result, const std::string& text) { result.counters = read_counters(text); }},
      text("limiter", &R::limiter),
  };
  return list;
}

// Returns the header of a file with the first `count` columns.
std::string header_of(std::size_t count) {
  std::string line;
  for (std::size_t i = 0; i < count; ++i) {
    line += (line.empty() ? "" : ",") + std::string(columns()[i].name);
  }
  return line;
}

// Returns the number of columns of a file with this header; nothing if they differ.
std::optional<std::size_t> columns_of(const std::string& header) {
  const std::size_t all = columns().size();
  for (std::size_t count = all - later_columns; count <= all; ++count) {
    if (header == header_of(count)) return count;
  }
  return std::nullopt;
}

// Updates the spelling of a problem from an older file.
void rename_problem(Problem& problem) {
  const std::string earlier = problem.key(), today = today_key(earlier);
  if (today != earlier) problem = Problem::parse(today).value();
}

MeasuredResult read_row(const std::string& line, std::size_t count) {
  const auto fields = csv::split(line);
  if (fields.size() != count) {
    throw Error(fmt::format("has {} fields, not {}", fields.size(), count));
  }
  MeasuredResult result;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    try {
      columns()[i].read(result, fields[i]);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", columns()[i].name, error.what()));
    }
  }
  rename_problem(result.subject.problem);
  return result;
}

}  // namespace

std::string csv_header() {
  return header_of(columns().size()) + "\n";
}

std::vector<std::pair<std::string_view, std::string>> csv_fields(const MeasuredResult& result) {
  std::vector<std::pair<std::string_view, std::string>> fields;
  for (const auto& column : columns()) fields.emplace_back(column.name, column.write(result));
  return fields;
}

std::string csv_quoted(const std::string& text) {
  return csv::quoted(text);
}

std::string csv_line(const MeasuredResult& result) {
  std::string line;
  for (const auto& [name, field] : csv_fields(result)) line += field + ",";
  line.back() = '\n';
  return line;
}

Result<std::vector<MeasuredResult>> read_csv(const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& why) {
    return Failure{Status::io, fmt::format("{}: {}", file.string(), why), {}};
  };
  auto text = read_file(file, most_csv_bytes);
  if (!text) return text.failure();
  std::istringstream in(*std::move(text));
  std::string line;
  // Other programs may have written the file again with CR and LF; fields have neither.
  const auto next = [&] {
    if (!std::getline(in, line)) return false;
    if (line.ends_with('\r')) line.pop_back();
    return true;
  };
  next();
  const auto count = columns_of(line);
  if (!count) {
    return refuse(line.empty()
                      ? "is empty"
                      : "is not a CSV file of this version of GRETA: it has other columns");
  }
  std::vector<MeasuredResult> rows;
  for (int at = 2; next(); ++at) {
    if (line.empty()) continue;
    try {
      rows.push_back(read_row(line, *count));
    } catch (const Error& error) {
      return refuse(fmt::format("line {}: {}", at, error.what()));
    }
  }
  return rows;
}

Result<void> append_csv(const std::filesystem::path& file,
                        const std::vector<MeasuredResult>& results) {
  std::error_code ignored;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  const bool fresh = std::filesystem::file_size(file, ignored) == 0 || ignored;
  std::ofstream out(file, std::ios::app);
  if (fresh) out << csv_header();
  for (const auto& result : results) out << csv_line(result);
  out.close();
  if (!out) return Failure{Status::io, file.string() + ": can't be written", {}};
  return {};
}

}  // namespace greta::tuner
