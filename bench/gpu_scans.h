// The cases of bench/scan_cases.h on a GPU: verified, timed as the second scan of a process on other tokens,
// beside the plain forward pass and the machine's limit, with the time inside each lens.
#pragma once

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "bench/graph.h"
#include "bench/machine.h"
#include "checkpoint/architecture.h"
#include "collapse/collapse.h"
#include "observed_pass.h"
#include "plain_forward.h"
#include "plain_metrics.h"
#include "scan/scan.h"
#include "scan_cases.h"
#include "support/temporary_folder.h"
#include "tensors/device.h"
#include "timed_lenses.h"

namespace rankscope {

inline ScanRequest request_of(const ScanCase& c, const std::filesystem::path& folder,
                              const std::string& device, uint64_t seed) {
  ScanRequest r;
  r.model = folder;
  r.random_tokens = true;
  r.samples = c.samples;
  r.max_length = c.tokens;
  r.batch_size = c.samples;  // a GPU wants few and large ones; halved where memory asks for it
  r.device = device;
  r.seed = seed;
  return r;
}

/// A small scan on both devices: the same rows, and how far apart their values are. Differences beyond what
/// float32 products in another order give mean that something is computed wrongly.
inline bool same_on_both(const ScanCase& c, const std::filesystem::path& folder, const std::string& device) {
  ScanRequest r = request_of(c, folder, device, 5);
  r.samples = 2;
  r.max_length = 24;
  r.lenses = {"residual", "attention", "similarity"};
  const ScanResult there = scan(r, {});
  r.device = "cpu";
  const ScanResult here = scan(r, {});
  if (here.table.rows.size() != there.table.rows.size()) {
    fmt::print("{} rows on the CPU, {} on {}: no times\n", here.table.rows.size(), there.table.rows.size(),
               device);
    return false;
  }
  double worst = 0;
  std::string at;
  for (size_t i = 0; i < here.table.rows.size(); ++i) {
    const Row &a = here.table.rows[i], &b = there.table.rows[i];
    const double difference = std::abs(a.value - b.value) / std::max(1e-3, std::abs(a.value));
    if (difference > worst) worst = difference, at = fmt::format("{} at {}", a.metric.str(), a.site.str());
  }
  fmt::print("{} and the CPU differ by at most {:.2g} ({})\n", device, worst, at);
  if (worst < 1e-2) return true;
  fmt::print("that is no rounding: no times\n");
  return false;
}

/// Seconds nobody can undercut: the products of a forward pass at the matrix rate; the traffic of the
/// tridiagonal reductions of patterns (8 n^3 / 3 bytes each, where a matrix does not fit the shared memory)
/// and one reading of every pattern; the stored weights over the bus.
struct ScanLimit {
  double products, traffic, bus;
  double seconds() const { return std::max({products + traffic, bus}); }
};

inline ScanLimit limit_of_scan(const ScanCase& c, const Checkpoint& checkpoint, const Machine& machine,
                               double bus_rate) {
  const ModelSpec& spec = checkpoint.spec();
  const auto samples = static_cast<double>(c.samples);
  double bytes = 0, stored = 0;
  for (const BlockSpec& block : spec.blocks) {
    const double patterns = samples * static_cast<double>(block.attention().heads);
    const double T = static_cast<double>(c.tokens), n = std::min(T, 512.0);
    bytes += patterns * (T * T * 4 + (n > 128 ? 8 * n * n * n / 3 : 0));
  }
  for (const auto& file : checkpoint.store().files())
    for (const auto& [name, entry] : file->tensors()) stored += static_cast<double>(entry.end - entry.begin);
  return {samples * forward_flops(spec, c.tokens) / machine.matrix_rate, bytes / machine.copy_rate,
          stored / bus_rate};
}

/// Bytes a second from pinned memory to the device.
inline double bus_rate_of(const std::string& device) {
  constexpr int64_t kBytes = int64_t{1} << 28;
  const at::Tensor from =
      at::ones({kBytes}, at::TensorOptions().dtype(at::kByte).pinned_memory(device != "cpu"));
  const at::Tensor to = at::empty({kBytes}, at::TensorOptions().dtype(at::kByte).device(device_of(device)));
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    finish(device);
    best = std::min(best, seconds([&] {
                      to.copy_(from, true);
                      finish(device);
                    }));
  }
  return static_cast<double>(kBytes) / best;
}

