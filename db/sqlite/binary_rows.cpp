#include "db/sqlite/binary_rows.hpp"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "db/sqlite/columns.hpp"
#include "db/sqlite/guard.hpp"
#include "runtime/device/result.hpp"
#include "runtime/device/text/hash.hpp"

namespace greta::db {

std::string CarriedBinary::hash() const {
  Hash hash;
  hash.add(content).add(target);
  hash.add(std::string_view(reinterpret_cast<const char*>(binary.data()), binary.size()));
  return hash.hex();
}

void put_binary(SQLite::Database& database, const CarriedBinary& binary) {
  SealedInsert insert(database, "binaries", Existing::replaced,
                      {"content", "target", "name", "compiler", "binary", "hash", "compiled_utc"});
  insert.row().bind(":content", binary.content);
  insert.row().bind(":target", binary.target);
  insert.row().bind(":name", binary.name);
  insert.row().bind(":compiler", binary.compiler);
  insert.row().bind(":binary", binary.binary.data(), static_cast<int>(binary.binary.size()));
  insert.row().bind(":hash", binary.hash());
  insert.row().bind(":compiled_utc", binary.compiled_utc);
  insert.run();
}

std::optional<CarriedBinary> read_binary(SQLite::Database& database, const std::string& content,
                                         const std::string& target) {
  SQLite::Statement select(database,
                           "SELECT * FROM binaries WHERE content = :content AND target = :target");
  const auto refuse = [&](std::string_view why) {
    throw Error(fmt::format("the binary of kernel {} for {} is not used: {}", content.substr(0, 12),
                            target, why));
  };
  select.bind(":content", content);
  select.bind(":target", target);
  if (!select.executeStep()) {
    SQLite::Statement damaged(
        database, "SELECT 1 FROM main.binaries WHERE content = :content AND target = :target");
    damaged.bind(":content", content);
    damaged.bind(":target", target);
    if (damaged.executeStep()) refuse("it is damaged, as greta-db verify says");
    return std::nullopt;
  }
  CarriedBinary found{text(select, "content"),
                      text(select, "target"),
                      text(select, "name"),
                      text(select, "compiler"),
                      {},
                      text(select, "compiled_utc")};
  const auto column = select.getColumn("binary");
  const auto* const first = static_cast<const std::byte*>(column.getBlob());
  found.binary.assign(first, first + column.getBytes());
  if (found.hash() != text(select, "hash")) refuse("its hash is not that of its contents");
  return found;
}

std::vector<BinaryTotals> read_binary_totals(SQLite::Database& database) {
  std::vector<BinaryTotals> totals;
  SQLite::Statement select(database, R"(
    SELECT target, count(*) AS number, sum(length(binary)) AS bytes FROM binaries
    GROUP BY target ORDER BY target)");
  while (select.executeStep()) {
    totals.push_back({text(select, "target"), select.getColumn("number").getInt64(),
                      select.getColumn("bytes").getInt64()});
  }
  return totals;
}

}  // namespace greta::db
