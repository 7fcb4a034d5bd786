// Protects: the order of databases in a look-up, the level that an answer names, and that a shipped
// database which can't be read is told of and left out.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/catalog.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::shipped_test {
namespace {

using test::card;
using test::gemm;
using test::plain_config;
using test::winner;

class LookupShipped : public ::testing::Test {
 protected:
  void write_shipped(const std::string& architecture, const std::string& text) {
    const auto file = databases_.shipped_file(architecture);
    std::filesystem::create_directories(file.parent_path());
    std::filesystem::remove(file);
    std::ofstream(file) << text;
  }

  const DeviceInfo here_ = card("gfx942", "aa"), beside_ = card("gfx942", "bb");
  const Problem asked_ = gemm(64, 64, 64), near_ = gemm(96, 64, 64), far_ = gemm(128, 64, 64);
  test::Databases databases_;
};

TEST_F(LookupShipped, TheUsersAnswersThenTheApplicationsInOrderThenGretas) {
  databases_.ship({winner(asked_, here_, plain_config(3))});
  const Answer shipped = databases_.open(here_).find(asked_);
  EXPECT_EQ(shipped.config, plain_config(3));
  EXPECT_EQ(shipped.level, DatabaseLevel::shipped);
  EXPECT_EQ(shipped.database.filename(), "model.db");
  EXPECT_EQ(shipped.origin_text(), "exact, shipped");
  databases_.add_application({winner(asked_, here_, plain_config(2))});
  databases_.add_application({winner(asked_, here_, plain_config(1))});
  const Answer application = databases_.open(here_).find(asked_);
  EXPECT_EQ(application.config, plain_config(2));
  EXPECT_EQ(application.level, DatabaseLevel::application);
  EXPECT_EQ(application.database.filename(), "application_0.db");
  databases_.add(winner(asked_, here_, plain_config(0)));
  const Answer own = databases_.open(here_).find(asked_);
  EXPECT_EQ(own.config, plain_config(0));
  EXPECT_EQ(own.level, DatabaseLevel::own);
  EXPECT_EQ(own.origin_text(), "exact");
}

TEST_F(LookupShipped, ABetterMatchBelowWinsOverAWorseOneAbove) {
  databases_.add(winner(far_, here_, plain_config(0)));
  databases_.add_application({winner(asked_, beside_, plain_config(1))});
  EXPECT_EQ(databases_.open(here_).find(asked_).problem, far_.key());
  databases_.ship({winner(near_, here_, plain_config(2))});
  EXPECT_EQ(databases_.open(here_).find(asked_).origin_text(), "nearest shape, shipped");
  databases_.ship({winner(asked_, here_, plain_config(3))});
  EXPECT_EQ(databases_.open(here_).find(asked_).origin_text(), "exact, shipped");
}

TEST_F(LookupShipped, NoneAreOpenedIfNoneAreWanted) {
  databases_.ship({winner(asked_, here_, plain_config(1))});
  LookupFiles files = databases_.files();
  files.shipped.clear();
  const Lookup lookup = Lookup::open(here_, files);
  EXPECT_EQ(lookup.find(asked_).origin, LookupOrigin::predicted);
  EXPECT_FALSE(lookup.find(asked_).level);
  EXPECT_TRUE(LookupFiles::none().shipped.empty());
}

TEST_F(LookupShipped, AFileThatCantBeReadIsToldOfAndLeftOut) {
  databases_.add_application({winner(asked_, here_, plain_config(1))});
  for (const char* content : {"", "no database", "SQLite format 3"}) {
    write_shipped("gfx942", content);
    const Lookup lookup = databases_.open(here_);
    EXPECT_EQ(lookup.find(asked_).config, plain_config(1));
    ASSERT_EQ(lookup.unreadable().size(), 1U) << content;
    const std::string line = lookup.unreadable().front();
    EXPECT_NE(line.find("model.db"), std::string::npos) << line;
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  }
}

TEST_F(LookupShipped, DamagedPagesAreToldOfAndTheRestGoesOn) {
  const auto file = databases_.shipped_file("gfx942");
  databases_.add_application({winner(asked_, here_, plain_config(1))});
  databases_.ship({winner(asked_, here_, plain_config(2)), winner(near_, here_, plain_config(3))});
  const auto size = std::filesystem::file_size(file);
  for (std::uintmax_t at = 4096; at < size; at += 4096) {
    databases_.ship(
        {winner(asked_, here_, plain_config(2)), winner(near_, here_, plain_config(3))});
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
        .seekp(static_cast<std::streamoff>(at))
        .write(std::string(4096, '\xa5').data(), 4096);
    const Lookup lookup = databases_.open(here_);
    EXPECT_EQ(lookup.find(asked_).config, plain_config(1)) << at;
    static_cast<void>(lookup.find(near_));
  }
}

TEST_F(LookupShipped, TheFilesOfOtherArchitecturesAreNotOpened) {
  databases_.ship({winner(asked_, here_, plain_config(1))});
  write_shipped("gfx90a", "no database");
  const Lookup lookup = databases_.open(here_);
  EXPECT_EQ(lookup.find(asked_).origin, LookupOrigin::exact);
  EXPECT_TRUE(lookup.unreadable().empty());
  auto unnamed = here_;
  unnamed.architecture = "../gfx90a";
  EXPECT_TRUE(databases_.open(unnamed).unreadable().empty());
}

TEST_F(LookupShipped, AFolderThatIsMissingIsToldOf) {
  LookupFiles files = LookupFiles::none();
  files.shipped = "/nonexistent/tuned";
  const Lookup lookup = Lookup::open(here_, files);
  EXPECT_EQ(lookup.find(asked_).origin, LookupOrigin::predicted);
  ASSERT_EQ(lookup.unreadable().size(), 1U);
  EXPECT_NE(lookup.unreadable().front().find("/nonexistent/tuned"), std::string::npos);
}

TEST_F(LookupShipped, AnApplicationsFileMustExist) {
  LookupFiles files = LookupFiles::none();
  files.application = {"/nonexistent/tuned.db"};
  EXPECT_THROW(Lookup::open(here_, files), Error);
}

}  // namespace
}  // namespace greta::test::shipped_test
