#include <limits>

#include "tests/kernels/bounds/emulation.hpp"
#include "tests/kernels/bounds/grouped_rows.hpp"
#include "tests/kernels/bounds/quantized_row.hpp"
#include "tests/layers.hpp"

/// Products with quantised weights.
namespace greta::test::bounds {
namespace {

/// Rows of A, and the lines of B that they are multiplied by, of `all_lines`.
struct PartOfProduct {
  std::size_t first_row, rows, first_line, lines, all_lines;
};

/// Returns integer `place`, from the lowest bits on, of a word that was stored as a number.
unsigned packed_integer(float word, unsigned bits, std::size_t place) {
  const auto stored = static_cast<std::uint32_t>(static_cast<std::int64_t>(word));
  return stored >> (bits * place) & ((1U << bits) - 1);
}

/// Names of the tensors of packed weights.
struct PackedInput {
  const char *integers, *scales, *zeros;
};

/// Returns n rows of integers, scales and zero points as rows.
Outputs as_rows(const Given& given, const PackedInput& of, std::size_t n) {
  const std::size_t k = given.dim("k");
  const auto group = static_cast<std::size_t>(given.number("group", "128"));
  const std::string packing = given.problem.attribute("packing", "awq");
  const unsigned bits = given.problem.attribute("weights", "int4") == "int8" ? 8 : 4;
  const std::size_t each = 32 / bits;
  const bool awq = packing == "awq";
  constexpr std::size_t places[]{0, 4, 1, 5, 2, 6, 3, 7};  // of the rows of a word of AWQ
  const auto& words = given[of.integers];
  const float* const order = given.elements("order");
  const auto integer = [&](std::size_t row, std::size_t i) {
    const std::size_t from = order == nullptr ? i : static_cast<std::size_t>(order[i]);
    return awq ? packed_integer(words[from * (n / 8) + row / 8], 4, places[row % 8])
               : packed_integer(words[from / each * n + row], bits, from % each);
  };
  Outputs outputs(2);
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t i = 0; i < k; i += 8 / bits) {
      const unsigned flip = bits == 8 && !given.has(of.zeros) ? 128 : 0;
      const unsigned byte =
          bits == 8 ? integer(row, i) ^ flip : integer(row, i) | integer(row, i + 1) << 4;
      outputs[0].push_back(static_cast<float>(byte));
    }
    for (std::size_t g = 0; g < k / group; ++g) {
      outputs[1].push_back(Float(given[of.scales][g * n + row]).value());
    }
  }
  if (!given.has(of.zeros)) return outputs;
  std::vector<float>& zeros = outputs.emplace_back();
  for (std::size_t i = 0; i < n * (k / group); ++i) {
    const std::size_t row = i / (k / group), g = i % (k / group);
    const unsigned stored = packed_integer(given[of.zeros][g * (n / each) + row / each], bits,
                                           awq ? places[row % 8] : row % each);
    zeros.push_back(static_cast<float>(stored + (packing == "gptq" ? 1 : 0)));
  }
  return outputs;
}

/// Words with any 16 neighbouring bits, which f32 holds.
double packed_word(double draw, std::size_t i) {
  const double low = std::floor((draw + 0.5) * 65536);
  return i % 3 == 0 ? low : i % 3 == 1 ? low * 256 : (low - 32768) * 65536;
}

