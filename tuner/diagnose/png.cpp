#include "tuner/diagnose/png.hpp"

#include <zlib.h>

#include <string_view>

#include "runtime/device/result.hpp"

namespace greta::tuner {
namespace {

std::string big_endian(std::size_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xFF);
  return bytes;
}

std::string chunk(std::string_view type, const std::string& data) {
  const std::string body = std::string(type) + data;
  const auto* const first = reinterpret_cast<const Bytef*>(body.data());
  return big_endian(data.size()) + body +
         big_endian(crc32(crc32(0, nullptr, 0), first, static_cast<uInt>(body.size())));
}

std::string compressed(const std::string& data) {
  auto size = compressBound(data.size());
  std::string made(size, '\0');
  const int done = compress(reinterpret_cast<Bytef*>(made.data()), &size,
                            reinterpret_cast<const Bytef*>(data.data()), data.size());
  if (done != Z_OK) throw Error("no memory to compress an image");
  made.resize(size);
  return made;
}

}  // namespace

std::string png(const Image& image) {
  std::string lines;
  for (std::size_t y = 0; y < image.height; ++y) {
    lines += '\0';  // the line is not filtered
    for (std::size_t x = 0; x < image.width; ++x) {
      for (const std::uint8_t part : image.pixels[y * image.width + x])
        lines += static_cast<char>(part);
    }
  }
  const std::string rgb_of_8_bits("\x08\x02\0\0\0", 5);
  return "\x89PNG\r\n\x1a\n" +
         chunk("IHDR", big_endian(image.width) + big_endian(image.height) + rgb_of_8_bits) +
         chunk("IDAT", compressed(lines)) + chunk("IEND", "");
}

}  // namespace greta::tuner
