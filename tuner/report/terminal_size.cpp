#include "tuner/report/terminal_size.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>

namespace greta::tuner {
namespace {

std::atomic<std::size_t> output_columns{0};

}  // namespace

void set_output_columns(std::size_t columns) {
  output_columns = columns;
}

TerminalSize terminal_size(std::FILE* stream) {
  winsize size{};
  if (isatty(fileno(stream)) != 0 && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 &&
      size.ws_col > 0) {
    return {size.ws_col, size.ws_row};
  }
  return {stream == stdout ? output_columns.load() : 0, 0};
}

}  // namespace greta::tuner
