#include "db/sqlite/migrations.hpp"

namespace greta {

const std::vector<Migration>& migrations() {
  static const std::vector<Migration> list = [] {
    std::vector<Migration> steps;
    for (const auto& file : schema_files()) {
      steps.push_back({static_cast<int>(steps.size()) + 1, file.text});
    }
    return steps;
  }();
  return list;
}

}  // namespace greta
