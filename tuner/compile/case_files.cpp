#include "tuner/compile/case_files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "runtime/device/system/input_file.hpp"
#include "tuner/compile/element.hpp"

namespace greta::tuner {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "files hold little-endian numbers");

constexpr int schema = 1;
constexpr auto index_file = "case.json";
constexpr std::uint64_t most_index_bytes = std::uint64_t{16} << 20;
constexpr std::uint64_t most_data_bytes = std::uint64_t{8} << 30;  // per buffer or code object

std::vector<std::byte> read_bytes(const fs::path& file) {
  const std::string text = device::read_file(file, most_data_bytes).value();
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string code_object_name(const KernelCase& written, std::size_t index) {
  return fmt::format("kernel-{}.{}", index, written.language == Language::glsl ? "spv" : "co");
}

void write_doubles(const fs::path& file, const std::vector<Expected>& elements,
                   double Expected::*part) {
  std::vector<double> values(elements.size());
  std::transform(elements.begin(), elements.end(), values.begin(),
                 [part](const Expected& element) { return element.*part; });
  write_bytes(file, values.data(), values.size() * sizeof(double));
}

/// Describes a buffer that is drawn from a seed: only its size.
ordered_json bare_buffer(const CaseBuffer& buffer) {
  ordered_json json{{"bytes", buffer.bytes}};
  if (buffer.offset != 0) json["offset"] = buffer.offset;
  if (buffer.zeroed_bytes != 0) json["zeroed_bytes"] = buffer.zeroed_bytes;
  return json;
}

/// Writes a buffer's files and describes them.
ordered_json write_buffer(const CaseBuffer& buffer, const fs::path& folder) {
  ordered_json json;
  if (buffer.offset != 0) json["offset"] = buffer.offset;
  if (buffer.data.empty()) {
    json["bytes"] = buffer.bytes;
    if (buffer.fill != std::byte{0xFF}) json["fill"] = std::to_integer<int>(buffer.fill);
  } else {
    json["file"] = buffer.name + ".bin";
    write_bytes(folder / (buffer.name + ".bin"), buffer.data.data(), buffer.data.size());
  }
  if (buffer.expected.empty()) return json;
  json["dtype"] = buffer.dtype;
  json["expected"] = buffer.name + ".expected.f64";
  json["bound"] = buffer.name + ".bound.f64";
  write_doubles(folder / (buffer.name + ".expected.f64"), buffer.expected, &Expected::value);
  write_doubles(folder / (buffer.name + ".bound.f64"), buffer.expected, &Expected::bound);
  return json;
}

/// Returns 8 bytes as text, least significant first.
std::string hex(std::uint64_t value) {
  std::string text;
  for (int byte = 0; byte < 8; ++byte) text += fmt::format("{:02x}", value >> 8 * byte & 0xFF);
  return text;
}

ordered_json argument_json(const CaseArgument& argument, const KernelCase& written) {
  if (const auto* address = std::get_if<CaseAddress>(&argument)) {
    return {{"buffer", written.buffers[address->buffer].name}, {"offset", address->offset}};
  }
  if (const auto* number = std::get_if<std::uint32_t>(&argument)) return {{"u32", *number}};
  if (const auto* number = std::get_if<float>(&argument)) return {{"f32", *number}};
  return {{"hex", hex(std::get<std::uint64_t>(argument))}};
}

ordered_json launch_json(const CaseLaunch& launch, const KernelCase& written) {
  ordered_json json{{"code_object", code_object_name(written, launch.code_object)},
                    {"kernel", launch.kernel},
                    {"grid", launch.grid},
                    {"block", launch.block},
                    {"lds_bytes", launch.dynamic_shared_bytes},
                    {"args", ordered_json::array()}};
  if (launch.subgroup_size != 0) json["subgroup_size"] = launch.subgroup_size;
  for (const auto& argument : launch.arguments) {
    json["args"].push_back(argument_json(argument, written));
  }
  return json;
}

/// Removes the index, so that the folder is no case until everything is written.
void remove_index(const fs::path& folder) {
  std::error_code error;
  fs::remove(folder / index_file, error);
  if (error) {
    throw Error({Status::io, fmt::format("{}: can't be written", folder.string()), {}});
  }
}

void write(const KernelCase& written, const fs::path& folder, CaseForm form) {
  make_case_folder(folder).value();
  remove_index(folder);
  ordered_json json{{"schema", schema},
                    {"op", written.op},
                    {"problem", written.problem},
                    {"config", written.config},
                    {"arch", written.architecture},
                    {"language", to_string(written.language)},
                    {"buffers", ordered_json::object()},
                    {"launches", ordered_json::array()}};
  if (form == CaseForm::seed) json["seed"] = written.seed;
  for (std::size_t i = 0; i < written.code_objects.size(); ++i) {
    const auto& binary = written.code_objects[i];
    write_bytes(folder / code_object_name(written, i), binary.data(), binary.size());
  }
  for (const auto& buffer : written.buffers) {
    json["buffers"][buffer.name] =
        form == CaseForm::whole ? write_buffer(buffer, folder) : bare_buffer(buffer);
  }
  for (const auto& launch : written.launches) {
    json["launches"].push_back(launch_json(launch, written));
  }
  const std::string text = json.dump(2) + "\n";
  write_bytes(folder / index_file, text.data(), text.size());
}

Error bad_case(const std::string& what) {
  return Error({Status::invalid_argument, what, {}});
}

/// Returns a required member of an object.
template <typename T>
T field(const ordered_json& json, const char* name) {
  if (!json.contains(name)) throw bad_case(fmt::format("\"{}\" is missing", name));
  try {
    return json[name].get<T>();
  } catch (const ordered_json::exception&) {
    throw bad_case(fmt::format("\"{}\" has a value of the wrong kind", name));
  }
}

template <typename T>
T field(const ordered_json& json, const char* name, T fallback) {
  return json.contains(name) ? field<T>(json, name) : fallback;
}

/// Returns a required member that is a list ("array") or an object.
const ordered_json& collection(const ordered_json& json, const char* name, const char* type) {
  if (!json.contains(name)) throw bad_case(fmt::format("\"{}\" is missing", name));
  if (json[name].type_name() == std::string_view(type)) return json[name];
  throw bad_case(fmt::format("\"{}\" has a value of the wrong kind", name));
}

std::vector<double> read_doubles(const fs::path& file, std::size_t count) {
  const auto bytes = read_bytes(file);
  if (bytes.size() != count * sizeof(double)) {
    throw bad_case(fmt::format("{} has {} bytes, not one double for each of {} elements",
                               file.filename().string(), bytes.size(), count));
  }
  std::vector<double> values(count);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

CaseBuffer read_buffer(const std::string& name, const ordered_json& json, const fs::path& folder) {
  CaseBuffer buffer;
  buffer.name = name;
  if (json.contains("file")) {
    buffer.data = read_bytes(folder / field<std::string>(json, "file"));
    buffer.bytes = buffer.data.size();
    if (field(json, "bytes", buffer.bytes) != buffer.bytes) {
      throw bad_case(fmt::format("buffer {}: its file has {} bytes", name, buffer.bytes));
    }
  } else {
    buffer.bytes = field<std::size_t>(json, "bytes");
    buffer.zeroed_bytes = field(json, "zeroed_bytes", std::size_t{0});
    buffer.fill = static_cast<std::byte>(field(json, "fill", 0xFF));
  }
  if (buffer.bytes == 0) throw bad_case(fmt::format("buffer {} is empty", name));
  buffer.offset = field(json, "offset", std::size_t{0});
  if (buffer.offset >= 256)
    throw bad_case(fmt::format("buffer {}: its offset is {}, not below 256", name, buffer.offset));
  if (!json.contains("expected")) return buffer;
  buffer.dtype = field<std::string>(json, "dtype");
  const std::size_t size = element_bytes(buffer.dtype);
  if (size == 0) throw bad_case(fmt::format("buffer {}: no element type {}", name, buffer.dtype));
  const std::size_t count = buffer.bytes / size;
  const auto values = read_doubles(folder / field<std::string>(json, "expected"), count);
  const auto bounds = read_doubles(folder / field<std::string>(json, "bound"), count);
  for (std::size_t i = 0; i < count; ++i) buffer.expected.push_back({values[i], bounds[i]});
  return buffer;
}

CaseArgument read_argument(const ordered_json& json, const KernelCase& read) {
  if (json.contains("buffer")) {
    const auto name = field<std::string>(json, "buffer");
    for (std::size_t i = 0; i < read.buffers.size(); ++i) {
      if (read.buffers[i].name != name) continue;
      const auto offset = field(json, "offset", std::uint64_t{0});
      if (offset < read.buffers[i].bytes) return CaseAddress{i, offset};
      throw bad_case(fmt::format("buffer {} ends before byte {}", name, offset));
    }
    throw bad_case(fmt::format("there is no buffer {}", name));
  }
  if (json.contains("u32")) return field<std::uint32_t>(json, "u32");
  if (json.contains("i32")) return static_cast<std::uint32_t>(field<std::int32_t>(json, "i32"));
  if (json.contains("f32")) return field<float>(json, "f32");
  if (json.contains("u64")) return field<std::uint64_t>(json, "u64");
  if (json.contains("hex")) {
    const auto digits = field<std::string>(json, "hex");
    std::uint64_t reversed = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), reversed, 16);
    if (digits.size() == 16 && error == std::errc() && end == digits.data() + digits.size()) {
      return __builtin_bswap64(reversed);
    }
  }
  throw bad_case(fmt::format("argument {} has a kind that a launch does not accept", json.dump()));
}

