#include "db/sqlite/kernel_rows.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "db/sqlite/columns.hpp"
#include "db/sqlite/guard.hpp"
#include "runtime/device/result.hpp"

namespace greta::db {
namespace {

using Json = nlohmann::json;
using Bytes = std::vector<std::uint8_t>;

Bytes packed(const std::map<std::string, std::string>& files) {
  Json object = Json::object();
  for (const auto& [name, content] : files) {
    object[name] = Json::binary(Bytes(content.begin(), content.end()));
  }
  return Json::to_cbor(object);
}

std::map<std::string, std::string> unpacked(const SQLite::Column& column) {
  const auto* const first = static_cast<const std::uint8_t*>(column.getBlob());
  const Json object = Json::from_cbor(first, first + column.getBytes(), true, false);
  const auto refuse = [] { throw Error("the files of a kernel can't be read"); };
  if (!object.is_object()) refuse();
  std::map<std::string, std::string> files;
  for (const auto& [name, content] : object.items()) {
    if (!content.is_binary()) refuse();
    files[name] = std::string(content.get_binary().begin(), content.get_binary().end());
  }
  return files;
}

CarriedKernel read(SQLite::Statement& row) {
  return {text(row, "name"), text(row, "description"), unpacked(row.getColumn("files")),
          text(row, "carried_utc")};
}

}  // namespace

void put_kernel(SQLite::Database& database, const CarriedKernel& kernel) {
  SealedInsert insert(database, "kernels", Existing::replaced,
                      {"name", "description", "files", "carried_utc"});
  const Bytes files = packed(kernel.files);
  insert.row().bind(":name", kernel.name);
  insert.row().bind(":description", kernel.description);
  insert.row().bind(":files", files.data(), static_cast<int>(files.size()));
  insert.row().bind(":carried_utc", kernel.carried_utc);
  insert.run();
}

std::vector<CarriedKernel> read_kernels(SQLite::Database& database) {
  std::vector<CarriedKernel> kernels;
  SQLite::Statement select(database, "SELECT * FROM kernels ORDER BY name");
  while (select.executeStep()) kernels.push_back(read(select));
  return kernels;
}

std::optional<CarriedKernel> read_kernel(SQLite::Database& database, const std::string& name) {
  SQLite::Statement select(database, "SELECT * FROM kernels WHERE name = :name");
  select.bind(":name", name);
  if (!select.executeStep()) return std::nullopt;
  return read(select);
}

}  // namespace greta::db
