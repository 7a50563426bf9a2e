// Question: what does looking cost? A scan with every metric of `full` against the plain forward pass of the
// same weights through LibTorch, in the same run.
//
//   bench: scan_bench [--threads N] [--samples N]        BERT-base shape, 32 x 128 tokens, on the CPU
//          goal: scan <= 1.45 forward passes; --processor-time: core-seconds, for a machine that is not idle
//   bench: scan_bench --device cuda [--case NAME]        the cases of bench/scan_cases.h, as on a GPU
//          --device-memory GIB: the same numbers with so much of the device's memory?
//   bench: scan_bench --lengths [--threads N]            user time over that of --lens massive, 128 to 2,048
//          tokens a sample; goal 1.5, 1.7, 2.2, 2 and 1.8
//   bench: scan_bench --slopes [--device cuda]           growth with tokens, layers, heads and samples
#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error.h"
#include "gpu_scans.h"
#include "observed_pass.h"
#include "plain_forward.h"
#include "scan_lengths.h"
#include "scan_slopes.h"
#include "support/temporary_folder.h"
#include "timed_lenses.h"

namespace rankscope {
namespace {

double median_of(int repeats, const std::function<void()>& call) {
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) times.push_back(seconds(call));
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

int on_the_cpu(int threads, int64_t samples) {
  use_threads(threads);
  const TemporaryFolder folder;
  test::write_random_checkpoint(folder.path(), test::bert_config(), StoredType::f32);
  const Checkpoint checkpoint(folder.path());
  at::manual_seed(1);
  const at::Tensor ids = at::randint(0, 30522, {samples, 128}, at::kLong);
  const PlainForward plain(checkpoint, "cpu");
  const auto source = checkpoint_source(checkpoint, "float32", "cpu");
  const auto pass = [&](const std::vector<const Lens*>& chosen) {
    return observed_pass(checkpoint, *source, ids, chosen, "cpu", 8);
  };

  // Verify, then time: both must give the same last hidden state.
  const auto in_double = checkpoint_source(checkpoint, "float64", "cpu");
  const at::Tensor exact = observed_pass(checkpoint, *in_double, ids, {}, "cpu", 8);
  if (!same_hidden_state(pass({}), plain.forward(ids), exact)) return 1;

  // The better of one batch and batches of the size we use: small ones spare the allocator.
  const double at_once = median_of(3, [&] { plain.forward(ids); });
  const double in_batches = median_of(3, [&] {
    for (const at::Tensor& part : ids.split(8)) plain.forward(part);
  });
  const double forward = std::min(at_once, in_batches);
  const double flops = static_cast<double>(samples) * forward_flops(checkpoint.spec(), 128);
  const at::Tensor square = at::randn({768, 768});
  const double rate = 2.0 * 768 * 768 * 768 * 20 / median_of(3, [&] {
                        for (int i = 0; i < 20; ++i) at::mm(square, square);
                      });
  fmt::print("BERT-base shape, {} x 128 tokens, {} threads, LibTorch {}{}\n", samples, thread_count(),
             torch_version(), processor_time ? ", core-seconds" : "");
  fmt::print("{:<32} {:>9} {:>14}\n", "what", "seconds", "forward passes");
  const auto line = [&](const std::string& what, double t) {
    fmt::print("{:<32} {:>9.2f} {:>14.2f}\n", what, t, t / forward);
  };
  line("limit (matrix rate)", flops / rate);
  line("plain LibTorch, one batch", at_once);
  line("plain LibTorch, batches of 8", in_batches);
  line("our pass, no lens", median_of(3, [&] { pass({}); }));
  const std::vector<Lens> timed = timed_lenses("cpu");
  std::vector<const Lens*> all;
  for (const Lens& lens : timed) all.push_back(&lens);
  pass(all);
  for (size_t i = 0; i < timed.size(); ++i)
    line(fmt::format("  lens {}{}", timed[i].name, timed[i].on_request ? " (on request)" : ""),
         lens_seconds[i]);
  const double scan = median_of(3, [&] { pass(choose_lenses({})); });
  line("scan, every metric", scan);
  fmt::print("scan / plain forward = {:.2f} (goal: at most 1.45)\n", scan / forward);
  return 0;
}

int run(int argc, char** argv) {
  const c10::NoGradGuard no_grad;
  std::string device = "cpu", only;
  int threads = 0;
  int64_t samples = 32;
  double memory = 0;
  bool lengths = false, slopes = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (word == "--device")
      device = value();
    else if (word == "--case")
      only = value();
    else if (word == "--threads")
      threads = std::atoi(value().c_str());
    else if (word == "--lengths")
      lengths = true;
    else if (word == "--device-memory")
      memory = std::atof(value().c_str());
    else if (word == "--slopes")
      slopes = true;
    else if (word == "--samples")
      samples = std::max<int64_t>(1, std::atoll(value().c_str()));
    else if (word == "--processor-time")
      processor_time = true;
    else
      throw usage_error(
          "expected --device NAME, --case NAME, --device-memory GIB, --threads N, --samples N, --lengths, "
          "--slopes or "
          "--processor-time, but got " +
          word);
  }
  if (lengths) return scan_lengths(threads > 0 ? threads : 2, argv[0]);
  if (slopes) return scan_slopes(device);
  if (device == "cpu" && only.empty()) return on_the_cpu(threads > 0 ? threads : 2, samples);
  return gpu_scans(device, only, threads, static_cast<int64_t>(memory * (1 << 30)));
}

}  // namespace
}  // namespace rankscope

int main(int argc, char** argv) {
  try {
    return rankscope::run(argc, argv);
  } catch (const rankscope::Error& e) {
    fmt::print(stderr, "{}", e.render());
    return 1;
  }
}
