#include "pass/input.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/philox.h"
#include "checkpoint/checkpoint.h"
#include "pass/answers.h"
#include "pass/text_samples.h"
#include "text/input.h"
#include "text/tokenizer.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostRandom = int64_t{1} << 30;  // a slip of the keyboard should not fill the memory

enum Stream : uint32_t { kRandomTokens = 1, kShuffle = 2 };

// What the config promises of models whose positions need no table, as rotary ones; 0: nothing. Where
// positions are stretched as texts grow (rope_type "dynamic"), the number is where that begins, and no end.
int64_t promised_length(const fs::path& model) {
  const fs::path file = files_of(model) / "config.json";
  std::error_code ignored;
  if (model.empty() || !fs::exists(file, ignored)) return 0;
  const Json config = read_json(file, 64 << 20);
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

void read_ids(const ScanRequest& request, int64_t limit, ScanInput& input) {
  std::unique_ptr<Tokenizer> tokenizer;  // only to know which ids are special, and how they are spelled
  const std::filesystem::path files = files_of(request.model);
  if (!tokenizer_files(files).empty()) tokenizer = load_tokenizer(files);
  if (tokenizer) input.mask = mask_token(files, *tokenizer);
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
  if (!request.texts.empty()) read_texts(request, limit, input);
  if (request.token_ids) read_ids(request, limit, input);
  if (request.pixels) input.samples = read_pixels(*request.pixels, request.samples);
  if (request.random_tokens) random_ids(request, spec, limit, input);

  const bool reached = std::any_of(input.samples.begin(), input.samples.end(), [&](const Sample& s) {
    return static_cast<int64_t>(s.ids.size()) == limit;
  });
  if (limit < request.max_length && reached)
    input.notes.push_back(
        fmt::format("--max-length {} is more than the {} tokens this model is made for: {} is used",
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
