#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "kernels/planning/render.hpp"
#include "kernels/templates/gemm/matrix_kernel.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

// Protects: tiles of `matrix` in shared memory have no bank conflicts. The conflicts are counted by
// enumerating which bytes the lanes access together. The kernel source, run on the GPUs that
// hip-host emulates, gives the addresses of chunks; the vendors' documentation says which lanes are
// served together.
namespace greta::test::gemm_matrix_banks_test {
namespace {

/// The parameters of SharedTile: lines, chunks of a line, pad, far.
using Shape = std::tuple<unsigned, unsigned, unsigned, bool>;

constexpr std::array<unsigned, 4> widths{16, 32, 48, 64};  // written by Core::store()

/// The placement of chunks and sums in the kernel source.
struct Layout {
  std::map<Shape, std::vector<std::uint32_t>> offsets;  ///< [line x chunks + chunk], in bytes
  std::map<unsigned, std::uint32_t> pitches;            ///< by width
};

/// Groups of 32 lanes whose 16 bytes are served together: four consecutive lanes each, by number.
using Quads = std::vector<std::vector<unsigned>>;

const Quads in_a_row{{0, 1}, {2, 3}, {4, 5}, {6, 7}};

/// GPUs with the same kind of matrix cores and shared memory. NVIDIA serves eight consecutive lanes
/// together, those of one matrix of ldmatrix. The read order of AMD's GPUs was measured on gfx942,
/// gfx950, gfx1100 and gfx1201 (AMD's "AMDGPU Kernel Optimization Guide", "Empirical LDS
/// measurements"). Writes serve eight consecutive lanes, according to the same guide and Composable
/// Kernel for gfx942.
struct Family {
  int imitated;  ///< index of hip-host's device
  MatrixCores cores;
  unsigned banks;
  Quads reads;
  std::vector<std::string> architectures;
};

/// For GoogleTest's messages.
void PrintTo(const Family& value, std::ostream* out) {
  *out << value.architectures.back();
}

const std::vector<Family>& families() {
  const Quads pairs{{0, 5}, {1, 4}, {2, 7}, {3, 6}};
  static const std::vector<Family> list{
      {0, MatrixCores::mma, 32, in_a_row, {"sm_80", "sm_86", "sm_90"}},
      {1, MatrixCores::mfma, 32, pairs, {"gfx90a", "gfx942"}},
      {1, MatrixCores::mfma, 64, {{0, 3, 5, 6}, {1, 2, 4, 7}}, {"gfx950"}},
      {2, MatrixCores::wmma11, 32, pairs, {"gfx1100", "gfx1103", "gfx1151"}},
      {3, MatrixCores::wmma12, 32, in_a_row, {"gfx1201"}},
  };
  return list;
}

/// One operand of one configuration.
struct Operand {
  std::string name;
  Shape shape;
  bool tile_along_k, turned, turned_by_loads;
  unsigned span, vec, chunk;  ///< extent, elements of a load and of a chunk
  unsigned product, depth, bk, threads;
};

std::vector<Operand> operands_of(const Problem& problem, const DeviceInfo& device,
                                 const Config& config) {
  const gemm::Shape shape = gemm::shape_of(problem);
  const gemm::MatrixKernel kernel(shape, device);
  const auto value = [&config](const char* name) { return static_cast<unsigned>(config[name]); };
  std::vector<Operand> list;
  for (const bool is_a : {true, false}) {
    Operand o;
    const bool along_k = is_a ? shape.a_along_k : shape.b_along_k;
    o.name = fmt::format("{} of {} on {}: {}", is_a ? "A" : "B", problem.key(), device.architecture,
                         config.text());
    o.turned = kernel.turned(config, along_k);
    o.turned_by_loads = !along_k && kernel.turns_by_loads(config);
    o.tile_along_k = along_k || o.turned || o.turned_by_loads;
    o.span = value(is_a ? "BM" : "BN");
    o.vec = value(is_a ? "VA" : "VB");
    o.chunk = 16 / bytes_of(problem.dtype, 1U);
    o.product = value("INSTR");
    o.depth = static_cast<unsigned>(kernel.depth(config["INSTR"]));
    o.bk = value("BK");
    o.threads = static_cast<unsigned>(kernel.threads(config));
    o.shape = {o.tile_along_k ? o.span : o.bk, (o.tile_along_k ? o.bk : o.span) / o.chunk,
               value("PAD"), o.turned};
    list.push_back(std::move(o));
  }
  return list;
}

/// Returns configurations with swizzled tiles: the default, the same with loads that transpose, and
/// some random ones. Warpgroup operations are excluded: they read shared memory directly, in the
/// swizzle that they require.
std::vector<Config> configs_of(const Problem& problem, const DeviceInfo& device, int samples) {
  std::vector<Config> list{built_in("gemm").default_config(problem, device)};
  Config by_loads = list.front();
  if (by_loads.has("TURN")) {
    by_loads.value("TURN") = 2;
    for (const char* width : {"VA", "VB"}) by_loads.value(width) = 8;
    if (catalog().valid(problem, device, by_loads)) list.push_back(by_loads);
  }
  if (samples > 0) {
    const Space space = built_in("gemm").space(problem, device);
    std::mt19937_64 random(1);
    for (int i = 0; i < samples; ++i) list.push_back(space.sample(random));
  }
  std::erase_if(list, [](const Config& c) {
    return c.variant != "matrix" || c["PAD"] != 0 || c["INSTR"] == gemm::warpgroup_rows;
  });
  return list;
}

/// Returns operands of large, small and odd problems and of problems with few rows.
std::vector<Operand> operands_of(const Family& family) {
  std::vector<Operand> list;
  for (const std::string& architecture : family.architectures) {
    const DeviceInfo device = architecture_info(architecture).value();
    for (const char* layout : {"nn", "nt", "tn"}) {
      for (const DType type : {DType::f16, DType::f32}) {
        for (const auto& [m, n, k, samples] :
             {std::array{4096, 4096, 4096, 0}, std::array{2048, 2048, 2048, 0},
              std::array{512, 512, 512, 80}, std::array{16, 4096, 4096, 0},
              std::array{128, 4096, 4096, 0}, std::array{4095, 4095, 4095, 0}}) {
          std::vector<std::pair<std::string, std::string>> attributes;
          if (layout != std::string("nn")) attributes = {{"layout", layout}};
          const Problem problem = test::gemm_problem(m, n, k, type, type, attributes);
          for (const Config& config : configs_of(problem, device, samples)) {
            const auto more = operands_of(problem, device, config);
            list.insert(list.end(), more.begin(), more.end());
          }
        }
      }
    }
  }
  return list;
}

/// Returns a kernel in which one thread writes every offset of every shape, then the pitches.
std::string text_of(const std::set<Shape>& shapes, unsigned banks) {
  std::string text = render("common/matrix.hip", {});
  text +=
      "template <typename Tile>\n"
      "GRETA_DEVICE u32* tell(u32* out, u32 lines, u32 chunks) {\n"
      "  for (u32 i = 0; i < lines * chunks; ++i) *out++ = Tile::offset(i / chunks, i % chunks);\n"
      "  return out;\n"
      "}\n"
      "GRETA_KERNEL(64) layout(u32* out) {\n"
      "  if (thread_index() > 0) return;\n";
  for (const auto& [lines, chunks, pad, far] : shapes) {
    text += fmt::format("  out = tell<SharedTile<{0}, {1}, {2}, {3}, {4}>>(out, {0}, {1});\n",
                        lines, chunks, pad, far, banks);
  }
  for (const unsigned width : widths) {
    text += fmt::format("  *out++ = MatrixCore<f16, 16>::pitch({});\n", width);
  }
  return text + "}\n";
}

Layout layout_of(const Family& family, const std::set<Shape>& shapes) {
  std::size_t words = widths.size();
  for (const auto& shape : shapes) words += std::get<0>(shape) * std::get<1>(shape);
  Device& device = test::device(fmt::format("hip-host:{}", family.imitated));
  KernelSource source;
  source.name = "test/layout";
  source.language = Language::hip;
  source.text = text_of(shapes, family.banks);
  source.entry = "layout";
  source.argument_bytes = 8;
  source.block = {64, 1, 1};
  const auto kernel = device.compile(source).value();
  const auto buffer = device.allocate(words * 4).value();
  const auto stream = device.create_stream().value();
  const std::uint64_t address = buffer->address();
  stream->launch(*kernel, {1, 1, 1}, std::as_bytes(std::span(&address, 1))).value();
  stream->synchronize(std::chrono::seconds(60)).value();
  std::vector<std::uint32_t> told(words);
  device.download(*buffer, 0, std::as_writable_bytes(std::span(told))).value();

  Layout layout;
  auto next = told.begin();
  for (const auto& shape : shapes) {
    const auto end = next + std::get<0>(shape) * std::get<1>(shape);
    layout.offsets[shape] = {next, end};
    next = end;
  }
  for (const unsigned width : widths) layout.pitches[width] = *next++;
  return layout;
}

/// Returns the maximum number of different 4-byte words that are accessed in one bank.
std::size_t conflicts(const std::vector<std::uint32_t>& addresses, unsigned bytes, unsigned banks) {
  std::map<unsigned, std::set<unsigned>> words;
  for (const std::uint32_t address : addresses) {
    for (unsigned w = address / 4; w < (address + bytes) / 4; ++w) words[w % banks].insert(w);
  }
  std::size_t most = 0;
  for (const auto& [bank, asked] : words) most = std::max(most, asked.size());
  return most;
}

/// Returns the lanes of a wave whose 16 bytes are read together.
std::vector<std::vector<unsigned>> readers(const Family& family) {
  std::vector<std::vector<unsigned>> list;
  const unsigned lanes = family.cores == MatrixCores::mfma ? 64 : 32;
  for (unsigned first = 0; first < lanes; first += 32) {
    for (const auto& quads : family.reads) {
      list.emplace_back();
      for (const unsigned quad : quads) {
        for (unsigned i = 0; i < 4; ++i) list.back().push_back(first + quad * 4 + i);
      }
    }
  }
  return list;
}

/// Returns the line and chunk that a lane reads of an operand, starting at `line` and `k`.
std::pair<unsigned, unsigned> read_by(MatrixCores cores, const Operand& o, unsigned lane,
                                      unsigned line, unsigned k) {
  if (cores == MatrixCores::mma && !o.tile_along_k) {
    return {k + lane / 16 * 8 + lane % 8, line / 8 + lane / 8 % 2};
  }
  const unsigned group = cores == MatrixCores::wmma11 ? 0 : lane / o.product;
  return {line + lane % o.product, k / o.chunk + group};
}

/// Whether reads transpose the tile, with TURN on gfx950.
bool is_transposed_by_reads(MatrixCores cores, const Operand& o) {
  return cores == MatrixCores::mfma && !o.tile_along_k;
}

/// A family's operands and the addresses of their chunks.
struct Tiles {
  explicit Tiles(const Family& family) : operands(operands_of(family)) {
    std::set<Shape> shapes;
    for (const Operand& operand : operands) shapes.insert(operand.shape);
    layout = layout_of(family, shapes);
  }

