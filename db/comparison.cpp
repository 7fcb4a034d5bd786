#include "db/comparison.hpp"

namespace greta::db {

Comparison compare_certified(std::int64_t session_a, const Measurement& a, std::int64_t session_b,
                             const Measurement& b) {
  if (b.median_us < a.median_us) return compare_certified(session_b, b, session_a, a);
  Comparison comparison;
  comparison.faster = session_a;
  comparison.slower = session_b;
  comparison.ratio = b.median_us / a.median_us;
  comparison.low = b.low_us / a.high_us;
  comparison.high = b.high_us / a.low_us;
  comparison.confidence = 0.90;
  return comparison;
}

}  // namespace greta::db
