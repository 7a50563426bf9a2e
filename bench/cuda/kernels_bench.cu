// Question: how close do the CUDA kernels come to the memory's speed? Milliseconds a call, the bytes that
// must move (each operand read once, each result written once) a second, and the ratio of the time to that of
// a plain copy of as many bytes, measured in the same run. The MLP is bound by its products, the spectra
// by the traffic of their reduction, printed instead.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "kernels/cuda/mlp.h"
#include "kernels/cuda/neighbours.h"
#include "kernels/cuda/projected_attention.h"
#include "kernels/cuda/skip_norm.h"
#include "kernels/cuda/squared_error.h"
#include "kernels/cuda/train.h"
#include "kernels/cuda/tridiagonal.h"

namespace rankscope {
namespace {

void require(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

// Device memory filled with normals: zeros would flatter.
class Floats {
 public:
  explicit Floats(int64_t count) {
    require(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(float)));
    uint64_t* seed = nullptr;
    int64_t* step = nullptr;
    require(cudaMalloc(reinterpret_cast<void**>(&seed), sizeof *seed));
    require(cudaMalloc(reinterpret_cast<void**>(&step), sizeof *step));
    require(cudaMemset(seed, 7, sizeof *seed));
    require(cudaMemset(step, 0, sizeof *step));
    cuda::fill_normals(1, seed, 0, step, count, data_, nullptr);
    require(cudaDeviceSynchronize());
    cudaFree(seed);
    cudaFree(step);
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  ~Floats() { cudaFree(data_); }
  operator float*() const { return data_; }

 private:
  float* data_ = nullptr;
};

// Median over batches of calls, captured as a graph so that launches cost nothing.
double milliseconds(const std::function<void(cudaStream_t)>& call) {
  constexpr int kCalls = 10, kBatches = 9;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaEvent_t start, end;
  require(cudaStreamCreate(&stream));
  require(cudaEventCreate(&start));
  require(cudaEventCreate(&end));
  require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (int i = 0; i < kCalls; ++i) call(stream);
  require(cudaStreamEndCapture(stream, &graph));
  require(cudaGraphInstantiate(&ready, graph, 0));
  require(cudaGraphLaunch(ready, stream));
  std::vector<float> times;
  for (int i = 0; i < kBatches; ++i) {
    require(cudaEventRecord(start, stream));
    require(cudaGraphLaunch(ready, stream));
    require(cudaEventRecord(end, stream));
    require(cudaEventSynchronize(end));
    float ms = 0;
    require(cudaEventElapsedTime(&ms, start, end));
    times.push_back(ms / kCalls);
  }
  std::nth_element(times.begin(), times.begin() + kBatches / 2, times.end());
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaEventDestroy(start);
  cudaEventDestroy(end);
  cudaStreamDestroy(stream);
  return times[kBatches / 2];
}

double copy_rate = 0;  // bytes a second, read and written

void report(const char* what, double bytes, const std::function<void(cudaStream_t)>& call) {
  const double ms = milliseconds(call);
  std::printf("%-52s %8.4f ms %8.0f GB/s %6.2f of a copy's time\n", what, ms, bytes / ms / 1e6,
              ms * 1e-3 * copy_rate / bytes);
}

__global__ void copy_kernel(const float4* from, float4* to) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

void measure_copy() {
  constexpr int64_t kVectors = int64_t{1} << 26, kThreads = 256;
  const Floats from(4 * kVectors), to(4 * kVectors);
  const double ms = milliseconds([&](cudaStream_t s) {
    copy_kernel<<<kVectors / kThreads, kThreads, 0, s>>>(
        reinterpret_cast<const float4*>(static_cast<float*>(from)),
        reinterpret_cast<float4*>(static_cast<float*>(to)));
  });
  copy_rate = 2.0 * kVectors * sizeof(float4) / (ms * 1e-3);
  std::printf("copy: %.0f GB/s\n", copy_rate / 1e9);
}

struct Case {
  int64_t trials, sequences, tokens, columns, head_width;
  bool hard = false;
};

// Q, K and V are slices of one projection, as in the trainer.
void attention(const Case& c) {
  const std::vector<int32_t> heads(c.trials, static_cast<int32_t>(c.columns / c.head_width));
  const std::vector<float> scale(c.trials,
                                 static_cast<float>(1 / std::sqrt(static_cast<double>(c.head_width))));
  const int64_t rows = c.sequences * c.tokens, each = c.trials * rows * c.columns;
  const Rows fused{3 * rows * c.columns, 3 * c.columns}, dense{rows * c.columns, c.columns};
  const Floats qkv(3 * each), dqkv(3 * each), out(each), dout(each);
  SmallAttention a{c.trials,     c.sequences, c.tokens, c.tokens, c.columns, c.columns, heads.data(),
                   scale.data(), c.hard,      false,    fused,    fused,     fused,     dense};
  char what[96];
  std::snprintf(what, sizeof what, "attention %ldx%ldx%ld, %ld columns, width %ld%s", c.trials, c.sequences,
                c.tokens, c.columns, c.head_width, c.hard ? ", hard" : "");
  char name[112];
  std::snprintf(name, sizeof name, "%s, forward", what);
  report(name, 4.0 * each * sizeof(float), [&](cudaStream_t s) {
    cuda::small_attention_forward(a, qkv, qkv + c.columns, qkv + 2 * c.columns, out, s);
  });
  std::snprintf(name, sizeof name, "%s, backward", what);
  report(name, 7.0 * each * sizeof(float), [&](cudaStream_t s) {
    cuda::small_attention_backward(a, qkv, qkv + c.columns, qkv + 2 * c.columns, dout, dense, dqkv, fused,
                                   dqkv + c.columns, fused, dqkv + 2 * c.columns, fused, s);
  });
}

// From tokens and weights. Bytes: x is small, out is written; backward reads dout and writes dqkv.
void projected(int64_t trials, int64_t columns, int64_t head_width) {
  const int64_t sequences = 256, rows = sequences * cuda::kProjectedTokens, each = trials * rows * columns;
  const std::vector<int32_t> heads(trials, static_cast<int32_t>(columns / head_width));
  const std::vector<float> scale(trials, static_cast<float>(1 / std::sqrt(static_cast<double>(head_width))));
  const Floats x(trials * rows * 64), W(trials * 3 * columns * 64), b(trials * 3 * columns), out(each),
      dqkv(3 * each);
  const Rows dense{rows * columns, columns}, fused{3 * rows * columns, 3 * columns};
  const cuda::ProjectedAttention a{trials,          sequences, columns,          heads.data(), scale.data(),
                                   {rows * 64, 64}, dense,     3 * columns * 64, 3 * columns};
  char name[112];
  std::snprintf(name, sizeof name, "projected %ld, %ld columns, width %ld, forward", trials, columns,
                head_width);
  report(name, 1.0 * each * sizeof(float),
         [&](cudaStream_t s) { cuda::projected_attention_forward(a, x, W, b, out, s); });
  std::snprintf(name, sizeof name, "projected %ld, %ld columns, width %ld, backward", trials, columns,
                head_width);
  report(name, 4.0 * each * sizeof(float),
         [&](cudaStream_t s) { cuda::projected_attention_backward(a, x, W, b, out, dense, dqkv, fused, s); });
}

// Products of the MLP: their number in each kernel, and FLOP/s beside the time.
void mlp(int64_t trials) {
  const cuda::Mlp m{trials, 4096, 2048};
  const int64_t tokens = trials * m.rows * cuda::kMlpWidth, weights = trials * m.hidden * cuda::kMlpWidth;
  const int64_t splits = cuda::mlp_splits(m);
  const Floats x(tokens), y(tokens), dx(tokens), x_t(tokens), W(weights), W_t(weights), b(trials * m.hidden),
      dW_in(splits * weights), dW_out(splits * weights), db(splits * trials * m.hidden);
  uint32_t* signs = nullptr;
  require(cudaMalloc(reinterpret_cast<void**>(&signs), cuda::mlp_sign_words(m) * sizeof *signs));
  const double product = 2.0 * static_cast<double>(tokens * m.hidden);
  const auto line = [&](const char* what, int products, const std::function<void(cudaStream_t)>& call) {
    const double ms = milliseconds(call);
    std::printf("MLP of %2ld trials, %-35s %8.4f ms %8.0f TFLOP/s\n", trials, what, ms,
                products * product / ms / 1e9);
  };
  line("forward", 2, [&](cudaStream_t s) { cuda::mlp_forward(m, x, W, b, W_t, b, y, signs, s); });
  line("gradient of its input", 2,
       [&](cudaStream_t s) { cuda::mlp_backward_tokens(m, y, W, W_t, signs, dx, s); });
  line("gradients of its weights", 4, [&](cudaStream_t s) {
    cuda::mlp_backward_weights(m, {x, x_t}, {y, x_t}, W, b, W_t, dW_in, dW_out, db, s);
  });
  cudaFree(signs);
}

template <class T>
T* on_device(const std::vector<T>& values) {
  T* data = nullptr;
  require(cudaMalloc(reinterpret_cast<void**>(&data), values.size() * sizeof(T)));
  require(cudaMemcpy(data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return data;
}

// A layer's weights with the gradients as the trainer has them: Q, K and V beside their bias, W_O turned, the
// MLP dense, two gains.
void scattered_adamw(int64_t trials, int64_t qkv, int64_t values, const int64_t* steps, const float* lr,
                     const int32_t* alive) {
  const int64_t d = 64, wide = d + 8, hidden = 2048;
  std::vector<cuda::AdamWSegment> segments{
      {.rows = qkv, .columns = d, .row_stride = wide, .column_stride = 1, .trial_stride = qkv * wide},
      {.rows = 1, .columns = qkv, .row_stride = 0, .column_stride = wide, .trial_stride = qkv * wide},
      {.rows = d, .columns = values, .row_stride = 1, .column_stride = d, .trial_stride = values * d}};
  for (const int64_t count : {hidden * d, hidden, hidden * d, d, int64_t{1}, int64_t{1}})
    segments.push_back({.rows = 1, .columns = count, .trial_stride = count});
  int64_t size = 0, updated = 0, apart = 0;
  for (cuda::AdamWSegment& s : segments) {
    s.offset = size;
    updated += s.rows * s.columns;
    apart = std::max(apart, s.trial_stride);
    size = (size + s.rows * s.columns + 31) / 32 * 32;
  }
  const int64_t each = trials * apart;
  const Floats p(trials * size), m(trials * size), v(trials * size),
      g(static_cast<int64_t>(segments.size()) * each);
  for (size_t i = 0; i < segments.size(); ++i) segments[i].gradient = g + static_cast<int64_t>(i) * each;
  segments[1].gradient = segments[0].gradient + d;
  char what[80];
  std::snprintf(what, sizeof what, "AdamW, %ld x %ld parameters, scattered", trials, updated);
  report(what, 7.0 * trials * updated * sizeof(float), [&](cudaStream_t s) {
    cuda::adamw_update({}, trials, size, steps, lr, 1, alive, segments, p, m, v, s);
  });
}

void the_rest() {
  const int64_t trials = 21, sequences = 256, tokens = 16, d = 64, rows = sequences * tokens;
  const double bytes = static_cast<double>(trials * rows * d) * sizeof(float);
  const std::vector<uint64_t> seed_values(trials, 3);
  const std::vector<int64_t> step_values(trials, 0);
  const std::vector<int32_t> alive_values(trials, 1);
  uint64_t* seeds = on_device(seed_values);
  int64_t* steps = on_device(step_values);
  int32_t* alive = on_device(alive_values);
  const Floats x(trials * rows * d), u(trials * rows * d), y(trials * rows * d), dy(trials * rows * d),
      target(trials * rows * d), gain(trials * d), bias(trials * d), work(1 << 22), lr(trials);
  report("normals, 21 trials x 262144", bytes,
         [&](cudaStream_t s) { cuda::fill_normals(trials, seeds, 1, steps, rows * d, x, s); });
  report("farthest neighbours, 21 x 256 sequences, 16 x 64", 3 * bytes, [&](cudaStream_t s) {
    cuda::neighbour_targets(cuda::Neighbour::farthest, trials * sequences, tokens, 0, d, x, nullptr, target,
                            s);
  });
  const cuda::SkipNorm unit{cuda::SkipNormKind::unit, trials, rows, d, 1.0f, 0.0f, d, d};
  const cuda::SkipNorm layer{cuda::SkipNormKind::layer, trials, rows, d, 1.0f, 1e-5f, d, d};
  for (const auto& [name, n] : {std::pair{"unit norm", unit}, {"LayerNorm", layer}}) {
    char what[80];
    std::snprintf(what, sizeof what, "skip + %s, 21 x 4096 x 64, forward", name);
    report(what, 3 * bytes, [&](cudaStream_t s) { cuda::skip_norm_forward(n, x, u, gain, bias, y, s); });
    std::snprintf(what, sizeof what, "skip + %s, 21 x 4096 x 64, backward", name);
    report(what, 4 * bytes, [&](cudaStream_t s) {
      cuda::skip_norm_backward(n, x, u, gain, dy, y, nullptr, gain, bias, work, s);
    });
  }
  report("squared error, 21 x 4096 x 64", 3 * bytes, [&](cudaStream_t s) {
    cuda::squared_error({trials, rows, d, d}, x, target, lr, y, work, s);
  });
  for (const auto& [stack, count] : {std::pair<int64_t, int64_t>{21, 281000}, {1, 6646000}, {21, 6646000}}) {
    const Floats p(stack * count), g(stack * count), m(stack * count), v(stack * count);
    const cuda::AdamWSegment dense{
        .gradient = g, .offset = 0, .rows = 1, .columns = count, .trial_stride = count};
    char what[80];
    std::snprintf(what, sizeof what, "AdamW, %ld x %ld parameters", stack, count);
    report(what, 7.0 * stack * count * sizeof(float), [&](cudaStream_t s) {
      cuda::adamw_update({}, stack, count, steps, lr, 1, alive, {&dense, 1}, p, m, v, s);
    });
  }
  scattered_adamw(5, 12288, 4096, steps, lr, alive);
  scattered_adamw(trials, 192, 64, steps, lr, alive);
  cudaFree(seeds);
  cudaFree(steps);
  cudaFree(alive);
}

// Gram matrices of random rows, as a scan has them, to eigenvalues. The limit is the reduction's traffic:
// half the matrix read and written every step, where it does not fit into shared memory.
void spectra(int64_t count, int64_t size) {
  std::vector<double> one(size * size);
  for (int64_t i = 0; i < size; ++i)
    for (int64_t j = 0; j < size; ++j)
      one[i * size + j] = (i == j ? 2.0 : 0.0) + std::sin(1.0 + i + 7.0 * j + 7.0 * i + j);
  std::vector<double> all(count * size * size);
  for (int64_t k = 0; k < count; ++k) std::copy(one.begin(), one.end(), all.begin() + k * size * size);
  double *from = on_device(all), *g = on_device(all), *d = on_device(std::vector<double>(count * size)),
         *e = on_device(std::vector<double>(count * size)),
         *values = on_device(std::vector<double>(count * size));
  const size_t bytes = all.size() * sizeof(double);
  const auto restore = [&](cudaStream_t s) {
    require(cudaMemcpyAsync(g, from, bytes, cudaMemcpyDeviceToDevice, s));
  };
  const double copy = milliseconds(restore);
  const double both = milliseconds([&](cudaStream_t s) {
    restore(s);
    cuda::tridiagonalise(count, size, g, d, e, s);
  });
  const double bisect = milliseconds([&](cudaStream_t s) {
    cuda::tridiagonal_eigenvalues({count, size, 0, size}, d, e, nullptr, values, s);
  });
  const double reduce = both - copy, n = static_cast<double>(size);
  const double traffic = size <= cuda::kLongestAlone ? n * n * 4 : n * n * n / 6 * 16;
  std::printf("spectra of %ld %ldx%ld: reduction %.4f ms a matrix (%.2f TB/s), bisection %.4f ms a matrix\n",
              count, size, size, reduce / static_cast<double>(count),
              traffic * static_cast<double>(count) / reduce / 1e9, bisect / static_cast<double>(count));
  for (double* p : {from, g, d, e, values}) cudaFree(p);
}

}  // namespace

void all_spectra() {
  spectra(4608, 129);
  spectra(1024, 257);
  for (int64_t count : {16, 48, 128, 256, 528}) spectra(count, 513);
  spectra(132, 1025);
}

int bench(bool only_spectra) {
  measure_copy();
  if (only_spectra) {
    all_spectra();
    return 0;
  }
  for (int64_t width : {1, 2, 4, 8, 16, 32, 64, 128}) attention({1, 256, 16, 4096, width});
  for (int64_t width : {8, 16, 32, 64}) projected(5, 4096, width);
  for (int64_t width : {8, 64}) projected(5, 512, width);
  for (int64_t width : {8, 64}) projected(21, 64, width);
  for (int64_t width : {1, 8, 64}) attention({1, 256, 16, 512, width});
  for (int64_t width : {1, 2, 4, 8, 16, 32, 64}) attention({21, 256, 16, 64, width});
  for (int64_t tokens : {4, 8, 32, 64, 128, 256}) attention({1, 4096 / tokens, tokens, 512, 8});
  attention({1, 64, 64, 512, 64});
  attention({1, 256, 16, 512, 8, true});
  for (int64_t trials : {1, 5, 21}) mlp(trials);
  the_rest();
  all_spectra();
  return 0;
}

}  // namespace rankscope

int main(int argc, char** argv) { return rankscope::bench(argc > 1 && argv[1] == std::string("spectra")); }
