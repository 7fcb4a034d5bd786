#include "tuner/report/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>

#include "db/earlier_keys.hpp"
#include "runtime/device/input_file.hpp"
#include "runtime/device/version.hpp"

namespace greta::tuner {
namespace {

// Samples are kept as they are needed for statistics: 1e-5 is far below their noise.
constexpr int sample_digits = 5;

std::string number_text(double value) {
  return value != 0 ? fmt::format("{:.6g}", value) : "";
}

double read_number(std::string_view text) {
  double value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) {
    throw Error(fmt::format("{} is no number", text));
  }
  return value;
}

// Text is quoted where it could hold a comma, a quote or a line break.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c == '\n' || c == '\r' ? ' ' : c;
  }
  return out + "\"";
}

// "1.5 1.6|1.4 1.5": blocks of samples.
std::string blocks_text(const std::vector<std::vector<double>>& blocks) {
  std::string text;
  for (const auto& block : blocks) {
    if (block.empty()) continue;
    if (!text.empty()) text += '|';
    for (std::size_t i = 0; i < block.size(); ++i) {
      text += fmt::format("{}{:.{}g}", i == 0 ? "" : " ", block[i], sample_digits);
    }
  }
  return text;
}

std::vector<std::vector<double>> read_blocks(std::string_view text) {
  std::vector<std::vector<double>> blocks;
  while (!text.empty()) {
    if (blocks.empty()) blocks.emplace_back();
    const auto end = text.find_first_of(" |");
    blocks.back().push_back(read_number(text.substr(0, end)));
    if (end == std::string_view::npos) break;
    if (text[end] == '|') blocks.emplace_back();
    text.remove_prefix(end + 1);
  }
  return blocks;
}

constexpr std::size_t later_columns = 3;  // that files of older versions may lack

struct Column {
  const char* name;
  std::function<std::string(const CsvRow&)> write;
  std::function<void(CsvRow&, const std::string&)> read;
};

// Words of GRETA's own: in quotes only where a damaged database has made something else of one.
Column plain(const char* name, std::string CsvRow::*member) {
  return {name,
          [member](const CsvRow& row) {
            const std::string& word = row.*member;
            return word.find_first_of(",\"\r\n") == std::string::npos ? word : quoted(word);
          },
          [member](CsvRow& row, const std::string& text) { row.*member = text; }};
}

Column text(const char* name, std::string CsvRow::*member) {
  Column column = plain(name, member);
  column.write = [member](const CsvRow& row) { return quoted(row.*member); };
  return column;
}

Column number(const char* name, double CsvRow::*member) {
  return {name, [member](const CsvRow& row) { return number_text(row.*member); },
          [member](CsvRow& row, const std::string& text) {
            row.*member = text.empty() ? 0 : read_number(text);
          }};
}

Column count(const char* name, std::size_t CsvRow::*member) {
  return {name,
          [member](const CsvRow& row) {
            return row.*member > 0 ? std::to_string(row.*member) : std::string();
          },
          [member](CsvRow& row, const std::string& text) {
            constexpr double most = 1e15;
            const double value = text.empty() ? 0 : read_number(text);
            row.*member = value > 0 ? static_cast<std::size_t>(std::min(value, most)) : 0;
          }};
}

Column blocks(const char* name, std::vector<std::vector<double>> CsvRow::*member) {
  return {name, [member](const CsvRow& row) { return blocks_text(row.*member); },
          [member](CsvRow& row, const std::string& text) { row.*member = read_blocks(text); }};
}

Column numbers(const char* name, std::vector<double> CsvRow::*member) {
  return {name, [member](const CsvRow& row) { return blocks_text({row.*member}); },
          [member](CsvRow& row, const std::string& text) {
            const auto read = read_blocks(text);
            if (!read.empty()) row.*member = read.front();
          }};
}

const std::vector<Column>& columns() {
  static const std::vector<Column> list{
      plain("op", &CsvRow::op),
      plain("dtype", &CsvRow::dtype),
      plain("out_dtype", &CsvRow::out_dtype),
      plain("problem", &CsvRow::problem),
      text("attributes", &CsvRow::attributes),
      plain("backend", &CsvRow::backend),
      text("device", &CsvRow::device),
      text("config", &CsvRow::config),
      plain("origin", &CsvRow::origin),
      plain("status", &CsvRow::status),
      number("us", &CsvRow::us),
      number("low_us", &CsvRow::low_us),
      number("high_us", &CsvRow::high_us),
      number("p99_us", &CsvRow::p99_us),
      number("spread_pct", &CsvRow::spread_pct),
      number("tflops", &CsvRow::tflops),
      number("gbps", &CsvRow::gbps),
      number("roofline", &CsvRow::roofline),
      number("error", &CsvRow::error),
      number("bound", &CsvRow::bound),
      number("speedup", &CsvRow::speedup),
      number("speedup_low", &CsvRow::speedup_low),
      number("speedup_high", &CsvRow::speedup_high),
      plain("cache", &CsvRow::cache),
      count("samples", &CsvRow::samples),
      text("driver", &CsvRow::driver),
      text("compiler", &CsvRow::compiler),
      plain("greta_version", &CsvRow::greta_version),
      plain("date", &CsvRow::date),
      text("clocks", &CsvRow::clocks),
      blocks("samples_us", &CsvRow::blocks_us),
      numbers("control_us", &CsvRow::control_us),
      blocks("cpu_us", &CsvRow::cpu_us),
      numbers("cpu_control_us", &CsvRow::cpu_control_us),
      count("processes", &CsvRow::processes),
  };
  return list;
}

