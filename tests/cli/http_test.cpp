#include "cli/http.h"

#include <gtest/gtest.h>

namespace rankscope {
namespace {

int status_of(const std::string& bytes) {
  const HttpReading reading = read_http(bytes);
  EXPECT_TRUE(reading.whole) << bytes.substr(0, 60);
  EXPECT_EQ(reading.complaint.empty(), reading.status == 0);
  return reading.status;
}

TEST(Http, AGetGivesPathQueryHostAndTag) {
  const std::string bytes =
      "GET /data.json?folder=a%2Fb+c&x=1&folder=last%21 HTTP/1.1\r\nHost: 127.0.0.1:80\r\nIF-NONE-MATCH:  "
      "\"7\" \r\n\r\n";
  const HttpReading reading = read_http(bytes + "GET");
  ASSERT_TRUE(reading.whole);
  EXPECT_EQ(reading.status, 0);
  EXPECT_EQ(reading.used, bytes.size());
  EXPECT_EQ(reading.request.path, "/data.json");
  EXPECT_EQ(reading.request.query.at("folder"), "last!");
  EXPECT_EQ(reading.request.query.at("x"), "1");
  EXPECT_EQ(reading.request.host, "127.0.0.1:80");
  EXPECT_EQ(reading.request.known_tag, "\"7\"");
  EXPECT_TRUE(reading.request.stays);
}

TEST(Http, HalfARequestIsWaitedForUpToALimit) {
  EXPECT_FALSE(read_http("GET / HTTP/1.1\r\nHost: x\r\n").whole);
  EXPECT_FALSE(read_http("").whole);
  EXPECT_EQ(status_of("GET /" + std::string(kLargestHead, 'a')), 431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nX: " + std::string(kLargestHead, 'a') + "\r\n\r\n"), 431);
}

TEST(Http, TheClientSaysWhetherItStays) {
  EXPECT_FALSE(read_http("GET / HTTP/1.0\r\n\r\n").request.stays);
  EXPECT_FALSE(read_http("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n").request.stays);
  EXPECT_TRUE(read_http("GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n").request.stays);
}

TEST(Http, WhatIsNoRequestIsRefused) {
  for (const char* first :
       {"", "nonsense", "GET", "GET /", "GET / HTTP/9.9", "GET  / HTTP/1.1", "GET http://x/ HTTP/1.1",
        "GET x HTTP/1.1", "G(T / HTTP/1.1", "GET /\x01 HTTP/1.1", "GET /?%zz HTTP/1.1", "GET /?%0 HTTP/1.1",
        "GET /?a=%+1 HTTP/1.1"})
    EXPECT_EQ(status_of(std::string(first) + "\r\n\r\n"), 400) << first;
  for (const char* header : {"no colon", ": empty", "a b: c", "Content-Length: 1", "Content-Length: -1",
                             "Transfer-Encoding: chunked", "Host: a\r\nHost: a"})
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + std::string(header) + "\r\n\r\n"), 400) << header;
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\n\r\n"), 405);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 101; ++i) many += "X: y\r\n";
  EXPECT_EQ(status_of(many + "\r\n"), 431);
}

TEST(Http, HostMustBeThisMachineAndItsPortWhich80NeedNotName) {
  for (const std::string name : {"127.0.0.1", "localhost"}) {
    EXPECT_TRUE(is_loopback(name + ":8080", 8080));
    EXPECT_TRUE(is_loopback(name + ":80", 80));
    EXPECT_TRUE(is_loopback(name, 80));  // what browsers send
    EXPECT_FALSE(is_loopback(name, 8080));
    EXPECT_FALSE(is_loopback(name + ":80", 8080));
  }
  for (const char* other :
       {"", ":80", "evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost:"})
    EXPECT_FALSE(is_loopback(other, 80)) << other;
}

// Ranges are not known here, and a server need not know them: the whole page is the answer.
TEST(Http, RangesAreNoReasonToSayMore) {
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=0-,0-,0-\r\n\r\n"), 0);
}

TEST(Http, AnAnswerSaysHowLongItIs) {
  const std::string head = http_head(404, "text/plain", 7, false, "ETag: x\r\n");
  EXPECT_TRUE(
      head.starts_with("HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 7\r\n"));
  EXPECT_TRUE(head.ends_with("ETag: x\r\n\r\n"));
}

}  // namespace
}  // namespace rankscope
