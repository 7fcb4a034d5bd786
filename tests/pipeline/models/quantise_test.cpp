// Protects: projections that are quantised on loading have the integers nearest to their weights,
// in the formats that kernels read, and nothing else of a model changes.
#include "runtime/pipeline/models/quantise.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/layers.hpp"
#include "tests/pipeline/gguf_files.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::quantise_test {
namespace {

using namespace greta::runtime;

LlamaModel tiny(const TemporaryFolder& folder, std::int64_t hidden = 256) {
  TinyLlama{.dim = 128, .hidden = hidden}.write(folder.path());
  return load_llama(folder.path());
}

/// Expects each weight to be within half a step of its block's scale, or a whole step where 4 bits
/// have no integer 8, and not all weights to be the same.
void expect_near(const WeightView& got, const std::vector<double>& want, std::size_t unit,
                 int most) {
  const std::vector<double> values = values_of(got);
  ASSERT_EQ(values.size(), want.size());
  for (std::size_t first = 0; first < want.size(); first += unit) {
    double largest = 0;
    for (std::size_t i = first; i < first + unit; ++i) {
      largest = std::max(largest, std::abs(want[i]));
    }
    const double step = 1.001 * largest / most;
    for (std::size_t i = first; i < first + unit; ++i) {
      ASSERT_LE(std::abs(values[i] - want[i]), most == 7 ? step : step / 2 + 1e-3 * largest) << i;
    }
  }
  EXPECT_NE(*std::min_element(values.begin(), values.end()),
            *std::max_element(values.begin(), values.end()));
}

TEST(Quantise, WeightsAreNearest) {
  const TemporaryFolder folder;
  const LlamaModel model = tiny(folder);
  for (const auto& [how, unit, most] : {std::tuple{Quantisation::q8_0, 32, 127},
                                        {Quantisation::q4_0, 32, 7},
                                        {Quantisation::int4, 128, 7},
                                        {Quantisation::mxfp4, 32, 2}}) {
    for (const DType type : {DType::f16, DType::bf16}) {
      LlamaModel changed = load_llama(folder.path());
      const auto counts = quantise(changed, how, type);
      EXPECT_EQ(counts.quantised, 14);
      EXPECT_EQ(counts.kept + counts.already, 0);
      for (std::size_t i = 0; i < 2; ++i) {
        const LlamaLayer &was = model.weights.layers[i], &is = changed.weights.layers[i];
        for (const auto part : {&LlamaLayer::wq, &LlamaLayer::wk, &LlamaLayer::wv, &LlamaLayer::wo,
                                &LlamaLayer::gate, &LlamaLayer::up, &LlamaLayer::down}) {
          EXPECT_EQ((is.*part).format(), format_of(how));
          if (type == DType::bf16 && how == Quantisation::int4) continue;  // scales are coarse
          expect_near(is.*part, values_of(was.*part), static_cast<std::size_t>(unit), most);
        }
        EXPECT_EQ(values_of(is.attn_norm), values_of(was.attn_norm));
      }
      EXPECT_EQ(values_of(changed.weights.head), values_of(model.weights.head));
      EXPECT_EQ(values_of(changed.weights.embedding), values_of(model.weights.embedding));
      LlamaConfig config = model.config;
      EXPECT_EQ(quantise(config, how).quantised, counts.quantised);
      EXPECT_EQ(config.formats.layers, changed.config.formats.layers);
      EXPECT_EQ(config.formats.head, changed.config.formats.head);
    }
  }
}

// Weights that integers of a format stand for exactly are kept to the last bit, and 4 bits use the
// scale with the smaller error: both -8 and 7 at an end.
TEST(Quantise, WhatAFormatRepresentsIsExact) {
  const TemporaryFolder folder;
  LlamaModel model = tiny(folder);
  for (const auto& [how, most] :
       {std::pair{Quantisation::q8_0, 127}, {Quantisation::q4_0, 7}, {Quantisation::int4, 7}}) {
    for (const double scale : {0.25, -0.25}) {
      std::vector<float> weights(128 * 128);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        const int least = most == 127 ? -127 : i % 256 < 128 ? -8 : -7;  // with -8, or without
        const int integer = least + static_cast<int>(i % 128 * 37 % (most - least + 1));
        weights[i] = static_cast<float>(scale * (i % 32 == 0   ? least
                                                 : i % 32 == 1 ? most
                                                               : integer));
      }
      model.weights.layers[0].wq = {DType::f32, 128, 128,
                                    reinterpret_cast<const std::byte*>(weights.data())};
      quantise(model, how, DType::f16);
      const std::vector<double> got = values_of(model.weights.layers[0].wq);
      for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], weights[i]) << i;
    }
  }
}

