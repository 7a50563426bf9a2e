#include "pass/input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "checkpoint/checkpoint.h"
#include "text/input.h"
#include "text/tokenizer.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRandom = int64_t{1} << 30;  // a slip of the keyboard should not fill the memory

enum Stream : uint32_t { kRandomTokens = 1, kShuffle = 2 };

int64_t longest_allowed(const ScanRequest& request, const ModelSpec& spec) {
  const EmbeddingSpec& e = spec.embedding;
  return e.positions > 0 && e.vocabulary > 0 ? std::min(request.max_length, e.positions - e.position_offset)
                                             : request.max_length;
}

Sample from(const Encoding& e, size_t first, size_t count) {
  Sample s;
  const auto part = [&](const auto& v) {
    return std::vector(v.begin() + static_cast<std::ptrdiff_t>(first),
                       v.begin() + static_cast<std::ptrdiff_t>(first + count));
  };
  s.ids = part(e.ids);
  s.types = part(e.types);
  for (size_t i = first; i < first + count; ++i) s.special.push_back(e.special[i]);
  return s;
}

// Cuts to `limit` tokens but keeps the closing special tokens, as truncation in the tokenizers library does.
Sample truncate(const Encoding& e, int64_t limit) {
  const auto n = static_cast<int64_t>(e.ids.size());
  if (n <= limit) return from(e, 0, e.ids.size());
  int64_t closing = 0;
  while (closing < std::min<int64_t>(limit - 1, 2) && e.special[static_cast<size_t>(n - 1 - closing)])
    ++closing;
  Sample head = from(e, 0, static_cast<size_t>(limit - closing));
  const Sample tail = from(e, static_cast<size_t>(n - closing), static_cast<size_t>(closing));
  head.ids.insert(head.ids.end(), tail.ids.begin(), tail.ids.end());
  head.types.insert(head.types.end(), tail.types.begin(), tail.types.end());
  head.special.insert(head.special.end(), tail.special.begin(), tail.special.end());
  return head;
}

// The first sample, token by token; without a vocabulary the ids have to do.
std::vector<std::string> spelled(const Sample& sample, const Tokenizer* tokenizer) {
  std::vector<std::string> out;
  for (const int64_t id : sample.ids)
    out.push_back(tokenizer != nullptr ? tokenizer->token(id) : fmt::format("#{}", id));
  return out;
}

class TextReader {
 public:
  TextReader(const ScanRequest& request, int64_t limit)
      : request_(request), limit_(limit), tokenizer_(load_tokenizer(files_of(request.model))) {}

  void read(ScanInput& input) {
    input.tokenizer = tokenizer_files(files_of(request_.model));
    for (const std::string& file : request_.texts) {
      for (const TextSample& text : read_text(file, request_.whole)) {
        if (full(input)) break;
        request_.whole ? windows(text, input) : one(text, input);
      }
    }
    if (pairs_ > 0)
      input.notes.push_back(fmt::format("--whole reads text alone: {} text_pair left out", pairs_));
    if (cut_ > 0)
      input.notes.push_back(
          fmt::format("{} of {} samples were cut to {} tokens", cut_, input.samples.size(), limit_));
    if (input.samples.empty()) throw Error("the text holds no tokens").in(request_.texts.front());
    input.shown = spelled(input.samples.front(), tokenizer_.get());
  }

 private:
  bool full(const ScanInput& input) const {
    return static_cast<int64_t>(input.samples.size()) >= request_.samples;
  }

  void one(const TextSample& text, ScanInput& input) {
    const Encoding e =
        text.pair ? tokenizer_->encode_pair(text.text, *text.pair) : tokenizer_->encode(text.text);
    if (e.ids.empty()) throw Error("the text has no tokens").in(text.place);
    cut_ += static_cast<int64_t>(e.ids.size()) > limit_;
    input.samples.push_back(truncate(e, limit_));
  }

