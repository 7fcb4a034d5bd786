#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "kernels/described/described_reference.hpp"
#include "runtime/device/system/temporary_folder.hpp"

namespace greta::tuner {

/// Computes the reference of a described kernel for worker processes, which can't call a function
/// of this one: they ask over a socket that only this user can reach. Requests are answered one at
/// a time, on a thread of the server.
class ReferenceServer {
 public:
  /// Opens the socket in a new folder for temporary files, in /tmp where that one's path is too
  /// long for sockets. Fails with `io`.
  static Result<std::unique_ptr<ReferenceServer>> open(GivenReference reference);
  /// Ends the thread after the current request, and removes the socket.
  ~ReferenceServer();
  ReferenceServer(const ReferenceServer&) = delete;
  ReferenceServer& operator=(const ReferenceServer&) = delete;

  const std::filesystem::path& socket() const { return socket_; }

 private:
  explicit ReferenceServer(GivenReference reference) : reference_(std::move(reference)) {}
  Result<void> listen();
  void serve();
  /// Answers the request of one connection.
  void answer(int connection) const;

  GivenReference reference_;
  std::optional<TemporaryFolder> folder_;
  std::filesystem::path socket_;
  int listening_ = -1;
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

/// Returns a reference that asks the server at this socket. Fails with `io` if there is none.
Result<GivenReference> ask_reference(const std::filesystem::path& socket);

}  // namespace greta::tuner
