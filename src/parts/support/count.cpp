#include "parts/parameters.h"
#include "parts/program.h"
#include "spec/head_groups.h"

namespace rankscope {
namespace {

double linear(int64_t rows, int64_t in, int64_t out) {
  return 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
}

// Operations of a branch for `tokens` that look at `others`.
double branch_flops(const BranchSpec& branch, int64_t width, int64_t tokens, int64_t others) {
  const Program program = program_of(branch, width);
  std::vector<int64_t> rows{tokens, others}, widths{width, width};
  double total = 0;
  for (const Operation& o : program.operations) {
    const int64_t count = rows[static_cast<size_t>(o.from)];
    switch (o.kind) {
      case Operation::Kind::linear:
        total += linear(count, widths[static_cast<size_t>(o.from)], o.width);
        break;
      case Operation::Kind::attend: {
        const AttentionSpec& a = *branch.attention();
        total += 2.0 * static_cast<double>(a.d_qk + a.d_v) *
                 products_of_heads(a, count, rows[static_cast<size_t>(o.second)]);
        break;
      }
      case Operation::Kind::experts: {
        const Operation& share = program.made(o.second);
        const int64_t hidden = share.sharing.active * branch.mlp()->width + o.always;
        total += linear(count, widths[static_cast<size_t>(o.from)], (o.gated ? 2 : 1) * hidden) +
                 linear(count, hidden, o.width);
        break;
      }
      case Operation::Kind::convolve:
        total += linear(count, o.taps, o.width);
        break;
      case Operation::Kind::activation:
      case Operation::Kind::beside:
      case Operation::Kind::gates:
      case Operation::Kind::multiply:
      case Operation::Kind::norm:
      case Operation::Kind::repeat:
      case Operation::Kind::share:
      case Operation::Kind::sum:
        break;  // a few operations a number
    }
    rows.push_back(count);
    widths.push_back(o.width);
  }
  return total;
}

double embedding_flops(const EmbeddingSpec& e, int64_t width, int64_t tokens) {
  double total = e.point_map ? linear(tokens, e.points, e.width) : 0;
  if (e.sounds > 0) total += linear(2 * tokens, 3 * e.sounds, e.width) + linear(tokens, 3 * e.width, e.width);
  if (e.image_size > 0) total += linear(tokens, e.channels * e.patch_size * e.patch_size, e.width);
  return total + (e.map ? linear(tokens, e.width, width) : 0);
}

}  // namespace

double block_flops(const ModelSpec& spec, const BlockSpec& block, int64_t tokens) {
  double total = 0;
  for (const BranchSpec& branch : block.branches) total += branch_flops(branch, spec.width, tokens, tokens);
  return total;
}

double forward_flops(const ModelSpec& spec, int64_t tokens, int64_t queries) {
  double total = 0;
  for (const StreamSpec& source : spec.sources) {
    total += embedding_flops(source.embedding, spec.width, tokens);
    for (const BlockSpec& block : source.blocks) total += block_flops(spec, block, tokens);
  }
  const int64_t asked = queries > 0 ? queries : tokens;
  total += embedding_flops(spec.embedding, spec.width, asked);
  for (const BlockSpec& block : spec.blocks)
    for (const BranchSpec& branch : block.branches)
      total += branch_flops(branch, spec.width, asked, branch.reads.empty() ? asked : tokens);
  const OutputSpec& o = spec.output;
  if (o.kind == HeadKind::transformed) total += linear(asked, spec.width, o.width);
  if (o.kind != HeadKind::none) total += linear(asked, o.width, o.vocabulary);
  return total;
}

}  // namespace rankscope
