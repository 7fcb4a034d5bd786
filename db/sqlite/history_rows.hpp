#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include "db/history.hpp"

namespace greta::db {

/// Copies the sessions, trials and comparisons of one database that another lacks, and lets winners
/// that came from there refer to their sessions. The devices must already be in both.
///
/// A session is known if all that is fixed when it begins is equal (device, problem, environment,
/// strategy, budget, seed, command, start) and, where both have trials, they share one. Of a known
/// session the missing trials are copied, and its outcome if it had none. With `rehearse`, nothing
/// is written.
HistoryMerge copy_history(SQLite::Database& from, SQLite::Database& into, bool rehearse);

}  // namespace greta::db