/// The product, without its epilogue; with a norm of A's rows.
std::vector<Float> quantized_product(const Given& given, const PartOfProduct& part) {
  const std::size_t m = part.rows, n = part.lines, k = given.dim("k");
  const auto& a = given["A"];
  const bool norm = given.has("weight");
  const bool rounds = given.problem.attribute("math", "exact") != "exact";
  std::vector<Float> weighted;
  for (std::size_t i = 0; i < a.size(); ++i) {
    weighted.push_back(norm ? Float(a[i]) * Float(given["weight"][i % k]) : Float(a[i]));
  }
  std::vector<Float> factors;
  for (std::size_t row = 0; norm && row < m; ++row) {
    const auto x = [&](std::size_t l) { return Float(a[(part.first_row + row) * k + l]); };
    factors.push_back(inverse_root(dot(k, x, x) / Float(static_cast<float>(k)) +
                                   Float(given.number("epsilon", "1e-05"))));
  }
  std::vector<Float> out(m * n);
  for (std::size_t col = 0; col < n; ++col) {
    const QuantizedRow weights(given, {"B", "scales", part.all_lines, k}, part.first_line + col);
    const std::size_t segment = weights.segment();
    std::vector<Float> row, scales;
    for (std::size_t i = 0; i < k; ++i) row.push_back(weights.at(i));
    for (std::size_t i = 0; i < k; i += segment) scales.push_back(weights.scale(i));
    for (std::size_t i = 0; rounds && i < k; ++i) {
      row[i] = as_number_of(given.problem.dtype, row[i] * scales[i / segment]);
    }
    if (rounds) scales.assign(scales.size(), 1);
    for (std::size_t i = 0; i < m; ++i) {
      const std::size_t of_a = (part.first_row + i) * k;
      const auto sum = [&](std::size_t s) {
        return dot(
            segment, [&](std::size_t l) { return weighted[of_a + s * segment + l]; },
            [&](std::size_t l) { return row[s * segment + l]; });
      };
      const Float total = dot(k / segment, sum, [&](std::size_t s) { return scales[s]; });
      out[i * n + col] = norm ? total * factors[i] : total;
    }
  }
  return out;
}

Outputs quantized_gemm(const Given& given) {
  const std::size_t m = given.dim("m"), n = given.dim("n");
  const std::string epilogue = given.problem.attribute("epilogue", "none");
  const bool gated = epilogue == "swiglu";
  const std::size_t products = gated ? 2 * n : n;
  Tensors tensors = in_rows(given, {{"B", products}});
  const std::string packing = given.problem.attribute("packing", "rows");
  if (packing != "rows" && packing != "panels") {
    const Outputs rows = as_rows(given, {"B", "scales", "zeros"}, products);
    tensors["B"] = rows[0];
    tensors["scales"] = rows[1];
    if (rows.size() > 2) tensors["zeros"] = rows[2];
  }
  const std::vector<Float> sums =
      quantized_product({given.problem, tensors}, {0, m, 0, products, products});
  std::vector<float> out(m * n);
  for (std::size_t i = 0; i < m * n; ++i) {
    const std::size_t row = i / n, col = i % n;
    Float x = sums[row * products + col];
    if (gated) x = silu(x) * sums[row * products + n + col];
    if (epilogue == "bias") x = x + Float(given["bias"][col]);
    if (epilogue == "residual") x = x + Float(given["residual"][i]);
    out[i] = x.value();
  }
  return {out};
}

