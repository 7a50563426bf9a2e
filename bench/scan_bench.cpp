// Question: what does looking cost? A scan with every metric of `full` against the plain forward pass of the
// same weights through LibTorch, in the same run. BERT-base shape, 32 samples of 128 tokens.
//
//   bench: scan_bench [threads]      goal: scan <= 1.35 forward passes
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <utility>

#include "base/error.h"
#include "checkpoint/load.h"
#include "lenses/lens.h"
#include "pass/pass.h"
#include "pass/variants.h"
#include "scan/scan.h"
#include "support/random_checkpoint.h"
#include "support/temporary_folder.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

double seconds(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median_of(int repeats, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(seconds(call));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

// The competitor: BERT as anybody would write it with LibTorch, all samples in one batch, weights in memory.
class PlainBert {
 public:
  explicit PlainBert(const Checkpoint& checkpoint) : spec_(checkpoint.spec()) {
    const auto source = checkpoint_source(checkpoint, "float32", "cpu");
    table_ = source->row_range("embed.W_E", 0, spec_.embedding.vocabulary);
    embed_ = copy(source->load("embed"), "embed");
    for (int64_t l = 0; l < spec_.depth(); ++l) {
      const std::string part = fmt::format("blocks.{}", l);
      blocks_.push_back(copy(source->load(part), part));
    }
  }

  at::Tensor forward(const at::Tensor& ids) const {  // [B, T]
    const int64_t B = ids.size(0), T = ids.size(1);
    const AttentionSpec& a = spec_.blocks[0].attention();
    at::Tensor x = at::embedding(table_, ids) + embed_.get("W_pos").narrow(0, 0, T) + embed_.get("W_type")[0];
    x = norm(x, embed_, "ln");
    for (const Weights& w : blocks_) {
      const auto heads = [&](const char* W, const char* b) {
        return at::linear(x, w.get(W), w.get(b)).view({B, T, a.heads, a.d_qk}).transpose(1, 2);
      };
      const at::Tensor p = at::softmax(
          at::matmul(heads("attn.W_Q", "attn.b_Q"), heads("attn.W_K", "attn.b_K").transpose(-1, -2)) *
              a.scale,
          -1);
      const at::Tensor z = at::matmul(p, heads("attn.W_V", "attn.b_V")).transpose(1, 2).reshape({B, T, -1});
      x = norm(x + at::linear(z, w.get("attn.W_O"), w.get("attn.b_O")), w, "ln1");
      const at::Tensor h = at::gelu(at::linear(x, w.get("mlp.W_in"), w.get("mlp.b_in")));
      x = norm(x + at::linear(h, w.get("mlp.W_out"), w.get("mlp.b_out")), w, "ln2");
    }
    return x;
  }

 private:
  at::Tensor norm(const at::Tensor& x, const Weights& w, const std::string& name) const {
    return at::layer_norm(x, {spec_.width}, w.get(name + ".w"), w.get(name + ".b"), 1e-12);
  }
  Weights copy(const Weights& mapped, const std::string& part) const {
    Weights out;
    for (const Parameter& p : parameters_of(spec_, part)) {
      const std::string name = p.name.substr(part.size() + 1);
      if (mapped.has(name)) out.set(name, mapped.get(name).clone());
    }
    return out;
  }
  ModelSpec spec_;
  at::Tensor table_;
  Weights embed_;
  std::vector<Weights> blocks_;
};

// Every lens with a clock around it: what it costs within the scan, to more digits than the difference of two
// passes has.
constexpr size_t kMostLenses = 32;
std::array<double, kMostLenses> lens_seconds;

class Timed : public Measurement {
 public:
  Timed(std::unique_ptr<Measurement> inner, double& total) : inner_(std::move(inner)), total_(total) {}
  at::Tensor whole(const WholeView& v) override {
    return timed([&] { return inner_->whole(v); });
  }
  at::Tensor tile(const TileView& v) override {
    return timed([&] { return inner_->tile(v); });
  }
  at::Tensor factored(const FactoredView& v) override {
    return timed([&] { return inner_->factored(v); });
  }
  void weights(const WeightsView& v) override {
    total_ += seconds([&] { inner_->weights(v); });
  }
  at::Tensor finish() override {
    return timed([&] { return inner_->finish(); });
  }

 private:
  at::Tensor timed(const std::function<at::Tensor()>& call) {
    at::Tensor out;
    total_ += seconds([&] { out = call(); });
    return out;
  }

  std::unique_ptr<Measurement> inner_;
  double& total_;
};

template <size_t I>
std::unique_ptr<Measurement> start_timed(const LensContext& context) {
  return std::make_unique<Timed>(lenses()[I]->start(context), lens_seconds[I]);
}

std::vector<Lens> timed_lenses() {
  if (lenses().size() > kMostLenses) throw Error("scan_bench knows fewer lenses than there are");
  std::vector<Lens> out;
  for (const Lens* lens : lenses()) out.push_back(*lens);
  [&]<size_t... I>(std::index_sequence<I...>) {
    ((I < out.size() ? void(out[I].start = start_timed<I>) : void()), ...);
  }
  (std::make_index_sequence<kMostLenses>());
  return out;
}

std::vector<Sample> samples_of(const at::Tensor& ids) {
  std::vector<Sample> out(static_cast<size_t>(ids.size(0)));
  for (size_t i = 0; i < out.size(); ++i) {
    const at::Tensor row = ids[static_cast<int64_t>(i)].contiguous();
    out[i].ids.assign(row.data_ptr<int64_t>(), row.data_ptr<int64_t>() + row.numel());
  }
  return out;
}

int run(int threads) {
  const c10::NoGradGuard no_grad;
  use_threads(threads);
  const TemporaryFolder folder;
  test::write_random_checkpoint(folder.path(), test::bert_config(), StoredType::f32);
  const Checkpoint checkpoint(folder.path());
  at::manual_seed(1);
  const at::Tensor ids = at::randint(0, 30522, {32, 128}, at::kLong);
  const PlainBert plain(checkpoint);
  const auto source = checkpoint_source(checkpoint, "float32", "cpu");

  const auto pass = [&](const std::vector<const Lens*>& chosen) {
    PassPlan plan;
    plan.variants = {{"full", checkpoint.spec(), 0, 0}};
    plan.sources = {source.get()};
    plan.inputs.push_back(make_batches(samples_of(ids), checkpoint.spec(), 8));
    plan.lenses = chosen;
    plan.layers = parse_layers("", checkpoint.spec().depth());
    ResultTable table;
    std::vector<std::string> notes;
    return run_pass(plan, table, notes, {});
  };

  // Verify, then time: both must give the same last hidden state.
  const at::Tensor reference = plain.forward(ids).flatten(0, 1);
  const std::vector<FinalState> states = pass({});
  const double error = (at::cat(*states.front().x) - reference).abs().max().item<double>() /
                       reference.abs().max().item<double>();
  fmt::print("largest difference of the last hidden state: {:.2g} of the largest value\n", error);
  if (!(error < 1e-4)) {
    fmt::print("the two do not compute the same: no times\n");
    return 1;
  }

  // The better of one batch and batches of the size we use: small ones spare the allocator.
  const double at_once = median_of(3, [&] { plain.forward(ids); });
  const double in_batches = median_of(3, [&] {
    for (const at::Tensor& part : ids.split(8)) plain.forward(part);
  });
  const double forward = std::min(at_once, in_batches);
  // Multiply-adds of the products, twice: the limit is set by the matrix rate.
  const double flops = 32.0 * 128 * 12 * (2.0 * (4 * 768 * 768 + 2 * 768 * 3072) + 4.0 * 128 * 768);
  const at::Tensor square = at::randn({768, 768});
  const double rate = 2.0 * 768 * 768 * 768 * 20 / median_of(3, [&] {
                        for (int i = 0; i < 20; ++i) at::mm(square, square);
                      });
  fmt::print("BERT-base shape, 32 x 128 tokens, {} threads, LibTorch {}\n", thread_count(), torch_version());
  fmt::print("{:<28} {:>9} {:>14}\n", "what", "seconds", "forward passes");
  const auto line = [&](const std::string& what, double t) {
    fmt::print("{:<28} {:>9.2f} {:>14.2f}\n", what, t, t / forward);
  };
  line("limit (matrix rate)", flops / rate);
  line("plain LibTorch, one batch", at_once);
  line("plain LibTorch, batches of 8", in_batches);
  line("our pass, no lens", median_of(3, [&] { pass({}); }));
  const std::vector<Lens> timed = timed_lenses();
  std::vector<const Lens*> all;
  for (const Lens& lens : timed) all.push_back(&lens);
  pass(all);
  for (size_t i = 0; i < timed.size(); ++i)
    line(fmt::format("  lens {}{}", timed[i].name, timed[i].on_request ? " (on request)" : ""),
         lens_seconds[i]);
  const double scan = median_of(3, [&] { pass(choose_lenses({})); });
  line("scan, every metric", scan);
  fmt::print("scan / plain forward = {:.2f} (goal: at most 1.35)\n", scan / forward);
  return 0;
}

}  // namespace
}  // namespace rankscope

int main(int argc, char** argv) { return rankscope::run(argc > 1 ? std::atoi(argv[1]) : 2); }