  std::vector<Operand> operands;
  Layout layout;
};

const Tiles& tiles_of(const Family& family) {
  static std::map<std::string, Tiles> known;
  return known.try_emplace(family.architectures.back(), family).first->second;
}

class MatrixBanks : public ::testing::TestWithParam<Family> {
 protected:
  std::uint32_t offset(const Operand& o, unsigned line, unsigned chunk) const {
    return layout_.offsets.at(o.shape).at(line * std::get<1>(o.shape) + chunk);
  }

  const std::vector<Operand>& operands_ = tiles_of(GetParam()).operands;
  const Layout& layout_ = tiles_of(GetParam()).layout;
};

TEST_P(MatrixBanks, EveryChunkHasAPlaceOfItsOwn) {
  for (const auto& [shape, offsets] : layout_.offsets) {
    const auto& [lines, chunks, pad, far] = shape;
    EXPECT_EQ(std::set(offsets.begin(), offsets.end()).size(), lines * chunks);
    EXPECT_LE(*std::max_element(offsets.begin(), offsets.end()), (lines * (chunks + pad) - 1) * 16);
  }
}

TEST_P(MatrixBanks, FragmentsAreReadWithoutConflicts) {
  const MatrixCores cores = GetParam().cores;
  ASSERT_FALSE(operands_.empty());
  for (const Operand& o : operands_) {
    if (is_transposed_by_reads(cores, o)) continue;
    const unsigned chunks = cores == MatrixCores::wmma11 ? 2 : 1;  // that a lane reads
    for (unsigned line = 0; line < o.span; line += o.product) {
      for (unsigned k = 0; k < o.bk; k += o.depth) {
        for (const auto& group : readers(GetParam())) {
          for (unsigned i = 0; i < chunks; ++i) {
            std::vector<std::uint32_t> addresses;
            for (const unsigned lane : group) {
              const auto [at, chunk] = read_by(cores, o, lane, line, k);
              addresses.push_back(offset(o, at, chunk + i));
            }
            ASSERT_EQ(conflicts(addresses, 16, GetParam().banks), 1U)
                << o.name << ", line " << line << ", k " << k;
          }
        }
      }
    }
  }
}

// Reads that transpose serve 32 lanes of 8 bytes together. A group of 16 lanes reads 16 elements of
// four lines, as MatrixCore::half_place() says. Two groups of a product of 32 x 32 read 32 elements
// of the same four lines, which trade places as if these were eight: they meet twice. So do lines
// of 16 elements, of which eight have all banks, and may lines that are no power of two long.
TEST_P(MatrixBanks, TransposingReadsHaveNoConflicts) {
  std::size_t judged = 0;
  for (const Operand& o : operands_) {
    if (!is_transposed_by_reads(GetParam().cores, o)) continue;
    ++judged;
    const bool apart = (o.span & (o.span - 1)) == 0 && o.span >= 32 && o.product == 16;
    for (unsigned line = 0; line < o.span; line += o.product) {
      for (unsigned k = 0; k < o.bk; k += o.depth) {
        for (const unsigned first : {0U, 32U}) {
          std::vector<std::uint32_t> addresses;
          for (unsigned lane = first; lane < first + 32; ++lane) {
            const unsigned at = k + lane / o.product * 8 + lane % 16 / 4;
            const unsigned chunk = line / 8 + lane % o.product / 16 * 2 + lane % 4 / 2;
            addresses.push_back(offset(o, at, chunk) + lane % 2 * 8);
          }
          ASSERT_LE(conflicts(addresses, 8, GetParam().banks), apart ? 1U : 2U)
              << o.name << ", line " << line << ", k " << k;
        }
      }
    }
  }
  EXPECT_EQ(judged > 0, GetParam().architectures.back() == "gfx950");
}

// Tiles that are not transposed are written consecutively, without conflicts. Tiles with less than
// eight threads across are not tested. Where eight threads are not neighbours from a multiple of
// eight on, because threads across are no multiple of eight, two of them may meet.
TEST_P(MatrixBanks, TurnedTilesAreWrittenWithoutConflicts) {
  std::size_t judged = 0;
  for (const Operand& o : operands_) {
    const unsigned across = o.span / o.vec;  // threads along the span
    if (!o.turned || across < 8) continue;
    ++judged;
    for (unsigned unit = 0; unit < across * (o.bk / o.chunk); unit += 8) {
      for (unsigned e = 0; e < o.vec; ++e) {
        std::vector<std::uint32_t> addresses;
        for (unsigned u = unit; u < unit + 8; ++u) {
          addresses.push_back(offset(o, u % across * o.vec + e, u / across));
        }
        const bool eighth = unit % across % 8 == 0 && unit % across + 8 <= across;
        ASSERT_LE(conflicts(addresses, 16, GetParam().banks), eighth ? 1U : 2U)
            << o.name << ", unit " << unit;
      }
    }
  }
  EXPECT_EQ(judged > 0, GetParam().cores != MatrixCores::mma);
}

// Where loads transpose, eight lanes get a chunk each, of neighbouring lines.
TEST_P(MatrixBanks, TilesThatLoadsTransposeAreWrittenWithoutConflicts) {
  std::size_t judged = 0;
  for (const Operand& o : operands_) {
    if (!o.turned_by_loads) continue;
    ++judged;
    for (unsigned chunk = 0; chunk < o.bk / o.chunk; ++chunk) {
      for (unsigned line = 0; line < o.span; line += 8) {
        std::vector<std::uint32_t> addresses;
        for (unsigned l = line; l < line + 8; ++l) addresses.push_back(offset(o, l, chunk));
        ASSERT_EQ(conflicts(addresses, 16, GetParam().banks), 1U)
            << o.name << ", line " << line << ", chunk " << chunk;
      }
    }
  }
  EXPECT_EQ(judged > 0, GetParam().cores == MatrixCores::wmma12);
}

// Sums are stored to shared memory in rows of lanes, as MatrixCore::store() documents.
TEST_P(MatrixBanks, SumsAreStoredWithoutConflicts) {
  const MatrixCores cores = GetParam().cores;
  for (const auto& [width, pitch] : layout_.pitches) {
    EXPECT_EQ(pitch % 4, 0U) << "rows are read by 16 bytes";
    std::vector<std::uint32_t> addresses;
    if (cores == MatrixCores::mma) {  // 8 bytes: half a warp at a time
      for (unsigned l = 0; l < 16; ++l) addresses.push_back((l / 4 * pitch + l % 4 * 2) * 4);
      EXPECT_EQ(conflicts(addresses, 8, GetParam().banks), 1U) << "width " << width;
      continue;
    }
    const unsigned apart = cores == MatrixCores::mfma ? 4 : cores == MatrixCores::wmma11 ? 1 : 8;
    for (unsigned l = 0; l < 32; ++l) addresses.push_back((l / 16 * apart * pitch + l % 16) * 4);
    // gfx12 stores rows 8 apart together: no pitch for reads of 16 bytes avoids two cycles.
    EXPECT_EQ(conflicts(addresses, 4, GetParam().banks), cores == MatrixCores::wmma12 ? 2U : 1U)
        << "width " << width;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, MatrixBanks, ::testing::ValuesIn(families()),
                         [](const auto& instance) { return instance.param.architectures.back(); });

}  // namespace
}  // namespace greta::test::gemm_matrix_banks_test
