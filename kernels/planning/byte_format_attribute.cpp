#include "kernels/planning/byte_format_attribute.hpp"

#include <utility>
#include <vector>

#include "kernels/model/byte_formats.hpp"

namespace greta::kernels {

Attribute byte_format_attribute(const std::string& what) {
  std::vector<std::string> formats;
  for (const ByteFormatTraits& format : byte_format_table) {
    if (format.bits == 8) formats.emplace_back(format.name);
  }
  return {.name = "format",
          .help = "numbers of " + what +
                  ". e4m3, e5m2: OCP's fp8; e4m3_fnuz, e5m2_fnuz: AMD's fp8 of gfx942; int8: "
                  "integers",
          .fallback = "e4m3",
          .allowed = std::move(formats)};
}

}  // namespace greta::kernels