// Every number of e2m1 comes back under any scale, ties go to the even number, and of two scales
// the one with the smaller error is used.
TEST(Quantise, Mxfp4IsNearest) {
  const TemporaryFolder folder;
  LlamaModel model = tiny(folder);
  const auto encoded = [&](std::vector<float> weights) {
    weights.resize(128 * 128);
    model.weights.layers[0].wq = {DType::f32, 128, 128,
                                  reinterpret_cast<const std::byte*>(weights.data())};
    quantise(model, Quantisation::mxfp4, DType::f16);
    return values_of(model.weights.layers[0].wq);
  };
  for (const double scale : {0x1p-100, 0.25, 0x1p60}) {
    std::vector<float> all;
    for (int code = 0; code < 16; ++code) {
      all.push_back(static_cast<float>(scale * kernels::e2m1_value(code)));
    }
    const std::vector<double> got = encoded(all);
    for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(got[i], all[i]) << i;
  }
  const std::vector<double> ties = encoded({6, 2.5, 3.5, 5, -1.25, 0.25, 0.75});
  const double want[] = {6, 2, 4, 4, -1, 0, 1};
  for (std::size_t i = 0; i < std::size(want); ++i) EXPECT_EQ(ties[i], want[i]) << i;
  const std::vector<double> wide = encoded(std::vector<float>(32, 7.9F));  // 8, not 6
  EXPECT_EQ(wide[0], 8);
}

TEST(Quantise, ZerosAndWhatIsNotFinite) {
  const TemporaryFolder folder;
  LlamaModel model = tiny(folder);
  for (const Quantisation how :
       {Quantisation::q8_0, Quantisation::q4_0, Quantisation::int4, Quantisation::mxfp4}) {
    std::vector<float> weights(128 * 128);
    weights[128] = std::numeric_limits<float>::infinity();
    weights[256] = std::numeric_limits<float>::quiet_NaN();
    model.weights.layers[0].wq = {DType::f32, 128, 128,
                                  reinterpret_cast<const std::byte*>(weights.data())};
    quantise(model, how, DType::f16);
    const std::vector<double> got = values_of(model.weights.layers[0].wq);
    EXPECT_EQ(got[0], 0);
    EXPECT_TRUE(std::isnan(got[128]));
    EXPECT_TRUE(std::isnan(got[256 + 31]));
    EXPECT_EQ(got[384], 0);
  }
}

TEST(Quantise, RowsThatAreNotWholeGroupsStay) {
  const TemporaryFolder folder;
  LlamaModel model = tiny(folder, 96);
  LlamaConfig config = model.config;
  for (const auto& counts :
       {quantise(model, Quantisation::int4, DType::f16), quantise(config, Quantisation::int4)}) {
    EXPECT_EQ(counts.quantised, 12);
    EXPECT_EQ(counts.kept, 2);
  }
  EXPECT_FALSE(model.weights.layers[0].down.format().quantised);
  EXPECT_EQ(quantised_formats(model.config), "int4");
  EXPECT_EQ(quantise(model, Quantisation::q8_0, DType::f16).already, 12);
  EXPECT_EQ(quantised_formats(model.config), "int4, q8_0");
}

TEST(Quantise, NoneDecodesWhatAFileHas) {
  TinyGguf file;
  file.tiny = {.dim = 64, .hidden = 64};
  file.blocks = BlockFormat::q4_0;
  const TemporaryFolder folder;
  file.write(folder.path());
  LlamaModel model = load_llama(folder / "model.gguf");
  EXPECT_EQ(quantised_formats(model.config), "q4_0");
  const std::vector<double> before = values_of(model.weights.layers[1].up);
  quantise(model, Quantisation::decoded, DType::f16);
  EXPECT_EQ(quantised_formats(model.config), "");
  EXPECT_EQ(values_of(model.weights.layers[1].up), before);
  LlamaConfig config = load_llama(folder / "model.gguf").config;
  quantise(config, Quantisation::decoded);
  EXPECT_EQ(quantised_formats(config), "");
}

TEST(Quantise, NamesAreThoseOfTheOption) {
  for (const std::string_view name : quantisation_names) {
    EXPECT_TRUE(quantisation_from_string(name)) << name;
  }
  EXPECT_FALSE(quantisation_from_string("q4_k"));
  EXPECT_FALSE(quantisation_from_string(""));
}

}  // namespace
}  // namespace greta::test::quantise_test