inline void print_lenses(const ScanCase& c, const Checkpoint& checkpoint, const std::string& device,
                         const at::Tensor& ids, double scan_seconds) {
  const auto source = checkpoint_source(checkpoint, "float32", device);
  const std::vector<Lens> timed = timed_lenses(device);
  std::vector<const Lens*> chosen;
  for (const Lens& lens : timed)
    if (!lens.on_request) chosen.push_back(&lens);
  observed_pass(checkpoint, *source, ids, chosen, device, c.samples);  // warms up
  lens_seconds.fill(0);
  observed_pass(checkpoint, *source, ids, chosen, device, c.samples);
  for (size_t i = 0; i < timed.size(); ++i)
    if (!timed[i].on_request)
      fmt::print("    lens {:<18} {:>9.3f} s {:>6.1f} % of the scan\n", timed[i].name, lens_seconds[i],
                 100 * lens_seconds[i] / scan_seconds);
  fmt::print("    our pass, no lens  {:>9.3f} s\n", seconds([&] {
               observed_pass(checkpoint, *source, ids, {}, device, c.samples);
               finish(device);
             }));
}

inline double forward_seconds(const PlainForward& plain, const at::Tensor& ids, const std::string& device) {
  const auto once = [&] {
    plain.forward(ids);
    finish(device);
  };
  once();
  double best = 1e30;
  for (int i = 0; i < 3; ++i) best = std::min(best, seconds(once));
  return best;
}

constexpr int64_t kPlainTokens = 512;  // longer attention matrices do not fit, written plainly

inline bool print_plain_metrics(const ScanCase& c, const Checkpoint& checkpoint, const std::string& device,
                                const at::Tensor& ids, double scan_seconds) {
  ResultTable rows;
  {
    const auto source = checkpoint_source(checkpoint, "float32", device);
    observed_pass(checkpoint, *source, ids, choose_lenses({"pattern_spectra"}), device, c.samples, &rows);
  }
  release_device_memory();
  const PlainForward plain(checkpoint, device);
  const bool good = time_plain_metrics(plain, ids.to(device_of(device)), rows, device, scan_seconds);
  release_device_memory();
  return good;
}

inline bool run_case(const ScanCase& c, Machine& machine, double bus_rate) {
  const std::string& device = machine.device;
  fmt::print("\n{}: {} x {} tokens, stored as {}\n", c.name, c.samples, c.tokens, to_string(c.stored));
  const TemporaryFolder folder;
  // Deviations that fall with the root of the width, as initialisations do: wide networks with larger ones
  // attend so sharply that two orders of rounding choose other keys.
  const double width = static_cast<double>(spec_from_config(c.config, "config.json").width);
  test::write_random_checkpoint(folder.path(), c.config, c.stored, 0.02 * std::sqrt(768 / width));
  const Checkpoint checkpoint(folder.path());
  at::manual_seed(1);
  const at::Tensor ids =
      at::randint(0, checkpoint.spec().embedding.vocabulary, {c.samples, c.tokens}, at::kLong);
  double forward = 0;
  {
    const PlainForward plain(checkpoint, device);
    const auto source = checkpoint_source(checkpoint, "float32", device);
    const at::Tensor there = ids.to(device_of(device));
    const auto in_double = checkpoint_source(checkpoint, "float64", device);
    if (!same_hidden_state(observed_pass(checkpoint, *source, ids, {}, device, c.samples),
                           plain.forward(there), observed_pass(checkpoint, *in_double, ids, {}, device, 1)))
      return false;
    forward = forward_seconds(plain, there, device);
  }
  release_device_memory();
  if (!same_on_both(c, folder.path(), device)) return false;
  const auto timed = [&](uint64_t seed) {
    return seconds([&] {
      if (c.collapse) {
        CollapseRequest r;
        r.scan = request_of(c, folder.path(), device, seed);
        r.preset = "factorial";
        r.theory = false;
        measure_collapse(r, {});
      } else {
        scan(request_of(c, folder.path(), device, seed), {});
      }
    });
  };
  const double first = timed(1), second = timed(2), third = timed(3);
  const double passes = second / forward, measured = c.collapse ? passes : second;
  fmt::print("  plain LibTorch forward {:>9.3f} s\n", forward);
  const ScanLimit limit = limit_of_scan(c, checkpoint, machine, bus_rate);
  if (!c.collapse)
    fmt::print(
        "  limit                  {:>9.3f} s (products {:.3f}, traffic {:.3f}, weights over the bus "
        "{:.3f})\n",
        limit.seconds(), limit.products, limit.traffic, limit.bus);
  fmt::print("  second scan            {:>9.3f} s, {:.2f} forward passes (first {:.3f}, third {:.3f})\n",
             second, passes, first, third);
  fmt::print("  must {} aim {}: {}\n", c.must, c.aim,
             measured <= c.aim    ? "aim reached"
             : measured <= c.must ? "reached"
                                  : "NOT reached");
  if (c.collapse) return true;
  const bool good = c.tokens > kPlainTokens || print_plain_metrics(c, checkpoint, device, ids, second);
  print_lenses(c, checkpoint, device, ids, second);
  return good;
}

