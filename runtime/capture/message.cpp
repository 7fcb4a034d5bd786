#include "runtime/capture/message.hpp"

#include <unistd.h>

#include <cstdio>

namespace greta::capture {

void report(const char* what, const char* why) {
  char line[1024];
  int length = std::snprintf(line, sizeof line, "greta-capture: %.700s%s\n", what, why);
  if (length < 0) return;
  if (length >= static_cast<int>(sizeof line)) {
    length = sizeof line - 1;
    line[length - 1] = '\n';
  }
  const auto written = write(STDERR_FILENO, line, static_cast<unsigned>(length));
  static_cast<void>(written);  // there is nobody else to say it to
}

}  // namespace greta::capture
