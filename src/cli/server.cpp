// One thread, one loop over all connections, none of which can make it wait: every one has a deadline for the
// whole of what it sends and for the whole of what it takes, and shares the page it is sent with the others.
#include "cli/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <list>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "cli/http.h"

namespace rankscope {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

constexpr size_t kMostConnections = 400;  // below the 1,024 descriptors that a process usually has
constexpr seconds kToAsk{2};              // from the first byte of silence to the last of the request
constexpr seconds kToTake{30};            // for an answer, however long it is
constexpr seconds kToLeave{1};            // for a client to see that it was refused
constexpr int kPiecesAtOnce = 16;         // read of one client before the others have their turn
constexpr int kSentAhead = 256 << 10;     // bytes that wait for a slow reader, in the kernel

struct Connection {
  explicit Connection(int fd) : socket(fd) {}
  Descriptor socket;
  std::string heard, head;
  FolderPages::Text body;
  size_t sent = 0;
  bool answering = false, leaving = false, stays = false;
  Clock::time_point deadline = Clock::now() + kToAsk;

  void answer(int status, std::string_view type, FolderPages::Text text, bool keep, bool with_body,
              std::string_view extra = {}) {
    head = http_head(status, type, text ? text->size() : 0, keep, extra);
    body = with_body ? std::move(text) : nullptr;
    sent = 0;
    answering = true;
    stays = keep;
    deadline = Clock::now() + kToTake;
  }
  void say(int status, const std::string& text, bool keep = false, bool with_body = true) {
    answer(status, "text/plain; charset=utf-8", std::make_shared<std::string>(text + "\n"), keep, with_body);
  }
};

class Server {
 public:
  Server(FolderPages& pages, int port) : pages_(pages), listening_(::socket(AF_INET, kSocket, 0)) {
    const int yes = 1;
    ::setsockopt(listening_.fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<uint16_t>(port));
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(place);
    auto* const address = reinterpret_cast<sockaddr*>(&place);
    if (listening_.fd < 0 || ::bind(listening_.fd, address, size) != 0 ||
        ::listen(listening_.fd, SOMAXCONN) != 0 || ::getsockname(listening_.fd, address, &size) != 0)
      throw Error(fmt::format("cannot listen on port {} of 127.0.0.1", port))
          .hint("another --port; 0 takes a free one");
    port_ = ntohs(place.sin_port);
  }
  int port() const { return port_; }

  void run() {
    for (;;) {
      const std::vector<pollfd> watched = wait();
      size_t i = 0;
      for (auto c = all_.begin(); c != all_.end();) {
        const bool over = watched[++i].revents != 0 && !goes_on(*c);
        c = over || Clock::now() > c->deadline ? all_.erase(c) : std::next(c);
      }
      accept_all();
    }
  }

 private:
  static constexpr int kSocket = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;

