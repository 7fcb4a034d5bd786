// Lists devices and looks up a configuration, using only the installed package.
#include <fmt/core.h>

#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/version.hpp"

namespace gr = greta::runtime;

int main(int, char** arguments) {
  fmt::print("GRETA {}, {} operations\n", gr::version(), gr::Catalog::built_in().size());
  for (gr::Backend* backend : gr::backends()) {
    for (const gr::ProbedDevice& device : backend->probe().devices) {
      fmt::print("{} {}\n", device.info.id(), device.info.name);
    }
  }
  const auto db = gr::TunedDb::open(arguments[1], gr::TunedDb::Mode::read_write);
  const auto winner = db.find_winner("no such device", "gemm dtype=f32 m=1 n=1 k=1", true);
  fmt::print("found {} winners\n", winner ? 1 : 0);
}