/// The same scan with all of the device's memory and with `bytes` of it: how far apart the rows are. A sample
/// at a time in both, since less memory halves the batch and products of other shapes round otherwise.
inline bool same_with_less(const ScanCase& c, const std::string& device, int64_t bytes) {
  const TemporaryFolder folder;
  const double width = static_cast<double>(spec_from_config(c.config, "config.json").width);
  test::write_random_checkpoint(folder.path(), c.config, c.stored, 0.02 * std::sqrt(768 / width));
  ScanRequest r = request_of(c, folder.path(), device, 1);
  r.batch_size = 1;
  const auto timed = [&](ScanResult& into) { return seconds([&] { into = scan(r, {}); }); };
  ScanResult whole, limited;
  const double first = timed(whole);
  release_device_memory();
  r.device_memory = bytes;
  const double second = timed(limited);
  if (whole.table.rows.size() != limited.table.rows.size()) {
    fmt::print("{} rows with all of the memory, {} with {} bytes\n", whole.table.rows.size(),
               limited.table.rows.size(), bytes);
    return false;
  }
  size_t same = 0;
  double worst = 0;
  std::string at = "nowhere";
  for (size_t i = 0; i < whole.table.rows.size(); ++i) {
    const Row &a = whole.table.rows[i], &b = limited.table.rows[i];
    const double off = std::abs(a.value - b.value) / std::max(1e-3, std::abs(a.value));
    if (a.value == b.value) ++same;
    if (off > worst) worst = off, at = fmt::format("{} at {}", a.metric.str(), a.site.str());
  }
  fmt::print(
      "{}, {} x {} tokens: {:.2f} s with all of the memory, {:.2f} s with {:.2f} GiB; {} of {} rows are "
      "equal, the worst is off by {:.2g} ({})\n",
      c.name, c.samples, c.tokens, first, second, static_cast<double>(bytes) / (1 << 30), same,
      whole.table.rows.size(), worst, at);
  return worst < 1e-2;
}

inline int gpu_scans(const std::string& device, const std::string& only, int threads, int64_t memory) {
  Machine machine;
  machine.device = device;
  machine.threads = threads;
  machine.tf32 = false;
  use_machine(machine);
  measure_rates(machine);
  const double bus = bus_rate_of(device);
  fmt::print(
      "{}, {} threads, LibTorch {}: float32 products {:.1f} TFLOP/s, copies {:.2f} TB/s, bus {:.1f} GB/s\n",
      device, machine.threads, torch_version(), machine.matrix_rate / 1e12, machine.copy_rate / 1e12,
      bus / 1e9);
  bool known = false, good = true;
  std::vector<std::string> names;
  for (const ScanCase& c : scan_cases()) {
    names.push_back(c.name);
    if (!only.empty() && c.name != only) continue;
    known = true;
    good = (memory > 0 ? same_with_less(c, device, memory) : run_case(c, machine, bus)) && good;
  }
  if (!known) throw unknown_name("case", only, names);
  return good ? 0 : 1;
}

}  // namespace rankscope
