#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>

#include "runtime/pipeline/compute/runtime.hpp"
#include "tests/compiled_kernels.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Opens a device by its id.
inline std::unique_ptr<Runtime> open_runtime(const std::string& device) {
  RuntimeOptions options;
  options.device = device;
  options.open.cache_directory = compiled_kernels();
  return Runtime::open(options).value();
}

/// Returns the id of a tested device as a part of a test's name.
constexpr auto device_name = [](const auto& tested) {
  std::string name = tested.param;
  std::replace_if(
      name.begin(), name.end(),
      [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
};

}  // namespace greta::test
