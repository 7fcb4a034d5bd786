// Protects: compiled kernels that a shipped database carries. They are found by content and target,
// and a damaged or changed one is never returned, but reported.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <cstring>

#include "db/sqlite/checksums.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::binary_test {
namespace {

CarriedBinary binary(const std::string& content, const std::string& target,
                     const std::string& text) {
  CarriedBinary made{content, target, "gemm/naive", "clang 22", {}, "2026-11-25T12:00:00Z"};
  made.binary.resize(text.size());
  std::memcpy(made.binary.data(), text.data(), text.size());
  return made;
}

std::string text_of(const std::optional<CarriedBinary>& found) {
  if (!found) return "none";
  return {reinterpret_cast<const char*>(found->binary.data()), found->binary.size()};
}

class Binaries : public ::testing::Test {
 protected:
  /// Ships these binaries as the application's database.
  std::filesystem::path ship(const std::vector<CarriedBinary>& binaries) {
    Contents contents;
    contents.devices = {{here_, "2026-11-01T00:00:00Z", "2026-11-01T00:00:00Z"}};
    contents.results = {test::winner(test::gemm(64, 64, 64), here_, test::plain_config(1))};
    contents.binaries = binaries;
    TunedDb::ship(contents, folder_ / "ship.db");
    return folder_ / "ship.db";
  }
  Lookup open() const {
    LookupFiles files = LookupFiles::none();
    files.application = {folder_ / "ship.db"};
    return Lookup::open(here_, files);
  }
  /// Changes rows. With `sealed`, their checksums are those of the new contents.
  void change(const std::string& set, bool sealed) const {
    const auto file = folder_ / "ship.db";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    SQLite::Database database(file, SQLite::OPEN_READWRITE);
    add_checksum_function(database);
    database.exec("UPDATE binaries SET " + set + " WHERE content = 'a'");
    if (!sealed) return;
    const auto value = [](const std::string& name) { return name; };
    database.exec("UPDATE binaries SET checksum = " + checksum_of(database, "binaries", value));
  }

  const DeviceInfo here_ = test::card("gfx942", "aa");
  TemporaryFolder folder_;
};

TEST_F(Binaries, AreFoundByContentAndTheFirstTarget) {
  ship({binary("a", "gfx942", "one"), binary("a", "spirv", "two"), binary("b", "spirv", "three")});
  const Lookup lookup = open();
  EXPECT_EQ(text_of(lookup.binary("a", {"gfx942"})), "one");
  EXPECT_EQ(text_of(lookup.binary("a", {"spirv khr", "spirv"})), "two");
  EXPECT_EQ(text_of(lookup.binary("a", {"spirv", "gfx942"})), "two");
  EXPECT_EQ(text_of(lookup.binary("b", {"gfx942"})), "none");
  EXPECT_EQ(text_of(lookup.binary("c", {"spirv"})), "none");
  EXPECT_EQ(lookup.binary("b", {"spirv"})->compiler, "clang 22");
  EXPECT_TRUE(lookup.has_binaries({"spirv khr", "spirv"}));
  EXPECT_TRUE(lookup.has_binaries({"gfx942"}));
  EXPECT_FALSE(lookup.has_binaries({"sm_90", "spirv khr"}));
  EXPECT_TRUE(lookup.unreadable().empty());
  const auto db = TunedDb::open(folder_ / "ship.db", TunedDb::Mode::read_only);
  ASSERT_EQ(db.binaries().size(), 2U);
  EXPECT_EQ(db.binaries()[1].target, "spirv");
  EXPECT_EQ(db.binaries()[1].bytes, 8);
  EXPECT_TRUE(db.check().empty());
  // A database of a user's own is never asked to keep them.
  EXPECT_TRUE(db.contents().binaries.empty());
}

TEST_F(Binaries, ADamagedOneIsLeftOutAndReported) {
  ship({binary("a", "gfx942", "one"), binary("b", "gfx942", "two")});
  change("binary = x'00'", false);
  const Lookup lookup = open();
  EXPECT_EQ(text_of(lookup.binary("a", {"gfx942"})), "none");
  EXPECT_EQ(text_of(lookup.binary("b", {"gfx942"})), "two");
  ASSERT_EQ(lookup.unreadable().size(), 1U);
  EXPECT_NE(lookup.unreadable()[0].find("the binary of kernel a for gfx942 is not used: it is "
                                        "damaged, as greta-db verify says"),
            std::string::npos)
      << lookup.unreadable()[0];
  const auto found = TunedDb::open(folder_ / "ship.db", TunedDb::Mode::read_only).check();
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found.front().find("binaries"), std::string::npos) << found.front();
}

TEST_F(Binaries, AnotherBinaryUnderAValidChecksumIsRefusedByItsHash) {
  for (const char* set : {"binary = x'00'", "content = 'a', target = 'sm_90'"}) {
    ship({binary("a", "gfx942", "one")});
    change(set, true);
    const Lookup lookup = open();
    EXPECT_EQ(text_of(lookup.binary("a", {"gfx942", "sm_90"})), "none") << set;
    ASSERT_EQ(lookup.unreadable().size(), 1U);
    EXPECT_NE(lookup.unreadable()[0].find("its hash is not that of its contents"),
              std::string::npos);
  }
}

}  // namespace
}  // namespace greta::test::binary_test
