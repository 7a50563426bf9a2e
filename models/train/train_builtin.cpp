// Trains the built-in model: a GPT-2 of six layers on one book, in a minute or two on a GPU.
//
//   train_builtin DATA MODEL.safetensors [--steps N] [--dropout P] [--lr X] [--seed N]
//
// DATA holds {train,valid,test}.bin from prepare.py. The book is small enough to be memorised, so the
// weights kept are those with the lowest loss on `valid`; `test` is read once, at the end, with the
// weights already rounded to the fp16 they are stored in: the printed number is the shipped model's.

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using torch::Tensor;

constexpr int64_t kLayers = 6, kHeads = 8, kWidth = 128, kVocab = 1024, kPositions = 256;
constexpr int64_t kBatch = 32;

struct Options {
  std::string data, out;
  int64_t steps = 6000, seed = 1851;
  double lr = 2e-3, dropout = 0.2, weight_decay = 0.1;
};

Options parse(int argc, char** argv) {
  if (argc < 3) throw std::invalid_argument("usage: train_builtin DATA MODEL.safetensors [--steps N] [--dropout P] ...");
  Options o{.data = argv[1], .out = argv[2]};
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string flag = argv[i], value = argv[i + 1];
    if (flag == "--steps") o.steps = std::stoll(value);
    else if (flag == "--seed") o.seed = std::stoll(value);
    else if (flag == "--lr") o.lr = std::stod(value);
    else if (flag == "--dropout") o.dropout = std::stod(value);
    else if (flag == "--decay") o.weight_decay = std::stod(value);
    else throw std::invalid_argument("unknown option " + flag);
  }
  return o;
}

Tensor read_tokens(const std::string& path, torch::Device device) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<int64_t> ids(bytes.size() / 2);
  for (size_t i = 0; i < ids.size(); ++i)
    ids[i] = static_cast<uint8_t>(bytes[2 * i]) | static_cast<uint8_t>(bytes[2 * i + 1]) << 8;
  return torch::tensor(ids).to(device);
}

// Named as Hugging Face names them, so that saving needs no map.
using Weights = std::map<std::string, Tensor>;

Weights init_weights(torch::Device device) {
  Weights w;
  auto normal = [&](const std::string& name, std::vector<int64_t> shape, double std) {
    w["transformer." + name] = (torch::randn(shape) * std).to(device);
  };
  auto linear = [&](const std::string& name, int64_t in, int64_t out, double std) {
    normal(name + ".weight", {in, out}, std);  // GPT-2 stores [in, out]
    w["transformer." + name + ".bias"] = torch::zeros({out}, device);
  };
  auto norm = [&](const std::string& name) {
    w["transformer." + name + ".weight"] = torch::ones({kWidth}, device);
    w["transformer." + name + ".bias"] = torch::zeros({kWidth}, device);
  };
  const double std = 0.02, residual_std = std / std::sqrt(2.0 * kLayers);
  normal("wte.weight", {kVocab, kWidth}, std);
  normal("wpe.weight", {kPositions, kWidth}, std);
  for (int64_t l = 0; l < kLayers; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    norm(h + "ln_1");
    linear(h + "attn.c_attn", kWidth, 3 * kWidth, std);
    linear(h + "attn.c_proj", kWidth, kWidth, residual_std);
    norm(h + "ln_2");
    linear(h + "mlp.c_fc", kWidth, 4 * kWidth, std);
    linear(h + "mlp.c_proj", 4 * kWidth, kWidth, residual_std);
  }
  norm("ln_f");
  return w;
}

Tensor logits(const Weights& w, const Tensor& ids, double dropout) {
  const bool training = dropout > 0;
  const int64_t batch = ids.size(0), tokens = ids.size(1), head = kWidth / kHeads;
  auto at = [&](const std::string& name) { return w.at("transformer." + name); };
  auto linear = [&](const Tensor& x, const std::string& name) {
    return torch::matmul(x, at(name + ".weight")) + at(name + ".bias");
  };
  auto norm = [&](const Tensor& x, const std::string& name) {
    return torch::layer_norm(x, {kWidth}, at(name + ".weight"), at(name + ".bias"), 1e-5);
  };
  auto drop = [&](const Tensor& x) { return training ? torch::dropout(x, dropout, true) : x; };

  const Tensor future = torch::ones({tokens, tokens}, ids.options().dtype(torch::kBool)).triu(1);
  Tensor x = drop(torch::embedding(at("wte.weight"), ids) + at("wpe.weight").slice(0, 0, tokens));
  for (int64_t l = 0; l < kLayers; ++l) {
    const std::string h = "h." + std::to_string(l) + ".";
    const auto qkv = linear(norm(x, h + "ln_1"), h + "attn.c_attn")
                         .view({batch, tokens, 3, kHeads, head}).permute({2, 0, 3, 1, 4}).unbind(0);
    Tensor scores = torch::matmul(qkv[0], qkv[1].transpose(-1, -2)) / std::sqrt(static_cast<double>(head));
    scores = scores.masked_fill(future, -INFINITY);
    const Tensor mixed = torch::matmul(drop(torch::softmax(scores, -1)), qkv[2]);
    x = x + drop(linear(mixed.transpose(1, 2).reshape({batch, tokens, kWidth}), h + "attn.c_proj"));
    x = x + drop(linear(torch::gelu(linear(norm(x, h + "ln_2"), h + "mlp.c_fc"), "tanh"), h + "mlp.c_proj"));
  }
  return torch::matmul(norm(x, "ln_f"), at("wte.weight").t());
}

