#include "tuner/evaluate/reference_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace greta::tuner {
namespace {

using nlohmann::json;

// A message is two parts, each with its size in front: a JSON object, and elements.
constexpr std::uint64_t most_part_bytes = std::uint64_t{1} << 36;

class Connection {
 public:
  explicit Connection(int descriptor) : descriptor_(descriptor) {}
  ~Connection() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  int descriptor() const { return descriptor_; }

  /// Returns false if the other end is closed.
  bool send(const json& object, std::span<const std::byte> elements) const {
    const std::string text = object.dump();
    return send_part(std::as_bytes(std::span(text))) && send_part(elements);
  }
  /// Returns nothing if the other end is closed or sent no message.
  std::optional<std::pair<json, std::vector<std::byte>>> receive() const {
    const auto text = receive_part();
    if (!text) return std::nullopt;
    auto elements = receive_part();
    if (!elements) return std::nullopt;
    const auto* const first = reinterpret_cast<const char*>(text->data());
    json object = json::parse(first, first + text->size(), nullptr, false);
    if (!object.is_object()) return std::nullopt;
    return std::pair(std::move(object), *std::move(elements));
  }

 private:
  bool send_all(std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return true;
  }
  bool send_part(std::span<const std::byte> bytes) const {
    const std::uint64_t size = bytes.size();
    return send_all(std::as_bytes(std::span(&size, 1))) && send_all(bytes);
  }
  bool receive_all(std::span<std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
    return true;
  }
  std::optional<std::vector<std::byte>> receive_part() const {
    std::uint64_t size = 0;
    if (!receive_all(std::as_writable_bytes(std::span(&size, 1)))) return std::nullopt;
    if (size > most_part_bytes) return std::nullopt;
    std::vector<std::byte> bytes(size);
    if (!receive_all(bytes)) return std::nullopt;
    return bytes;
  }

  int descriptor_;
};

Failure io_failure(const std::string& what) {
  return {Status::io, fmt::format("{}: {}", what, std::strerror(errno)), {}};
}

/// Returns whether an address has room for the path and the 0 at its end.
bool fits(const std::filesystem::path& socket) {
  return socket.string().size() < sizeof sockaddr_un::sun_path;
}

sockaddr_un address_of(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket.string();
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}

json json_of(const ShapedOperand& operand) {
  return {{"name", operand.spec.name},
          {"role", static_cast<int>(operand.spec.role)},
          {"dtype", to_string(operand.spec.dtype)},
          {"shape", operand.shape}};
}

ShapedOperand operand_of(const json& object) {
  ShapedOperand operand;
  operand.shape = object.at("shape").get<std::vector<std::int64_t>>();
  const auto dtype = dtype_from_string(object.at("dtype").get<std::string>());
  const int role = object.at("role").get<int>();
  if (!dtype || role < 0 || role > static_cast<int>(Role::input_output)) {
    throw Error("an operand has no type or role");
  }
  operand.spec = {object.at("name").get<std::string>(), static_cast<Role>(role), *dtype, 1, 1};
  for (const std::int64_t extent : operand.shape) {
    operand.spec.rows *= operand.spec.cols;
    operand.spec.cols = extent;
  }
  return operand;
}

json tolerance_of(const std::optional<Tolerance>& tolerance) {
  if (!tolerance) return {{"tolerance", nullptr}};
  return {{"tolerance", {tolerance->absolute, tolerance->relative, tolerance->ulp}}};
}

/// Calls the reference with the operands of a request.
Result<std::vector<std::vector<double>>> computed(const GivenReference& reference,
                                                  const json& request,
                                                  std::span<const std::byte> elements) {
  const auto problem = Problem::parse(request.at("problem").get<std::string>());
  if (!problem) return problem.failure();
  std::vector<ShapedOperand> operands;
  std::vector<HostTensor> inputs;
  for (const json& each : request.at("operands")) {
    operands.push_back(operand_of(each));
    const TensorSpec& spec = operands.back().spec;
    if (spec.role == Role::output) continue;
    if (elements.size() < spec.bytes()) return invalid_argument("a request lacks elements");
    const auto part = elements.first(spec.bytes());
    elements = elements.subspan(spec.bytes());
    inputs.push_back({spec, {part.begin(), part.end()}});
  }
  return reference.outputs(*problem, operands, inputs);
}

/// Sends a request and returns the answer.
Result<std::pair<json, std::vector<std::byte>>> asked(const std::filesystem::path& socket,
                                                      const json& request,
                                                      std::span<const std::byte> elements) {
  const Connection connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_un address = address_of(socket);
  if (connection.descriptor() < 0 ||
      ::connect(connection.descriptor(), reinterpret_cast<const sockaddr*>(&address),
                sizeof address) != 0) {
    return io_failure(socket.string());
  }
  if (!connection.send(request, elements)) return io_failure(socket.string());
  auto answer = connection.receive();
  if (!answer) {
    return Failure{Status::io, "the process that computes the reference has ended", {}};
  }
  if (const auto failed = answer->first.find("failure"); failed != answer->first.end()) {
    return Failure{Status::correctness, failed->get<std::string>(), {}};
  }
  return *std::move(answer);
}

Result<std::vector<std::vector<double>>> ask_outputs(const std::filesystem::path& socket,
                                                     const Problem& problem,
                                                     const std::vector<ShapedOperand>& operands,
                                                     const std::vector<HostTensor>& inputs) {
  json request{{"problem", problem.key()}, {"operands", json::array()}};
  for (const ShapedOperand& operand : operands) request["operands"].push_back(json_of(operand));
  std::vector<std::byte> elements;
  for (const HostTensor& input : inputs) {
    elements.insert(elements.end(), input.data.begin(), input.data.end());
  }
  auto answer = asked(socket, request, elements);
  if (!answer) return answer.failure();
  std::vector<std::vector<double>> outputs;
  std::span<const std::byte> rest = answer->second;
  for (const json& size : answer->first.at("sizes")) {
    std::vector<double>& output = outputs.emplace_back(size.get<std::size_t>());
    const std::size_t bytes = output.size() * sizeof(double);
    if (rest.size() < bytes) return invalid_argument("an answer lacks elements");
    if (bytes > 0) std::memcpy(output.data(), rest.data(), bytes);
    rest = rest.subspan(bytes);
  }
  return outputs;
}

}  // namespace