  // Windows of content, each closed by the special tokens a single text would get.
  void windows(const TextSample& text, ScanInput& input) {
    pairs_ += text.pair.has_value();
    const Encoding frame = tokenizer_->encode("");
    const Encoding body = tokenizer_->encode(text.text, false);
    const size_t opening = opening_specials();
    const size_t room =
        static_cast<size_t>(std::max<int64_t>(1, limit_ - static_cast<int64_t>(frame.ids.size())));
    for (size_t first = 0; first < body.ids.size() && !full(input); first += room) {
      const size_t count = std::min(room, body.ids.size() - first);
      // A short rest is no window: its numbers would not be comparable.
      if (first > 0 && count < room) break;
      Sample s = from(frame, 0, opening);
      const Sample content = from(body, first, count);
      const Sample close = from(frame, opening, frame.ids.size() - opening);
      for (const Sample* part : {&content, &close}) {
        s.ids.insert(s.ids.end(), part->ids.begin(), part->ids.end());
        s.types.insert(s.types.end(), part->types.begin(), part->types.end());
        s.special.insert(s.special.end(), part->special.begin(), part->special.end());
      }
      input.samples.push_back(std::move(s));
    }
  }

  // How many special tokens come before the text: those at the front of an encoded one.
  size_t opening_specials() const {
    const Encoding probe = tokenizer_->encode("a");
    size_t n = 0;
    while (n < probe.special.size() && probe.special[n]) ++n;
    return n;
  }

  const ScanRequest& request_;
  int64_t limit_, cut_ = 0, pairs_ = 0;
  std::unique_ptr<Tokenizer> tokenizer_;
};

void read_ids(const ScanRequest& request, int64_t limit, ScanInput& input) {
  std::unique_ptr<Tokenizer> tokenizer;  // only to know which ids are special, and how they are spelled
  const std::filesystem::path files = files_of(request.model);
  if (!tokenizer_files(files).empty()) tokenizer = load_tokenizer(files);
  int64_t cut = 0;
  for (std::vector<int64_t>& ids : read_token_ids(request.token_ids->string())) {
    if (static_cast<int64_t>(input.samples.size()) >= request.samples) break;
    if (static_cast<int64_t>(ids.size()) > limit) {
      ids.resize(static_cast<size_t>(limit));
      ++cut;
    }
    Sample s;
    for (const int64_t id : ids) s.special.push_back(tokenizer && tokenizer->is_special(id));
    s.ids = std::move(ids);
    input.samples.push_back(std::move(s));
  }
  if (cut > 0) input.notes.push_back(fmt::format("{} samples were cut to {} tokens", cut, limit));
  if (input.samples.empty()) throw Error("the file holds no token ids").in(request.token_ids->string());
  input.shown = spelled(input.samples.front(), tokenizer.get());
}

// Zipf's law: the token of rank r with probability 1 / (r H). Texts repeat their words; uniform tokens hardly
// ever do.
class ZipfTokens {
 public:
  explicit ZipfTokens(int64_t vocabulary) {
    for (int64_t r = 1; r <= vocabulary; ++r)
      cumulative_.push_back((cumulative_.empty() ? 0 : cumulative_.back()) + 1.0 / static_cast<double>(r));
  }
  int64_t at(double uniform) const {
    return std::lower_bound(cumulative_.begin(), cumulative_.end() - 1, uniform * cumulative_.back()) -
           cumulative_.begin();
  }

 private:
  std::vector<double> cumulative_;
};

void random_ids(const ScanRequest& request, const ModelSpec& spec, int64_t limit, ScanInput& input) {
  const Philox random{request.seed, kRandomTokens, 0};
  const EmbeddingSpec& e = spec.embedding;
  const int64_t each = e.vocabulary > 0 ? limit : e.channels * e.image_size * e.image_size;
  if (request.samples > kMostRandom / each)
    throw usage_error(fmt::format("{} samples of {} random numbers are more than the {} allowed",
                                  request.samples, each, kMostRandom))
        .hint("a smaller --samples or --max-length");
  const ZipfTokens zipf(request.zipf ? e.vocabulary : 0);
  uint64_t index = 0;
  for (int64_t i = 0; i < request.samples; ++i) {
    Sample s;
    if (e.vocabulary > 0 && request.zipf) {
      for (int64_t t = 0; t < each; ++t) s.ids.push_back(zipf.at(random.uniform(index++)));
    } else if (e.vocabulary > 0) {
      for (int64_t t = 0; t < each; ++t)
        s.ids.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(e.vocabulary), index++)));
    } else {
      for (int64_t t = 0; t < each; ++t) s.pixels.push_back(static_cast<float>(random.normal(index++)));
    }
    input.samples.push_back(std::move(s));
  }
  input.shown = spelled(input.samples.front(), nullptr);
}

}  // namespace

