#include "report/page_sample.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "report/json.h"

namespace rankscope {
namespace {

// What the page has room for, over all heads together.
constexpr size_t kSpectrumNumbers = 60'000;
constexpr size_t kAttendedPairs = 4'000;

struct Layer {
  const NamedArray* pooled = nullptr;
  const NamedArray* received = nullptr;
  std::map<std::string, const NamedArray*> spectra;
};

// "blocks.3.attn.qk_spectrum" is layer 3, "qk_spectrum"; "encoder.blocks.." and "blocks.3.cross.." are other
// streams.
struct Place {
  std::string stream;
  int layer;
  std::string what;
};

std::optional<Place> place(std::string_view name) {
  constexpr std::string_view kBlocks = "blocks.", kAttention = ".attn.", kCross = ".cross.";
  std::string stream;
  if (const size_t at = name.find("." + std::string(kBlocks)); at != std::string_view::npos) {
    stream = name.substr(0, at);
    name.remove_prefix(at + 1);
  }
  if (!name.starts_with(kBlocks)) return std::nullopt;
  name.remove_prefix(kBlocks.size());
  int layer = 0;
  const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (fault != std::errc{} || layer < 0) return std::nullopt;
  name.remove_prefix(static_cast<size_t>(end - name.data()));
  if (name.starts_with(kCross)) return Place{"cross", layer, std::string(name.substr(kCross.size()))};
  if (!name.starts_with(kAttention)) return std::nullopt;
  return Place{stream, layer, std::string(name.substr(kAttention.size()))};
}

bool is_matrix_of(const NamedArray& a, size_t dimensions) {
  int64_t size = 1;
  for (const int64_t n : a.shape) {
    if (n < 1 || size > (int64_t{1} << 40) / n) return false;
    size *= n;
  }
  return a.shape.size() == dimensions && size == static_cast<int64_t>(a.values.size());
}

using Layers = std::map<int, Layer>;

// The layers of every stream, by its name; those of the stream that ends in the output under "".
std::map<std::string, Layers> sorted(std::span<const NamedArray> arrays) {
  const std::map<std::string, std::string> spectra{
      {"hook_pattern.spectrum", "pattern"}, {"qk_spectrum", "qk"}, {"ov_spectrum", "ov"}};
  std::map<std::string, Layers> streams;
  for (const NamedArray& a : arrays) {
    const auto at = place(a.name);
    if (!at) continue;
    const auto& [stream, number, what] = *at;
    Layers& layers = streams[stream];
    if (what == "hook_pattern.pooled" && is_matrix_of(a, 3) &&
        (a.shape[1] == a.shape[2] || stream == "cross"))
      layers[number].pooled = &a;
    if (what == "hook_pattern.received" && is_matrix_of(a, 2)) layers[number].received = &a;
    if (const auto kind = spectra.find(what); kind != spectra.end() && is_matrix_of(a, 2))
      layers[number].spectra[kind->second] = &a;
  }
  for (auto& [stream, layers] : streams)
    std::erase_if(layers, [](const auto& entry) { return entry.second.pooled == nullptr; });
  std::erase_if(streams, [](const auto& entry) { return entry.second.empty(); });
  return streams;
}

std::span<const float> row(const NamedArray& a, size_t i) {
  const size_t size = a.values.size() / static_cast<size_t>(a.shape[0]);
  return std::span(a.values).subspan(i * size, size);
}

std::string number(double x) { return std::isfinite(x) ? fmt::format("{:.6g}", x) : "null"; }

// A byte b stands for (b / 255)^2 * peak: small weights stay visible.
void write_maps(const NamedArray& pooled, const TextSink& sink) {
  std::vector<unsigned char> bytes;
  std::vector<std::string> peaks;
  bytes.reserve(pooled.values.size());
  for (size_t h = 0; h < static_cast<size_t>(pooled.shape[0]); ++h) {
    const auto map = row(pooled, h);
    float peak = 0;
    for (const float v : map)
      if (std::isfinite(v)) peak = std::max(peak, v);
    for (const float v : map)
      bytes.push_back(static_cast<unsigned char>(std::lround(
          peak > 0 && v > 0 && std::isfinite(v) ? 255 * std::sqrt(std::min(v / peak, 1.0f)) : 0.0f)));
    peaks.push_back(number(peak));
  }
  if (pooled.shape[1] != pooled.shape[2]) sink(fmt::format("\"rows\":{},", pooled.shape[1]));
  sink(fmt::format("\"side\":{},\"maps\":\"{}\",\"peaks\":[{}],", pooled.shape[2], base64(bytes),
                   fmt::join(peaks, ",")));
}

// No query looks ahead: nothing stands above the diagonal of the pooled map.
bool looks_back(std::span<const float> map, size_t side) {
  for (size_t i = 0; i < side; ++i)
    for (size_t j = i + 1; j < side; ++j)
      if (map[i * side + j] > 0) return false;
  return side > 1;
}

// The keys that receive most. Of a causal head only those that a quarter of the queries see: the last key is
// seen by one, and gets all of its attention without being anything special.
std::string strongest(std::span<const float> received, size_t most, bool causal) {
  std::vector<size_t> order(causal ? received.size() - received.size() / 4 : received.size());
  std::iota(order.begin(), order.end(), size_t{0});
  most = std::min(most, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end(),
      [&](size_t a, size_t b) { return received[a] != received[b] ? received[a] > received[b] : a < b; });
  std::vector<std::string> pairs;
  for (size_t i = 0; i < most; ++i)
    pairs.push_back(fmt::format("[{},{}]", order[i], number(received[order[i]])));
  return fmt::format("[{}]", fmt::join(pairs, ","));
}

// All indices of a short spectrum, logarithmically spaced ones of a long one; the last is always among them.
std::vector<size_t> indices(size_t size, size_t most) {
  std::vector<size_t> out;
  for (size_t i = 0; i < std::min(size, most); ++i) {
    const double share = most > 1 ? static_cast<double>(i) / static_cast<double>(most - 1) : 0.0;
    const size_t at =
        size <= most ? i : static_cast<size_t>(std::lround(std::pow(static_cast<double>(size), share))) - 1;
    out.push_back(std::max(at, out.empty() ? size_t{0} : out.back() + 1));
  }
  while (!out.empty() && out.back() >= size) out.pop_back();
  if (!out.empty()) out.back() = size - 1;
  return out;
}

std::string spectrum_of(const NamedArray& a, size_t most) {
  const std::vector<size_t> at = indices(static_cast<size_t>(a.shape[1]), most);
  std::vector<size_t> from_one;
  for (const size_t i : at) from_one.push_back(i + 1);
  std::vector<std::string> heads;
  for (size_t h = 0; h < static_cast<size_t>(a.shape[0]); ++h) {
    std::vector<std::string> values;
    for (const size_t i : at) values.push_back(number(row(a, h)[i]));
    heads.push_back(fmt::format("[{}]", fmt::join(values, ",")));
  }
  return fmt::format("{{\"at\":[{}],\"values\":[{}]}}", fmt::join(from_one, ","), fmt::join(heads, ","));
}

}  // namespace

std::string base64(std::span<const unsigned char> bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t have = std::min<size_t>(3, bytes.size() - i);
    uint32_t word = 0;
    for (size_t k = 0; k < 3; ++k) word = (word << 8) | (k < have ? bytes[i + k] : 0u);
    for (size_t k = 0; k < 4; ++k) out += k <= have ? kLetters[(word >> (18 - 6 * k)) & 63] : '=';
  }
  return out;
}