  // The first is the one that listens, the others are the connections in their order.
  std::vector<pollfd> wait() const {
    std::vector<pollfd> watched{{full_ ? -1 : listening_.fd, POLLIN, 0}};
    for (const Connection& c : all_)
      watched.push_back({c.socket.fd, static_cast<short>(c.answering ? POLLOUT : POLLIN), 0});
    const bool idle = all_.empty() && !full_;
    ::poll(watched.data(), watched.size(), idle ? -1 : 100);  // deadlines are looked at in between
    return watched;
  }

  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listening_.fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      full_ = fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM);
      if (fd < 0) return;
      const int yes = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
      ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSentAhead, sizeof(kSentAhead));
      if (all_.size() >= kMostConnections) make_room();
      all_.emplace_back(fd);
    }
  }

  // Who has been asking for longest goes: a client on this machine sends its request at once.
  void make_room() {
    const auto asks = [](const Connection& c) { return !c.answering; };
    const auto oldest = std::find_if(all_.begin(), all_.end(), asks);
    all_.erase(oldest == all_.end() ? all_.begin() : oldest);
  }

  // False when the connection is over.
  bool goes_on(Connection& c) {
    if (c.answering) return send(c);
    std::array<char, 4096> piece;
    for (int pieces = 0; pieces < kPiecesAtOnce; ++pieces) {
      const ssize_t got = ::recv(c.socket.fd, piece.data(), piece.size(), 0);
      if (got < 0 && errno != EAGAIN && errno != EINTR) return false;
      if (got < 0) break;  // all there is was read, which a piece that came back full does not say
      if (got == 0) {      // it says no more: what it asked before is answered, once
        const size_t heard = c.heard.size();
        return !c.leaving && answer(c) && c.heard.size() < heard;
      }
      if (c.leaving) continue;  // what it still says is of no interest
      c.heard.append(piece.data(), static_cast<size_t>(got));
      if (c.heard.size() > kLargestHead || static_cast<size_t>(got) < piece.size()) break;
    }
    return c.leaving || answer(c);
  }

  bool answer(Connection& c) {
    HttpReading reading = read_http(c.heard);
    if (!reading.whole) return true;
    c.heard.erase(0, reading.used);
    const bool get = reading.request.method != "HEAD";  // which takes the same answer without its body
    if (reading.status != 0)
      c.say(reading.status, reading.complaint, false, get);
    else
      try {
        show(c, reading.request);
      } catch (const Error& e) {
        // A table that is being written: the next may find it whole.
        c.say(503, e.render(), reading.request.stays, get);
      } catch (const std::exception&) {
        c.say(500, "this cannot be shown", false, get);
      }
    return send(c);
  }

  void show(Connection& c, const HttpRequest& request) {
    // A page of elsewhere must not reach us under a name that it made resolve to loopback.
    const bool get = request.method == "GET";
    if (!is_loopback(request.host, port_))
      return c.say(403, "this server answers to 127.0.0.1 only", false, get);
    const bool data = request.path == "/data.json";
    const auto folder = request.query.find("folder");
    const std::string name = folder == request.query.end() ? "" : folder->second;
    FolderPages::Answer found;
    if (data) found = pages_.data(name);
    if (request.path == "/") found = pages_.page(name);
    if (!found.text) return c.say(404, "there are no such results", request.stays, get);
    const std::string tag = fmt::format("ETag: {}\r\n", found.tag);
    const char* const type = data ? "application/json" : "text/html; charset=utf-8";
    if (data && found.tag == request.known_tag)
      return c.answer(304, type, found.text, request.stays, false, tag);
    c.answer(200, type, found.text, request.stays, get, tag);
  }

  bool send(Connection& c) {
    for (;;) {
      const bool of_head = c.sent < c.head.size();
      const size_t before = of_head ? c.sent : c.sent - c.head.size();
      const std::string_view from = of_head  ? c.head
                                    : c.body ? std::string_view(*c.body)
                                             : std::string_view();
      if (before >= from.size()) break;
      const ssize_t put = ::send(c.socket.fd, from.data() + before, from.size() - before, MSG_NOSIGNAL);
      if (put < 0) return errno == EAGAIN || errno == EINTR;
      c.sent += static_cast<size_t>(put);
    }
    c.answering = false;
    c.body = nullptr;
    c.leaving = !c.stays;
    c.deadline = Clock::now() + (c.leaving ? kToLeave : kToAsk);
    // Closing on a client that still sends would take the answer away from it again.
    if (c.leaving) return ::shutdown(c.socket.fd, SHUT_WR) == 0;
    return c.heard.empty() || answer(c);
  }

  FolderPages& pages_;
  Descriptor listening_;
  int port_ = 0;
  std::list<Connection> all_;  // the oldest first
  bool full_ = false;  // no descriptor was left for who knocks: polled, they would wake us at once again
};

}  // namespace

void serve_pages(FolderPages& pages, int port, const std::function<void(int)>& ready) {
  Server server(pages, port);
  ready(server.port());
  server.run();
}

}  // namespace rankscope
