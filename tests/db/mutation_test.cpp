// Protects: no damaged file causes a crash, and everything that check() accepts reads as before.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "db/json.hpp"
#include "tests/db/fixture.hpp"
#include "tests/db/random_contents.hpp"
#include "tests/layers.hpp"

namespace greta::test::mutation_test {
namespace {

using Mode = TunedDb::Mode;

/// Returns everything that can be read from a database as text.
std::string everything(const std::filesystem::path& file) {
  const auto db = TunedDb::open(file, Mode::read_only);
  std::string text;
  for (const auto& line : canonical(db.contents())) text += line + "\n";
  for (const auto& session : db.sessions()) {
    text += session.problem.key() + session.provenance.driver + session.provenance.started_utc +
            session.outcome.value_or("open") + "\n";
    for (const auto& trial : db.trials(session.id)) text += dump(to_json(trial)) + "\n";
  }
  return text;
}

/// Mutates a file. `moved`: a whole valid page replaces another one, possibly of an empty table.
/// Missing rows have no checksum; only the manifest of a shipped database reveals them.
std::string mutate(std::string content, std::mt19937_64& random, bool& moved) {
  moved = false;
  const auto position = [&] { return random() % content.size(); };
  constexpr std::size_t page = 4096;
  switch (random() % 6) {
    case 0:  // some bits anywhere
      for (auto left = 1 + random() % 8; left > 0; --left) {
        const auto at = position();
        content[at] = static_cast<char>(content[at] ^ (1 << random() % 8));
      }
      return content;
    case 1: {  // one bit of the header or the first page
      const auto at = random() % (random() % 2 ? 100 : page);
      content[at] = static_cast<char>(content[at] ^ (1 << random() % 8));
      return content;
    }
    case 2:  // truncated
      return content.substr(0, 1 + position());
    case 3: {  // a run of one byte
      const auto at = position();
      const auto length = std::min<std::size_t>(1 + random() % 64, content.size() - at);
      std::fill_n(content.begin() + static_cast<std::ptrdiff_t>(at), length,
                  static_cast<char>(random()));
      return content;
    }
    case 4: {  // a page replaces another one
      moved = true;
      const auto pages = content.size() / page;
      content.replace(random() % pages * page, page,
                      std::string(content, random() % pages * page, page));
      return content;
    }
    default: {  // a digit becomes another one
      const auto at = std::find_if(content.begin() + static_cast<std::ptrdiff_t>(position()),
                                   content.end(), [](char c) { return c >= '0' && c <= '9'; });
      if (at != content.end()) *at = static_cast<char>('0' + (*at - '0' + 1) % 10);
      return content;
    }
  }
}

/// Opens, checks, reads and, if possible, writes a mutated file. Returns true if check() found
/// nothing. With `exact`, everything that is accepted must read like the original.
bool survives(const std::filesystem::path& file, const std::string& original, bool exact) {
  bool sound = false;
  try {
    sound = TunedDb::open(file, Mode::read_only).check().empty();
    const auto now = everything(file);
    EXPECT_TRUE(!sound || !exact || now == original) << "damage that nobody noticed:\n" << now;
  } catch (const Error& error) {
    EXPECT_FALSE(sound && exact) << "sound, but: " << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
  try {
    auto db = TunedDb::open(file, Mode::read_write);
    db.add_trial(1, sample_trial("more"));
    db.set_winner(1, sample_winner());
    db.merge({});
  } catch (const Error&) {
  }
  return sound;
}

void mutate_databases(int count, std::uint64_t seed) {
  const TemporaryFolder folder;
  std::mt19937_64 random(seed);
  {
    auto db = TunedDb::open(folder / "own.db", Mode::read_write);
    db.write(random_contents(random));
    const auto session = db.begin_session(sample_session());
    for (int i = 0; i < 30; ++i) db.add_trial(session, sample_trial(std::to_string(i)));
    db.set_winner(session, sample_winner());
    db.set_finalists(session, sample_finalists());
    db.end_session(session, "done");
    TunedDb::ship(db.contents(), folder / "shipped.db");
  }
  const std::vector<std::filesystem::path> files{folder / "own.db", folder / "shipped.db"};
  std::vector<std::string> contents, originals;
  for (const auto& file : files) {
    contents.push_back(read_file(file));
    originals.push_back(everything(file));
  }
  constexpr std::size_t shipped = 1;
  int found = 0;
  for (int i = 0; i < count; ++i) {
    const auto which = random() % 2;
    const auto damaged = folder / "damaged.db";
    bool moved = false;
    write_file(damaged, mutate(contents[which], random, moved));
    found += survives(damaged, originals[which], !moved || which == shipped) ? 0 : 1;
    ASSERT_FALSE(::testing::Test::HasFailure()) << "mutation " << i;
    for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
      std::filesystem::remove(damaged.string() + suffix);
    }
  }
  EXPECT_GT(found, count / 3);
  std::printf("%d of %d mutated databases were found damaged\n", found, count);
}

TEST(Mutation, AHundredDatabasesCrashNothing) {
  mutate_databases(100, 50);
}

/// For scripts/test.sh --all.
TEST(MutationSlow, FiveHundredDatabasesCrashNothing) {
  mutate_databases(500, 51);
}

TEST(MutationLong, TwentyThousandDatabasesCrashNothing) {
  mutate_databases(20'000, 53);
}

}  // namespace
}  // namespace greta::test::mutation_test