Result<std::unique_ptr<ReferenceServer>> ReferenceServer::open(GivenReference reference) {
  std::unique_ptr<ReferenceServer> server(new ReferenceServer(std::move(reference)));
  if (auto done = server->listen(); !done) return done.failure();
  server->thread_ = std::thread([&own = *server] { own.serve(); });
  return server;
}

Result<void> ReferenceServer::listen() {
  auto folder = TemporaryFolder::make("greta-reference");
  if (folder && !fits(folder->path() / "socket")) {
    folder = TemporaryFolder::make("greta-reference", "/tmp");
  }
  if (!folder) return folder.failure();
  folder_ = *std::move(folder);
  socket_ = folder_->path() / "socket";
  listening_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un address = address_of(socket_);
  constexpr int waiting = 16;
  if (listening_ < 0 ||
      bind(listening_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening_, waiting) != 0) {
    return io_failure(socket_.string());
  }
  return {};
}

ReferenceServer::~ReferenceServer() {
  ended_ = true;
  if (thread_.joinable()) thread_.join();
  if (listening_ >= 0) close(listening_);
}

void ReferenceServer::serve() {
  constexpr int look_for_end_ms = 100;
  while (!ended_) {
    pollfd waiting{listening_, POLLIN, 0};
    if (poll(&waiting, 1, look_for_end_ms) <= 0) continue;
    const int connection = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) answer(connection);
  }
}

void ReferenceServer::answer(int descriptor) const {
  const Connection connection(descriptor);
  const timeval patience{60, 0};  // with a process that was stopped in between
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const auto request = connection.receive();
  if (!request) return;
  try {
    if (request->first.contains("tolerance")) {
      connection.send(tolerance_of(reference_.tolerance), {});
      return;
    }
    const auto outputs = computed(reference_, request->first, request->second);
    if (!outputs) throw Error(outputs.failure());
    json sizes = json::array();
    std::vector<std::byte> elements;
    for (const std::vector<double>& output : *outputs) {
      sizes.push_back(output.size());
      const auto bytes = std::as_bytes(std::span(output));
      elements.insert(elements.end(), bytes.begin(), bytes.end());
    }
    connection.send({{"sizes", std::move(sizes)}}, elements);
  } catch (const std::exception& error) {
    connection.send({{"failure", error.what()}}, {});
  }
}

Result<GivenReference> ask_reference(const std::filesystem::path& socket) {
  const auto answer = asked(socket, {{"tolerance", true}}, {});
  if (!answer) return answer.failure();
  GivenReference reference;
  if (const json& three = answer->first.at("tolerance"); three.is_array()) {
    reference.tolerance = Tolerance{three.at(0), three.at(1), three.at(2)};
  }
  reference.outputs = [socket](const Problem& problem, const std::vector<ShapedOperand>& operands,
                               const std::vector<HostTensor>& inputs) {
    return ask_outputs(socket, problem, operands, inputs);
  };
  return reference;
}

}  // namespace greta::tuner
