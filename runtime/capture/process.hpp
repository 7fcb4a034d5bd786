#pragma once

namespace greta::capture {

/// Reads the environment and registers what happens at fork and exit. The first call does it, from
/// a constructor of this library or earlier.
void start_once();

/// Starts the thread that writes the file at intervals, if this process has none.
void start_writer();

}  // namespace greta::capture
