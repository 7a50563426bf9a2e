#include "train/export.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "train/cpu_stack.h"
#include "train/forward.h"

namespace rankscope {
namespace {

using at::Tensor;

class Exporter {
 public:
  Exporter(const TrialSpec& trial, const std::vector<float>& parameters)
      : t_(trial),
        n_(trial.network),
        layout_(trial.network),
        flat_(at::tensor(at::ArrayRef<float>(parameters.data(), parameters.size()), at::kFloat)) {}

  Json config() const {
    Json c;
    c["model_type"] = "rankscope";
    c["task"] = fmt::format("task={} data={} d={} n={}", t_.task.name, t_.task.data, t_.task.d, t_.task.n);
    c["hidden_size"] = n_.width();
    c["vocab_size"] = kExportedPoints;
    c["positions"] = n_.positions == Positions::none ? 0 : n_.tokens;
    c["layers"] = n_.layers;
    c["heads"] = n_.total_heads();
    c["rank"] = n_.rank;
    c["v_rank"] = n_.encoder ? n_.v_rank : n_.width();
    c["score_scale"] = n_.score_scale;
    c["hard"] = n_.hard;
    c["bias"] = has_bias();
    c["mlp"] = n_.mlp;
    c["norm"] = n_.encoder ? to_string(n_.norm) : "none";
    c["norm_place"] = to_string(n_.place);
    c["norm_epsilon"] = n_.norm == NormKind::unit ? 0.0 : 1e-5;
    c["attention_skip"] = n_.encoder;
    return c;
  }

  std::map<std::string, Tensor> tensors() {
    std::map<std::string, Tensor> out;
    for (const Slot& slot : layout_.slots()) {
      const std::string& name = slot.parameter.name;
      if (name.rfind("blocks.", 0) == 0 || name.rfind("ln_final", 0) == 0) out[name] = parameter(slot);
    }
    if (n_.encoder) {
      // The average over modules goes into the output map.
      for (auto& [name, value] : out)
        if (name.ends_with("attn.W_O")) value = value / static_cast<double>(n_.modules);
    } else {
      layer_values(out);
    }
    out["embed.W_E"] = vocabulary();
    if (n_.positions != Positions::none) out["embed.W_pos"] = positions();
    return out;
  }

 private:
  bool has_bias() const { return named("blocks.0.attn.b_Q").defined(); }
  Tensor parameter(const Slot& slot) const {
    return flat_.narrow(0, slot.offset, element_count(slot.parameter)).view(slot.parameter.shape);
  }
  Tensor named(const std::string& name) const {
    for (const Slot& slot : layout_.slots())
      if (slot.parameter.name == name) return parameter(slot);
    return {};
  }

  // sum_h VO_h X p_h: every head reads the tokens themselves, and the merged maps are the output map.
  void layer_values(std::map<std::string, Tensor>& out) const {
    const int64_t D = n_.width();
    out["blocks.0.attn.W_V"] = at::eye(D).repeat({n_.heads, 1});
    Tensor& W_O = out["blocks.0.attn.W_O"];
    W_O = at::constant_pad_nd(W_O, {0, 0, 0, D - n_.answer_width});
    if (!has_bias()) return;
    out["blocks.0.attn.b_K"] = at::zeros({n_.heads * n_.rank});
    out["blocks.0.attn.b_V"] = at::zeros({n_.heads * D});
    out["blocks.0.attn.b_O"] = at::zeros({D});
  }

  Tensor vocabulary() const {
    TaskSpec task = t_.task;
    const int64_t sequences = (kExportedPoints + n_.tokens - 1) / n_.tokens;
    const TaskBatch batch = task_named(task.name).sample(task, *cpu_draw(kTestSeed, 0, 0, sequences));
    const Tensor points = batch.tokens.flatten(0, 1).narrow(0, 0, kExportedPoints);
    if (n_.embed > 0) {
      const Tensor b = named("embed.b_map");
      const Tensor mapped = at::mm(points, named("embed.W_map").t());
      return b.defined() ? mapped + b : mapped;
    }
    return at::constant_pad_nd(points, {0, n_.width() - n_.token_width});
  }

  Tensor positions() const {
    const Tensor W = named("embed.W_pos");
    return n_.positions == Positions::additive ? W : at::constant_pad_nd(W, {n_.token_width, 0});
  }

  const TrialSpec& t_;
  const NetworkSpec& n_;
  Layout layout_;
  Tensor flat_;
};

}  // namespace

void export_model(const TrialSpec& trial, const std::vector<float>& parameters,
                  const std::filesystem::path& folder) {
  Exporter exporter(trial, parameters);
  std::filesystem::create_directories(folder);
  std::vector<TensorToWrite> list;
  std::map<std::string, Tensor> tensors = exporter.tensors();
  for (auto& [name, value] : tensors) {
    value = value.contiguous();
    list.push_back({name, StoredType::f32, value.sizes().vec(),
                    std::as_bytes(std::span(value.data_ptr<float>(), static_cast<size_t>(value.numel())))});
  }
  write_safetensors(folder / "model.safetensors", list);
  write_file(folder / "config.json", exporter.config().dump(2) + "\n");
}

}  // namespace rankscope
