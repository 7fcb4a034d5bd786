#pragma once

// Streams of fake devices. Submitted work is executed later, some of it at each query, so that
// using results without waiting for them is detected.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tests/device/hip/fake/fake_state.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// A command for a device. Returns its duration by the fake clock, in ns.
using Command = std::function<double(const Call&)>;

struct Graph {
  std::vector<Command> commands;
};

struct Stream {
  std::deque<Command> commands;
  std::unique_ptr<Graph> capturing;
};

/// The fake clock, which says nothing about real devices: the time of a command, of each copied or
/// filled byte, and of each instruction that a wave executes.
inline constexpr double command_ns = 5000, byte_ns = 0.01, instruction_ns = 1;

/// Appends a command to a stream, or to the graph that is being captured from it.
void add_command(Stream& stream, Command command);

/// Executes all work of this thread's device. Returns false and records a misuse if it would never
/// end.
bool finish_all(const Call& call);

/// Destroys the objects of a device that is reset.
void forget_streams(int device);

}  // namespace greta::test
