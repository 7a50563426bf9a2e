#include "parts/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "parts/program.h"
#include "spec/variant_text.h"

namespace rankscope {
namespace {

class Check {
 public:
  Check(const ModelSpec& spec, const std::string& place) : spec_(spec), place_(place) {}

  void run() const {
    if (spec_.width < 1) refuse("it has no width");
    for (const StreamSpec& s : spec_.sources) source(s);
    if (spec_.blocks.empty()) refuse("it has no blocks");
    stream(spec_);
    if (spec_.init.cut > 0 && spec_.init.cut < 0.5) refuse("its starting numbers are cut to next to nothing");
    if (spec_.output.kind != HeadKind::none && spec_.output.vocabulary < 1) refuse("its readout has no rows");
    if (spec_.output.channels > spec_.width)
      refuse(fmt::format("its answer has {} channels, its stream {}", spec_.output.channels, spec_.width));
    if (spec_.output.kind == HeadKind::linear && spec_.output.width != spec_.width)
      refuse("its readout reads another width than the stream has");
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error("the description of the network does not fit together: " + why).in(place_);
  }

  void embedding(const EmbeddingSpec& e) const {
    const int kinds = (e.vocabulary > 0) + (e.points > 0) + (e.image_size > 0) + (e.sounds > 0);
    if (kinds != 1) refuse("it reads neither words nor points nor patches nor sounds, or several of them");
    if (e.sounds > 0 && e.positions < 1) refuse("it reads sounds and has no positions for them");
    if (e.start_id >= e.vocabulary && e.start_id >= 0)
      refuse(fmt::format("its decoder starts with token {} of {}", e.start_id, e.vocabulary));
    if (e.image_size > 0 && (e.patch_size < 1 || e.patch_size > e.image_size || e.channels < 1))
      refuse("its patches do not fit the image");
    if (e.image_size > 0 && e.positions > 0 && e.positions != e.patch_tokens() - e.registers)
      refuse(fmt::format("it has {} positions for {} patches and class tokens", e.positions,
                         e.patch_tokens() - e.registers));
    if (e.map_first && (!e.map || e.types > 0 || e.norm.there() || e.position_width > 0))
      refuse("its embedding maps words before positions, and something stands in between");
    const int64_t out = e.width + e.position_width;
    if (!e.map && out != spec_.width)
      refuse(fmt::format("its tokens have width {}, its stream {}", out, spec_.width));
    if (e.points > 0 && !e.point_map && e.points != e.width)
      refuse(fmt::format("its points have width {}, its tokens {}", e.points, e.width));
  }

  void source(const StreamSpec& s) const {
    const auto taken = [&](const char* word) { return s.name == word; };
    if (s.name.empty() || s.name.find('.') != std::string::npos || taken("embed") || taken("blocks") ||
        taken("ln_final") || taken("unembed") || taken("decoder") || taken("cross"))
      refuse(fmt::format("a stream cannot be called \"{}\"", printable(s.name)));
    if (std::count_if(spec_.sources.begin(), spec_.sources.end(), [&](auto& o) { return o.name == s.name; }) >
        1)
      refuse(fmt::format("two streams are called \"{}\"", printable(s.name)));
    stream(s);
  }

  void stream(const StreamSpec& s) const {
    embedding(s.embedding);
    if (s.stored_blocks > s.depth())
      refuse(fmt::format("it stores {} blocks and has {}", s.stored_blocks, s.depth()));
    for (const BlockSpec& block : s.blocks) {
      if (block.weights < 0 || block.weights >= s.stored_blocks)
        refuse(fmt::format("a block uses weights {} of {}", block.weights, s.stored_blocks));
      if (block.branches.empty()) refuse("a block has no branch");
      std::set<std::string> names;
      for (const BranchSpec& branch : block.branches) {
        if (!names.insert(branch.name).second) refuse("two branches of a block share a name");
        shared_norm(block, branch);
        this->branch(branch, &branch == &s.blocks.back().branches.back());
      }
    }
  }

