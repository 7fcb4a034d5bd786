// greta_hip_host_runner DEVICE [THREADS BYTES [races]]: runs the kernel "test" from standard input
// under sanitizers, or with race detection, in two blocks, with a buffer of 64 ints and its number
// of elements as arguments, and prints the last element. The exit code is 3 if the device rejects
// it.

#include <fmt/format.h>

#include <iostream>
#include <iterator>
#include <string_view>

#include "tests/device/hip_host/host_device.hpp"

int main(int count, char** words) {
  using namespace greta;
  using namespace greta::test;
  try {
    const auto number = [&](int i, int otherwise) {
      return i < count ? std::atoi(words[i]) : otherwise;
    };
    OpenOptions options;
    const bool races = count > 4 && std::string_view(words[4]) == "races";
    options.sanitize = races ? Sanitize::races : Sanitize::address;
    HostDevice host(static_cast<Imitated>(number(1, 0)), options);
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    const auto out = host.upload(std::vector<int>(64, 1));
    host.run(HostDevice::source(text, {static_cast<unsigned>(number(2, 64)), 1, 1},
                                static_cast<std::size_t>(number(3, 0))),
             {2, 1, 1}, out, 64)
        .value();
    fmt::print("{}\n", host.download<int>(out).back());
    return 0;
  } catch (const Error& error) {
    fmt::print("{}\n", error.what());
    return 3;
  }
}
