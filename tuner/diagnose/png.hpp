#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

using Pixel = std::array<std::uint8_t, 3>;  ///< red, green, blue

/// An image in RGB.
struct Image {
  Image(std::size_t columns, std::size_t rows, Pixel background)
      : width(columns), height(rows), pixels(columns * rows, background) {}

  Pixel& at(std::size_t x, std::size_t y) { return pixels[y * width + x]; }

  std::size_t width, height;
  std::vector<Pixel> pixels;  ///< row after row
};

/// Returns the image as a PNG file. Source: W3C, "Portable Network Graphics Specification", 2003.
std::string png(const Image& image);

}  // namespace greta::tuner
