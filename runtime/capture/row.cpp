#include "runtime/capture/row.hpp"

#include <locale.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/capture/symbol.hpp"
#include "runtime/capture/vendor_types.hpp"

namespace greta::capture {
namespace {

/// The application's locale may have decimal commas.
locale_t plain_locale() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

void write_type(RowWriter& out, const char* field, std::int16_t type) {
  if (const char* const known = type_name(type)) return out.text(field, known);
  out.number(field, std::int64_t{type});
}

void write_op(RowWriter& out, const char* field, char op) {
  const char text[2] = {op, '\0'};
  out.text(field, text);
}

void write_order(RowWriter& out, const char* field, std::uint8_t order) {
  if (order == 0) return;
  if (order == 1) return out.text(field, "row");
  out.number(field, std::int64_t{order});
}

void write_factor(RowWriter& out, const Entry& entry, int which) {
  static const char* const names[] = {"alpha", "beta"};
  static const char* const imaginary[] = {"alpha_imaginary", "beta_imaginary"};
  static const char* const varies[] = {"alpha_varies", "beta_varies"};
  switch (entry.call.factors[which]) {
    case Factor::zero:
      return out.number(names[which], std::int64_t{0});
    case Factor::one:
      return out.number(names[which], std::int64_t{1});
    case Factor::device:
      return out.text(names[which], "device");
    case Factor::vector:
      return out.text(names[which], "vector");
    case Factor::missing:
      return out.text(names[which], "missing");
    case Factor::other:
      break;
  }
  const FactorValue& value = entry.factors[which];
  out.number(names[which], value.real);
  if (value.imaginary != 0) out.number(imaginary[which], value.imaginary);
  if (entry.varies[which].load(std::memory_order_relaxed) != 0) {
    out.number(varies[which], std::int64_t{1});
  }
}

void write_batch(RowWriter& out, const Call& call) {
  if (call.batch_kind == Batch::none) return;
  static const char* const kinds[] = {"none", "strided", "pointers", "grouped"};
  out.text("batch_kind", kinds[static_cast<int>(call.batch_kind)]);
  out.number("batch", call.batch);
  if (call.batch_kind != Batch::strided) return;
  out.number("stride_a", call.stride_a);
  out.number("stride_b", call.stride_b);
  out.number("stride_c", call.stride_c);
  out.number("stride_d", call.stride_d);
}

}  // namespace

void RowWriter::flush() {
  for (std::size_t begin = 0; begin < used_ && error_ == 0;) {
    const auto written = write(descriptor_, buffer_ + begin, used_ - begin);
    if (written > 0) {
      begin += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  used_ = 0;
}

void RowWriter::put(const char* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (used_ == sizeof buffer_) flush();
    buffer_[used_++] = bytes[i];
  }
}

void RowWriter::put(const char* text) {
  put(text, std::strlen(text));
}

void RowWriter::quote(const char* text) {
  put("\"");
  for (; *text != '\0'; ++text) {
    const auto code = static_cast<unsigned char>(*text);
    if (code == '"' || code == '\\') {
      put("\\");
      put(text, 1);
    } else if (code < 0x20 || code >= 0x7f) {
      char escaped[8];  // bytes as Latin-1, since paths need not be UTF-8
      std::snprintf(escaped, sizeof escaped, "\\u%04x", code);
      put(escaped);
    } else {
      put(text, 1);
    }
  }
  put("\"");
}

void RowWriter::name(const char* text) {
  if (!first_) put(",");
  first_ = false;
  quote(text);
  put(":");
}

void RowWriter::begin() {
  put("{");
  first_ = true;
}
void RowWriter::end() {
  put("}\n");
}

void RowWriter::number(const char* field, std::int64_t value) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%lld", static_cast<long long>(value));
  name(field);
  put(digits);
}

void RowWriter::number(const char* field, std::uint64_t value) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%llu", static_cast<unsigned long long>(value));
  name(field);
  put(digits);
}

void RowWriter::number(const char* field, double value) {
  if (!(value - value == 0)) return text(field, "not finite");  // NaN or infinite
  char digits[32];
  const locale_t before = uselocale(plain_locale());
  std::snprintf(digits, sizeof digits, "%.9g", value);
  uselocale(before);
  name(field);
  put(digits);
}

void RowWriter::text(const char* field, const char* value) {
  name(field);
  quote(value);
}

void RowWriter::texts(const char* field) {
  name(field);
  put("[");
  first_ = true;
}
void RowWriter::item(const char* value) {
  if (!first_) put(",");
  first_ = false;
  quote(value);
}
void RowWriter::end_texts() {
  put("]");
  first_ = false;
}

int RowWriter::finish() {
  flush();
  return error_;
}

void write_head(RowWriter& out, int process) {
  out.begin();
  out.number("greta_capture", std::int64_t{form_version});
  out.text("greta", GRETA_VERSION);
  out.text("program", program_invocation_short_name);
  out.number("process", std::int64_t{process});
  out.texts("libraries");
  for (unsigned i = 0; i < library_count(); ++i) out.item(library(i).path);
  out.end_texts();
  if (uncounted_calls() > 0) out.number("uncounted", uncounted_calls());
  out.end();
}

void write_row(RowWriter& out, const Entry& entry) {
  const Call& call = entry.call;
  const Symbol& symbol = *symbols()[call.function];
  out.begin();
  out.text("library", symbol.family().name);
  out.text("function", symbol.name());
  write_op(out, "op_a", call.op_a);
  write_op(out, "op_b", call.op_b);
  out.number("m", call.m);
  out.number("n", call.n);
  out.number("k", call.k);
  write_type(out, "a_type", call.a_type);
  write_type(out, "b_type", call.b_type);
  write_type(out, "c_type", call.c_type);
  write_type(out, "d_type", call.d_type);
  if (const char* const known = compute_name(call.compute)) {
    out.text("compute", known);
  } else {
    out.number("compute", std::int64_t{call.compute});
  }
  write_type(out, "scale", call.scale);
  out.number("lda", call.lda);
  out.number("ldb", call.ldb);
  out.number("ldc", call.ldc);
  out.number("ldd", call.ldd);
  write_order(out, "order_a", call.order_a);
  write_order(out, "order_b", call.order_b);
  write_order(out, "order_c", call.order_c);
  write_order(out, "order_d", call.order_d);
  write_batch(out, call);
  write_factor(out, entry, alpha_factor);
  write_factor(out, entry, beta_factor);
  if ((call.flags & in_place) == 0) out.number("out_of_place", std::int64_t{1});
  if ((call.flags & tf32) != 0) out.number("tf32", std::int64_t{1});
  if ((call.flags & scaled) != 0) out.number("scaled", std::int64_t{1});
  if (call.epilogue != 1) {
    if (const char* const known = epilogue_name(call.epilogue)) {
      out.text("epilogue", known);
    } else {
      out.number("epilogue", std::int64_t{call.epilogue});
    }
  }
  if (call.bias_type >= 0) write_type(out, "bias_type", call.bias_type);
  out.number("count", entry.count.load(std::memory_order_relaxed));
  if (const auto timed = entry.timed.load(std::memory_order_acquire)) {
    out.number("timed", timed);
    out.number("least_us", double{entry.least_us.load(std::memory_order_relaxed)});
  }
  out.end();
}

}  // namespace greta::capture
