#include "pass/input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/philox.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/language_model.h"
#include "model/streams.h"
#include "pass/answers.h"
#include "pass/text_samples.h"
#include "text/input.h"
#include "text/tokenizer.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRandom = int64_t{1} << 30;  // a slip of the keyboard should not fill the memory

enum Stream : uint32_t { kRandomTokens = 1, kShuffle = 2 };

Json config_of(const fs::path& model) {
  const fs::path file = files_of(model) / "config.json";
  std::error_code ignored;
  return model.empty() || !fs::exists(file, ignored) ? Json() : read_json(file, 64 << 20);
}

// What the config promises of models whose positions need no table, as rotary ones; 0: nothing. Where
// positions are stretched as texts grow (rope_type "dynamic"), the number is where that begins, and no end.
int64_t promised_length(const fs::path& model) {
  const Json config = language_config(config_of(model)).config;
  if (!config.is_object()) return 0;
  for (const char* key : {"rope_scaling", "rope_parameters"})
    for (const char* type : {"rope_type", "type"})
      if (const Json::json_pointer at = Json::json_pointer("/" + std::string(key) + "/" + type);
          config.contains(at) && config.at(at) == "dynamic")
        return 0;
  const auto length = config.find("max_position_embeddings");
  return length != config.end() && length->is_number_integer() ? std::max<int64_t>(length->get<int64_t>(), 0)
                                                               : 0;
}

int64_t longest_allowed(const ScanRequest& request, const ModelSpec& spec) {
  const EmbeddingSpec& e = spec.embedding;
  if (e.vocabulary == 0) return request.max_length;
  const int64_t most = e.positions > 0 ? e.positions - e.position_offset : promised_length(request.model);
  return most > 0 ? std::min(request.max_length, most) : request.max_length;
}

// Rows that were filled up to one length: a scan needs none of that, and would read it as text.
void note_padding(const Json& config, ScanInput& input) {
  const auto id_of = [&](const char* key) -> int64_t {
    const auto at = config.find(key);
    return at != config.end() && at->is_number_integer() ? at->get<int64_t>() : -1;
  };
  if (!config.is_object()) return;
  const int64_t padding = id_of("pad_token_id");
  const int64_t own_end = padding == id_of("eos_token_id") ? 1 : 0;  // one of them may end the text itself
  int64_t samples = 0, tokens = 0;
  for (const Sample& s : input.samples) {
    const auto last = std::find_if(s.ids.rbegin(), s.ids.rend(), [&](int64_t id) { return id != padding; });
    const int64_t found = last - s.ids.rbegin() - own_end;
    if (found > 0) ++samples, tokens += found;
  }
  if (padding >= 0 && samples > 0)
    input.notes.push_back(fmt::format(
        "{} of {} samples end in the config's padding token {}, {} in all, and it is read like any "
        "other: leave it out, samples may differ in length",
        samples, input.samples.size(), padding, tokens));
}

// `given`, where given, takes what the file says of the decoder; empty where it says nothing.
void read_ids(const ScanRequest& request, int64_t limit, ScanInput& input,
              std::vector<Sample>* given = nullptr) {
  std::unique_ptr<Tokenizer> tokenizer;  // only to know which ids are special, and how they are spelled
  const std::filesystem::path files = files_of(request.model);
  if (!tokenizer_files(files).empty()) tokenizer = load_tokenizer(files);
  if (tokenizer) input.mask = mask_token(files, *tokenizer);
  int64_t cut = 0, masked = 0;
  const auto sample = [&](std::vector<int64_t> ids, std::vector<int64_t> types = {}) {
    Sample s;
    for (const int64_t id : ids) s.special.push_back(tokenizer && tokenizer->is_special(id));
    s.ids = std::move(ids);
    s.types = std::move(types);
    return s;
  };
  Unread unread;
  for (TokenIds& line : read_token_ids(request.token_ids->string(), &unread)) {
    if (static_cast<int64_t>(input.samples.size()) >= request.samples) {
      ++input.unread;
      continue;
    }
    if (static_cast<int64_t>(line.ids.size()) > limit) {
      const bool ends = tokenizer && tokenizer->is_special(line.ids.back());  // stays there, as of a text
      for (std::vector<int64_t>* list : {&line.ids, &line.types}) {
        if (list->empty()) continue;
        const int64_t last = list->back();
        list->resize(static_cast<size_t>(limit));
        if (ends) list->back() = last;
      }
      ++cut;
    }
    masked += line.masked;
    input.samples.push_back(sample(std::move(line.ids), std::move(line.types)));
    if (given != nullptr)
      given->push_back(sample(std::move(line.decoder)));
    else if (!line.decoder.empty())
      throw Error("this model has no decoder beside what reads the ids, and the file has decoder_input_ids")
          .in(request.token_ids->string());
  }
  input.unread += unread.samples;
  if (masked > 0)
    input.notes.push_back(fmt::format(
        "{} tokens whose attention_mask is 0 were left out, and positions are counted without them", masked));
  if (cut > 0)
    input.notes.push_back(fmt::format("{} of {} samples were cut to {} tokens{}", cut, input.samples.size(),
                                      limit, made_for(request, limit)));
  note_padding(config_of(request.model), input);
  if (input.samples.empty()) throw Error("the file holds no token ids").in(request.token_ids->string());
  input.sample_tokens = spelled(input.samples.front(), tokenizer.get());
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
  input.sample_tokens = spelled(input.samples.front(), nullptr);
}

