// The server, on cpp-httplib.
#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include "base/error.h"
#include "cli/server.h"

namespace rankscope {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr size_t kThreads = 64;        // a client that dawdles holds one of them, for kPatience at most
constexpr time_t kPatience = 2;        // seconds
constexpr size_t kLargestBody = 1024;  // nothing is ever sent here
constexpr size_t kMostHeaders = 100;   // a browser sends twenty

void say(httplib::Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text + "\n", "text/plain; charset=utf-8");
}

// A page of elsewhere must not reach us under a name that it made resolve to loopback.
bool is_our_name(const std::string& host, int port) {
  for (const char* name : {kLoopback, "localhost"})
    if (host == fmt::format("{}:{}", name, port)) return true;
  return false;
}

void answer(const httplib::Request& request, httplib::Response& response, FolderPages& pages, bool data) {
  const std::string folder = request.get_param_value("folder");
  const std::string known = data ? request.get_header_value("If-None-Match") : "";
  const FolderPages::Answer found = data ? pages.data(folder, known) : pages.page(folder);
  if (!found.found) return say(response, 404, "there are no such results");
  response.set_header("ETag", found.tag);
  if (data && found.tag == known) {
    response.status = 304;
    return;
  }
  response.set_content(found.text, data ? "application/json" : "text/html; charset=utf-8");
}

}  // namespace

void serve_pages(FolderPages& pages, int port, const std::function<void(int)>& ready) {
  httplib::Server server;
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };  // the server deletes it
  server.set_read_timeout(kPatience);
  server.set_write_timeout(10 * kPatience);
  server.set_keep_alive_timeout(kPatience);
  server.set_payload_max_length(kLargestBody);
  // The library's default lets two programs share a port, each getting some of the requests.
  socket_t listening = -1;
  server.set_socket_options([&](socket_t socket) {
    listening = socket;
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server.set_default_headers({{"Cache-Control", "no-store"},
                              {"X-Content-Type-Options", "nosniff"},
                              {"X-Frame-Options", "DENY"},
                              {"Referrer-Policy", "no-referrer"},
                              {"Cross-Origin-Resource-Policy", "same-origin"}});
  server.set_pre_routing_handler([&](const httplib::Request& request, httplib::Response& response) {
    if (!is_our_name(request.get_header_value("Host"), port)) {
      say(response, 403, "this server answers to 127.0.0.1 only");
      return httplib::Server::HandlerResponse::Handled;
    }
    if (request.headers.size() > kMostHeaders) {
      response.set_header("Connection", "close");
      say(response, 431, "there are too many headers");
      return httplib::Server::HandlerResponse::Handled;
    }
    if (request.method != "GET" && request.method != "HEAD") {
      say(response, 405, "there is nothing but GET here");
      return httplib::Server::HandlerResponse::Handled;
    }
    if (request.get_header_value("Content-Length").find_first_not_of('0') != std::string::npos ||
        request.has_header("Transfer-Encoding")) {
      response.set_header("Connection", "close");  // what follows is no request
      say(response, 400, "nothing can be sent here");
      return httplib::Server::HandlerResponse::Handled;
    }
    return httplib::Server::HandlerResponse::Unhandled;
  });
  server.Get("/", [&](const auto& request, auto& response) { answer(request, response, pages, false); });
  server.Get("/data.json",
             [&](const auto& request, auto& response) { answer(request, response, pages, true); });
  server.set_exception_handler([](const auto&, httplib::Response& response, std::exception_ptr fault) {
    try {
      std::rethrow_exception(fault);
    } catch (const Error& e) {
      say(response, 503, e.render());  // a table that is being written: the next request may find it whole
    } catch (...) {
      say(response, 500, "this cannot be shown");
    }
  });
  const int bound = port == 0                              ? server.bind_to_any_port(kLoopback)
                    : server.bind_to_port(kLoopback, port) ? port
                                                           : -1;
  if (bound < 0)
    throw Error(fmt::format("cannot listen on port {} of {}", port, kLoopback))
        .hint("another --port; 0 takes a free one");
  // The library lets five clients wait; the sixth would be told to try again in a second, in three, in seven.
  ::listen(listening, SOMAXCONN);
  port = bound;
  ready(bound);
  server.listen_after_bind();
}

}  // namespace rankscope
