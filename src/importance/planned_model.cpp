#include "importance/planned_model.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/files.h"
#include "checkpoint/put_back.h"
#include "checkpoint/stored.h"
#include "importance/factored.h"
#include "importance/side_files.h"
#include "importance/unfinished.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"
#include "parts/program.h"
#include "tensors/norm.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;
using at::Tensor;

constexpr const char *kWeights = "model.safetensors", *kActivations = "activations.safetensors";
constexpr size_t kShownSamples = 2;
constexpr int64_t kShownTokens = 32;
const std::set<std::string> kCutMaps{"attn.W_Q", "attn.b_Q", "attn.W_K", "attn.b_K",
                                     "attn.W_V", "attn.b_V", "attn.W_O", "attn.b_O"};

bool stored(const Checkpoint& c, int64_t layer, const char* name) {
  return c.places().count(fmt::format("blocks.{}.attn.{}", layer, name)) > 0;
}

// A map or its bias, which heads lie along one behind another. Filters, rates and gains of a head that writes
// nothing may stay.
bool maps_heads(const Parameter& p) {
  return p.head_axis >= 0 && (p.name.starts_with("attn.W_") || p.name.starts_with("attn.b_"));
}

// Whether each of the maps that lie head by head is (part of) one stored tensor.
bool lies_in_one_tensor(const Checkpoint& c, int64_t layer, const Program& program) {
  return std::all_of(program.parameters.begin(), program.parameters.end(), [&](const Parameter& p) {
    const auto place = c.places().find(fmt::format("blocks.{}.{}", layer, p.name));
    return !maps_heads(p) || place == c.places().end() || place->second.more.empty();
  });
}

// Keys or values of all query heads back to those of the KV heads that they share.
Tensor of_kv_heads(const Tensor& t, const AttentionSpec& a, int64_t rows) {
  if (t.size(0) == rows) return t;
  const int64_t d = t.size(0) / a.heads;
  std::vector<int64_t> shape{a.kv_heads, a.heads / a.kv_heads, d};
  if (t.dim() > 1) shape.push_back(t.size(1));
  const Tensor groups = t.reshape(shape);
  return groups.select(1, 0).reshape(t.dim() > 1 ? std::vector<int64_t>{rows, t.size(1)}
                                                 : std::vector<int64_t>{rows});
}

bool is_silent(const AttentionSpec& a, int64_t head) {
  return std::find(a.heads_off.begin(), a.heads_off.end(), head) != a.heads_off.end();
}

// Zeros where a head is off, and in keys and values that nobody reads.
void silence(Tensor& t, const Parameter& p, const AttentionSpec& a) {
  const int64_t count = p.per_kv_head ? a.kv_heads : a.heads, group = a.heads / count,
                size = t.size(p.head_axis) / count;
  for (int64_t i = 0; i < count; ++i) {
    bool unread = true;
    for (int64_t h = i * group; h < (i + 1) * group; ++h) unread = unread && is_silent(a, h);
    if (unread) t.narrow(p.head_axis, i * size, size).zero_();
  }
}

class Writer {
 public:
  Writer(const Checkpoint& checkpoint, WeightSource& source, const std::map<int64_t, BlockEdit>& edits)
      : c_(checkpoint), source_(source), edits_(edits) {}

  void write(const fs::path& folder) {
    for (const auto& [layer, edit] : edits_) change(layer, edit);
    std::vector<TensorToWrite> list;
    for (const auto& [name, located] : c_.store().tensors()) {
      const auto it = changed_.find(name);
      if (it == changed_.end()) {
        list.push_back(
            {name, located.entry->type, located.entry->shape, located.file->bytes(*located.entry)});
        continue;
      }
      const Tensor t = it->second.contiguous();
      kept_.push_back(t);
      list.push_back({name, t.scalar_type() == at::kDouble ? StoredType::f64 : StoredType::f32,
                      located.entry->shape,
                      std::as_bytes(std::span(static_cast<const char*>(t.data_ptr()), t.nbytes()))});
    }
    write_safetensors(folder / kWeights, list);
  }

 private:
  void change(int64_t layer, BlockEdit edit) {
    const BranchSpec& before = *c_.spec().blocks[static_cast<size_t>(layer)].attention_branch();
    AttentionSpec words = *before.attention();
    words.heads_off = edit.spec.attention().heads_off;
    const Weights stored_weights = source_.load(fmt::format("blocks.{}", layer));
    const Weights now = edited_weights(edit, stored_weights);
    for (const Parameter& p : program_of(before, c_.spec().width).parameters) {
      const bool cut = kCutMaps.count(p.name) > 0;  // the others change with their heads alone
      if (!now.has(p.name) || !(cut || (maps_heads(p) && !words.heads_off.empty()))) continue;
      Tensor t = (p.per_kv_head ? of_kv_heads(now.get(p.name), words, p.shape[0]) : now.get(p.name)).clone();
      if (p.head_axis >= 0) silence(t, p, words);
      put(fmt::format("blocks.{}.{}", layer, p.name), t);
    }
  }

