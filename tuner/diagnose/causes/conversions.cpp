#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "tuner/diagnose/causes/causes.hpp"
#include "tuner/diagnose/causes/in_memory.hpp"

/// Faults of the conversions between f32 and the types of 16 bits, which all kernels share.
namespace greta::tuner {
namespace {

constexpr const char* conversion_kind = "wrong conversion";
constexpr std::size_t fewest_converted = 16;

bool is_half(DType type) {
  return type == DType::f16 || type == DType::bf16;
}

std::uint16_t half_bits(DType type, double value) {
  std::byte bytes[8]{};
  store_element(type, bytes, 0, value);
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[0]) |
                                    std::to_integer<unsigned>(bytes[1]) << 8);
}

double half_value(DType type, std::uint32_t bits) {
  const std::byte bytes[8]{std::byte(bits & 0xff), std::byte(bits >> 8 & 0xff)};
  return load_element(type, bytes, 0);
}

double float_of(std::uint32_t bits) {
  return static_cast<double>(std::bit_cast<float>(bits));
}

/// A way to convert an element of 16 bits to f32, or back, that is wrong.
struct ConversionFault {
  std::string words;  ///< of what happens to elements
  std::function<double(double)> convert;
};

/// Returns what faulty conversions make of an element of a type, exactly: the value that the kernel
/// continues with, or stores.
std::vector<ConversionFault> conversion_faults(DType type) {
  const DType other = type == DType::f16 ? DType::bf16 : DType::f16;
  std::vector<ConversionFault> faults{
      {"lose their sign", [](double x) { return std::abs(x); }},
      {"are all negative", [](double x) { return -std::abs(x); }},
      {fmt::format("are taken as {}", to_string(other)),
       [=](double x) { return half_value(other, half_bits(type, x)); }},
      {"have their two bytes exchanged",
       [=](double x) {
         const unsigned bits = half_bits(type, x);
         return half_value(type, (bits >> 8 | bits << 8) & 0xffff);
       }},
      {"count as 0", [](double) { return 0.0; }},
      {"of less than 2^-14, which are subnormal in f16, count as 0",
       [](double x) { return std::abs(x) < 0x1p-14 ? 0.0 : x; }},
  };
  for (const int bits : {1, 2, 3, 4, 7, 8}) {
    faults.push_back({fmt::format("lose the last {} bits of their fraction", bits), [=](double x) {
                        return half_value(type, half_bits(type, x) & (0xffffU << bits));
                      }});
  }
  for (const int power : {-8, -4, -3, -2, -1, 1, 2, 3, 4, 8}) {
    faults.push_back({fmt::format("are 2^{} times what they are", power),
                      [=](double x) { return std::ldexp(x, power); }});
  }
  for (const int shift : {-8, -4, -3, -2, -1, 1, 2, 3, 4, 8}) {
    faults.push_back({fmt::format("are shifted by {} bits", shift), [=](double x) {
                        const std::uint32_t bits = half_bits(type, x);
                        return half_value(type,
                                          (shift < 0 ? bits >> -shift : bits << shift) & 0xffff);
                      }});
  }
  return faults;
}

/// Returns the faults that only a conversion to f32 can have.
std::vector<ConversionFault> loading_faults(DType type) {
  std::vector<ConversionFault> faults;
  if (type == DType::f16) {
    for (const int shift : {10, 11, 12, 14, 15}) {
      faults.push_back(
          {fmt::format("are shifted by {} bits to those of f32, not by 13", shift), [=](double x) {
             const std::uint32_t bits = half_bits(type, x);
             const double size = float_of((bits & 0x7fff) << shift) * 0x1p112;
             return bits > 0x7fff ? -size : size;
           }});
    }
    return faults;
  }
  faults.push_back({"are the number of bits by which a constant is shifted",
                    [=](double x) { return float_of(16U << (half_bits(type, x) & 31)); }});
  for (const int shift : {0, 8, 12, 14, 15, 17, 18}) {
    faults.push_back(
        {fmt::format("are shifted by {} bits to those of f32, not by 16", shift),
         [=](double x) { return float_of(std::uint32_t{half_bits(type, x)} << shift); }});
  }
  return faults;
}

/// The elements of pairs that a fault changes: they lie in a word of 32 bits.
struct WordHalf {
  const char* words;
  bool even, odd;
  bool has(std::int64_t col) const { return col % 2 == 0 ? even : odd; }
};
constexpr WordHalf word_halves[] = {{"", true, true},
                                    {"the first of each two ", true, false},
                                    {"the second of each two ", false, true}};

