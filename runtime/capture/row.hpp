#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/capture/call_table.hpp"

namespace greta::capture {

/// Version of the file's form (docs/capture.md), which greta-tune from-capture reads.
inline constexpr int form_version = 2;

/// Writes JSON objects, one a line, through a buffer of its own: no memory of the heap, and no
/// decimal commas.
class RowWriter {
 public:
  explicit RowWriter(int descriptor) : descriptor_(descriptor) {}

  void begin();
  void end();
  void number(const char* name, std::int64_t value);
  void number(const char* name, std::uint64_t value);
  void number(const char* name, double value);
  void text(const char* name, const char* value);
  void texts(const char* name);  ///< begins a list, of item() and end_texts()
  void item(const char* value);
  void end_texts();

  /// Writes what is left. Returns 0 or the first error.
  int finish();

 private:
  void put(const char* bytes, std::size_t count);
  void put(const char* text);
  void quote(const char* text);
  void name(const char* text);
  void flush();

  int descriptor_, error_ = 0;
  bool first_ = true;
  std::size_t used_ = 0;
  char buffer_[8192];
};

/// Writes the first line: what made the file, and the libraries that were called.
void write_head(RowWriter& out, int process);
void write_row(RowWriter& out, const Entry& entry);

}  // namespace greta::capture
