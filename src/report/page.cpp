#include "report/page.h"

#include <cctype>
#include <fstream>

#include "base/error.h"
#include "base/files.h"

namespace rankscope {
namespace {

constexpr std::string_view kData = "RANKSCOPE_DATA";
constexpr std::string_view kNoNetwork = "connect-src 'none'";
constexpr std::string_view kOwnServer = "connect-src 'self'";

size_t place_of(std::string_view page, std::string_view mark) {
  const size_t at = page.find(mark);
  if (at == std::string_view::npos || page.find(mark, at + 1) != std::string_view::npos)
    throw Error("the built page does not hold its mark once").in(std::string(mark)).hint("build web/ again");
  return at;
}

}  // namespace

std::string inert(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = json.substr(i);
    if (json[i] == '<') {
      out += "\\u003c";
    } else if (json[i] == '>') {
      out += "\\u003e";
    } else if (json[i] == '&') {
      out += "\\u0026";
    } else if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) {
      out += json[i + 2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += json[i];
    }
  }
  return out;
}

namespace {

template <class WriteData>
void write_around(bool live, const TextSink& sink, WriteData write_data) {
  const std::string_view page = page_template();
  const size_t data = place_of(page, kData), network = place_of(page, kNoNetwork);
  sink(page.substr(0, network));
  sink(live ? kOwnServer : kNoNetwork);
  const size_t after = network + kNoNetwork.size();
  sink(page.substr(after, data - after));
  write_data([&](std::string_view piece) { sink(inert(piece)); });
  sink(page.substr(data + kData.size()));
}

}  // namespace

void write_page(const PageContent& content, const TextSink& sink) {
  write_around(content.live, sink, [&](const TextSink& to) { write_page_data(content, to); });
}

void write_page_around(std::string_view data, bool live, const TextSink& sink) {
  write_around(live, sink, [&](const TextSink& to) { to(data); });
}

void write_page(const std::filesystem::path& path, const PageContent& content) {
  if (std::error_code ignored; std::filesystem::exists(path, ignored)) {
    std::string start;
    if (std::filesystem::is_regular_file(path, ignored)) {
      std::ifstream file(path, std::ios::binary);
      file >> start;
    }
    for (char& c : start) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (start != "<!doctype")
      throw usage_error("there is something else than a page of that name")
          .in("--out " + path.string())
          .hint("choose another --out");
  }
  FileWriter file(path);
  write_page(content, [&](std::string_view text) { file.write(text); });
  file.commit();
}

}  // namespace rankscope