/// Returns the files that launches name, in the order of their numbers, which launches need not
/// have: the sources of a kept case are in this order, too.
std::vector<std::string> code_object_files(const ordered_json& json) {
  std::vector<std::string> files;
  for (const auto& launch : collection(json, "launches", "array"))
    files.push_back(field<std::string>(launch, "code_object"));
  std::sort(files.begin(), files.end(), [](const std::string& a, const std::string& b) {
    return std::pair(a.size(), a) < std::pair(b.size(), b);
  });
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

KernelCase read(const fs::path& folder) {
  const std::string text = device::read_file(folder / index_file, most_index_bytes).value();
  const auto json = ordered_json::parse(text, nullptr, false);
  if (json.is_discarded()) throw bad_case("is not JSON");
  if (const int there = field<int>(json, "schema"); there != schema) {
    throw bad_case(fmt::format("schema {}; this GRETA reads {}", there, schema));
  }
  KernelCase read;
  read.op = field(json, "op", std::string());
  read.problem = field(json, "problem", std::string());
  read.config = field(json, "config", std::string());
  read.architecture = field<std::string>(json, "arch");
  const auto named = field(json, "language", std::string(to_string(read.language)));
  const auto language = language_from_string(named);
  if (!language) throw bad_case(fmt::format("\"language\" is {}, not hip or glsl", named));
  read.language = *language;
  for (const auto& [name, buffer] : collection(json, "buffers", "object").items()) {
    read.buffers.push_back(read_buffer(name, buffer, folder));
  }
  const auto files = code_object_files(json);
  for (const std::string& file : files) read.code_objects.push_back(read_bytes(folder / file));
  for (const auto& launch : collection(json, "launches", "array")) {
    const auto file = field<std::string>(launch, "code_object");
    CaseLaunch made;
    made.code_object =
        static_cast<std::size_t>(std::find(files.begin(), files.end(), file) - files.begin());
    made.kernel = field<std::string>(launch, "kernel");
    made.grid = field<Grid>(launch, "grid");
    made.block = field<std::array<std::uint32_t, 3>>(launch, "block");
    made.dynamic_shared_bytes = field(launch, "lds_bytes", 0U);
    made.subgroup_size = field(launch, "subgroup_size", 0U);
    for (const auto& argument : collection(launch, "args", "array")) {
      made.arguments.push_back(read_argument(argument, read));
    }
    read.launches.push_back(std::move(made));
  }
  if (json.contains("seed"))
    fill_case(Catalog::built_in(), read, field<std::uint64_t>(json, "seed")).value();
  return read;
}

}  // namespace

void write_bytes(const fs::path& file, const void* data, std::size_t bytes) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  out.close();
  if (!out) throw Error({Status::io, file.string() + ": can't be written", {}});
}

Result<void> make_case_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (!fs::is_directory(folder, error) || access(folder.c_str(), W_OK | X_OK) != 0) {
    return Failure{Status::io, fmt::format("{}: can't be written", folder.string()), {}};
  }
  if (fs::is_empty(folder, error) || fs::exists(folder / index_file, error)) return {};
  return Failure{Status::invalid_argument,
                 fmt::format("{}: holds something other than a case", folder.string()),
                 {}};
}

Result<void> write_case(const KernelCase& written, const fs::path& folder, CaseForm form) {
  try {
    write(written, folder, form);
    return {};
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

Result<KernelCase> read_case(const fs::path& folder) {
  try {
    return read(folder);
  } catch (const Error& error) {
    const bool names_file = error.status() == Status::io;
    return Failure{error.status(),
                   names_file ? error.what()
                              : fmt::format("{}: {}", (folder / index_file).string(), error.what()),
                   {}};
  }
}

}  // namespace greta::tuner