ScanInput read_input(const ScanRequest& request, const ModelSpec& spec) {
  if (!spec.sources.empty())
    throw Error(
        fmt::format(
            "this network has a stream \"{}\" beside the one that ends in the output, and scans follow one",
            spec.sources.front().name))
        .in(request.model.string())
        .hint(fmt::format("{}, its encoder alone", (request.model / "encoder").string()));
  const int ways = (request.texts.empty() ? 0 : 1) + (request.token_ids ? 1 : 0) +
                   (request.random_tokens ? 1 : 0) + (request.pixels ? 1 : 0);
  if (ways > 1) throw usage_error("--text, --token-ids, --pixels and --random-tokens exclude each other");
  if (ways == 0)
    throw usage_error("there is no input")
        .hint("--text FILE, --token-ids FILE, --pixels FILE or --random-tokens");
  if (request.zipf && (!request.random_tokens || spec.embedding.vocabulary == 0))
    throw usage_error("--zipf says how random tokens are drawn")
        .hint(spec.embedding.vocabulary == 0 ? "this model reads images" : "--random-tokens --zipf");
  if (request.samples < 1) throw usage_error("--samples should be at least 1");
  if (request.max_length < 1) throw usage_error("--max-length should be at least 1");
  const bool images = spec.embedding.vocabulary == 0;
  if (images && !request.pixels && !request.random_tokens)
    throw usage_error("this model reads images, not tokens")
        .hint("--pixels FILE.safetensors or --random-tokens");
  if (!images && request.pixels) throw usage_error("this model reads tokens, not images").hint("--text FILE");

  const int64_t limit = longest_allowed(request, spec);
  ScanInput input;
  if (!request.texts.empty()) TextReader(request, limit).read(input);
  if (request.token_ids) read_ids(request, limit, input);
  if (request.pixels) input.samples = read_pixels(*request.pixels, request.samples);
  if (request.random_tokens) random_ids(request, spec, limit, input);

  const bool reached = std::any_of(input.samples.begin(), input.samples.end(), [&](const Sample& s) {
    return static_cast<int64_t>(s.ids.size()) == limit;
  });
  if (limit < request.max_length && reached)
    input.notes.push_back(fmt::format("--max-length {} is more than the model's {} positions: {} is used",
                                      request.max_length, limit, limit));

  std::string what = request.zipf            ? "random tokens, as often as words in a text"
                     : request.random_tokens ? "random tokens"
                     : request.token_ids     ? "token ids " + request.token_ids->string()
                     : request.pixels        ? "pixels " + request.pixels->string()
                                             : fmt::format("text {}", fmt::join(request.texts, ", "));
  input.description = fmt::format("{}, {} samples", what, input.samples.size());
  return input;
}

std::vector<Sample> shuffled(std::vector<Sample> samples, uint64_t seed) {
  for (size_t k = 0; k < samples.size(); ++k) {
    Sample& s = samples[k];
    const Philox random{seed, kShuffle, static_cast<uint32_t>(k)};
    std::vector<size_t> free;  // places whose token may move
    for (size_t i = 0; i < s.ids.size(); ++i)
      if (s.special.empty() || s.special[i] == 0) free.push_back(i);
    for (size_t i = free.size(); i > 1; --i)  // Fisher-Yates
      std::swap(s.ids[free[i - 1]], s.ids[free[random.below(i, i)]]);
  }
  return samples;
}

}  // namespace rankscope
