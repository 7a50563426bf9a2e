// Question: how much memory does a scan take? Peak resident memory above a process that has run one matrix
// product, against the bound: 3 float32 blocks of weights + 10 x samples x tokens x width x 4 bytes. Each
// case runs in a process of its own, so that one peak does not hide another.
//
//   bench: memory_bench [bert|llama|long|all]
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include "scan/scan.h"
#include "support/random_checkpoint.h"
#include "support/temporary_folder.h"
#include "tensors/torch_compat.h"

namespace rankscope {
namespace {

struct Cost {
  double seconds = 0, megabytes = 0;
  bool good = false;
};

// Runs `call` in a child and returns its peak resident memory.
Cost in_a_process(const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  if (child == 0) {
    try {
      call();
    } catch (const std::exception& e) {
      fmt::print(stderr, "{}\n", e.what());
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  struct rusage usage {};
  wait4(child, &status, 0, &usage);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  return {time.count(), static_cast<double>(usage.ru_maxrss) / 1024,
          WIFEXITED(status) && WEXITSTATUS(status) == 0};
}

void one_product() {
  use_threads(2);
  const at::Tensor a = at::ones({768, 768});
  at::mm(a, a);
}

int64_t block_elements(const ModelSpec& spec) {
  int64_t n = 0;
  for (const Parameter& p : parameters_of(spec, "blocks.0")) n += element_count(p);
  return n;
}

bool measure(const char* name, const std::string& config, StoredType type, int64_t samples, int64_t tokens,
             int64_t batch_size) {
  const TemporaryFolder folder;
  const ModelSpec spec = [&] {
    const Json json = parse_json(config, "config.json");
    const JsonObject object(json, "config.json");
    return architecture_for(object).spec(object);
  }();
  // Written in a process of its own: its buffers would count as ours.
  in_a_process([&] { test::write_random_checkpoint(folder.path(), config, type); });
  ScanRequest request;
  request.model = folder.path();
  request.random_tokens = true;
  request.samples = samples;
  request.max_length = tokens;
  request.batch_size = batch_size;
  request.threads = 2;
  const Cost base = in_a_process(one_product);
  const Cost cost = in_a_process([&] { scan(request, {}); });
  const double block = 4.0 * static_cast<double>(block_elements(spec)) / 1048576;
  const double activations = 4.0 * static_cast<double>(samples * tokens * spec.width) / 1048576;
  const double bound = 3 * block + 10 * activations, above = cost.megabytes - base.megabytes;
  const double file =
      static_cast<double>(std::filesystem::file_size(folder.path() / "model.safetensors")) / 1048576;
  fmt::print("{:<14} {:>8.0f} {:>9.0f} {:>9.0f} {:>9.0f} {:>8.2f} {:>9.1f}{}\n", name, file, base.megabytes,
             above, bound, above / bound, cost.seconds, cost.good ? "" : "  FAILED");
  return cost.good;
}

int run(const std::string& which) {
  fmt::print(
      "MiB of the file, of a process with one matrix product, of a scan above that, the bound, their ratio, "
      "seconds\n");
  fmt::print("{:<14} {:>8} {:>9} {:>9} {:>9} {:>8} {:>9}\n", "case", "file", "base", "above", "bound",
             "ratio", "seconds");
  bool good = true;
  const bool all = which == "all";
  if (all || which == "bert") good &= measure("bert-base", test::bert_config(), StoredType::f32, 32, 128, 8);
  if (all || which == "llama")
    good &= measure("llama-1.1B", test::llama_config(), StoredType::f16, 4, 128, 4);
  if (all || which == "long")
    good &= measure("llama 8192", test::llama_config(512, 2, 8, 2, 1408, 1000), StoredType::f16, 1, 8192, 1);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace rankscope

int main(int argc, char** argv) { return rankscope::run(argc > 1 ? argv[1] : "all"); }
