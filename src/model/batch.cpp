#include "model/batch.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"

namespace rankscope {
namespace {

int64_t token_count(const Sample& s, const ModelSpec& spec) {
  if (spec.embedding.vocabulary > 0) return static_cast<int64_t>(s.ids.size());
  return spec.embedding.given_tokens();
}

// Which position each token takes, before the offset. Padding takes none (RoBERTa): it gets the one in front
// of the first, and those behind it are counted as if it were not there.
std::vector<int64_t> positions_of(const Sample& s, int64_t tokens, const EmbeddingSpec& e) {
  if (!s.positions.empty()) return s.positions;
  std::vector<int64_t> out;
  int64_t next = 0;
  for (int64_t i = 0; i < tokens; ++i) {
    const bool padding = e.padding_id >= 0 && !s.ids.empty() && s.ids[static_cast<size_t>(i)] == e.padding_id;
    out.push_back(padding ? -1 : next++);
  }
  return out;
}

// Of an image or a sound. The right count in another shape would be read in a wrong order.
void check_values(const Sample& s, const EmbeddingSpec& e, const std::string& place) {
  const bool sound = e.sounds > 0;
  const std::vector<int64_t> expected = sound ? std::vector<int64_t>{e.sounds, 2 * e.positions}
                                              : std::vector<int64_t>{e.channels, e.image_size, e.image_size};
  if (s.pixels.size() == static_cast<size_t>(e.given_numbers()) && (s.shape.empty() || s.shape == expected))
    return;
  const std::string got = s.shape.empty() ? fmt::format("{} values", s.pixels.size())
                                          : fmt::format("{}", fmt::join(s.shape, " x "));
  if (sound)
    throw Error(
        fmt::format("the model expects {} mel bins x {} frames, but got {}", expected[0], expected[1], got))
        .in(place)
        .hint("make them with the model's own feature extractor, or take --random-tokens");
  throw Error(fmt::format("the model expects {} pixels, but got {}", fmt::join(expected, " x "), got))
      .in(place)
      .hint(fmt::format("resize the images to {} x {}, or take --random-tokens", e.image_size, e.image_size));
}

void check(const Sample& s, size_t number, const ModelSpec& spec) {
  const EmbeddingSpec& e = spec.embedding;
  const std::string place = fmt::format("sample {}", number);
  if (e.vocabulary == 0) {
    check_values(s, e, place);
    return;
  }
  if (s.ids.empty()) throw Error("there are no tokens").in(place);
  const std::vector<int64_t> positions = positions_of(s, static_cast<int64_t>(s.ids.size()), e);
  for (size_t i = 0; i < s.ids.size(); ++i) {
    if (s.ids[i] < 0 || s.ids[i] >= e.vocabulary)
      throw Error(fmt::format("token id {} is outside the vocabulary of {}", s.ids[i], e.vocabulary))
          .in(fmt::format("{}, token {}", place, i))
          .hint("check that the tokenizer belongs to this model");
    if (!s.types.empty() && e.types > 0 && (s.types[i] < 0 || s.types[i] >= e.types))
      throw Error(fmt::format("token type {} is outside the {} the model has", s.types[i], e.types))
          .in(place);
    if (e.positions > 0 && positions[i] + e.position_offset >= e.positions)
      throw Error(fmt::format("the sample has {} tokens, but the model has positions for {}", s.ids.size(),
                              e.positions - e.position_offset))
          .in(place)
          .hint("pass a smaller --max-length");
  }
}

void append(Batch& b, const Sample& s, size_t number, const ModelSpec& spec) {
  const int64_t n = token_count(s, spec);
  const std::vector<int64_t> positions = positions_of(s, n, spec.embedding);
  for (int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<size_t>(i);
    if (!s.ids.empty()) b.ids.push_back(s.ids[k]);
    b.types.push_back(s.types.empty() ? 0 : s.types[k]);
    b.positions.push_back(positions[k]);
    // Position 0 of a causal model sees only itself and usually serves as a sink; an image's class tokens and
    // registers are no patches.
    const bool image = spec.embedding.vocabulary == 0;
    const bool opening = image ? i < spec.embedding.extra_tokens() : i == 0 && spec.causal();
    b.content.push_back(!opening && (s.special.empty() || s.special[k] == 0));
  }
  b.has_types = b.has_types || !s.types.empty();
  b.pixels.insert(b.pixels.end(), s.pixels.begin(), s.pixels.end());
  b.offsets.push_back(b.offsets.back() + n);
  b.samples.push_back(static_cast<int64_t>(number));
}

}  // namespace

std::vector<Batch> make_batches(const std::vector<Sample>& samples, const ModelSpec& spec,
                                int64_t batch_size) {
  for (size_t i = 0; i < samples.size(); ++i) check(samples[i], i, spec);
  std::vector<size_t> order(samples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return token_count(samples[a], spec) < token_count(samples[b], spec);
  });
  std::vector<Batch> batches;
  for (const size_t i : order) {
    if (batches.empty() || batches.back().count() >= batch_size) {
      batches.emplace_back();
      batches.back().offsets.push_back(0);
    }
    append(batches.back(), samples[i], i, spec);
  }
  return batches;
}

std::vector<Batch> batches_like(const std::vector<Batch>& batches, const std::vector<Sample>& samples,
                                const ModelSpec& spec) {
  std::vector<Batch> out;
  for (const Batch& like : batches) {
    Batch b;
    b.offsets.push_back(0);
    for (const int64_t i : like.samples) {
      const auto number = static_cast<size_t>(i);
      check(samples.at(number), number, spec);
      append(b, samples[number], number, spec);
    }
    out.push_back(std::move(b));
  }
  return out;
}

namespace {

// Samples [first, end) of a batch.
Batch part_of(const Batch& b, int64_t first, int64_t end) {
  const auto of = [](const auto& all, int64_t from, int64_t to) {
    return all.empty() ? all : std::decay_t<decltype(all)>(all.begin() + from, all.begin() + to);
  };
  const int64_t begin = b.offsets[static_cast<size_t>(first)], stop = b.offsets[static_cast<size_t>(end)];
  Batch out{of(b.ids, begin, stop),
            of(b.types, begin, stop),
            of(b.positions, begin, stop),
            of(b.content, begin, stop),
            of(b.offsets, first, end + 1),
            of(b.samples, first, end),
            of(b.pixels, first * static_cast<int64_t>(b.pixels.size()) / b.count(),
               end * static_cast<int64_t>(b.pixels.size()) / b.count()),
            b.has_types};
  for (int64_t& offset : out.offsets) offset -= begin;
  return out;
}

}  // namespace

std::vector<Batch> halved(const std::vector<Batch>& batches) {
  std::vector<Batch> out;
  for (const Batch& b : batches) {
    const int64_t middle = (b.count() + 1) / 2;
    out.push_back(part_of(b, 0, middle));
    if (middle < b.count()) out.push_back(part_of(b, middle, b.count()));
  }
  return out;
}

}  // namespace rankscope
