// Lists devices and looks up a configuration, using only the installed package: consumer DATABASE
// [PROBLEM]. The answer for PROBLEM on lavapipe must come from the databases that are installed
// with GRETA.
#include <fmt/core.h>

#include "db/lookup/lookup.hpp"
#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/version.hpp"

namespace gr = greta::runtime;

/// Returns whether the installed databases answer.
bool installed_answer(const gr::DeviceInfo& device, const char* key) {
  const auto problem = gr::Catalog::built_in().read(key).value();
  const auto origin = [&](const gr::LookupFiles& files) {
    return gr::Lookup::open(device, files).find(problem).origin_text();
  };
  fmt::print("{}: {}\n", gr::shipped_folder().string(), origin({}));
  return origin({}) == "exact, shipped" && origin(gr::LookupFiles::none()) == "default";
}

int main(int count, char** arguments) {
  fmt::print("GRETA {}, {} operations\n", gr::version(), gr::Catalog::built_in().size());
  for (gr::Backend* backend : gr::backends()) {
    for (const gr::ProbedDevice& device : backend->probe().devices) {
      fmt::print("{} {}\n", device.info.id(), device.info.name);
      if (count > 2 && device.info.architecture == "lavapipe" &&
          !installed_answer(device.info, arguments[2])) {
        return 1;
      }
    }
  }
  const auto db = gr::TunedDb::open(arguments[1], gr::TunedDb::Mode::read_write);
  const auto winner = db.find_winner("no such device", "gemm dtype=f32 m=1 n=1 k=1", true);
  fmt::print("found {} winners\n", winner ? 1 : 0);
}
