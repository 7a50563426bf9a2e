// SentencePiece's compiled character map: a double-array trie (Darts) from byte strings to places in a pool
// of NUL-terminated replacements. Base64 of: the trie's size in bytes (u32, little endian), the trie's units
// (u32 each), the pool.
#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "text/normalizers.h"
#include "text/unicode.h"

namespace rankscope::text {
namespace {

int sextet(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::string decode_base64(std::string_view text, const std::string& place) {
  if (text.size() % 4 != 0)
    throw Error("precompiled_charsmap is not base64: its length is no multiple of four").in(place);
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int value = sextet(c);
    if (value < 0) throw Error("precompiled_charsmap is not base64").in(place);
    bits = bits << 6 | static_cast<uint32_t>(value);
    if ((count += 6) < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>(bits >> count & 0xFF));
  }
  return out;
}

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t out = 0;
  for (size_t i = 0; i < 4; ++i)
    out |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return out;
}

class Precompiled : public Normalizer {
 public:
  Precompiled(std::string_view bytes, const std::string& place) : place_(place) {
    const uint32_t trie = bytes.size() < 4 ? UINT32_MAX : little_endian(bytes, 0);
    if (trie == UINT32_MAX || trie % 4 != 0 || trie == 0 || trie > bytes.size() - 4)
      throw Error("precompiled_charsmap is damaged: its trie does not fit").in(place);
    for (size_t at = 4; at < 4 + size_t{trie}; at += 4) units_.push_back(little_endian(bytes, at));
    pool_ = bytes.substr(4 + size_t{trie});
    if (repair_utf8(pool_) != pool_)
      throw Error("precompiled_charsmap is damaged: its strings are not UTF-8").in(place);
  }

  void apply(Piece& piece) const override {
    std::string out;
    size_t begin = 0;
    for (const size_t end : grapheme_ends(piece.text)) {
      replace_grapheme(std::string_view(piece.text).substr(begin, end - begin), out);
      check_length(out.size());
      begin = end;
    }
    piece.text = std::move(out);
  }

 private:
  // A short cluster is looked up whole first, and any prefix of it that the map knows replaces all of it.
  // That looks like an oversight, but every model was trained with it.
  void replace_grapheme(std::string_view grapheme, std::string& out) const {
    if (grapheme.size() < 6)
      if (const auto whole = find(grapheme)) return void(out += *whole);
    for (size_t at = 0; at < grapheme.size();) {
      const size_t begin = at;
      next_character(grapheme, at);
      const std::string_view character = grapheme.substr(begin, at - begin);
      out += find(character).value_or(character);
    }
  }

  // The replacement of the shortest prefix of `key` that the map knows.
  std::optional<std::string_view> find(std::string_view key) const {
    size_t node = step(0, unit(0));
    for (const char byte : key) {
      const auto label = static_cast<unsigned char>(byte);
      if (label == 0) break;
      node ^= label;
      const uint32_t here = unit(node);
      if ((here & 0x800000FFu) != label) return std::nullopt;
      node = step(node, here);
      if ((here >> 8 & 1) != 0) return replacement(unit(node) & 0x7FFFFFFFu);
    }
    return std::nullopt;
  }

  static size_t step(size_t node, uint32_t here) {
    return node ^ (static_cast<size_t>(here >> 10) << ((here & (1u << 9)) >> 6));
  }

  uint32_t unit(size_t node) const {
    if (node >= units_.size())
      throw Error("precompiled_charsmap is damaged: its trie points outside").in(place_);
    return units_[node];
  }

  std::string_view replacement(size_t at) const {
    // A place inside a character would cut it in two.
    if (at >= pool_.size() || (static_cast<unsigned char>(pool_[at]) & 0xC0) == 0x80)
      throw Error("precompiled_charsmap is damaged: it points outside its strings").in(place_);
    return std::string_view(pool_).substr(at, std::min(pool_.find('\0', at), pool_.size()) - at);
  }

  std::vector<uint32_t> units_;
  std::string pool_, place_;
};

}  // namespace

std::unique_ptr<Normalizer> read_precompiled(const JsonObject& object) {
  return std::make_unique<Precompiled>(decode_base64(object.string("precompiled_charsmap"), object.place()),
                                       object.place());
}

}  // namespace rankscope::text
