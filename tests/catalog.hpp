#pragma once

#include "kernels/catalog.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// The operations that GRETA ships.
inline const Catalog& catalog() {
  static const Catalog list = Catalog::built_in();
  return list;
}
inline const Operation& built_in(std::string_view name) {
  return catalog().at(name);
}

}  // namespace greta::test
