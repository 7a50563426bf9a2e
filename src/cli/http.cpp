#include "cli/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace rankscope {
namespace {

constexpr size_t kMostHeaders = 100;  // a browser sends twenty

// Refused with a status and a sentence; caught by read_http.
struct Refusal {
  int status;
  const char* complaint;
};

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c > ' ' && c < 0x7F &&
           std::string_view("()<>@,;:\\\"/[]?={}").find(static_cast<char>(c)) == std::string_view::npos;
  });
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The text up to `mark`, which both are taken off; all of it where there is none.
std::string_view cut(std::string_view& text, std::string_view mark) {
  const size_t at = text.find(mark);
  const std::string_view first = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + mark.size());
  return first;
}

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    unsigned value = 0;
    const char* const end = text.data() + std::min(text.size(), i + 3);
    const auto [rest, fault] = std::from_chars(text.data() + i + 1, end, value, 16);
    if (fault != std::errc{} || rest != text.data() + i + 3) throw Refusal{400, "this is no address"};
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

void read_first_line(std::string_view line, HttpRequest& request) {
  request.method = cut(line, " ");
  std::string_view target = cut(line, " ");
  if (!is_token(request.method) || (line != "HTTP/1.1" && line != "HTTP/1.0"))
    throw Refusal{400, "this is no request"};
  if (request.method != "GET" && request.method != "HEAD")
    throw Refusal{405, "there is nothing but GET here"};
  const auto control = [](unsigned char c) { return c <= ' ' || c == 0x7F; };
  if (!target.starts_with('/') || std::any_of(target.begin(), target.end(), control))
    throw Refusal{400, "this is no address"};
  request.stays = line == "HTTP/1.1";
  request.path = cut(target, "?");
  while (!target.empty()) {
    std::string_view value = cut(target, "&");
    const std::string name = decoded(cut(value, "="));
    request.query[name] = decoded(value);
  }
}

void read_header(std::string_view name, std::string_view value, HttpRequest& request,
                 std::optional<std::string>& host) {
  if (!is_token(name)) throw Refusal{400, "this is no header"};
  const std::string key = lower(name);
  if (key == "host") {
    if (host) throw Refusal{400, "there are two names of this server"};
    host = value;
  }
  if (key == "if-none-match") request.known_tag = value;
  if (key == "connection" && lower(value).find("close") != std::string::npos) request.stays = false;
  const bool body = key == "transfer-encoding" ||
                    (key == "content-length" && value.find_first_not_of('0') != std::string_view::npos);
  if (body) throw Refusal{400, "nothing can be sent here"};
}

void parse(std::string_view head, HttpRequest& request) {
  read_first_line(cut(head, "\r\n"), request);
  std::optional<std::string> host;
  for (size_t count = 0; !head.empty(); ++count) {
    if (count == kMostHeaders) throw Refusal{431, "there are too many headers"};
    std::string_view value = cut(head, "\r\n");
    const size_t colon = value.find(':');
    if (colon == std::string_view::npos) throw Refusal{400, "this is no header"};
    const std::string_view name = cut(value, ":");
    read_header(name, trimmed(value), request, host);
  }
  request.host = host.value_or("");
}

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

HttpReading read_http(std::string_view bytes) {
  HttpReading out;
  const size_t end = bytes.find("\r\n\r\n");
  out.whole = end != std::string_view::npos || bytes.size() > kLargestHead;
  if (!out.whole) return out;
  try {
    if (end > kLargestHead) throw Refusal{431, "the request is too long"};
    parse(bytes.substr(0, end), out.request);
    out.used = end + 4;
  } catch (const Refusal& refusal) {
    out.status = refusal.status;
    out.complaint = refusal.complaint;
  }
  return out;
}

bool is_loopback(std::string_view host, int port) {
  for (const std::string_view name : {"127.0.0.1", "localhost"})
    if (host == fmt::format("{}:{}", name, port) || (port == 80 && host == name)) return true;
  return false;
}

std::string http_head(int status, std::string_view type, size_t length, bool stays, std::string_view extra) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: {}\r\n"
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\n"
      "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n{}\r\n",
      status, reason(status), type, length, stays ? "keep-alive" : "close", extra);
}

}  // namespace rankscope