Tensor loss(const Weights& w, const Tensor& windows, double dropout) {
  const Tensor out = logits(w, windows, dropout);
  return torch::nn::functional::cross_entropy(out.slice(1, 0, -1).reshape({-1, kVocab}),
                                              windows.slice(1, 1).reshape({-1}));
}

// Mean over disjoint windows of the full context, the remainder dropped.
double evaluate(const Weights& w, const Tensor& tokens) {
  torch::NoGradGuard no_grad;
  const int64_t count = tokens.size(0) / kPositions;
  const Tensor windows = tokens.slice(0, 0, count * kPositions).view({count, kPositions});
  double sum = 0;
  for (const Tensor& part : windows.split(kBatch)) sum += loss(w, part, 0).item<double>() * part.size(0);
  return sum / count;
}

double learning_rate(const Options& o, int64_t step) {
  const double warmup = 200, floor = 0.05;
  if (step < warmup) return o.lr * (step + 1) / warmup;
  const double progress = (step - warmup) / std::max(1.0, o.steps - warmup);
  return o.lr * (floor + (1 - floor) * 0.5 * (1 + std::cos(M_PI * progress)));
}

Weights copy(const Weights& w, torch::ScalarType type) {
  Weights out;
  for (const auto& [name, value] : w) out[name] = value.detach().to(type, /*non_blocking=*/false, /*copy=*/true);
  return out;
}

// The whole format: length of the header, the header, the bytes.
void save_safetensors(const Weights& w, const std::string& path) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  int64_t at = 0;
  for (const auto& [name, value] : w) {
    header += ",\"" + name + R"(":{"dtype":"F16","shape":[)";
    for (int64_t d = 0; d < value.dim(); ++d) header += (d ? "," : "") + std::to_string(value.size(d));
    header += "],\"data_offsets\":[" + std::to_string(at) + ",";
    at += value.numel() * 2;
    header += std::to_string(at) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::ofstream file(path, std::ios::binary);
  const uint64_t length = header.size();
  for (int shift = 0; shift < 64; shift += 8) file.put(static_cast<char>(length >> shift & 255));
  file << header;
  for (const auto& [name, value] : w) {
    const Tensor bytes = value.cpu().contiguous();
    file.write(static_cast<const char*>(bytes.data_ptr()), bytes.numel() * 2);
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

void train(const Options& o) {
  const torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
  torch::manual_seed(o.seed);
  std::mt19937_64 random(o.seed);

  const Tensor tokens = read_tokens(o.data + "/train.bin", device);
  const Tensor valid = read_tokens(o.data + "/valid.bin", device);
  const Tensor test = read_tokens(o.data + "/test.bin", device);

  Weights w = init_weights(device);
  std::vector<Tensor> matrices, vectors, all;
  for (auto& [name, value] : w) {
    value.set_requires_grad(true);
    (value.dim() > 1 ? matrices : vectors).push_back(value);
    all.push_back(value);
  }
  using torch::optim::AdamWOptions;
  auto options = [&](double decay) {
    return std::make_unique<AdamWOptions>(AdamWOptions(o.lr).betas({0.9, 0.98}).weight_decay(decay));
  };
  torch::optim::AdamW optimizer({{matrices, options(o.weight_decay)}, {vectors, options(0)}}, AdamWOptions(o.lr));

  const Tensor offsets = torch::arange(kPositions, tokens.options());
  std::uniform_int_distribution<int64_t> start(0, tokens.size(0) - kPositions);
  Weights best;
  double best_loss = INFINITY;
  for (int64_t step = 0; step < o.steps; ++step) {
    std::vector<int64_t> starts(kBatch);
    for (auto& s : starts) s = start(random);
    const Tensor windows = tokens.index({torch::tensor(starts).to(device).unsqueeze(1) + offsets});
    for (auto& group : optimizer.param_groups()) group.options().set_lr(learning_rate(o, step));
    optimizer.zero_grad();
    const Tensor current = loss(w, windows, o.dropout);
    current.backward();
    torch::nn::utils::clip_grad_norm_(all, 1.0);
    optimizer.step();
    if ((step + 1) % 200 == 0 || step + 1 == o.steps) {
      const double held_out = evaluate(w, valid);
      std::cout << "step " << step + 1 << " train " << current.item<double>() << " valid " << held_out << std::endl;
      if (held_out < best_loss) {
        best_loss = held_out;
        best = copy(w, torch::kFloat32);
      }
    }
  }

  const Weights stored = copy(best, torch::kFloat16);
  const Weights rounded = copy(stored, torch::kFloat32);
  save_safetensors(stored, o.out);
  std::cout.precision(6);
  std::cout << "stored weights: valid " << evaluate(rounded, valid) << " test " << evaluate(rounded, test) << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    train(parse(argc, argv));
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 1;
  }
}
