#include "tuner/report/print.hpp"

#include <nlohmann/json.hpp>

namespace greta::tuner {
namespace {

template <typename Json>
void print_any(const Json& json, int indent) {
  print_text(printable_json(json.dump(indent, ' ', false, Json::error_handler_t::replace)) + "\n");
}

}  // namespace

// Errors are not checked here: a tool checks its streams at exit, and messages may have no reader.
void print_text(std::FILE* stream, std::string_view text) {
  const std::string clean = printable(text);
  static_cast<void>(std::fwrite(clean.data(), 1, clean.size(), stream));
}

void print_text(std::string_view text) {
  print_text(stdout, text);
}

void tell(std::string_view line) {
  print_text(stderr, one_line(line) + "\n");
}

void print_json(const nlohmann::json& json, int indent) {
  print_any(json, indent);
}

void print_json(const nlohmann::ordered_json& json, int indent) {
  print_any(json, indent);
}

nlohmann::json printed_result(const std::string& output, const std::string& key) {
  const auto start = output.rfind("{\"" + key + "\":");
  if (start == std::string::npos) return nlohmann::json::object();
  const auto line = output.substr(start, output.find('\n', start) - start);
  auto object = nlohmann::json::parse(line, nullptr, false);
  return object.is_object() ? object : nlohmann::json::object();
}

void clear_line(std::FILE* stream) {
  static_cast<void>(std::fputs("\r\033[K", stream));
}

PrintedStream::PrintedStream(std::ostream& stream, std::FILE* to)
    : stream_(stream), buffer_(to), before_(stream.rdbuf(&buffer_)) {}

PrintedStream::~PrintedStream() {
  stream_.flush();
  stream_.rdbuf(before_);
}

int PrintedStream::Buffer::sync() {
  print_text(to_, str());
  str({});
  return std::fflush(to_) == 0 && std::ferror(to_) == 0 ? 0 : -1;
}

}  // namespace greta::tuner
