#include "tuner/replay/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace greta::tuner {
namespace {

constexpr int gzip_window = 15 + 16;  // the largest window, in the gzip format
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

Failure damaged(std::string why) {
  return {Status::io, std::move(why), {}};
}

void give(z_stream& stream, std::string_view bytes) {
  // zlib's interface lacks const; it does not write to its input.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
}

void take(z_stream& stream, std::string& piece) {
  stream.next_out = reinterpret_cast<Bytef*>(piece.data());
  stream.avail_out = static_cast<uInt>(piece.size());
}

}  // namespace

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

Result<Decompressed> decompress_beginning(std::string_view bytes, std::uint64_t most_bytes) {
  z_stream stream{};
  if (inflateInit2(&stream, gzip_window) != Z_OK) return damaged("no memory to decompress it");
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, inflateEnd);
  std::string all, piece(piece_bytes, '\0');
  int state = Z_OK;
  while (!bytes.empty() || stream.avail_in > 0) {
    if (stream.avail_in == 0) {
      give(stream, bytes.substr(0, piece_bytes));
      bytes.remove_prefix(std::min(piece_bytes, bytes.size()));
    }
    if (state == Z_STREAM_END) inflateReset(&stream);  // another member
    take(stream, piece);
    state = inflate(&stream, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END) return damaged("its compressed data is damaged");
    all.append(piece, 0, piece.size() - stream.avail_out);
    if (all.size() > most_bytes) {
      return damaged(fmt::format("it is larger than {} bytes when decompressed", most_bytes));
    }
  }
  while (state == Z_OK) {  // all input is read, but not all output is written
    take(stream, piece);
    const int next = inflate(&stream, Z_NO_FLUSH);
    if (next == Z_BUF_ERROR) return Decompressed{std::move(all), false};
    if (next != Z_OK && next != Z_STREAM_END) return damaged("its compressed data is damaged");
    all.append(piece, 0, piece.size() - stream.avail_out);
    state = next;
  }
  return Decompressed{std::move(all), true};
}

Result<std::string> decompress(std::string_view bytes, std::uint64_t most_bytes) {
  auto read = decompress_beginning(bytes, most_bytes);
  if (!read) return read.failure();
  if (!read->complete) return damaged("its compressed data ends early");
  return std::move(read->text);
}

std::string compress(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, gzip_window, 9, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw Error("no memory to compress");
  }
  const std::unique_ptr<z_stream, int (*)(z_stream*)> end(&stream, deflateEnd);
  std::string all, piece(piece_bytes, '\0');
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    if (stream.avail_in == 0) {
      give(stream, bytes.substr(0, piece_bytes));
      bytes.remove_prefix(std::min(piece_bytes, bytes.size()));
    }
    take(stream, piece);
    state = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    all.append(piece, 0, piece.size() - stream.avail_out);
  }
  return all;
}

}  // namespace greta::tuner