// Fields of a line: separated by commas, in quotes where they hold one. Rows are single lines.
std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields(1);
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    const bool doubled = inside && c == '"' && i + 1 < line.size() && line[i + 1] == '"';
    if (doubled) {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      inside = !inside;
    } else if (c == ',' && !inside) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (inside) throw Error("a quote is not closed");
  return fields;
}

// The first line of a file that has so many of the columns.
std::string header_of(std::size_t count) {
  std::string line;
  for (std::size_t i = 0; i < count; ++i) {
    line += (line.empty() ? "" : ",") + std::string(columns()[i].name);
  }
  return line;
}

// How many columns a file with this first line has; nothing where they are others.
std::optional<std::size_t> columns_of(const std::string& header) {
  const std::size_t all = columns().size();
  for (std::size_t count = all - later_columns; count <= all; ++count) {
    if (header == header_of(count)) return count;
  }
  return std::nullopt;
}

// A problem that was spelt otherwise when the row was written.
void rename_problem(CsvRow& row) {
  const std::string types = fmt::format("{} dtype={} out={}", row.op, row.dtype, row.out_dtype);
  const auto word = [](const std::string& text) { return text.empty() ? "" : " " + text; };
  const std::string key = today_key(types + word(row.attributes) + word(row.problem));
  row.problem = today_dims(row.problem);
  row.attributes = key.substr(types.size(), key.size() - types.size() - word(row.problem).size());
  if (!row.attributes.empty()) row.attributes.erase(0, 1);
}

CsvRow read_row(const std::string& line, std::size_t count) {
  const auto fields = split(line);
  if (fields.size() != count) {
    throw Error(fmt::format("has {} fields, not {}", fields.size(), count));
  }
  CsvRow row;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    try {
      columns()[i].read(row, fields[i]);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", columns()[i].name, error.what()));
    }
  }
  rename_problem(row);
  return row;
}

}  // namespace

bool CsvRow::from_database() const {
  return origin == "winner" || origin == "nearest shape" || origin == "same architecture";
}

void CsvRow::set_problem(const Problem& what) {
  op = what.op;
  dtype = to_string(what.dtype);
  out_dtype = to_string(what.out_dtype);
  problem = what.dims_text();
  attributes.clear();
  for (const auto& [name, value] : what.attributes) {
    attributes += (attributes.empty() ? "" : " ") + name + "=" + value;
  }
}

void CsvRow::set_device(const DeviceInfo& where) {
  backend = to_string(where.backend);
  device = where.name;
  driver = where.driver;
  compiler = where.compiler;
  greta_version = version();
}

void CsvRow::set_measurement(const Measurement& measurement) {
  us = measurement.median_us;
  low_us = measurement.low_us;
  high_us = measurement.high_us;
  p99_us = measurement.p99_us;
  spread_pct = measurement.spread_percent();
  cache = measurement.cold ? "cold" : "warm";
  clocks = measurement.clocks;
  samples = measurement.samples_us.size();
  if (samples > 0) blocks_us = {measurement.samples_us};
}

void CsvRow::set_verdict(const Verdict& verdict) {
  error = verdict.error;
  bound = verdict.bound;
}

void CsvRow::set_work(const Work& work) {
  tflops = us > 0 ? work.flops / us / 1e6 : 0;
  gbps = us > 0 ? work.bytes / us / 1e3 : 0;
}

std::string csv_header() {
  return header_of(columns().size()) + "\n";
}

std::string csv_line(const CsvRow& row) {
  std::string line;
  for (const auto& column : columns()) {
    if (&column != &columns().front()) line += ',';
    line += column.write(row);
  }
  return line + "\n";
}

Result<std::vector<CsvRow>> read_csv(const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& why) {
    return Failure{Status::io, fmt::format("{}: {}", file.string(), why), {}};
  };
  auto text = read_file(file, most_csv_bytes);
  if (!text) return text.failure();
  std::istringstream in(*std::move(text));
  std::string line;
  std::getline(in, line);
  const auto count = columns_of(line);
  if (!count) {
    return refuse("is not a CSV file of this version of GRETA: it has other columns");
  }
  std::vector<CsvRow> rows;
  for (int at = 2; std::getline(in, line); ++at) {
    if (line.empty()) continue;
    try {
      rows.push_back(read_row(line, *count));
    } catch (const Error& error) {
      return refuse(fmt::format("line {}: {}", at, error.what()));
    }
  }
  return rows;
}

Result<void> append_csv(const std::filesystem::path& file, const std::vector<CsvRow>& rows) {
  std::error_code ignored;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), ignored);
  const bool fresh = std::filesystem::file_size(file, ignored) == 0 || ignored;
  std::ofstream out(file, std::ios::app);
  if (fresh) out << csv_header();
  for (const auto& row : rows) out << csv_line(row);
  out.close();
  if (!out) return Failure{Status::io, file.string() + ": can't be written", {}};
  return {};
}

}  // namespace greta::tuner
