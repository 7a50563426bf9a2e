#include "pass/input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "checkpoint/checkpoint.h"
#include "model/streams.h"
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
  /// `pairs`, where given, takes text_pair by itself (else the text again): what a decoder reads.
  TextReader(const ScanRequest& request, int64_t limit, std::vector<Sample>* pairs = nullptr)
      : request_(request),
        limit_(limit),
        pairs_(pairs),
        tokenizer_(load_tokenizer(files_of(request.model))) {}

  void read(ScanInput& input) {
    input.tokenizer = tokenizer_files(files_of(request_.model));
    for (const std::string& file : request_.texts) {
      for (const TextSample& text : read_text(file, request_.whole)) {
        if (full(input)) break;
        request_.whole ? windows(text, input) : one(text, input);
      }
    }
    if (left_out_ > 0)
      input.notes.push_back(fmt::format("--whole reads text alone: {} text_pair left out", left_out_));
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
    const Encoding e = text.pair && pairs_ == nullptr ? tokenizer_->encode_pair(text.text, *text.pair)
                                                      : tokenizer_->encode(text.text);
    if (e.ids.empty()) throw Error("the text has no tokens").in(text.place);
    cut_ += static_cast<int64_t>(e.ids.size()) > limit_;
    input.samples.push_back(truncate(e, limit_));
    if (pairs_ == nullptr) return;
    const Encoding other = text.pair ? tokenizer_->encode(*text.pair) : e;
    if (other.ids.empty()) throw Error("the text_pair has no tokens").in(text.place);
    pairs_->push_back(truncate(other, INT64_MAX));
  }

  // Windows of content, each closed by the special tokens a single text would get.
  void windows(const TextSample& text, ScanInput& input) {
    left_out_ += text.pair.has_value();
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
      if (pairs_ != nullptr) pairs_->push_back(s);
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
  int64_t limit_, cut_ = 0, left_out_ = 0;
  std::vector<Sample>* pairs_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

// `given`, where given, takes what the file says of the decoder; empty where it says nothing.
void read_ids(const ScanRequest& request, int64_t limit, ScanInput& input,
              std::vector<Sample>* given = nullptr) {
  std::unique_ptr<Tokenizer> tokenizer;  // only to know which ids are special, and how they are spelled
  const std::filesystem::path files = files_of(request.model);
  if (!tokenizer_files(files).empty()) tokenizer = load_tokenizer(files);
  int64_t cut = 0;
  const auto sample = [&](std::vector<int64_t> ids) {
    Sample s;
    for (const int64_t id : ids) s.special.push_back(tokenizer && tokenizer->is_special(id));
    s.ids = std::move(ids);
    return s;
  };
  for (TokenIds& line : read_token_ids(request.token_ids->string())) {
    if (static_cast<int64_t>(input.samples.size()) >= request.samples) break;
    if (static_cast<int64_t>(line.ids.size()) > limit) {
      line.ids.resize(static_cast<size_t>(limit));
      ++cut;
    }
    input.samples.push_back(sample(std::move(line.ids)));
    if (given != nullptr)
      given->push_back(sample(std::move(line.decoder)));
    else if (!line.decoder.empty())
      throw Error("this model has no decoder beside what reads the ids, and the file has decoder_input_ids")
          .in(request.token_ids->string());
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
  const int64_t each = e.vocabulary > 0 ? limit : e.given_numbers();
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

// What goes in at the front is read, and a sample too long for the decoder is cut to what it has positions
// for.
class StreamReader {
 public:
  StreamReader(const ScanRequest& request, const ModelSpec& spec)
      : request_(request), spec_(spec), limit_(longest_allowed(request, spec)) {}

  // `input` holds what the encoder reads; it becomes what both read.
  void add_decoder(ScanInput& input, const std::vector<Sample>& texts, const std::vector<Sample>& given) {
    const std::vector<Sample>& from = texts.empty() ? input.samples : texts;
    input.encoder = input.samples;
    input.shown_encoder = input.shown;
    input.samples.clear();
    for (size_t i = 0; i < input.encoder.size(); ++i)
      input.samples.push_back(i < given.size() && !given[i].ids.empty() ? cut(given[i])
                                                                        : shifted_right(from.at(i)));
    if (cut_ > 0)
      input.notes.push_back(fmt::format("{} of {} samples were cut to {} tokens for the decoder", cut_,
                                        input.samples.size(), limit_));
  }

 private:
  Sample cut(Sample s) {
    if (static_cast<int64_t>(s.ids.size()) <= limit_) return s;
    ++cut_;
    s.ids.resize(static_cast<size_t>(limit_));
    s.special.resize(std::min(s.special.size(), s.ids.size()));
    return s;
  }

  // As in training: the start token, then all but the last.
  Sample shifted_right(const Sample& s) {
    if (spec_.embedding.start_id < 0)
      throw Error("the config has no decoder_start_token_id, so nobody knows what the decoder reads first")
          .in(request_.model.string())
          .hint("a file of --token-ids with {\"input_ids\": [...], \"decoder_input_ids\": [...]}");
    Sample out;
    out.ids.push_back(spec_.embedding.start_id);
    out.special.push_back(1);
    for (size_t i = 0; i + 1 < s.ids.size(); ++i) {
      out.ids.push_back(s.ids[i]);
      out.special.push_back(s.special.empty() ? uint8_t{0} : s.special[i]);
    }
    return cut(std::move(out));
  }

  const ScanRequest& request_;
  const ModelSpec& spec_;
  int64_t limit_, cut_ = 0;
};

// Which ways of giving an input were taken, and whether this network can read them.
void check_ways(const ScanRequest& request, const ModelSpec& first, bool streams) {
  const EmbeddingSpec& e = first.embedding;
  if (e.points > 0)
    throw Error("this network reads points, which only the study that trained it can draw")
        .in(request.model.string());
  const bool words = !request.texts.empty() || request.token_ids;
  const bool sounds = e.sounds > 0, images = e.vocabulary == 0 && !sounds;
  const int ways = (request.texts.empty() ? 0 : 1) + (request.token_ids ? 1 : 0) +
                   (request.random_tokens ? 1 : 0) + (request.pixels ? 1 : 0);
  if (ways > 1) throw usage_error("--text, --token-ids, --pixels and --random-tokens exclude each other");
  if (ways == 0 && !request.features)
    throw usage_error("there is no input")
        .hint(sounds ? "--features FILE or --random-tokens"
                     : "--text FILE, --token-ids FILE, --pixels FILE or --random-tokens");
  if (request.zipf && (!request.random_tokens || e.vocabulary == 0))
    throw usage_error("--zipf says how random tokens are drawn")
        .hint(e.vocabulary == 0 ? "this model reads images" : "--random-tokens --zipf");
  if (request.samples < 1) throw usage_error("--samples should be at least 1");
  if (request.max_length < 1) throw usage_error("--max-length should be at least 1");
  if (images && !request.pixels && !request.random_tokens)
    throw usage_error("this model reads images, not tokens")
        .hint("--pixels FILE.safetensors or --random-tokens");
  if (!images && request.pixels)
    throw usage_error(sounds ? "this model reads sounds, not images" : "this model reads tokens, not images")
        .hint(sounds ? "--features FILE" : "--text FILE");
  if (request.features && !sounds)
    throw usage_error(images ? "this model reads images, not sounds" : "this model reads tokens, not sounds")
        .hint(images ? "--pixels FILE" : "--text FILE");
  if (sounds && !request.features && !request.random_tokens)
    throw usage_error("this model reads sounds").hint("--features FILE or --random-tokens");
  if (request.features && request.random_tokens)
    throw usage_error("--features and --random-tokens exclude each other");
  if (request.features && streams && !words)
    throw usage_error("the sounds are there, but nothing for the decoder to read")
        .hint("--text FILE or --token-ids FILE, one sample for each sound");
}

std::string described(const ScanRequest& request, size_t samples) {
  std::vector<std::string> what;
  if (request.features) what.push_back("features " + request.features->string());
  if (request.zipf)
    what.emplace_back("random tokens, as often as words in a text");
  else if (request.random_tokens)
    what.emplace_back("random tokens");
  else if (request.token_ids)
    what.push_back("token ids " + request.token_ids->string());
  else if (request.pixels)
    what.push_back("pixels " + request.pixels->string());
  else if (!request.texts.empty())
    what.push_back(fmt::format("text {}", fmt::join(request.texts, ", ")));
  return fmt::format("{}, {} samples", fmt::join(what, " with "), samples);
}

}  // namespace

ScanInput read_input(const ScanRequest& request, const ModelSpec& spec) {
  if (spec.sources.size() > 1)
    throw Error(
        fmt::format("this network has {} streams beside its own, and scans follow one", spec.sources.size()))
        .in(request.model.string());
  const bool streams = !spec.sources.empty();
  const ModelSpec first = streams ? stream_alone(spec.sources.front(), spec) : spec;
  check_ways(request, first, streams);

  const bool sounds = first.embedding.sounds > 0;
  const int64_t limit = longest_allowed(request, sounds && streams ? spec : first);
  ScanInput input;
  std::vector<Sample> texts, given, heard;
  if (request.features) heard = read_features(*request.features, request.samples);
  if (sounds && request.random_tokens) {
    random_ids(request, first, limit, input);
    heard = std::move(input.samples);
    input = {};
  }
  if (!request.texts.empty()) TextReader(request, limit, streams ? &texts : nullptr).read(input);
  if (request.token_ids) read_ids(request, limit, input, streams ? &given : nullptr);
  if (request.pixels) input.samples = read_pixels(*request.pixels, request.samples);
  if (request.random_tokens && (!sounds || streams)) random_ids(request, sounds ? spec : first, limit, input);
  if (!heard.empty() && streams && heard.size() != input.samples.size())
    throw usage_error(
        fmt::format("there are {} sounds and {} samples for the decoder", heard.size(), input.samples.size()))
        .hint("one for each");
  if (!heard.empty() && !streams) input.samples = std::move(heard);

  const bool reached = std::any_of(input.samples.begin(), input.samples.end(), [&](const Sample& s) {
    return static_cast<int64_t>(s.ids.size()) == limit;
  });
  if (limit < request.max_length && reached)
    input.notes.push_back(fmt::format("--max-length {} is more than the model's {} positions: {} is used",
                                      request.max_length, limit, limit));
  if (streams) StreamReader(request, spec).add_decoder(input, texts, given);
  if (streams && sounds) {
    input.encoder = std::move(heard);
    input.shown_encoder.clear();
  }
  if (streams && !request.texts.empty())
    input.shown = spelled(input.samples.front(), load_tokenizer(files_of(request.model)).get());
  else if (streams)
    input.shown = spelled(input.samples.front(), nullptr);
  input.description = described(request, input.samples.size());
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