/// Offers faulty conversions of operands, of all operands of a type at once, and of each.
class ConvertedOperands {
 public:
  ConvertedOperands(Judge& judge, DType type) : judge_(judge), type_(type) {
    const auto& inputs = judge.evidence().inputs();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].spec.dtype == type) which_.push_back(i);
  }

  void offer() {
    if (which_.empty()) return;
    std::vector<ConversionFault> faults = conversion_faults(type_);
    for (ConversionFault& fault : loading_faults(type_)) faults.push_back(std::move(fault));
    for (const ConversionFault& fault : faults) {
      for (const WordHalf& half : word_halves) {
        offer_of(which_, fault, half);
        if (which_.size() == 1 || which_.size() > 4) continue;
        for (const std::size_t one : which_) offer_of({one}, fault, half);
      }
    }
  }

 private:
  void offer_of(const std::vector<std::size_t>& which, const ConversionFault& fault,
                const WordHalf& half) {
    if (!judge_.time_left()) return judge_.hurry();
    Inputs inputs = judge_.evidence().inputs();
    std::string names;
    for (const std::size_t i : which) {
      const TensorSpec& spec = inputs[i].spec;
      names += (names.empty() ? "" : ", ") + spec.name;
      if (half.even != half.odd && spec.cols < 2) return;
      // Kernels continue with f32, which faults may leave with bits that the type does not have.
      HostTensor made{spec, std::vector<std::byte>(4 * spec.elements())};
      made.spec.dtype = DType::f32;
      for (std::size_t e = 0; e < spec.elements(); ++e)
        store_element(DType::f32, made.data.data(), e, inputs[i].at(e));
      for (std::size_t e = 0; e < spec.elements(); ++e) {
        if (!half.has(static_cast<std::int64_t>(e) % spec.cols)) continue;
        store_element(DType::f32, made.data.data(), e, fault.convert(inputs[i].at(e)));
      }
      inputs[i] = std::move(made);
    }
    judge_.offer_inputs(conversion_kind,
                        fmt::format("{}elements of {} {} when they are converted from {}",
                                    half.words, names, fault.words, to_string(type_)),
                        inputs, weight(fault, half));
  }

  /// ConvertedOperands that are skipped as a whole have a cause of their own.
  static double weight(const ConversionFault& fault, const WordHalf& half) {
    return fault.words == "count as 0" && half.even && half.odd ? 0.9 : 0.99;
  }

  Judge& judge_;
  DType type_;
  std::vector<std::size_t> which_;
};

/// The elements of an output of 16 bits, in units of the last place around what is expected.
class ConvertedResults {
 public:
  ConvertedResults(Judge& judge, std::size_t at)
      : judge_(judge),
        output_(judge.evidence().outputs()[at]),
        at_(at),
        type_(output_.spec.dtype) {}

  void offer() {
    for (const ConversionFault& fault : conversion_faults(type_)) {
      for (const WordHalf& half : word_halves) offer_fault(fault, half);
    }
    for (const int power : {-8, -4, -3, -2, -1, 1, 2, 3, 4, 8}) {
      // A wrong exponent overflows into the sign, or to what is no number.
      const int steps = power * (type_ == DType::f16 ? 1 << 10 : 1 << 7);
      offer_fault({fmt::format("get an exponent that is wrong by {}", power),
                   [this, steps](double x) {
                     const auto bits = static_cast<int>(half_bits(type_, x)) + steps;
                     return half_value(type_, static_cast<std::uint32_t>(bits) & 0xffff);
                   }},
                  word_halves[0]);
    }
    const double largest = type_ == DType::f16 ? 65504 : half_value(DType::bf16, 0x7f7f);
    offer_fault({"are limited to the largest number in place of infinity",
                 [largest](double x) { return std::clamp(x, -largest, largest); }},
                word_halves[0]);
    offer_rounding();
    offer_distance();
  }

 private:
  void offer_fault(const ConversionFault& fault, const WordHalf& half) {
    Prediction predicted = judge_.evidence().expected();
    const auto convert = [&](double value) {
      const double made = fault.convert(half_value(type_, half_bits(type_, value)));
      return half_value(type_, half_bits(type_, made));
    };
    for (std::size_t i = 0; i < predicted[at_].size(); ++i) {
      if (!half.has(static_cast<std::int64_t>(i) % output_.spec.cols)) continue;
      Expected& one = predicted[at_][i];
      const double value = convert(one.value);
      // A stored element has exactly these bits, but for the rounding of what is converted.
      const int apart = half_bits(type_, output_.got[i]) - half_bits(type_, value);
      const double low = convert(one.value - one.bound), high = convert(one.value + one.bound);
      const double range = std::max(std::abs(high - value), std::abs(low - value));
      const bool same = std::abs(apart) <= 2 || std::abs(output_.got[i] - value) <= range ||
                        (std::isnan(value) && std::isnan(output_.got[i]));
      if (same) one = {value, std::min(range, 0.05 * std::abs(value))};
    }
    judge_.offer(conversion_kind,
                 fmt::format("{}elements of {} {} when they are converted to {}", half.words,
                             output_.spec.name, fault.words, to_string(type_)),
                 predicted, fault.words == "count as 0" ? 0.9 : 0.99);
  }