void write_token_map(std::span<const NamedArray> arrays, const TextSink& sink) {
  std::map<std::string, const NamedArray*> maps;
  for (const NamedArray& a : arrays)
    for (const char* kind : {"in", "in_out"})
      if (a.name == fmt::format("operator.map.{}", kind) && is_matrix_of(a, 2) && a.shape[0] == a.shape[1])
        maps[kind] = &a;
  if (maps.size() < 2 || maps["in"]->shape != maps["in_out"]->shape) return sink("null");
  sink(fmt::format("{{\"side\":{}", maps["in"]->shape[0]));
  for (const auto& [kind, array] : maps) {
    std::vector<std::string> values;
    for (const float v : array->values) values.push_back(number(v));
    sink(fmt::format(",\"{}\":[{}]", kind, fmt::join(values, ",")));
  }
  sink("}");
}

namespace {

// The manifest is not trusted: texts, or nothing.
std::string tokens_in(const Json& entry, const char* key) {
  std::vector<std::string> tokens;
  if (entry.is_object() && entry.contains(key) && entry[key].is_array())
    for (const Json& token : entry[key])
      tokens.push_back(token.is_string() ? json_string(token.get<std::string>()) : "\"\"");
  return fmt::format("[{}]", fmt::join(tokens, ","));
}

size_t length_of(const Layers& layers) {
  size_t length = 0;
  for (const auto& [number, layer] : layers) {
    const NamedArray& longest = layer.received != nullptr ? *layer.received : *layer.pooled;
    length = std::max(length, static_cast<size_t>(longest.shape.back()));
  }
  return length;
}

// `heads` of all streams share what the page has room for.
void write_layers(const Layers& layers, size_t heads, const TextSink& sink) {
  const size_t values = std::clamp<size_t>(kSpectrumNumbers / (3 * heads), 8, 64);
  const size_t pairs = std::clamp<size_t>(kAttendedPairs / heads, 5, 12);
  const char* before = "";
  for (const auto& [number, layer] : layers) {
    sink(fmt::format("{}{{\"layer\":{},\"heads\":{},", before, number, layer.pooled->shape[0]));
    before = ",\n";
    write_maps(*layer.pooled, sink);
    std::vector<std::string> received, spectra;
    if (layer.received != nullptr)
      for (size_t h = 0; h < static_cast<size_t>(layer.received->shape[0]); ++h)
        received.push_back(
            strongest(row(*layer.received, h), pairs,
                      looks_back(row(*layer.pooled, h), static_cast<size_t>(layer.pooled->shape[1]))));
    for (const auto& [kind, array] : layer.spectra)
      spectra.push_back(fmt::format("\"{}\":{}", kind, spectrum_of(*array, values)));
    sink(fmt::format("\"received\":[{}],\"spectra\":{{{}}}}}", fmt::join(received, ","),
                     fmt::join(spectra, ",")));
  }
}

}  // namespace

