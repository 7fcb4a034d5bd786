// Replaces the wall clock of a process (LD_PRELOAD): every reading is a day before or after the
// last one. The steady clock stays.

#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

#include <atomic>

namespace {

long long jump() {
  static std::atomic<unsigned> readings{0};
  return readings++ % 2 == 0 ? 86'400 : -86'400;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, struct timespec* now) {
  using Function = int (*)(clockid_t, struct timespec*);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, now);
  if (clock == CLOCK_REALTIME && result == 0) now->tv_sec += jump();
  return result;
}

time_t time(time_t* now) {
  struct timespec full {};
  clock_gettime(CLOCK_REALTIME, &full);
  if (now != nullptr) *now = full.tv_sec;
  return full.tv_sec;
}

int gettimeofday(struct timeval* now, void*) {
  struct timespec full {};
  clock_gettime(CLOCK_REALTIME, &full);
  now->tv_sec = full.tv_sec;
  now->tv_usec = full.tv_nsec / 1000;
  return 0;
}
}
