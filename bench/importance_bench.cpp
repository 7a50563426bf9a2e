// Question: what does it cost to know what every head is worth, in forward passes of the same samples:
// counted by floating-point operations beside the bound of the weights' sizes, and timed beside a plain
// forward pass?
//
//   bench: importance_bench [bert-base|gpt2-medium] [samples] [tokens] [cpu|cuda] [threads]
//   goals: zero ablation of BERT-base's 144 heads in <= 116 passes; estimates in <= 12 and the readout;
//   pruning in 10 runs; six QK ranks in all layers at once in 6 runs, in one layer at a time in 39
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "checkpoint/load.h"
#include "importance/estimates.h"
#include "importance/evaluator.h"
#include "importance/rank_curves.h"
#include "importance/savings.h"
#include "scan_cases.h"
#include "support/random_checkpoint.h"
#include "support/temporary_folder.h"
#include "support/tiny.h"
#include "tensors/device.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

double seconds(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int run(const std::string& shape, int64_t samples, int64_t tokens, const std::string& device) {
  const TemporaryFolder folder;
  std::string config = shape == "gpt2-medium" ? gpt2_medium_config() : test::bert_config();
  if (const size_t at = config.find("BertModel"); at != std::string::npos)
    config.replace(at, 9, "BertForMaskedLM");  // with its vocabulary
  test::write_random_checkpoint(folder.path(), config, StoredType::f32);
  const Checkpoint checkpoint(folder.path());
  const auto source = checkpoint_source(checkpoint, "float32", device);
  const ModelSpec& spec = checkpoint.spec();
  const std::vector<Sample> input = test::random_samples(
      std::vector<int64_t>(static_cast<size_t>(samples), tokens), spec.embedding.vocabulary);
  const Questions questions = questions_for(spec, input, {}, 0);
  const ProgressCallback quiet;
  const Evaluator::Job job{.source = *source,
                           .questions = questions,
                           .batch_size = 8,
                           .seed = 0,
                           .device = device,
                           .parts = true,
                           .group_bytes = 0,
                           .progress = quiet};
  std::unique_ptr<Evaluator> evaluator;
  const auto forward = [&] { evaluator = std::make_unique<Evaluator>(job); };
  forward();  // reads the file
  const double plain = seconds(forward);
  fmt::print("{} x {} tokens of {}, {}: a forward pass with its logits takes {:.2f} s\n", samples, tokens,
             shape, device, plain);
  fmt::print("{:<28} {:>8} {:>8} {:>9} {:>12}\n", "what", "passes", "bound", "seconds", "in forwards");
  const auto line = [&](const char* what, double bound, double first, const std::function<void()>& call) {
    const double before = first >= 0 ? first : evaluator->passes();
    const double time = seconds(call);
    fmt::print("{:<28} {:>8.1f} {:>8.1f} {:>9.1f} {:>12.1f}\n", what, evaluator->passes() - before, bound,
               time, time / plain);
    std::fflush(stdout);  // a run that is stopped has said what it knew
  };
  const std::vector<Unit> heads = units_of(spec, UnitKind::head);
  std::vector<Variation> alone;
  for (const Unit& u : heads) alone.push_back({u.layer, u, Replacement::zero, {}});
  line("every head, zero", evaluator->bound(heads), 0, [&] { evaluator->run(alone); });
  line("estimates of all heads", 12, -1, [&] { estimate_heads(*evaluator); });
  std::vector<Variation> pruned;
  for (size_t point = 1; point <= 10; ++point) {
    Variation v;
    for (size_t i = 0; i < heads.size() * point / 10; ++i) {
      const Unit& u = heads[i];
      auto& edit =
          v.edits.try_emplace(u.layer, BlockEdit{spec.blocks[static_cast<size_t>(u.layer)], 0}).first->second;
      edit.spec.attention().heads_off.push_back(u.index);
    }
    pruned.push_back(std::move(v));
  }
  const double whole = evaluator->bound({});  // one pass of the blocks, and the logits
  line("pruning curve, 10 points", 10 * whole, -1, [&] { evaluator->run(pruned); });
  std::vector<Variation> everywhere, one;
  for (const int64_t rank : {1, 2, 4, 8, 16, 32}) {
    std::map<int64_t, BlockEdit> all;
    for (int64_t l = 0; l < spec.depth(); ++l) {
      const BlockEdit cut = cut_to(spec.blocks[static_cast<size_t>(l)], "qk", rank);
      one.push_back({l, {}, Replacement::zero, {{l, cut}}});
      all.emplace(l, cut);
    }
    everywhere.push_back({0, {}, Replacement::zero, std::move(all)});
  }
  line("six QK ranks, all layers", 6 * whole, -1, [&] { evaluator->run(everywhere); });
  // A layer and those behind it, (depth + 1) / 2 of them on average, and the logits.
  const auto depth = static_cast<double>(spec.depth());
  line("six QK ranks, each layer", 6 * depth * ((depth + 1) / (2 * depth) + whole - 1), -1,
       [&] { evaluator->run(one); });
  return 0;
}

}  // namespace
}  // namespace rankscope

int main(int argc, char** argv) {
  const std::string shape = argc > 1 ? argv[1] : "bert-base";
  const int64_t samples = argc > 2 ? std::atoll(argv[2]) : 8, tokens = argc > 3 ? std::atoll(argv[3]) : 128;
  const std::string device = argc > 4 ? argv[4] : "cpu";
  rankscope::use_threads(argc > 5 ? std::atoi(argv[5]) : 0);
  return rankscope::run(shape, samples, tokens, device);
}