  void put(const std::string& parameter, const Tensor& value) {
    const auto it = c_.places().find(parameter);
    if (it == c_.places().end()) return;  // a bias of zeros that the architecture does not have (can_write)
    const Checkpoint::Place& place = it->second;
    if (!place.more.empty())
      throw Error("this parameter lies in several tensors, and a plan does not write those").in(parameter);
    auto entry = changed_.find(place.tensor);
    if (entry == changed_.end()) {
      const Tensor whole = view_of(*place.file, *place.entry);
      entry = changed_
                  .emplace(place.tensor,
                           whole.to(whole.scalar_type() == at::kDouble ? at::kDouble : at::kFloat).clone())
                  .first;
    }
    for (const Parameter& p : parameters_of(c_.spec(), parameter.substr(0, parameter.find('.', 7))))
      if (p.name == parameter) put_back(entry->second, place, p, value.cpu());
  }

  const Checkpoint& c_;
  WeightSource& source_;
  const std::map<int64_t, BlockEdit>& edits_;
  std::map<std::string, Tensor> changed_;  // by the name in the file
  std::deque<Tensor> kept_;
};

// The edited network on a few samples, in the form that other implementations are recorded in.
class Recorder {
 public:
  Recorder(const Checkpoint& checkpoint, WeightSource& source, const std::map<int64_t, BlockEdit>& edits)
      : c_(checkpoint), source_(source), edits_(edits) {}

  void write(std::vector<Sample> samples, const fs::path& file) {
    const c10::NoGradGuard no_grad;
    samples.resize(std::min(samples.size(), kShownSamples));
    for (Sample& s : samples) {
      const auto cut = [&](auto& v) { v.resize(std::min<size_t>(v.size(), kShownTokens)); };
      cut(s.ids), cut(s.types), cut(s.positions), cut(s.special);
      longest_ = std::max(longest_, static_cast<int64_t>(s.ids.size()));
    }
    const ModelSpec& spec = c_.spec();
    const auto count = static_cast<int64_t>(samples.size());
    Tensor ids = at::zeros({count, longest_}, at::kLong), mask = ids.clone(), types = ids.clone();
    std::map<std::string, Tensor> states;
    for (int64_t s = 0; s < count; ++s) {
      const Sample& sample = samples[static_cast<size_t>(s)];
      const auto n = static_cast<int64_t>(sample.ids.size());
      ids[s].narrow(0, 0, n).copy_(at::tensor(sample.ids, at::kLong));
      mask[s].narrow(0, 0, n).fill_(1);
      if (!sample.types.empty()) types[s].narrow(0, 0, n).copy_(at::tensor(sample.types, at::kLong));
      follow(make_batches({sample}, spec, 1).front(), s, count, states);
    }
    const bool typed = std::any_of(samples.begin(), samples.end(), [](auto& s) { return !s.types.empty(); });
    states["input_ids"] = ids;
    states["attention_mask"] = mask;
    if (typed && spec.embedding.types > 0) states["token_type_ids"] = types;
    std::vector<TensorToWrite> list;
    for (const auto& [name, t] : states)
      list.push_back({name,
                      t.scalar_type() == at::kLong     ? StoredType::i64
                      : t.scalar_type() == at::kDouble ? StoredType::f64
                                                       : StoredType::f32,
                      t.sizes().vec(),
                      std::as_bytes(std::span(static_cast<const char*>(t.data_ptr()), t.nbytes()))});
    write_safetensors(file, list);
  }

 private:
  void follow(const Batch& batch, int64_t s, int64_t count, std::map<std::string, Tensor>& states) {
    const ModelSpec& spec = c_.spec();
    const auto keep = [&](const std::string& name, const Tensor& x) {
      Tensor& all = states[name];
      if (!all.defined()) all = at::zeros({count, longest_, x.size(1)}, x.options().device(at::kCPU));
      all[s].narrow(0, 0, x.size(0)).copy_(x);
    };
    Tensor x = embed(batch, spec, source_.load("embed"), source_);
    BlockObserver nobody;
    for (int64_t l = 0; l < spec.depth(); ++l) {
      keep(fmt::format("hidden_states.{}", l), x);
      const auto edit = edits_.find(l);
      BlockEdit own = edit != edits_.end() ? edit->second : BlockEdit{spec.blocks[static_cast<size_t>(l)], 0};
      const Weights stored_weights = source_.load(fmt::format("blocks.{}", own.spec.weights));
      const Weights weights = edited_weights(own, stored_weights);
      x = run_block(x, own.spec, weights, batch, nobody);
    }
    const Weights norm = spec.final_norm.there() ? source_.load("ln_final") : Weights();
    x = apply_norm(x, spec.final_norm, norm, "");
    if (spec.output.kind == HeadKind::none) return keep("last_hidden_state", x);
    const Weights head = source_.load("unembed");
    const Tensor h = before_vocabulary(x, spec, head);
    if (spec.output.width == spec.width) keep("last_hidden_state", x);
    const Tensor W = source_.row_range("unembed.W_U", 0, spec.output.vocabulary);
    keep("logits", capped(at::linear(h, W, head.get_or_none("b_U")), spec.output));
  }