  /// Returns the distance between a value's two neighbours in the type.
  double unit(double value) const {
    const std::uint32_t bits = half_bits(type_, std::abs(value));
    return half_value(type_, bits + 1) - half_value(type_, bits);
  }

  /// To nearest, errors are spread evenly around 0; toward zero, they are half a unit on average.
  void offer_rounding() {
    double outward = 0, upward = 0, counted = 0, small = 0;
    for (std::size_t i = 0; i < output_.got.size(); ++i) {
      const double got = output_.got[i], want = output_.want[i].value, step = unit(want);
      if (!std::isfinite(got) || !std::isfinite(want) || !(step > 0) || want == 0) continue;
      const double nearest = half_value(type_, half_bits(type_, want));
      if (std::abs(nearest - want) < 0.05 * step) continue;  // nothing to round
      ++counted;
      const double error = (got - want) / step;
      if (std::abs(error) > 1.25) continue;
      ++small;
      upward += error;
      outward += want < 0 ? -error : error;
    }
    if (counted < 2 * fewest_converted || small < 0.95 * counted) return;
    outward /= small;
    upward /= small;
    const auto is_half = [](double mean) { return std::abs(std::abs(mean) - 0.5) < 0.15; };
    if (!is_half(outward) && !is_half(upward)) return;
    const std::string where = is_half(outward) ? outward < 0 ? "toward zero" : "away from zero"
                              : upward < 0     ? "down"
                                               : "up";
    judge_.add({.kind = conversion_kind,
                .words = fmt::format("elements of {} are rounded {} when they are converted to {}, "
                                     "not to the nearest one",
                                     output_.spec.name, where, to_string(type_)),
                .explained = small / counted,
                .score = 0.97,
                .evidence = fmt::format("on average, they are {:.2f} units of the last place "
                                        "farther from zero, and {:.2f} higher, than expected",
                                        outward, upward)});
  }

  /// Bits that are wrong by the same number: a wrong constant, or shift, of the conversion.
  void offer_distance() {
    std::map<int, std::size_t> distances;
    std::size_t counted = 0;
    for (std::size_t i = 0; i < output_.got.size(); ++i) {
      const double got = output_.got[i], want = output_.want[i].value;
      if (output_.wrong[i] == 0 || !std::isfinite(got) || !std::isfinite(want)) continue;
      ++counted;
      ++distances[half_bits(type_, got) - half_bits(type_, want)];
    }
    if (counted < fewest_converted) return;
    const auto most =
        std::max_element(distances.begin(), distances.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; });
    const double explained =
        static_cast<double>(most->second) / static_cast<double>(judge_.evidence().wrong());
    if (explained < 0.5 || most->first == 0) return;
    judge_.add(
        {.kind = conversion_kind,
         .words = fmt::format("the bits of elements of {} as {} are {} {} than they ought to "
                              "be: a constant of the conversion is wrong",
                              output_.spec.name, to_string(type_), std::abs(most->first),
                              most->first > 0 ? "more" : "less"),
         .explained = explained,
         .score = 0.94 * explained,
         .evidence = fmt::format("of {} of {} wrong elements", most->second, counted)});
  }

  Judge& judge_;
  const ExaminedOutput& output_;
  std::size_t at_;
  DType type_;
};

}  // namespace

void offer_conversions(Judge& judge) {
  const auto& outputs = judge.evidence().outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (is_half(outputs[i].spec.dtype) && outputs[i].fails()) ConvertedResults(judge, i).offer();
  }
  // Indices agree by chance with what other inputs give.
  const bool floating =
      std::any_of(outputs.begin(), outputs.end(), [](const ExaminedOutput& output) {
        return is_floating(output.spec.dtype) && output.fails();
      });
  if (!floating) return;
  for (const DType type : {DType::bf16, DType::f16}) ConvertedOperands(judge, type).offer();
}

}  // namespace greta::tuner
