#include "tests/device/hip/fake/fake_emulator.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tests/layers.hpp"

namespace greta::test {

namespace {

using nlohmann::json;

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "fake HIP: the emulator: %s: %s\n", what.c_str(), std::strerror(errno));
  std::_Exit(70);
}

/// Receives a line with its file descriptor.
std::string receive_file(int socket, int& file) {
  std::array<char, 128> text{};
  iovec part{text.data(), text.size() - 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof file)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) <= 0) give_up("no greeting");
  const cmsghdr* const header = CMSG_FIRSTHDR(&message);
  if (header == nullptr) give_up("no memory");
  std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return text.data();
}

}  // namespace

Emulator* Emulator::instance() {
  static Emulator* const made = [] {
    const char* const path = std::getenv("GRETA_FAKE_EMULATOR");
    return path != nullptr && *path != '\0' ? new Emulator(path) : nullptr;
  }();
  return made;
}

Emulator::Emulator(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) give_up(path + " is too long");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    give_up(path);
  }
  const std::string greeting = receive_file(socket_, memory_file_);
  unsigned long long base = 0, size = 0;
  if (std::sscanf(greeting.c_str(), "%llu %llu", &base, &size) != 2) give_up("no greeting");
  memory_base_ = reinterpret_cast<void*>(static_cast<std::uintptr_t>(base));
  memory_size_ = size;
}

void Emulator::send(const std::string& line, std::span<const std::byte> bytes) const {
  std::string all = line + '\n';
  all.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (std::size_t sent = 0; sent < all.size();) {
    const auto now = ::send(socket_, all.data() + sent, all.size() - sent, MSG_NOSIGNAL);
    if (now <= 0 && errno != EINTR) give_up("it is gone");
    if (now > 0) sent += static_cast<std::size_t>(now);
  }
}

std::string Emulator::receive() {
  std::size_t end = 0;
  while ((end = received_.find('\n')) == std::string::npos) {
    std::array<char, 4096> some{};
    const auto got = ::read(socket_, some.data(), some.size());
    if (got == 0 || (got < 0 && errno != EINTR)) give_up("it is gone");
    if (got > 0) received_.append(some.data(), static_cast<std::size_t>(got));
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

void Emulator::allow(std::size_t offset, std::size_t pages, std::size_t bytes) {
  send(json{{"call", "allow"}, {"offset", offset}, {"pages", pages}, {"size", bytes}}.dump());
}

void Emulator::forbid(std::size_t offset, std::size_t pages) {
  send(json{{"call", "forbid"}, {"offset", offset}, {"pages", pages}}.dump());
}

Emulator::Outcome Emulator::launch(const std::vector<std::byte>& code_object,
                                   const FakeLaunch& launch) {
  auto found = modules_.find(&code_object);
  if (found == modules_.end()) {
    send(json{{"call", "load"}, {"bytes", code_object.size()}}.dump(), code_object);
    const json loaded = json::parse(receive());
    if (loaded.contains("error")) return {0, loaded.at("error"), loaded.at("message")};
    found = modules_.emplace(&code_object, loaded.at("module").get<int>()).first;
  }
  send(json{{"call", "launch"},
            {"module", found->second},
            {"kernel", launch.kernel},
            {"grid", launch.grid},
            {"block", launch.block},
            {"shared", launch.dynamic_shared_bytes},
            {"bytes", launch.arguments.size()}}
           .dump(),
       launch.arguments);
  const json done = json::parse(receive());
  if (done.contains("error")) return {0, done.at("error"), done.at("message")};
  return {done.at("instructions").get<double>(), {}, {}};
}

void Emulator::unload(const std::vector<std::byte>& code_object) {
  const auto found = modules_.find(&code_object);
  if (found == modules_.end()) return;
  send(json{{"call", "unload"}, {"module", found->second}}.dump());
  modules_.erase(found);
}

}  // namespace greta::test
