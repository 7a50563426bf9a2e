#include "parts/parameters.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "base/error.h"
#include "parts/program.h"

namespace rankscope {
namespace {

using Role = Parameter::Role;

class List {
 public:
  explicit List(std::string part) : part_(std::move(part)) {}
  void matrix(const char* name, int64_t rows, int64_t columns, double spread = 0) {
    add({.name = name, .shape = {rows, columns}, .role = Role::matrix, .spread = spread});
  }
  void bias(const char* name, int64_t size, double spread = 0) {
    add({.name = name, .shape = {size}, .role = Role::bias, .spread = spread});
  }
  /// W_<letter> and b_<letter> as torch's Linear starts them.
  void linear(const std::string& letter, int64_t out, int64_t in, bool with_bias = true) {
    const double spread = 1 / std::sqrt(static_cast<double>(in));
    matrix(("W_" + letter).c_str(), out, in, spread);
    if (with_bias) bias(("b_" + letter).c_str(), out, spread);
  }
  void norm(const std::string& name, const NormSpec& norm, int64_t size) {
    if (!norm.there()) return;
    const std::string stem = name.empty() ? "" : name + ".";
    if (norm.gain)
      add({.name = stem + "w", .shape = {norm.kind == NormKind::unit ? 1 : size}, .role = Role::gain});
    if (norm.kind == NormKind::layer && norm.bias)
      add({.name = stem + "b", .shape = {size}, .role = Role::bias});
  }
  void add(Parameter p) {
    p.name = part_ + "." + p.name;
    list_.push_back(std::move(p));
  }
  std::vector<Parameter> take() { return std::move(list_); }

 private:
  std::string part_;
  std::vector<Parameter> list_;
};

std::vector<Parameter> embedding(const StreamSpec& stream, const ModelSpec& spec, const std::string& part) {
  const EmbeddingSpec& e = stream.embedding;
  List list(part);
  if (e.vocabulary > 0) {
    list.matrix("W_E", e.vocabulary, e.width);
  } else if (e.sounds > 0) {
    list.linear("conv1", e.width, 3 * e.sounds);
    list.linear("conv2", e.width, 3 * e.width);
  } else if (e.points > 0) {
    if (e.point_map) list.linear("in", e.width, e.points, e.bias);
  } else {
    list.matrix("W_patch", e.width, e.channels * e.patch_size * e.patch_size);
    if (e.bias) list.bias("b_patch", e.width);
    list.bias("cls", e.width);
    if (e.class_tokens > 1) list.matrix("class_tokens", e.class_tokens - 1, e.width);
    if (e.registers > 0) list.matrix("registers", e.registers, e.width);
  }
  if (e.positions > 0)
    list.matrix("W_pos", e.positions,
                e.position_width > 0 ? e.position_width
                : e.map_first        ? spec.width
                                     : e.width,
                1.0);
  if (e.types > 0) list.matrix("W_type", e.types, e.width);
  list.norm("ln", e.norm, e.width);
  if (e.map) list.linear("map", spec.width, e.width, e.map_bias);
  list.norm("ln_post", e.norm_behind, spec.width);
  return list.take();
}

const BlockSpec& stored_block(const StreamSpec& stream, int64_t index) {
  for (const BlockSpec& block : stream.blocks)
    if (block.weights == index) return block;
  return stream.blocks.front();
}

std::vector<Parameter> block(const StreamSpec& stream, const ModelSpec& spec, int64_t index,
                             const std::string& part) {
  List list(part);
  std::set<std::string> norms;  // branches side by side may share one
  for (const BranchSpec& branch : stored_block(stream, index).branches) {
    const Program program = program_of(branch, spec.width);
    if (norms.insert(branch.norm_name).second)
      list.norm(branch.norm_name, branch.before.there() ? branch.before : branch.behind, spec.width);
    for (const Parameter& p : program.parameters) list.add(p);
    list.norm(branch.norm_name + "_post", branch.inside, spec.width);
    if (branch.channel_scale)
      list.add({.name = branch.name + ".layer_scale", .shape = {spec.width}, .role = Role::gain});
  }
  return list.take();
}

std::vector<Parameter> final_norm(const StreamSpec& stream, const ModelSpec& spec, const std::string& part) {
  List list(part);
  list.norm("", stream.final_norm, spec.width);
  return list.take();
}

std::vector<Parameter> unembedding(const ModelSpec& spec) {
  const OutputSpec& o = spec.output;
  List list("unembed");
  if (o.kind == HeadKind::transformed) {
    list.linear("T", o.width, spec.width, o.map_bias);
    list.norm("ln", o.norm, o.width);
  }
  if (o.kind != HeadKind::none) list.linear("U", o.vocabulary, o.width, o.bias);
  return list.take();
}

// "encoder.blocks.3" to the stream and "blocks.3"; the stream that ends in the readout has no name in front.
const StreamSpec& stream_of(const ModelSpec& spec, std::string& part) {
  for (const StreamSpec& source : spec.sources)
    if (part.rfind(source.name + ".", 0) == 0) {
      part.erase(0, source.name.size() + 1);
      return source;
    }
  return spec;
}

void append_stream(std::vector<Parameter>& all, const StreamSpec& stream, const ModelSpec& spec) {
  const std::string prefix = stream.name.empty() ? "" : stream.name + ".";
  const auto append = [&](std::vector<Parameter> more) {
    for (Parameter& p : more) all.push_back(std::move(p));
  };
  append(embedding(stream, spec, prefix + "embed"));
  for (int64_t i = 0; i < stream.stored_blocks; ++i)
    append(block(stream, spec, i, fmt::format("{}blocks.{}", prefix, i)));
  append(final_norm(stream, spec, prefix + "ln_final"));
}

}  // namespace

std::vector<Parameter> parameters_of(const ModelSpec& spec, const std::string& part) {
  if (part == "unembed") return unembedding(spec);
  std::string within = part;
  const StreamSpec& stream = stream_of(spec, within);
  if (within == "embed") return embedding(stream, spec, part);
  if (within == "ln_final") return final_norm(stream, spec, part);
  return block(stream, spec, std::stoll(within.substr(std::string("blocks.").size())), part);
}

std::vector<Parameter> parameters(const ModelSpec& spec) {
  std::vector<Parameter> all;
  for (const StreamSpec& source : spec.sources) append_stream(all, source, spec);
  append_stream(all, spec, spec);
  for (Parameter& p : unembedding(spec)) all.push_back(std::move(p));
  return all;
}

int64_t parameter_count(const ModelSpec& spec) {
  int64_t n = 0;
  for (const Parameter& p : parameters(spec)) n += element_count(p);
  return n;
}

}  // namespace rankscope
