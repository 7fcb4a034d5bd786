// greta_page_sample FOLDER: writes the files of a report into a folder, for the test in a browser.
// greta_page_sample FOLDER more FILE: adds a search to a database.
// greta_page_sample FOLDER five: adds a newer search with five trials to newest.db.
// greta_page_sample FOLDER many COUNT: writes many.db, a search with this number of trials.

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/tuner/page/sample.hpp"

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const std::filesystem::path folder = argv[1];
  if (argc == 3) {
    greta::test::add_page_search(folder / "newest.db", 5, "2026-11-29T12:00:00Z");
    return 0;
  }
  if (argc == 4 && std::string(argv[2]) == "many") {
    greta::test::add_page_search(folder / "many.db", std::atoi(argv[3]));
    return 0;
  }
  if (argc == 4) {
    greta::test::add_page_search(folder / argv[3]);
    return 0;
  }
  greta::test::write_page_database(folder / "tuned.db");
  greta::test::add_page_search(folder / "few.db");
  greta::test::write_empty_page_database(folder / "empty.db");
  greta::test::write_page_baselines(folder / "before.csv", folder / "after.csv");
  greta::test::write_page_trace(folder / "trace.json");
}
