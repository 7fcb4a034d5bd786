// Takes the place of greta-tune in tests of `greta-tune remote`: prints its arguments, each in brackets, then does what
// they say. It ends in good order when it is asked to.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t stopped;
static void stop(int signal) { stopped = signal; }

int main(int count, char** words) {
  int code = 0;
  setvbuf(stdout, NULL, _IONBF, 0);
  signal(SIGTERM, stop);
  if (count == 2 && strcmp(words[1], "--version") == 0) {
#ifdef BROKEN
    fputs("greta-tune: error while loading shared libraries: libx.so.1: cannot open shared object file\n", stderr);
    return 127;
#endif
    return 0;
  }
  if (count == 3 && strcmp(words[1], "devices") == 0) {
    puts("[{\"devices\": [{\"kind\": \"discrete GPU\", \"usable\": true}]}]");
    return 0;
  }
  for (int i = 1; i < count; ++i) printf("[%s]\n", words[i]);
  for (int i = 1; i + 1 < count; ++i) {
    if (strcmp(words[i], "--code") == 0) code = atoi(words[i + 1]);
    if (strcmp(words[i], "--csv") == 0) {
      FILE* const file = fopen(words[i + 1], "a");
      fputs("row\n", file);
      fclose(file);
    }
    if (strcmp(words[i], "--show") == 0) {
      FILE* const file = fopen(words[i + 1], "r");
      for (int c; (c = fgetc(file)) != EOF;) putchar(c);
      fclose(file);
    }
    if (strcmp(words[i], "--lines") == 0) {
      for (int line = 1; line <= atoi(words[i + 1]) && !stopped; ++line) {
        printf("line %d\n", line);
        if (line % 10 == 0) fprintf(stderr, "error %d\n", line);
        usleep(50000);
      }
    }
  }
  if (stopped) printf("stopped by %d\n", stopped);
  return stopped ? 1 : code;
}