std::vector<Case> quantized_gemm_cases(const DTypes&) {
  const Contents bytes = index_below(256);
  const auto with = [](const char* what, std::vector<std::pair<std::string, std::string>> more,
                       std::map<std::string, Contents> contents, const Factors& factors) {
    more.insert(more.end(), {{"m", "100"}, {"n", "96"}, {"k", "256"}});
    return Case{what, more, std::move(contents), factors};
  };
  // Norms are for few rows.
  const auto normed = [&](const char* what, std::vector<std::pair<std::string, std::string>> more,
                          const Factors& factors) {
    more.insert(more.end(), {{"prologue", "rmsnorm"}, {"m", "8"}, {"n", "600"}, {"k", "256"}});
    return Case{what, more, {{"B", bytes}}, factors};
  };
  return {with("int4", {}, {{"B", bytes}}, {13, 12.8, 14, 1.1, 1.1}),
          with("int8 in groups of 64", {{"weights", "int8"}, {"group", "64"}}, {{"B", bytes}},
               {11, 15, 18.3, 1.1, 1.1}),
          with("zero points", {{"group", "32"}, {"zeros", "groups"}},
               {{"B", bytes}, {"zeros", index_below(16)}}, {13.8, 17.8, 20, 1.1, 1.1}),
          with("q4_0", {{"weights", "q4_0"}}, {{"B", bytes_of_blocks(18, 0)}},
               {13.6, 37.7, 45.5, 1.1, 1.1}),
          with("q8_0", {{"weights", "q8_0"}}, {{"B", bytes_of_blocks(34, 0)}},
               {14.8, 17.7, 24, 1.1, 1.1}),
          with("q4_k", {{"weights", "q4_k"}}, {{"B", byte_of_q4_k}}, {12.2, 15.1, 15.2, 1.1, 1.1}),
          with("q6_k", {{"weights", "q6_k"}}, {{"B", bytes_of_blocks(210, 208)}},
               {12, 10.1, 17.5, 1.1, 1.1}),
          with("mxfp4", {{"weights", "mxfp4"}},
               {{"B", bytes}, {"scales", [](double, std::size_t) { return 124; }}},
               {12.6, 21.8, 47.5, 1.1, 1.1}),
          with("packed by AWQ", {{"packing", "awq"}, {"epilogue", "bias"}}, {{"B", packed_word}},
               {13, 16, 18.5, 1.1, 1.1}),
          with("packed by GPTQ, zero points",
               {{"packing", "gptq"}, {"group", "32"}, {"zeros", "groups"}},
               {{"B", packed_word}, {"zeros", packed_word}}, {9.6, 17.8, 22.5, 1.1, 1.1}),
          with("bytes packed by GPTQ", {{"packing", "gptq_v2"}, {"weights", "int8"}},
               {{"B", packed_word}}, {12.2, 16.5, 18.3, 1.1, 1.1}),
          with("panels of bytes", {{"packing", "panels"}, {"weights", "int8"}}, {{"B", bytes}},
               {12.3, 19.2, 18.3, 1.1, 1.1}),
          with("rounded weights", {{"math", "rounded_weights"}}, {{"B", bytes}}, {0, 5, 5, 3, 5}),
          with("bias", {{"epilogue", "bias"}}, {{"B", bytes}}, {13, 13, 14, 1.1, 1.1}),
          with("residual", {{"epilogue", "residual"}}, {{"B", bytes}}, {13.3, 13, 14.6, 1.1, 1.1}),
          with("gates", {{"epilogue", "swiglu"}}, {{"B", bytes}}, {13, 13, 14, 1.1, 1.1}),
          normed("rmsnorm", {{"epsilon", "0.25"}}, {22, 24.5, 40, 1.1, 1.1}),
          normed("rmsnorm, gates", {{"epilogue", "swiglu"}}, {22, 27, 26, 1.1, 1.1})};
}

/// Each group has some of the rows.
Outputs quantized_grouped_gemm(const Given& stored) {
  const std::size_t n = stored.dim("n");
  const std::string epilogue = stored.problem.attribute("epilogue", "none");
  const std::size_t lines = epilogue == "none" ? n : 2 * n, all = stored.dim("groups") * lines;
  const Tensors tensors = in_rows(stored, {{"B", all}});
  const Given given{stored.problem, tensors};
  std::vector<float> out(given["A"].size() / given.dim("k") * n,
                         std::numeric_limits<float>::quiet_NaN());
  for (const auto& [group, first, end] : rows_of_groups(given)) {
    const std::vector<Float> sums =
        quantized_product(given, {first, end - first, group * lines, lines, all});
    for (std::size_t i = 0; i < (end - first) * n; ++i) {
      const Float* const row = &sums[i / n * lines];
      Float x = row[i % n];
      if (epilogue == "swiglu") x = silu(x) * row[n + i % n];
      if (epilogue == "geglu") x = gelu_tanh(x) * row[n + i % n];
      out[first * n + i] = x.value();
    }
  }
  return {out};
}