  const Checkpoint& c_;
  WeightSource& source_;
  const std::map<int64_t, BlockEdit>& edits_;
  int64_t longest_ = 0;
};

// Files of a folder that go again unless all of them are written: half a model looks like one. Until then the
// folder is marked with their names: a process that is killed removes nothing.
class WrittenTogether {
 public:
  WrittenTogether(const fs::path& folder, const std::vector<std::string>& names)
      : mark_(folder / fmt::format("{}{}", kUnfinished, ::getpid())) {
    if (was_left_unfinished(folder)) clear(folder);
    write_file(mark_, fmt::format("{}\n", fmt::join(names, "\n")));
  }
  ~WrittenTogether() {
    std::error_code ignored;
    for (const fs::path& file : files_) fs::remove(file, ignored);
    fs::remove(mark_, ignored);
  }
  WrittenTogether(const WrittenTogether&) = delete;
  WrittenTogether& operator=(const WrittenTogether&) = delete;

  const fs::path& add(fs::path file) { return files_.emplace_back(std::move(file)); }
  void keep() { files_.clear(); }

 private:
  // What a killed run wrote, whole files and parts of them: the names in its mark, and the mark.
  static void clear(const fs::path& folder) {
    std::vector<fs::path> files;
    std::set<std::string> written;
    std::error_code fault;
    for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault)) {
      const fs::path& file = entry->path();
      std::error_code ignored;
      if (!entry->is_regular_file(ignored)) continue;
      files.push_back(file);
      if (!file.filename().string().starts_with(kUnfinished)) continue;
      std::istringstream names(read_file(file, kLargestMark));
      for (std::string name; std::getline(names, name);) written.insert(name);
    }
    std::error_code ignored;  // what cannot be removed cannot be written over either, and that says so
    for (const fs::path& file : files) {
      const std::string name = file.filename().string();
      if (name.starts_with(kUnfinished) || written.contains(name.substr(0, name.find(".part"))))
        fs::remove(file, ignored);
    }
  }

  fs::path mark_;
  std::deque<fs::path> files_;
};

}  // namespace

bool has_plain_maps(const Program& program) { return program.writes_heads() && program.maps_tokens(); }

bool can_write(const Checkpoint& checkpoint, int64_t layer, const std::string& map) {
  const ModelSpec& spec = checkpoint.spec();
  const BranchSpec* branch = spec.blocks[static_cast<size_t>(layer)].attention_branch();
  if (branch == nullptr || branch->name != "attn") return false;
  const AttentionSpec& a = *branch->attention();
  // A norm over all heads at once sees more heads in a cut block, which repeats shared keys, than in a
  // folder, and fewer in a folder where some have no queries.
  if (map != "ov" && a.qk_norm.acts() && a.qk_norm_span == NormSpan::all) return false;
  if (!a.value_map) return false;
  const Program program = program_of(*branch, spec.width);
  if (map == "head") return lies_in_one_tensor(checkpoint, layer, program);
  if (!has_plain_maps(program)) return false;
  if (map == "kv") return true;
  if (map == "ov") {  // what biases make heads carry, the values' and the norm's, moves into the output's
    const std::string shift = fmt::format("blocks.{}.{}.b", layer, branch->norm_name);
    const bool carried =
        stored(checkpoint, layer, "b_V") || (branch->before.acts() && checkpoint.places().count(shift) > 0);
    return a.kv_heads == a.heads && (!carried || stored(checkpoint, layer, "b_O"));
  }
  return is_turned(a) || (a.kv_heads == a.heads && stored(checkpoint, layer, "b_Q"));
}

void write_planned_model(const Checkpoint& checkpoint, WeightSource& source,
                         const std::map<int64_t, BlockEdit>& edits, const std::vector<Sample>& samples,
                         const fs::path& folder) {
  const c10::NoGradGuard no_grad;
  std::error_code code;
  fs::create_directories(folder, code);
  if (code) throw Error(fmt::format("cannot make the folder: {}", code.message())).in(folder.string());
  const std::vector<SideFile> beside = side_files(checkpoint.folder()).files;
  std::vector<std::string> names{kActivations, kWeights};
  for (const SideFile& file : beside) names.push_back(file.name);
  WrittenTogether files(folder, names);
  Recorder(checkpoint, source, edits).write(samples, files.add(folder / kActivations));
  files.add(folder / kWeights);
  Writer(checkpoint, source, edits).write(folder);
  // config.json is the last: without it no folder is a model.
  for (const SideFile& file : beside)
    write_file(files.add(folder / file.name), read_file(file.from, kLargestSideFile));
  files.keep();
}

}  // namespace rankscope