void write_page_sample(std::span<const NamedArray> arrays, const Json& entry, const TextSink& sink) {
  const std::map<std::string, Layers> streams = sorted(arrays);
  if (streams.empty()) return sink("null");
  size_t heads = 0;
  for (const auto& [name, layers] : streams)
    for (const auto& [number, layer] : layers) heads += static_cast<size_t>(layer.pooled->shape[0]);
  int64_t sample = 0;
  if (entry.is_object() && entry.contains("sample") && entry["sample"].is_number_integer())
    sample = entry["sample"].get<int64_t>();
  const auto own = streams.find(""), encoder = streams.find("encoder");
  const size_t length = own != streams.end() ? length_of(own->second) : 0,
               keys = encoder != streams.end() ? length_of(encoder->second) : 0;
  const std::string tokens = tokens_in(entry, "tokens"), key_tokens = tokens_in(entry, "encoder");
  const auto write = [&](const std::string& name, const Layers& layers) {
    const bool reads = name == "encoder", cross = name == "cross";
    sink(fmt::format("{{\"sample\":{},\"tokens\":{},\"length\":{},", sample, reads ? key_tokens : tokens,
                     reads ? keys : length));
    if (cross) sink(fmt::format("\"keys\":{{\"tokens\":{},\"length\":{}}},", key_tokens, length_of(layers)));
    sink("\"layers\":[");
    write_layers(layers, heads, sink);
    sink("]");
  };
  write("", own != streams.end() ? own->second : Layers());
  if (streams.size() > 1 || own == streams.end()) {
    sink(",\n\"streams\":{");
    const char* before = "";
    for (const auto& [name, layers] : streams) {
      if (name.empty()) continue;
      sink(fmt::format("{}{}:", before, json_string(name)));
      write(name, layers);
      sink("}");
      before = ",\n";
    }
    sink("}");
  }
  sink("}");
}

}  // namespace rankscope
