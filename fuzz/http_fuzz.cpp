// Any bytes as what a client sends: waited for, refused with a status and a sentence, or a request whose
// words lie in the bytes. More bytes behind a request change nothing.
#include "cli/http.h"
#include "line_mutator.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace rankscope;
  const std::string bytes(fuzz::text_of(data, size));
  fuzz::reading([&] {
    const HttpReading reading = read_http(bytes);
    if (!reading.whole) {
      if (size > kLargestHead) std::abort();
      throw Error("more must come");
    }
    if ((reading.status == 0) != reading.complaint.empty()) std::abort();
    if (reading.status != 0) throw Error(reading.complaint);
    const HttpRequest& request = reading.request;
    if (reading.used > size || (request.method != "GET" && request.method != "HEAD")) std::abort();
    if (!request.path.starts_with('/') || bytes.find(request.path) == std::string::npos) std::abort();
    if (bytes.find(request.host) == std::string::npos) std::abort();
    const HttpReading longer = read_http(bytes + "GET / HTTP/1.1\r\n\r\n");
    if (longer.used != reading.used || longer.request.query != request.query) std::abort();
  });
  return 0;
}
