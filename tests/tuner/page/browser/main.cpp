// greta_page_sample FOLDER: writes the files of a report into a folder, for the test in a browser.

#include <cstdio>

#include "tests/tuner/page/sample.hpp"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  greta::test::write_page_database(folder / "tuned.db");
  greta::test::write_page_baselines(folder / "before.csv", folder / "after.csv");
  greta::test::write_page_trace(folder / "trace.json");
}
