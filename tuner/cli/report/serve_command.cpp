#include <fmt/format.h>

#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/report_page.hpp"
#include "tuner/cli/report/commands.hpp"

#ifdef GRETA_HTTPLIB
#include <httplib.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include "db/tuned_db.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/report/print.hpp"
#endif

namespace greta::tuner::cli {
namespace {

struct ServeOptions {
  std::vector<std::string> files;
  int port = 0;  ///< 0: any free one
};

#ifdef GRETA_HTTPLIB

constexpr auto look_again = std::chrono::milliseconds(500);
constexpr int looks_to_a_ping = 20;
// Each open page holds a connection that waits for events, and browsers open some that stay idle.
constexpr std::size_t most_connections = 256;
constexpr time_t idle_s = 2;

/// Returns 128 random bits as hexadecimal digits.
std::string new_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", random());
  return token;
}

/// Serves the page of some files on the loopback interface, below a secret path.
class PageServer {
 public:
  explicit PageServer(ReportFiles files) : files_(std::move(files)), token_(new_token()) {
    const std::string root = "/" + token_ + "/";
    server_.new_task_queue = [] { return new httplib::ThreadPool(most_connections); };
    server_.set_keep_alive_timeout(idle_s);
    server_.set_read_timeout(idle_s);
    // Two servers must not share a port, which the library's own options allow.
    server_.set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    // A name that resolves to this machine must not reach the page (DNS rebinding).
    server_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& to) {
      const std::string host = request.get_header_value("Host");
      if (host == fmt::format("127.0.0.1:{}", port_) || host == fmt::format("localhost:{}", port_))
        return httplib::Server::HandlerResponse::Unhandled;
      to.status = 403;
      return httplib::Server::HandlerResponse::Handled;
    });
    server_.set_default_headers({{"Cache-Control", "no-store"},
                                 {"Referrer-Policy", "no-referrer"},
                                 {"X-Content-Type-Options", "nosniff"}});
    server_.Get(root, [this](const httplib::Request&, httplib::Response& to) {
      answer(to, "text/html; charset=utf-8", [this] { return report_page(files_); });
    });
    server_.Get(root + "data", [this](const httplib::Request&, httplib::Response& to) {
      answer(to, "application/json", [this] { return report_data(files_); });
    });
    server_.Get(root + "events", [this](const httplib::Request&, httplib::Response& to) {
      to.set_chunked_content_provider(
          "text/event-stream",
          [this, seen = state(), looks = 0](std::size_t, httplib::DataSink& sink) mutable {
            return send_event(sink, seen, looks);
          });
    });
  }

  /// Serves until the process is interrupted.
  void run(int port) {
    port_ = port;
    if (port == 0) {
      port_ = server_.bind_to_any_port("127.0.0.1");
    } else if (!server_.bind_to_port("127.0.0.1", port)) {
      port_ = -1;
    }
    if (port_ < 0)
      throw CommandError(exit_usage, fmt::format("--port {}: is in use, or can't be used", port));
    print("http://127.0.0.1:{}/{}/\n", port_.load(), token_);
    std::fflush(stdout);
    std::thread listener([this] { server_.listen_after_bind(); });
    while (!stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    answer_interrupt();
    stopping_ = true;
    server_.stop();
    listener.join();
  }

 private:
  template <typename Make>
  void answer(httplib::Response& to, const char* type, Make make) {
    try {
      const std::lock_guard lock(reading_);
      to.set_content(make(), type);
    } catch (const std::exception& error) {
      to.status = 500;
      to.set_content(error.what(), "text/plain; charset=utf-8");
    }
  }

  /// Returns what changes with the databases' contents.
  std::string state() {
    std::string text;
    for (const auto& file : files_.databases) {
      try {
        const auto counts = TunedDb::open(file, TunedDb::Mode::read_only).counts();
        text += fmt::format("{},{},{};", counts.trials, counts.sessions, counts.winners);
      } catch (const std::exception&) {
        text += "?;";  // the next request for data says why
      }
    }
    return text;
  }

  bool send_event(httplib::DataSink& sink, std::string& seen, int& looks) {
    const auto send = [&](const std::string& text) { return sink.write(text.data(), text.size()); };
    if (looks == 0 && !send(": connected\n\n")) return false;
    for (++looks; !stopping_; ++looks) {
      std::this_thread::sleep_for(look_again);
      const std::string now = state();
      if (now != seen) {
        seen = now;
        return send("data: changed\n\n");
      }
      if (looks % looks_to_a_ping == 0) return send(": ping\n\n");
    }
    sink.done();
    return true;
  }

  const ReportFiles files_;
  const std::string token_;
  httplib::Server server_;
  std::mutex reading_;
  std::atomic<int> port_ = 0;
  std::atomic<bool> stopping_ = false;
};

int serve(const ServeOptions& options) {
  const ReportFiles files = report_files(options.files);
  report_page(files);  // reports an error before anything is served
  end_of_report(files, exit_done);
  catch_interrupts();
  PageServer(files).run(options.port);
  return exit_done;
}

#else

int serve(const ServeOptions&) {
  throw CommandError(exit_failed, "serve: this build lacks cpp-httplib (libcpp-httplib-dev)");
}

#endif

}  // namespace

void add_serve_command(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "serve", "Show the page in a browser of this machine, live while a tune writes the database");
  auto options = std::make_shared<ServeOptions>();
  command->add_option("files", options->files, "Files as of a report")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--port", options->port, "Port of the loopback interface; default: a free one")
      ->type_name("PORT")
      ->check(CLI::Range(1, 65535));
  add_kernels_option(*command);
  command->callback([&action, options] { action = [options] { return serve(*options); }; });
}

}  // namespace greta::tuner::cli