  // Branches may share a norm only where both read the same through the same one: its gains are stored once.
  void shared_norm(const BlockSpec& block, const BranchSpec& branch) const {
    for (const BranchSpec& other : block.branches) {
      if (other.name == branch.norm_name) refuse("a branch and a norm of a block share a name");
      if (&other == &branch || other.norm_name != branch.norm_name) continue;
      const bool alike = block.parallel && other.before.kind == branch.before.kind && other.before.there() &&
                         !other.inside.there() && !branch.inside.there() && !other.behind.there();
      if (!alike)
        refuse(fmt::format("two branches of a block share the norm {} and read different things through it",
                           branch.norm_name));
    }
  }

  void branch(const BranchSpec& b, bool last) const {
    if (b.name.empty() || b.norm_name.empty()) refuse("a branch has no name");
    check_part(b);
    if (b.skip_normed && !b.before.there())
      refuse(fmt::format("the skip of the branch {} takes what a norm made that is not there", b.name));
    if (b.before.there() && b.behind.there())
      refuse(fmt::format("the branch {} has a norm before and one behind, which share their gains", b.name));
    if (const AttentionSpec* a = b.attention()) {
      const std::string variant = read_variant(a->variant).name;
      const auto& known = attention_names();
      if (std::find(known.begin(), known.end(), variant) == known.end())
        throw unknown_name("attention variant", variant, known).in(place_);
      if (a->heads % a->kv_heads != 0)
        refuse(fmt::format("{} key and value heads do not divide {} heads", a->kv_heads, a->heads));
      if (a->heads % a->modules != 0)
        refuse(fmt::format("{} modules do not divide {} heads", a->modules, a->heads));
      if (!a->value_map && a->d_v != spec_.width) refuse("its values are not as wide as the tokens they are");
      if (a->truncate_qk > a->d_qk || a->truncate_ov > a->d_v)
        refuse(fmt::format("a head of width {} and {} cannot be cut to rank {} and {}", a->d_qk, a->d_v,
                           a->truncate_qk, a->truncate_ov));
      if (2 * static_cast<int64_t>(a->rotary_frequencies.size()) > a->d_qk)
        refuse(
            fmt::format("{} rotated pairs do not fit a width of {}", a->rotary_frequencies.size(), a->d_qk));
      if (a->rotary_context > 0 && a->rotary_long.empty() == (a->rotary_growth <= 0))
        refuse(
            "texts longer than its context turn by other frequencies or by a growing base: one of the two");
      if (!a->rotary_long.empty() && a->rotary_long.size() != a->rotary_frequencies.size())
        refuse("it has as many frequencies for long texts as for short ones, or none");
      if (!a->alibi.empty() && static_cast<int64_t>(a->alibi.size()) != a->heads)
        refuse(fmt::format("it has {} slopes for {} heads", a->alibi.size(), a->heads));
      if (a->buckets > 0 && (a->buckets < 4 || a->bucket_distance <= a->buckets / 4))
        refuse("its ranges of distance are fewer than four, or end before the single distances do");
      for (const int64_t h : a->heads_off)
        if (h >= a->heads) refuse(fmt::format("there is no head {} to be off", h));
      for (const int64_t h : a->heads_fixed)
        if (h >= a->heads) refuse(fmt::format("there is no head {} to be fixed", h));
      if (a->fixed_values.size() != a->heads_fixed.size() * static_cast<size_t>(a->d_v))
        refuse(fmt::format("{} numbers do not fix {} heads of width {}", a->fixed_values.size(),
                           a->heads_fixed.size(), a->d_v));
    }
    if (!b.reads.empty() &&
        std::none_of(spec_.sources.begin(), spec_.sources.end(), [&](auto& s) { return s.name == b.reads; }))
      refuse(
          fmt::format("the branch {} reads the stream \"{}\", which it has not", b.name, printable(b.reads)));
    const int64_t written = program_of(b, spec_.width).width;
    if (written != spec_.width && (b.skip || !last))
      refuse(fmt::format("the branch {} writes width {} into a stream of width {}", b.name, written,
                         spec_.width));
  }

  const ModelSpec& spec_;
  const std::string& place_;
};

}  // namespace

void check(const ModelSpec& spec, const std::string& place) { Check(spec, place).run(); }

}  // namespace rankscope
