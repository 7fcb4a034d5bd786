#include "tuner/report/print.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "tuner/report/format.hpp"
#include "tuner/report/terminal_size.hpp"

namespace greta::tuner {
namespace {

template <typename Json>
void print_any(const Json& json, int indent) {
  print_text(printable_json(json.dump(indent, ' ', false, Json::error_handler_t::replace)) + "\n");
}

/// The lines that are shown below everything else.
struct Below {
  std::FILE* stream = nullptr;
  std::vector<std::string> lines;
};
std::atomic<bool> below_left{false};
std::mutex below_mutex;
Below below;

// Called with the mutex locked. A terminal that has become narrower has broken long lines.
void remove_below() {
  if (below_left.exchange(false)) below.lines.clear();
  if (below.lines.empty()) return;
  const std::size_t columns = terminal_size(below.stream).columns;
  std::size_t rows = 0;
  for (const auto& line : below.lines)
    rows +=
        columns == 0 ? 1 : std::max<std::size_t>(1, (text_columns(line) + columns - 1) / columns);
  static_cast<void>(std::fputs(fmt::format("\033[{}A\r\033[J", rows).c_str(), below.stream));
  static_cast<void>(std::fflush(below.stream));
  below.lines.clear();
}

}  // namespace

// Errors are not checked here: a tool checks its streams at exit, and messages may have no reader.
void print_text(std::FILE* stream, std::string_view text) {
  const std::string clean = printable(text);
  const std::lock_guard lock(below_mutex);
  remove_below();
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

LineStream::LineStream(std::FILE* stream)
    : descriptor_(fcntl(fileno(stream), F_DUPFD_CLOEXEC, 0)) {}

LineStream::~LineStream() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool LineStream::closed() const {
  const std::lock_guard lock(mutex_);
  return descriptor_ < 0;
}

bool LineStream::failed() const {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void LineStream::write(const nlohmann::ordered_json& object) {
  using Handler = nlohmann::ordered_json::error_handler_t;
  const std::string line = printable_json(object.dump(-1, ' ', false, Handler::replace)) + "\n";
  const std::lock_guard lock(mutex_);
  for (std::size_t done = 0; descriptor_ >= 0 && done < line.size();) {
    const ssize_t n = ::write(descriptor_, line.data() + done, line.size() - done);
    if (n > 0) done += static_cast<std::size_t>(n);
    if (n > 0 || (n < 0 && errno == EINTR)) continue;
    const bool reader_left = n < 0 && errno == EPIPE;
    pollfd writable{descriptor_, POLLOUT, 0};
    if (n < 0 && errno == EAGAIN && poll(&writable, 1, -1) >= 0) continue;
    close(std::exchange(descriptor_, -1));
    failed_ = !reader_left;
  }
}

nlohmann::json printed_result(const std::string& output, const std::string& key) {
  const auto start = output.rfind("{\"" + key + "\":");
  if (start == std::string::npos) return nlohmann::json::object();
  const auto line = output.substr(start, output.find('\n', start) - start);
  auto object = nlohmann::json::parse(line, nullptr, false);
  return object.is_object() ? object : nlohmann::json::object();
}

void leave_below() {
  below_left = true;
}

void show_below(std::FILE* stream, const std::vector<std::string>& lines) {
  const std::lock_guard lock(below_mutex);
  remove_below();
  if (lines.empty()) return;
  std::string text;
  for (const auto& line : lines) text += one_line(line) + "\n";
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stream));
  static_cast<void>(std::fflush(stream));
  below = {stream, lines};
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
