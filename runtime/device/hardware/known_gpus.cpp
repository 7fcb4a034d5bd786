#include "runtime/device/hardware/known_gpus.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "runtime/device/system/input_file.hpp"
#include "runtime/device/text/strings.hpp"

namespace greta::device {

namespace {

struct NamedArchitecture {
  std::string_view part;  ///< part of the device's name, in lower case
  std::string_view architecture;
};

// The first matching entry is used, so longer names come first. The names that start with "radv"
// are those that Mesa's driver appends to the marketing name.
constexpr std::array architectures{
    NamedArchitecture{"radv navi31", "gfx1100"},
    NamedArchitecture{"radv navi32", "gfx1101"},
    NamedArchitecture{"radv navi33", "gfx1102"},
    NamedArchitecture{"radv phoenix", "gfx1103"},
    NamedArchitecture{"radv strix1", "gfx1150"},
    NamedArchitecture{"radv strix_halo", "gfx1151"},
    NamedArchitecture{"radv navi44", "gfx1200"},
    NamedArchitecture{"radv navi48", "gfx1201"},
    NamedArchitecture{"radv navi21", "gfx1030"},
    NamedArchitecture{"radv navi22", "gfx1031"},
    NamedArchitecture{"radv navi23", "gfx1032"},
    NamedArchitecture{"radv navi24", "gfx1034"},
    NamedArchitecture{"radv vangogh", "gfx1033"},
    NamedArchitecture{"radv rembrandt", "gfx1035"},
    NamedArchitecture{"radv raphael", "gfx1036"},
    NamedArchitecture{"radv navi10", "gfx1010"},
    NamedArchitecture{"radv navi12", "gfx1011"},
    NamedArchitecture{"radv navi14", "gfx1012"},
    NamedArchitecture{"radv renoir", "gfx90c"},
    NamedArchitecture{"radv raven2", "gfx909"},
    NamedArchitecture{"radv raven", "gfx902"},
    NamedArchitecture{"radv vega10", "gfx900"},
    NamedArchitecture{"radv vega12", "gfx904"},
    NamedArchitecture{"radv vega20", "gfx906"},
    NamedArchitecture{"radv arcturus", "gfx908"},
    NamedArchitecture{"radv mi100", "gfx908"},
    NamedArchitecture{"radv mi200", "gfx90a"},
    NamedArchitecture{"radv aldebaran", "gfx90a"},
    NamedArchitecture{"radv polaris", "gfx803"},
    NamedArchitecture{"radv vegam", "gfx803"},
    NamedArchitecture{"radv fiji", "gfx803"},
    NamedArchitecture{"radv tonga", "gfx802"},
    NamedArchitecture{"radv carrizo", "gfx801"},
    NamedArchitecture{"radv stoney", "gfx810"},
    NamedArchitecture{"mi350", "gfx950"},
    NamedArchitecture{"mi355", "gfx950"},
    NamedArchitecture{"mi300", "gfx942"},
    NamedArchitecture{"mi325", "gfx942"},
    NamedArchitecture{"mi210", "gfx90a"},
    NamedArchitecture{"mi250", "gfx90a"},
    NamedArchitecture{"mi100", "gfx908"},
    NamedArchitecture{"rx 9070", "gfx1201"},
    NamedArchitecture{"rx 9060", "gfx1200"},
    NamedArchitecture{"rx 7900", "gfx1100"},
    NamedArchitecture{"rx 7800", "gfx1101"},
    NamedArchitecture{"rx 7700", "gfx1101"},
    NamedArchitecture{"rx 7600", "gfx1102"},
    NamedArchitecture{"rx 6900", "gfx1030"},
    NamedArchitecture{"rx 6950", "gfx1030"},
    NamedArchitecture{"rx 6800", "gfx1030"},
    NamedArchitecture{"rx 6700", "gfx1031"},
    NamedArchitecture{"rx 6600", "gfx1032"},
    NamedArchitecture{"rx 6650", "gfx1032"},
    NamedArchitecture{"780m", "gfx1103"},
    NamedArchitecture{"760m", "gfx1103"},
    NamedArchitecture{"740m", "gfx1103"},
    NamedArchitecture{"gb200", "sm_100"},
    NamedArchitecture{"b200", "sm_100"},
    NamedArchitecture{"b100", "sm_100"},
    NamedArchitecture{"b300", "sm_103"},
    NamedArchitecture{"gh200", "sm_90"},
    NamedArchitecture{"h100", "sm_90"},
    NamedArchitecture{"h200", "sm_90"},
    NamedArchitecture{"h800", "sm_90"},
    NamedArchitecture{"h20", "sm_90"},
    NamedArchitecture{"rtx a", "sm_86"},
    NamedArchitecture{"a100", "sm_80"},
    NamedArchitecture{"a800", "sm_80"},
    NamedArchitecture{"a30", "sm_80"},
    NamedArchitecture{"rtx pro", "sm_120"},
    NamedArchitecture{"rtx 50", "sm_120"},
    NamedArchitecture{"rtx 40", "sm_89"},
    NamedArchitecture{"ada generation", "sm_89"},
    NamedArchitecture{"nvidia l40", "sm_89"},
    NamedArchitecture{"nvidia l4", "sm_89"},
    NamedArchitecture{"rtx 30", "sm_86"},
    NamedArchitecture{"nvidia a40", "sm_86"},
    NamedArchitecture{"nvidia a10", "sm_86"},
    NamedArchitecture{"orin", "sm_87"},
    NamedArchitecture{"rtx 20", "sm_75"},
    NamedArchitecture{"gtx 16", "sm_75"},
    NamedArchitecture{"quadro rtx", "sm_75"},
    NamedArchitecture{"titan rtx", "sm_75"},
    NamedArchitecture{"tesla t4", "sm_75"},
    NamedArchitecture{"tesla v100", "sm_70"},
    NamedArchitecture{"titan v", "sm_70"},
    NamedArchitecture{"tesla p100", "sm_60"},
    NamedArchitecture{"gtx 10", "sm_61"},
    NamedArchitecture{"tesla p4", "sm_61"},
};

struct NamedCache {
  std::string_view part;  ///< part of the device's name or architecture, in lower case
  std::uint64_t mebibytes;
};

// Source: the manufacturers' data sheets. The values are those of the last level, e.g. AMD's
// Infinity Cache, not the L2.
constexpr std::array caches{
    NamedCache{"mi300", 256},     NamedCache{"mi325", 256},    NamedCache{"mi350", 256},
    NamedCache{"mi355", 256},     NamedCache{"mi210", 8},      NamedCache{"mi250", 8},
    NamedCache{"mi100", 8},       NamedCache{"7900 xtx", 96},  NamedCache{"7900 xt", 80},
    NamedCache{"7900 gre", 64},   NamedCache{"7800 xt", 64},   NamedCache{"7700 xt", 48},
    NamedCache{"7600", 32},       NamedCache{"9070", 64},      NamedCache{"9060", 32},
    NamedCache{"6950", 128},      NamedCache{"6900", 128},     NamedCache{"6800", 128},
    NamedCache{"6750", 96},       NamedCache{"6700", 96},      NamedCache{"6650", 32},
    NamedCache{"6600", 32},       NamedCache{"6500", 16},      NamedCache{"6400", 16},
    NamedCache{"h200", 64},       NamedCache{"h100", 50},      NamedCache{"h800", 50},
    NamedCache{"h20", 64},        NamedCache{"a100", 40},      NamedCache{"a800", 40},
    NamedCache{"nvidia a30", 24}, NamedCache{"b200", 126},     NamedCache{"5090", 96},
    NamedCache{"5080", 64},       NamedCache{"5070", 48},      NamedCache{"4090", 72},
    NamedCache{"4080", 64},       NamedCache{"4070", 48},      NamedCache{"4060", 32},
    NamedCache{"l40", 96},        NamedCache{"nvidia l4", 48}, NamedCache{"sm_86", 6},
    NamedCache{"sm_75", 6},       NamedCache{"sm_70", 6},      NamedCache{"gfx1103", 4},
    NamedCache{"gfx1150", 4},     NamedCache{"gfx1151", 32},   NamedCache{"gfx1035", 4},
    NamedCache{"gfx1036", 4},     NamedCache{"gfx1033", 4},    NamedCache{"gfx90c", 4},
    NamedCache{"gfx909", 4},      NamedCache{"gfx902", 4},     NamedCache{"gfx906", 4},
    NamedCache{"gfx900", 4},
};

constexpr std::uint64_t unknown_cache_mebibytes = 256;

/// Converts a size such as "32768K" to bytes.
std::uint64_t parse_size(const std::string& text) {
  if (text.empty()) return 0;
  const std::uint64_t number = std::stoull(text);
  return text.back() == 'K' ? number << 10 : text.back() == 'M' ? number << 20 : number;
}

std::uint64_t host_last_level_cache_bytes(std::uint32_t cores) {
  int level = 0;
  std::uint64_t total = 0;
  std::set<std::string> seen;  // a shared cache is listed under each of its cores
  for (std::uint32_t core = 0; core < cores; ++core) {
    const std::filesystem::path folder =
        "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/cache";
    for (int index = 0; std::filesystem::exists(folder / ("index" + std::to_string(index)));
         ++index) {
      const auto cache = folder / ("index" + std::to_string(index));
      const std::string level_text = first_line(read_system_file(cache / "level"));
      const int this_level = level_text.empty() ? 0 : std::stoi(level_text);
      if (this_level < level) continue;
      if (this_level > level) {
        level = this_level;
        total = 0;
        seen.clear();
      }
      if (seen.insert(first_line(read_system_file(cache / "shared_cpu_list"))).second) {
        total += parse_size(first_line(read_system_file(cache / "size")));
      }
    }
  }
  return total != 0 ? total : unknown_cache_mebibytes << 20;
}

std::string host_model() {
  std::istringstream file(read_system_file("/proc/cpuinfo"));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return {};
}

}  // namespace

std::string gpu_architecture(std::string_view device_name) {
  const std::string name = lowercase(device_name);
  if (const auto start = name.find("gfx"); start != std::string::npos) {
    const auto end = std::find_if_not(name.begin() + static_cast<std::ptrdiff_t>(start) + 3,
                                      name.end(), [](unsigned char c) { return std::isxdigit(c); });
    return {name.begin() + static_cast<std::ptrdiff_t>(start), end};
  }
  for (const auto& [part, architecture] : architectures) {
    if (name.find(part) != std::string::npos) return std::string(architecture);
  }
  std::string slug;
  for (const char c : name) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) slug += c;
    if (!plain && !slug.empty() && slug.back() != '_') slug += '_';
  }
  while (!slug.empty() && slug.back() == '_') slug.pop_back();
  return slug;
}

std::uint64_t gpu_last_level_cache_bytes(std::string_view device_name,
                                         std::string_view architecture) {
  const std::string text = lowercase(device_name) + "\n" + lowercase(architecture);
  for (const auto& [part, mebibytes] : caches) {
    if (text.find(part) != std::string::npos) return mebibytes << 20;
  }
  return unknown_cache_mebibytes << 20;
}

HostProcessor host_processor() {
  HostProcessor processor;
  processor.model = host_model();
  processor.cores = std::max(1U, std::thread::hardware_concurrency());
  processor.last_level_cache_bytes = host_last_level_cache_bytes(processor.cores);
  return processor;
}

}  // namespace greta::device
