#include "pass/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/json.h"
#include "base/philox.h"
#include "text/tokenizer.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kHide = 3;  // the stream of random numbers, beside those of pass/input.cpp

Answers next_tokens(const std::vector<Sample>& samples) {
  Answers out;
  for (const Sample& s : samples) {
    std::vector<int64_t> places(s.ids.empty() ? 0 : s.ids.size() - 1);
    std::iota(places.begin(), places.end(), int64_t{0});
    out.places.push_back(std::move(places));
    out.ids.emplace_back(s.ids.begin() + (s.ids.empty() ? 0 : 1), s.ids.end());
  }
  return out;
}

// The places to hide in sample k: the first of a random order of its content.
std::vector<int64_t> chosen(const Sample& s, size_t k, uint64_t seed) {
  std::vector<int64_t> content;
  for (size_t i = 0; i < s.ids.size(); ++i)
    if (s.special.empty() || s.special[i] == 0) content.push_back(static_cast<int64_t>(i));
  if (content.empty()) return {};
  const auto wanted =
      static_cast<size_t>(std::max<long>(1, std::lround(kHiddenShare * static_cast<double>(content.size()))));
  const Philox random{seed, kHide, static_cast<uint32_t>(k)};
  for (size_t i = 0; i < wanted; ++i) std::swap(content[i], content[i + random.below(content.size() - i, i)]);
  content.resize(wanted);
  std::sort(content.begin(), content.end());
  return content;
}

Answers hide(std::vector<Sample>& samples, int64_t mask, uint64_t seed) {
  Answers out;
  for (size_t k = 0; k < samples.size(); ++k) {
    out.places.push_back(chosen(samples[k], k, seed));
    out.ids.emplace_back();
    for (const int64_t place : out.places.back()) {
      int64_t& id = samples[k].ids[static_cast<size_t>(place)];
      out.ids.back().push_back(id);
      id = mask;
    }
  }
  return out;
}

// "mask_token" of a file, as a text or as an object with one; nothing where the file says nothing.
std::string mask_spelling(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) return {};
  const Json all = read_json(file, 64 << 20);
  const auto it = all.is_object() ? all.find("mask_token") : all.end();
  if (!all.is_object() || it == all.end()) return {};
  if (it->is_string()) return it->get<std::string>();
  if (it->is_object() && it->contains("content") && it->at("content").is_string())
    return it->at("content").get<std::string>();
  return {};
}

}  // namespace

LossKind loss_kind(const ModelSpec& spec) {
  const OutputSpec& o = spec.output;
  // A head over something else than words, and one that a study trained for a task of its own, has no next
  // token. XLNet is asked in random orders, which a scan does not run.
  if (o.kind == HeadKind::none || spec.embedding.vocabulary == 0 ||
      o.vocabulary < spec.embedding.vocabulary || o.last_token || spec.architecture == "rankscope" ||
      spec.position == PositionKind::relative)
    return LossKind::none;
  return spec.causal() ? LossKind::next_token : LossKind::masked;
}

const char* loss_metric(LossKind kind) { return kind == LossKind::next_token ? "nll" : "pseudo_nll"; }

AnswerRows rows_of(const Batch& batch, const Answers& answers) {
  AnswerRows out;
  out.offsets.push_back(0);
  for (size_t s = 0; s < batch.samples.size(); ++s) {
    const auto sample = static_cast<size_t>(batch.samples[s]);
    for (const int64_t place : answers.places[sample]) out.rows.push_back(batch.offsets[s] + place);
    out.ids.insert(out.ids.end(), answers.ids[sample].begin(), answers.ids[sample].end());
    out.offsets.push_back(static_cast<int64_t>(out.rows.size()));
  }
  return out;
}

Questions questions_for(const ModelSpec& spec, const std::vector<Sample>& samples,
                        std::optional<int64_t> mask, uint64_t seed) {
  Questions q{loss_kind(spec), samples, {}};
  if (q.kind == LossKind::masked && (!mask || *mask >= spec.embedding.vocabulary)) q.kind = LossKind::none;
  if (q.kind == LossKind::next_token) q.answers = next_tokens(samples);
  if (q.kind == LossKind::masked) q.answers = hide(q.samples, *mask, seed);
  const bool asked = std::any_of(q.answers.ids.begin(), q.answers.ids.end(),
                                 [](const std::vector<int64_t>& ids) { return !ids.empty(); });
  if (!asked) q.kind = LossKind::none;  // single tokens have no next one
  return q;
}

size_t keep_asked(Questions& questions, std::vector<int64_t>& numbers) {
  if (questions.kind == LossKind::none) return 0;
  Questions kept{questions.kind, {}, {}};
  std::vector<int64_t> left;
  for (size_t i = 0; i < questions.samples.size(); ++i) {
    if (questions.answers.ids[i].empty()) continue;
    kept.samples.push_back(std::move(questions.samples[i]));
    kept.answers.places.push_back(std::move(questions.answers.places[i]));
    kept.answers.ids.push_back(std::move(questions.answers.ids[i]));
    left.push_back(numbers[i]);
  }
  const size_t gone = numbers.size() - left.size();
  questions = std::move(kept), numbers = std::move(left);
  return gone;
}

void note_unasked(size_t samples, std::vector<std::string>& notes) {
  if (samples > 0)
    notes.push_back(fmt::format(
        "{} sample{} that ask{} for no token (one token, or special ones alone) say "
        "nothing of what parts are worth, and {} left out there",
        samples, samples == 1 ? "" : "s", samples == 1 ? "s" : "", samples == 1 ? "was" : "were"));
}

std::optional<int64_t> mask_token(const fs::path& folder, const Tokenizer& tokenizer) {
  std::vector<std::string> spellings;
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json"})
    if (std::string said = mask_spelling(folder / file); !said.empty()) spellings.push_back(std::move(said));
  if (spellings.empty()) spellings = {"[MASK]", "<mask>"};
  for (const std::string& spelling : spellings)
    if (const std::optional<int64_t> id = tokenizer.id(spelling)) return id;
  return {};
}

}  // namespace rankscope
