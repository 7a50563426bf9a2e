// Taking a part out of a network, or cutting a rank, is an edit of its spec. Knows nothing of torch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "spec/model.h"

namespace rankscope {

/// The names --off knows, without head:L5H3 and expert:L3E5.
const std::vector<std::string>& part_names();

/// The spec without `parts` ("skip+mlp", "head:L5H3"). An unknown part, layer or head is an error with the
/// nearest known names. Of a network of several streams it is taken out of all of them; attention to another
/// stream counts as attention.
///   attention-skip  post: u = N1(attn x)        pre: u = attn(N1 x)
///   mlp-skip        post: y = N2(mlp u)         pre: y = mlp(N2 u)
///   skip            both; parallel blocks have one skip, and only this word takes it out
///   mlp             the MLP with its skip and its post-norm: y = u
///   norm            the norms of the blocks (those on queries and keys, too) and the final one; the
///                   embedding's stays
///   position        learned positions are not added, rotary and relative terms left out
///   head:L5H3       that head writes zero; head:encoder.L5H3 and head:cross.L5H3 where there are streams
///   expert:L3E5     so does that expert; tokens that take it keep their shares of the others
ModelSpec without(ModelSpec spec, std::string_view parts);

/// Whether a block is parallel: attention and MLP then add to one stream, past one skip.
bool has_one_skip(const StreamSpec& stream);

/// The most rank that a map through a head of that width has: it reads a stream that may be narrower.
int64_t highest_rank(int64_t head_width, const ModelSpec& spec);

/// "qk=8" or "ov=16" or "qk=8+ov=16": each head's map cut to that rank.
ModelSpec with_rank(ModelSpec spec, std::string_view ranks);

/// The attention of blocks where `layers` says so goes by the rule `to` (spec/variant_text.h) where it went
/// by `from`.
ModelSpec with_attention(ModelSpec spec, std::string_view from, std::string_view to,
                         const std::vector<bool>& layers);

}  // namespace rankscope
