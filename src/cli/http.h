// As much of HTTP/1.1 as one page needs: requests without a body, read from whatever bytes a client sends.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace rankscope {

constexpr size_t kLargestHead = 16 << 10;  // bytes of request line and headers; a browser sends a tenth

struct HttpRequest {
  std::string method;                        // GET or HEAD
  std::string path;                          // as it was sent, up to the question mark
  std::map<std::string, std::string> query;  // decoded; the last of a name counts
  std::string host, known_tag;               // Host, If-None-Match
  bool stays = true;                         // the client may ask more on this connection
};

/// What the bytes that came so far are.
struct HttpReading {
  bool whole = false;     // false: more must come
  int status = 0;         // 0: `request` is one; otherwise why it is refused, and `request` what was read
  std::string complaint;  // in words, where it is refused
  size_t used = 0;        // bytes of the head, where it is a request
  HttpRequest request;
};

/// Never throws. More than kLargestHead bytes without an end are refused.
HttpReading read_http(std::string_view bytes);

/// Whether a client that says so in Host means this machine's `port` by name: it leaves out 80, HTTP's own.
bool is_loopback(std::string_view host, int port);

/// The head of an answer, up to the empty line. `extra` holds whole lines.
std::string http_head(int status, std::string_view type, size_t length, bool stays, std::string_view extra);

}  // namespace rankscope
