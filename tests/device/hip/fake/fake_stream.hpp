#pragma once

// Streams of fake devices. What is handed to one is done later, some of it at each query: whoever
// relies on work before having waited for it finds that it was not done.

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "tests/device/hip/fake/fake_state.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Something for a device to do. It returns how long that takes by the fake clock, in ns.
using Command = std::function<double(const Call&)>;

struct Graph {
  std::vector<Command> commands;
};

struct Stream {
  std::deque<Command> commands;
  std::unique_ptr<Graph> capturing;
};

/// The fake clock, which says nothing about any device: what a command takes, and for each byte
/// that is copied or filled, and each instruction that a wave executes.
inline constexpr double command_ns = 5000, byte_ns = 0.01, instruction_ns = 1;

/// Hands a command to a stream, or to the graph that is captured from it.
void add_command(Stream& stream, Command command);

/// Does everything that this thread's device has to do. False, and a misuse, where that would never
/// end.
bool finish_all(const Call& call);

/// The objects of a device that is reset go.
void forget_streams(int device);

}  // namespace greta::test
