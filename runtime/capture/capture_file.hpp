#pragma once

namespace greta::capture {

/// Chooses the file: the value of GRETA_CAPTURE. `%p` is the number of the process. Of a folder, a
/// file in it. Relative paths are those of the folder in which the process started. `quiet`: the
/// last line is not printed.
void set_file(const char* path, bool quiet);

/// Writes what was counted, if that changed, and publishes the file at once: readers see the one
/// before or this one. Never overwrites a file that is not this process's: its number is put into
/// the name then. Reports the first error, after which nothing is written any more. `last`: the
/// process ends, and reports where its calls are.
void publish(bool last);

/// In a child of fork: its calls are none yet, and its file is another one.
void forget_file();

}  // namespace greta::capture
