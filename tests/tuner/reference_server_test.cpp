// Protects: worker processes get a reference's outputs, tolerance and failures over the server's
// socket, whatever others send to it, and the socket's folder is removed.
#include "tuner/evaluate/reference_server.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::reference_server_test {
namespace {

Problem problem_of(std::int64_t n) {
  Problem problem;
  problem.op = "add";
  problem.dims = {{"n", n}};
  return problem;
}

std::vector<ShapedOperand> operands_of(std::int64_t n) {
  return {{{"a", Role::input, DType::f16, n, 2}, {n, 2}},
          {{"b", Role::input_output, DType::f32, 1, n}, {n}},
          {{"c", Role::output, DType::f32, 1, 1}, {1}}};
}

std::vector<HostTensor> inputs_of(std::int64_t n) {
  std::vector<HostTensor> inputs;
  for (const ShapedOperand& operand : operands_of(n)) {
    if (operand.spec.role != Role::output) inputs.push_back(random_tensor(operand.spec, 3));
  }
  return inputs;
}

/// Checks that it is called as the asking process would call it.
Result<std::vector<std::vector<double>>> sum(const Problem& problem,
                                             const std::vector<ShapedOperand>& operands,
                                             const std::vector<HostTensor>& inputs) {
  const std::int64_t n = problem.dim("n");
  if (n == 13) return invalid_argument("13 is unlucky");
  const auto expected_operands = operands_of(n);
  const auto expected_inputs = inputs_of(n);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    EXPECT_EQ(operands[i].spec, expected_operands.at(i).spec);
    EXPECT_EQ(operands[i].shape, expected_operands.at(i).shape);
  }
  std::vector<double> b;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ(inputs[i].spec, expected_inputs.at(i).spec);
    EXPECT_EQ(inputs[i].data, expected_inputs.at(i).data);
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) b.push_back(inputs[1].at(i) * 2);
  return std::vector<std::vector<double>>{b, {0.1}};
}

GivenReference reference(std::optional<Tolerance> tolerance = {}) {
  return {.outputs = sum, .tolerance = tolerance};
}

TEST(ReferenceServer, OutputsAndFailuresCross) {
  const auto server = ReferenceServer::open(reference());
  ASSERT_TRUE(server) << server.failure().message;
  const auto asked = ask_reference((*server)->socket());
  ASSERT_TRUE(asked) << asked.failure().message;
  EXPECT_FALSE(asked->tolerance);
  for (const std::int64_t n : {1, 7, 100'000}) {
    const auto here = sum(problem_of(n), operands_of(n), inputs_of(n));
    const auto there = asked->outputs(problem_of(n), operands_of(n), inputs_of(n));
    ASSERT_TRUE(there) << there.failure().message;
    EXPECT_EQ(*there, *here);
  }
  const auto failed = asked->outputs(problem_of(13), operands_of(13), inputs_of(13));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.failure().message, "13 is unlucky");
}

TEST(ReferenceServer, TolerancesCross) {
  const auto server = ReferenceServer::open(reference(Tolerance{0.5, 0.25, 3})).value();
  const auto asked = ask_reference(server->socket()).value();
  ASSERT_TRUE(asked.tolerance);
  EXPECT_EQ(asked.tolerance->absolute, 0.5);
  EXPECT_EQ(asked.tolerance->relative, 0.25);
  EXPECT_EQ(asked.tolerance->ulp, 3);
}

TEST(ReferenceServer, SeveralMayAsk) {
  const auto server = ReferenceServer::open(reference()).value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, n = 100 + i] {
      const auto asked = ask_reference(server->socket()).value();
      for (int repeat = 0; repeat < 5; ++repeat) {
        EXPECT_TRUE(asked.outputs(problem_of(n), operands_of(n), inputs_of(n)));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Sends bytes and closes the connection.
void send(const std::filesystem::path& socket, const std::string& bytes) {
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket.c_str(), socket.string().size());
  ASSERT_EQ(connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(bytes.size()));
  close(descriptor);
}

/// A message of a text and no elements.
std::string message(const std::string& text) {
  const std::uint64_t size = text.size(), none = 0;
  std::string bytes(reinterpret_cast<const char*>(&size), sizeof size);
  return bytes + text + std::string(reinterpret_cast<const char*>(&none), sizeof none);
}

TEST(ReferenceServer, TheSocketFitsWhateverTheFolderForTemporaryFiles) {
  const TemporaryFolder folder;
  const auto deep = folder / std::string(120, 'd');
  std::filesystem::create_directory(deep);
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "/tmp";
  for (const auto& temporary : {folder.path(), deep}) {
    setenv("TMPDIR", temporary.c_str(), 1);
    const auto server = ReferenceServer::open(reference());
    setenv("TMPDIR", kept.c_str(), 1);
    ASSERT_TRUE(server) << server.failure().message;
    EXPECT_EQ((*server)->socket().parent_path().parent_path(),
              temporary == deep ? "/tmp" : temporary.string());
    EXPECT_TRUE(ask_reference((*server)->socket()));
  }
}

TEST(ReferenceServer, WhatIsNoRequestIsIgnored) {
  const auto server = ReferenceServer::open(reference()).value();
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(3, '\0'), message("[]"), message("{"),
        message("{}"), message(R"({"problem": 3, "operands": []})"),
        message(R"({"problem": "add dtype=f32 out=f32 n=7", "operands": [{"name": "a"}]})"),
        message(R"({"problem": "add dtype=f32 out=f32 n=7", "operands":
                 [{"name": "a", "role": 0, "dtype": "f99", "shape": [7]}]})"),
        message(R"({"problem": "add dtype=f32 out=f32 n=7", "operands":
                 [{"name": "a", "role": 0, "dtype": "f32", "shape": [7]}]})")}) {
    send(server->socket(), bytes);
  }
  const auto asked = ask_reference(server->socket());
  ASSERT_TRUE(asked) << asked.failure().message;
  EXPECT_TRUE(asked->outputs(problem_of(5), operands_of(5), inputs_of(5)));
}

TEST(ReferenceServer, NothingRemains) {
  auto server = ReferenceServer::open(reference()).value();
  const std::filesystem::path socket = server->socket();
  const auto asked = ask_reference(socket).value();
  EXPECT_EQ(std::filesystem::status(socket.parent_path()).permissions(),
            std::filesystem::perms::owner_all);
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(socket.parent_path()));
  const auto refused = asked.outputs(problem_of(5), operands_of(5), inputs_of(5));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().status, Status::io);
  EXPECT_FALSE(ask_reference(socket));
}

}  // namespace
}  // namespace greta::test::reference_server_test