std::vector<Case> quantized_grouped_gemm_cases(const DTypes&) {
  const Contents bytes = index_below(256);
  const Contents ends = [](double, std::size_t group) { return 30.0 * static_cast<double>(group); };
  const Contents rows = [](double, std::size_t) { return 30.0; };
  const auto with = [&](const char* what, std::vector<std::pair<std::string, std::string>> more,
                        std::map<std::string, Contents> contents, const Factors& factors) {
    const bool masked = more.front().second == "masked";
    more.insert(more.end(), {{"groups", "4"}, {"n", "96"}, {"k", "256"}});
    more.emplace_back("m", masked ? "40" : "100");
    contents.emplace(masked ? "rows" : "ends", masked ? rows : ends);
    return Case{what, more, std::move(contents), factors};
  };
  return {with("int4", {{"routing", "skewed"}}, {{"B", bytes}}, {13.4, 17.1, 19.2, 1.1, 1.1}),
          with("int8, masked", {{"form", "masked"}, {"weights", "int8"}, {"group", "64"}},
               {{"B", bytes}}, {11, 14.6, 18.2, 1.1, 1.1}),
          with("zero points", {{"group", "32"}, {"zeros", "groups"}},
               {{"B", bytes}, {"zeros", index_below(16)}}, {11.6, 18.2, 21.6, 1.1, 1.1}),
          with("q4_0", {{"weights", "q4_0"}}, {{"B", bytes_of_blocks(18, 0)}},
               {12.9, 22.1, 46.6, 1.1, 1.1}),
          with("q8_0", {{"weights", "q8_0"}}, {{"B", bytes_of_blocks(34, 0)}},
               {14.6, 19.8, 26.2, 1.1, 1.1}),
          with("q4_k, masked", {{"form", "masked"}, {"weights", "q4_k"}}, {{"B", byte_of_q4_k}},
               {13.1, 18.6, 15.2, 1.1, 1.1}),
          with("q6_k", {{"weights", "q6_k"}}, {{"B", bytes_of_blocks(210, 208)}},
               {13.8, 14, 13.7, 1.1, 1.1}),
          with("mxfp4", {{"weights", "mxfp4"}},
               {{"B", bytes}, {"scales", [](double, std::size_t) { return 124; }}},
               {13.4, 26.8, 46.2, 1.1, 1.1}),
          with("panels of bytes", {{"packing", "panels"}, {"weights", "int8"}}, {{"B", bytes}},
               {12.8, 17, 18.2, 1.1, 1.1}),
          with("swiglu", {{"epilogue", "swiglu"}}, {{"B", bytes}}, {11.7, 15, 15.1, 1.1, 1.1}),
          with("geglu", {{"epilogue", "geglu"}}, {{"B", bytes}}, {2.7, 2.7, 2.7, 1.1, 1.1})};
}

Outputs dequantize(const Given& given) {
  const std::size_t rows = given.dim("rows"), cols = given.dim("cols");
  std::vector<float> out(rows * cols);
  const Tensors tensors = in_rows(given, {{"B", rows}});
  const Given own{given.problem, tensors};
  for (std::size_t row = 0; row < rows; ++row) {
    const QuantizedRow weights(own, {"B", "scales", rows, cols}, row);
    for (std::size_t i = 0; i < cols; ++i) {
      out[row * cols + i] = (weights.at(i) * weights.scale(i)).value();
    }
  }
  return {out};
}

/// Returns bytes of blocks whose f16 at `scale` is about 2^-9, with any mantissa.
Contents rough_blocks(std::size_t bytes, std::size_t scale) {
  return [=](double draw, std::size_t i) {
    return i % bytes == scale + 1 ? 24.0 : std::floor((draw + 0.5) * 256);
  };
}

/// Blocks of q4_k whose minima are up to 2^5 times smaller than their scales, with any mantissas.
double rough_byte_of_q4_k(double draw, std::size_t i) {
  const std::size_t at = i % 144;
  if (at == 0 || at == 2) return std::floor((draw + 0.5) * 256);
  return at == 3 ? 4 + std::floor((draw + 0.5) * 20) : byte_of_q4_k(draw, i);
}

