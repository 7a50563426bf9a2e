// The training step of the study's encoder as one would write it with LibTorch: the whole batch at once, all
// heads in one product, autograd, AdamW tensor by tensor. What our own step is compared with.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <vector>

#include "train/constructions.h"
#include "train/cpu_stack.h"
#include "train/forward.h"

namespace rankscope {

class EagerStep {
 public:
  explicit EagerStep(const TrialSpec& trial)
      : t_(trial), flat_(at::tensor(starting_parameters(trial))), views_(Layout(trial.network), flat_, true) {
    for (const at::Tensor& leaf : views_.leaves()) {
      m_.push_back(at::zeros_like(leaf));
      v_.push_back(at::zeros_like(leaf));
    }
  }

  /// The loss before the update.
  double step() {
    const Protocol& p = t_.protocol;
    const TaskBatch batch =
        task_named(t_.task.name).sample(t_.task, *cpu_draw(t_.data_seed, data_step(p, done_), 0, p.batch));
    const at::Tensor loss = (answers(batch) - batch.target).square().sum(-1).mean();
    update(torch::autograd::grad({loss}, views_.leaves()));
    return loss.item<double>();
  }

 private:
  at::Tensor answers(const TaskBatch& batch) const {
    at::Tensor x = batch.tokens.flatten(0, 1);
    for (int64_t l = 0; l < t_.network.layers; ++l) {
      const std::string b = fmt::format("blocks.{}.", l);
      const at::Tensor u = norm(x + attention(x, b), b + "ln1.w");
      x = norm(u + linear(linear(u, b + "mlp.W_in", b + "mlp.b_in").relu(), b + "mlp.W_out", b + "mlp.b_out"),
               b + "ln2.w");
    }
    return x.view(batch.target.sizes());
  }

  at::Tensor attention(const at::Tensor& x, const std::string& b) const {
    const NetworkSpec& n = t_.network;
    const at::Tensor qkv = linear(x, b + "attn.W_QKV", b + "attn.b_QKV")
                               .view({-1, n.tokens, 3, n.total_heads(), n.rank})
                               .permute({2, 0, 3, 1, 4});  // [3, sequences, heads, tokens, rank]
    const at::Tensor pattern = (at::matmul(qkv[0], qkv[1].transpose(-1, -2)) * n.score_scale).softmax(-1);
    const at::Tensor z = at::matmul(pattern, qkv[2]).transpose(1, 2).reshape({x.size(0), -1});
    return at::mm(z, views_.get(b + "attn.W_O").t()) / static_cast<double>(n.modules) +
           views_.get(b + "attn.b_O");
  }

  at::Tensor linear(const at::Tensor& x, const std::string& W, const std::string& b) const {
    return at::addmm(views_.get(b), x, views_.get(W).t());
  }

  at::Tensor norm(const at::Tensor& x, const std::string& gain) const {
    return x / at::linalg_vector_norm(x, 2, {-1}, true) * views_.get(gain);
  }

  void update(const std::vector<at::Tensor>& gradients) {
    const c10::NoGradGuard no_gradients;
    const AdamW& rule = t_.protocol.adamw;
    const double rate = learning_rate(t_.protocol, done_);
    const auto count = static_cast<double>(++done_);
    for (size_t i = 0; i < gradients.size(); ++i) {
      m_[i].mul_(rule.beta1).add_(gradients[i], 1 - rule.beta1);
      v_[i].mul_(rule.beta2).addcmul_(gradients[i], gradients[i], 1 - rule.beta2);
      const at::Tensor root = (v_[i] / (1 - std::pow(double{rule.beta2}, count))).sqrt_().add_(rule.epsilon);
      at::Tensor leaf = views_.leaves()[i];
      leaf.addcdiv_(m_[i], root, -rate / (1 - std::pow(double{rule.beta1}, count)));
    }
  }

  TrialSpec t_;
  at::Tensor flat_;
  ParameterViews views_;
  std::vector<at::Tensor> m_, v_;
  int64_t done_ = 0;
};

}  // namespace rankscope
