#include "kernels/planning/pages.hpp"

#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "kernels/model/random.hpp"

namespace greta::kernels {

Attribute page_size_attribute() {
  return {.name = "page_size",
          .help =
              "keys of a page: the caches of keys and values are pools of pages, and the input "
              "block_table says which pages a sequence has",
          .fallback = "none",
          .allowed = {"none", "16", "32", "64", "128", "256"}};
}

std::int64_t page_of(const Problem& problem) {
  const std::string text = problem.attribute("page_size", "none");
  return text == "none" ? 0 : std::stoll(text);
}

Result<void> check_capacity(const Problem& problem) {
  const std::int64_t tokens = problem.dim("tokens"), capacity = problem.dim("capacity");
  if (capacity < tokens) {
    return bad_field("capacity", std::to_string(capacity),
                     fmt::format("must be at least the {} tokens", tokens));
  }
  const std::int64_t page = page_of(problem);
  if (page > 0 && capacity > std::numeric_limits<std::int32_t>::max() - page) {
    return bad_field("capacity", std::to_string(capacity), "has more than 2^31 - 1 keys in pages");
  }
  return {};
}

HostTensor random_block_table(const TensorSpec& spec, std::uint64_t seed) {
  HostTensor table = random_tensor(spec, seed);
  std::vector<std::int64_t> pages(spec.elements());
  std::iota(pages.begin(), pages.end(), std::int64_t{0});
  std::mt19937_64 random(seed);
  for (std::size_t i = pages.size(); i > 1; --i) {
    std::swap(pages[i - 1], pages[uniform_below(random, i)]);
  }
  for (std::size_t i = 0; i < pages.size(); ++i) {
    store_element(DType::i32, table.data.data(), i, static_cast<double>(pages[i]));
  }
  return table;
}

}  // namespace greta::kernels