/// Weights are exact in f32, but for those of q4_k: other bounds are roundings to other types.
std::vector<Case> dequantize_cases(const DTypes&) {
  const Contents bytes = index_below(256);
  const auto with = [](const char* what, std::vector<std::pair<std::string, std::string>> more,
                       std::map<std::string, Contents> contents, const Factors& factors) {
    if (more.empty() || more.front().first != "rows") more.emplace_back("rows", "600");
    more.emplace_back("cols", "256");
    return Case{what, more, std::move(contents), factors};
  };
  const Factors rounding{0, 0, 0, 1.1, 1.1};
  return {
      with("int4", {}, {{"B", bytes}}, rounding),
      with("int8", {{"weights", "int8"}, {"group", "64"}}, {{"B", bytes}}, rounding),
      with("zero points", {{"group", "32"}, {"zeros", "groups"}},
           {{"B", bytes}, {"zeros", index_below(16)}}, rounding),
      with("q4_0", {{"weights", "q4_0"}}, {{"B", rough_blocks(18, 0)}}, rounding),
      with("q8_0", {{"weights", "q8_0"}}, {{"B", rough_blocks(34, 0)}}, rounding),
      with("q4_k", {{"weights", "q4_k"}}, {{"B", rough_byte_of_q4_k}}, {3.3, 0, 0, 1.1, 1.1}),
      with("q6_k", {{"weights", "q6_k"}}, {{"B", rough_blocks(210, 208)}}, rounding),
      with("panels of bytes", {{"rows", "608"}, {"packing", "panels"}, {"weights", "int8"}},
           {{"B", bytes}}, rounding),
      // Two bits and a power of two: exact in all types.
      with("mxfp4", {{"weights", "mxfp4"}},
           {{"B", bytes}, {"scales", [](double, std::size_t) { return 124; }}}, {0, 0, 0, 0, 0})};
}

Outputs repack_weights(const Given& given) {
  const std::size_t n = given.dim("n");
  const bool rows = given.problem.attribute("packing", "awq") == "rows";
  Outputs outputs =
      rows ? Outputs{given["qweight"]} : as_rows(given, {"qweight", "qscales", "qzeros"}, n);
  if (given.problem.attribute("to", "rows") == "rows") return outputs;
  // A number of 16 bits takes two bytes of a unit.
  const std::string weights = given.problem.attribute("weights", "int4");
  const std::size_t unit = weights == "f16" || weights == "bf16" ? 8 : 16;
  const std::vector<float> from = outputs[0];
  const std::size_t width = from.size() / n;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t row = i / width, at = i % width;
    outputs[0][row / 16 * 16 * width + at / unit * (16 * unit) + row % 16 * unit + at % unit] =
        from[i];
  }
  return outputs;
}

/// f16 has bf16's numbers but for the smallest ones.
std::vector<Case> repack_weights_cases(const DTypes&) {
  const auto with = [](const char* what, std::vector<std::pair<std::string, std::string>> more,
                       double scale, double to_f16) {
    more.insert(more.end(), {{"n", "208"}, {"k", "384"}});
    const auto last = [](double, std::size_t i) { return static_cast<double>(383 - i); };
    return Case{what,
                more,
                {{"qweight", packed_word},
                 {"qscales", times(scale)},
                 {"qzeros", packed_word},
                 {"order", last}},
                {0, 0, 0, to_f16, 1.1}};
  };
  // Without scales.
  const auto of_rows = [](const char* weights, const Contents& contents) {
    return Case{
        weights,
        {{"packing", "rows"}, {"weights", weights}, {"to", "panels"}, {"n", "208"}, {"k", "384"}},
        {{"qweight", contents}},
        {0, 0, 0, 0, 0}};
  };
  return {with("awq", {{"zeros", "groups"}}, 1, 0),
          with("awq, in another order", {{"group", "64"}, {"order", "given"}}, 1, 0),
          with("gptq", {{"packing", "gptq"}, {"zeros", "groups"}, {"group", "32"}}, 1, 0),
          with("gptq_v2 of bytes",
               {{"packing", "gptq_v2"}, {"weights", "int8"}, {"zeros", "groups"}}, 1, 0),
          with("gptq of bytes in another order",
               {{"packing", "gptq"}, {"weights", "int8"}, {"order", "given"}}, 1, 0),
          with("panels of gptq", {{"packing", "gptq"}, {"to", "panels"}}, 1, 0),
          of_rows("f16", packed_word),
          of_rows("bf16", packed_word),
          of_rows("mxfp4", index_below(256)),
          with("tiny scales", {{"group", "32"}}, 0x1p-14, 1.1)};
}

}  // namespace

std::vector<Emulation> quantized_emulations() {
  return {{"quantized_gemm", quantized_gemm_cases, quantized_gemm},
          {"quantized_grouped_gemm", quantized_grouped_gemm_cases, quantized_grouped_gemm},
          {"dequantize", dequantize_cases, dequantize},
          {"repack_weights", repack_weights_cases, repack_weights, true}};
}

}  // namespace greta::test::bounds
