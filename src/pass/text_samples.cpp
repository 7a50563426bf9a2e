#include "pass/text_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "pass/answers.h"
#include "text/input.h"

namespace rankscope {
namespace {

constexpr int64_t kEnoughTokens = 32;  // of a sample: the verdict decides nothing on less (few_tokens)
constexpr int64_t kEnoughSamples = 4;  // the same of samples (few_samples)
constexpr size_t kLookedAt = 256;      // samples that decide what kind of text it is
constexpr size_t kBytesPerToken = 32;  // more than any text has on average: bounds what is joined

constexpr size_t kSpareBytes = 1 << 20;  // a text that is longer than it need be by less is read whole

// At most `bytes` of it, whole characters.
std::string beginning(const std::string& text, size_t bytes) {
  while (bytes > 0 && bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80)
    --bytes;
  return text.substr(0, bytes);
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

void append(Sample& to, const Sample& more) {
  to.ids.insert(to.ids.end(), more.ids.begin(), more.ids.end());
  to.types.insert(to.types.end(), more.types.begin(), more.types.end());
  to.special.insert(to.special.end(), more.special.begin(), more.special.end());
}

// Cuts to `limit` tokens but keeps the closing special tokens, as truncation in the tokenizers library does.
Sample truncate(const Encoding& e, int64_t limit) {
  const auto n = static_cast<int64_t>(e.ids.size());
  if (n <= limit) return from(e, 0, e.ids.size());
  int64_t closing = 0;
  while (closing < std::min<int64_t>(limit - 1, 2) && e.special[static_cast<size_t>(n - 1 - closing)])
    ++closing;
  Sample head = from(e, 0, static_cast<size_t>(limit - closing));
  append(head, from(e, static_cast<size_t>(n - closing), static_cast<size_t>(closing)));
  return head;
}

int64_t content_of(const Encoding& e) { return std::count(e.special.begin(), e.special.end(), false); }

class TextReader {
 public:
  TextReader(const ScanRequest& request, int64_t limit, std::vector<Sample>* answers)
      : request_(request),
        answers_(answers),
        limit_(limit),
        tokenizer_(load_tokenizer(files_of(request.model))),
        frame_(tokenizer_->encode("")),
        enough_(
            std::min(kEnoughTokens, std::max<int64_t>(1, limit - static_cast<int64_t>(frame_.ids.size())))) {}

  void read(ScanInput& input) {
    input.tokenizer = tokenizer_files(files_of(request_.model));
    input.mask = mask_token(files_of(request_.model), *tokenizer_);
    for (const std::string& file : request_.texts) {
      Unread unread;
      take(read_text(file, request_.whole, request_.column, &unread), unread, input);
    }
    add_notes(input);
    if (input.samples.empty()) throw Error("the text holds no tokens").in(request_.texts.front());
    input.sample_tokens = spelled(input.samples.front(), tokenizer_.get());
  }

 private:
  enum class Kind { as_they_are, long_ones, prose };

  void take(const std::vector<TextSample>& texts, const Unread& more, ScanInput& input) {
    if (request_.whole) {
      for (const TextSample& text : texts) windows(text.text, input), pairs_ += text.pair.has_value();
      return;
    }
    const Kind kind = kind_of(texts);
    if (kind == Kind::prose) {
      const size_t before = input.samples.size();
      const int64_t unread = input.unread;
      const std::string text = joined(texts);
      windows(text, input);
      const auto taken = static_cast<int64_t>(input.samples.size() - before);
      joined_ += taken;
      size_t all = more.bytes + static_cast<size_t>(more.samples);  // with the ends of their lines
      for (const TextSample& line : texts) all += line.text.size() + 1;
      input.unread += windows_behind(all, text.size(), taken + input.unread - unread);
      return;
    }
    input.unread += more.samples;
    for (size_t i = 0; i < texts.size(); ++i) {
      if (full(input)) {
        input.unread += static_cast<int64_t>(texts.size() - i);
        return;
      }
      one(texts[i], kind == Kind::long_ones, input);
    }
  }

  // Whether a quarter of the lines go on in small letters with what the line before did not end: one prose
  // that was wrapped. Texts all in small letters cannot be told from it.
  static bool wrapped(std::span<const TextSample> lines) {
    size_t open = 0, small = 0;
    bool ended = true;
    for (const TextSample& line : lines) {
      const bool goes_on = !line.text.empty() && line.text.front() >= 'a' && line.text.front() <= 'z';
      small += goes_on;
      open += goes_on && !ended;
      const size_t last = line.text.find_last_not_of(" \t\r");
      ended = last == std::string::npos ||
              std::string_view(".?!:;\"')]}>").find(line.text[last]) != std::string_view::npos;
    }
    return 4 * open >= lines.size() && 10 * small < 9 * lines.size();
  }

  // By the first few: what a text is shows early, and it may have a million lines.
  Kind kind_of(const std::vector<TextSample>& texts) {
    if (request_.lines || texts.empty()) return Kind::as_they_are;
    int64_t all = 0, in_long = 0, count_long = 0;
    const std::span<const TextSample> first(texts.data(), std::min(texts.size(), kLookedAt));
    for (const TextSample& text : first) {
      const int64_t content = content_of(encode(text));
      all += content;
      if (content < enough_) continue;
      in_long += content;
      ++count_long;
    }
    const bool plain = texts.front().line;
    if (!plain)
      return count_long >= kEnoughSamples && 2 * count_long >= static_cast<int64_t>(first.size())
                 ? Kind::long_ones
                 : Kind::as_they_are;
    if (all < enough_) return Kind::as_they_are;  // a line or two to try things with
    return count_long >= kEnoughSamples && 2 * in_long >= all && !wrapped(first) ? Kind::long_ones
                                                                                 : Kind::prose;
  }

  // As much text as all windows together can hold.
  size_t most_bytes() const { return static_cast<size_t>(request_.samples * limit_) * kBytesPerToken; }

  // As many lines as that.
  std::string joined(const std::vector<TextSample>& lines) const {
    std::string out;
    for (const TextSample& line : lines) {
      if (out.size() > most_bytes()) break;
      out += (out.empty() ? "" : "\n") + line.text;
    }
    return out;
  }

  // Windows of what is behind the text that was read: as many a byte as `windows` of that.
  static int64_t windows_behind(size_t all, size_t read, int64_t windows) {
    if (read == 0 || all <= read + 1) return 0;
    return static_cast<int64_t>(static_cast<double>(windows) * static_cast<double>(all - read) /
                                static_cast<double>(read));
  }

  bool full(const ScanInput& input) const {
    return static_cast<int64_t>(input.samples.size()) >= request_.samples;
  }

  // Of a text far longer than a sample its beginning, unless that has too few tokens.
  Encoding encode(const TextSample& text) const {
    const auto encoded = [&](const std::string& first, const std::optional<std::string>& second) {
      return second && answers_ == nullptr ? tokenizer_->encode_pair(first, *second)
                                           : tokenizer_->encode(first);
    };
    const size_t most = static_cast<size_t>(limit_) * kBytesPerToken + kSpareBytes;
    if (text.text.size() > most || (text.pair && text.pair->size() > most)) {
      std::optional<std::string> pair;
      if (text.pair) pair = beginning(*text.pair, most);
      Encoding e = encoded(beginning(text.text, most), pair);
      if (static_cast<int64_t>(e.ids.size()) > limit_) return e;
    }
    return encoded(text.text, text.pair);
  }

  void one(const TextSample& text, bool long_only, ScanInput& input) {
    const Encoding e = encode(text);
    const int64_t content = content_of(e);
    ++seen_;
    if (content == 0 && !(request_.lines && !e.ids.empty())) return void(++empty_);
    if (long_only && content < enough_) return void(++short_);
    cut_ += static_cast<int64_t>(e.ids.size()) > limit_;
    input.samples.push_back(truncate(e, limit_));
    if (answers_ == nullptr) return;
    const Encoding answer = text.pair ? tokenizer_->encode(*text.pair) : e;
    if (answer.ids.empty()) throw Error("the text_pair has no tokens").in(text.place);
    answers_->push_back(from(answer, 0, answer.ids.size()));
  }

  // Windows of content, each closed by the special tokens a single text would get.
  void windows(const std::string& text, ScanInput& input) {
    const size_t most = most_bytes() + kSpareBytes;
    const Encoding body = tokenizer_->encode(text.size() > most ? beginning(text, most) : text, false);
    const size_t before = input.samples.size();
    const int64_t unread = input.unread;
    const size_t opening = opening_specials();
    const size_t room =
        static_cast<size_t>(std::max<int64_t>(1, limit_ - static_cast<int64_t>(frame_.ids.size())));
    for (size_t first = 0; first < body.ids.size(); first += room) {
      const size_t count = std::min(room, body.ids.size() - first);
      // A short rest is no window: its numbers would not be comparable.
      if (first > 0 && count < room) break;
      if (full(input)) {
        ++input.unread;
        continue;
      }
      Sample s = from(frame_, 0, opening);
      append(s, from(body, first, count));
      append(s, from(frame_, opening, frame_.ids.size() - opening));
      if (answers_ != nullptr) answers_->push_back(s);
      input.samples.push_back(std::move(s));
    }
    if (text.size() <= most) return;
    const auto found = static_cast<int64_t>(input.samples.size() - before) + input.unread - unread;
    input.unread += windows_behind(text.size(), most, found);
  }

  // How many special tokens come before the text: those at the front of an encoded one.
  size_t opening_specials() const {
    const Encoding probe = tokenizer_->encode("a");
    size_t n = 0;
    while (n < probe.special.size() && probe.special[n]) ++n;
    return n;
  }

  void add_notes(ScanInput& input) const {
    const auto note = [&](std::string text) { input.notes.push_back(std::move(text)); };
    // As many of those behind would be left out, too.
    if (const int64_t gone = short_ + empty_; gone > 0)
      input.unread = std::llround(static_cast<double>(input.unread) * static_cast<double>(seen_ - gone) /
                                  static_cast<double>(seen_));
    if (pairs_ > 0) note(fmt::format("--whole reads text alone: {} text_pair left out", pairs_));
    if (joined_ > 0)
      note(fmt::format(
          "the lines are those of prose: they were joined into {} of up to {} tokens (--lines takes "
          "each line as a sample)",
          joined_ == 1 ? "one window" : fmt::format("{} windows", joined_), limit_));
    if (short_ > 0)
      note(fmt::format("{} of {} samples have fewer than {} tokens and were left out (--lines keeps them)",
                       short_, seen_, enough_));
    if (empty_ > 0) note(fmt::format("{} of {} samples are empty and were left out", empty_, seen_));
    if (cut_ > 0)
      note(fmt::format("{} of {} samples were cut to {} tokens{}", cut_, input.samples.size(), limit_,
                       made_for(request_, limit_)));
  }

  const ScanRequest& request_;
  std::vector<Sample>* answers_;  // what a decoder reads
  int64_t limit_, cut_ = 0, pairs_ = 0, short_ = 0, empty_ = 0, seen_ = 0, joined_ = 0;
  std::unique_ptr<Tokenizer> tokenizer_;
  Encoding frame_;  // of an empty text: the special tokens alone
  int64_t enough_;
};

}  // namespace

void read_texts(const ScanRequest& request, int64_t limit, ScanInput& input, std::vector<Sample>* answers) {
  TextReader(request, limit, answers).read(input);
}

std::vector<std::string> spelled(const Sample& sample, const Tokenizer* tokenizer) {
  std::vector<std::string> out;
  for (const int64_t id : sample.ids)
    out.push_back(tokenizer != nullptr ? tokenizer->token(id) : fmt::format("#{}", id));
  return out;
}

}  // namespace rankscope