// What goes in at the front is read, and a sample too long for the decoder is cut to what it has positions
// for.
class StreamReader {
 public:
  StreamReader(const ScanRequest& request, const ModelSpec& spec)
      : request_(request), spec_(spec), limit_(longest_allowed(request, spec)) {}

  // `input` holds what the encoder reads; it becomes what both read.
  void add_decoder(ScanInput& input, const std::vector<Sample>& texts, const std::vector<Sample>& given) {
    input.encoder = std::move(input.samples);
    const std::vector<Sample>& from = texts.empty() ? input.encoder : texts;
    input.encoder_tokens = input.sample_tokens;
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
  if (request.texts.empty() && (request.lines || request.whole || !request.column.empty()))
    throw usage_error("--lines, --whole and --column say how texts are read").hint("--text FILE");
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
  if (request.features && !streams && words)
    throw usage_error("this encoder reads sounds alone: there is no decoder to read a text")
        .hint("--features FILE without --text or --token-ids");
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

void note_unread(const ScanRequest& request, ScanInput& input) {
  if (input.unread == 0) return;
  const size_t count = input.samples.size();
  const int64_t there = static_cast<int64_t>(count) + input.unread;
  input.notes.push_back(fmt::format("{} of {}{} samples were read: --samples {} reads more", count,
                                    request.token_ids ? "" : "about ", there, there));
}

// Errors are those of samples that are drawn one by one.
void note_repeated(ScanInput& input) {
  if (!input.encoder.empty())
    return;  // what a decoder is given may be the same for all that is heard or read
  std::set<std::vector<int64_t>> seen;
  size_t repeated = 0;
  for (const Sample& s : input.samples)
    if (!s.ids.empty() && s.pixels.empty()) repeated += !seen.insert(s.ids).second;
  if (repeated > 0)
    input.notes.push_back(fmt::format("{} of {} samples repeat an earlier one: {}", repeated,
                                      input.samples.size(), kRepeatsCount));
}

// Tokens that are the same word are alike, but for their positions, whatever the network does.
void note_constant(const std::vector<Sample>& samples, std::string_view whose,
                   std::vector<std::string>& notes) {
  size_t constant = 0;
  for (const Sample& s : samples) {
    std::set<int64_t> words;
    size_t count = 0;
    for (size_t i = 0; i < s.ids.size(); ++i)
      if (i >= s.special.size() || s.special[i] == 0) words.insert(s.ids[i]), ++count;
    constant += count > 1 && words.size() == 1 && s.pixels.empty();
  }
  if (constant == 0) return;
  notes.push_back(constant == samples.size()
                      ? fmt::format("every sample{} is one token repeated: positions alone can tell its "
                                    "tokens apart",
                                    whose)
                      : fmt::format("{} of {} samples{} {} one token repeated: residuals of all are "
                                    "geometric means, which these pull down",
                                    constant, samples.size(), whose, constant == 1 ? "is" : "are"));
}

}  // namespace

std::string made_for(const ScanRequest& request, int64_t limit) {
  return limit < request.max_length ? ", the most that this model is made for" : "";
}

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
  if (!request.texts.empty()) read_texts(request, limit, input, streams ? &texts : nullptr);
  if (request.token_ids) read_ids(request, limit, input, streams ? &given : nullptr);
  if (request.pixels) input.samples = read_pixels(*request.pixels, request.samples);
  if (request.random_tokens && (!sounds || streams)) random_ids(request, sounds ? spec : first, limit, input);
  if (!heard.empty() && streams && heard.size() != input.samples.size())
    throw usage_error(
        fmt::format("there are {} sounds and {} samples for the decoder", heard.size(), input.samples.size()))
        .hint("one for each");
  if (!heard.empty() && !streams) input.samples = std::move(heard);

  if (request.random_tokens && limit < request.max_length && request.max_length != ScanRequest().max_length)
    input.notes.push_back(
        fmt::format("--max-length {} is more than the {} tokens this model is made for: {} is used",
                    request.max_length, limit, limit));
  if (streams) StreamReader(request, spec).add_decoder(input, texts, given);
  if (streams && sounds) {
    input.encoder = std::move(heard);
    input.encoder_tokens.clear();
  }
  if (streams && !request.texts.empty())
    input.sample_tokens = spelled(input.samples.front(), load_tokenizer(files_of(request.model)).get());
  else if (streams)
    input.sample_tokens = spelled(input.samples.front(), nullptr);
  input.description = described(request, input.samples.size());
  note_unread(request, input);
  note_repeated(input);
  note_constant(input.encoder, " of the encoder", input.notes);
  note_constant(input.samples, input.encoder.empty() ? "" : " of the decoder", input.notes);
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
