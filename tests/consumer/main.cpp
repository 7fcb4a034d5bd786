// Lists devices and looks a configuration up, through the installed package alone.
#include <fmt/core.h>

#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/version.hpp"

int main(int, char** arguments) {
  fmt::print("GRETA {}, {} operations\n", greta::version(), greta::catalog().size());
  for (greta::Backend* backend : greta::backends()) {
    for (const greta::ProbedDevice& device : backend->probe().devices) {
      fmt::print("{} {}\n", device.info.id(), device.info.name);
    }
  }
  const auto db = greta::TunedDb::open(arguments[1], greta::TunedDb::Mode::read_write);
  const auto winner = db.find_winner("no such device", "gemm dtype=f32 m=1 n=1 k=1", true);
  fmt::print("found {} winners\n", winner ? 1 : 0);
}
