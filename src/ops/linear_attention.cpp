#include "ops/linear_attention.h"

#include <fmt/format.h>
#include <torch/library.h>

#include <cmath>
#include <map>
#include <tuple>

#include "base/error.h"
#include "kernels/cpu/running_attention.h"
#include "kernels/cuda/running_attention.h"
#include "ops/checks.h"
#include "ops/chunks.h"
#include "ops/function.h"
#include "ops/fused.h"
#include "ops/linear_attention_kernels.h"
#include "ops/monomial_table.h"
#include "ops/sequences.h"
#include "ops/stream.h"

namespace rankscope {
namespace {

using at::Tensor;

static_assert(kPairTokens == kRunningChunk);

// What a call may work in on a thread: the table of monomials, and a state with those of a chunk of tokens.
constexpr double kMostWorkGiB = 8;

double state_rows_of(int64_t width, int64_t degree) {
  if (degree == 0) return static_cast<double>(width);
  double count = 1;
  for (int64_t l = 1; l <= degree; ++l)
    count = count * static_cast<double>(width + l) / static_cast<double>(l);
  return count;
}

double work_gib(const Tensor& q, const Tensor& v, int64_t degree) {
  constexpr double kTableBytes = 32;  // of a row, while the table is made
  constexpr double kChunks = 3;       // of monomials: of queries, of keys, and their gradients
  const double columns = static_cast<double>(v.size(2)) + kChunks * static_cast<double>(kPairTokens);
  return state_rows_of(q.size(2), degree) * 0x1p-30 *
         (kTableBytes + columns * static_cast<double>(q.element_size()));
}

// What kernels are told, with the monomials on the operands' device.
struct Shape {
  std::shared_ptr<const MonomialTable> table;
  std::vector<Tensor> there;  // the table on a GPU
  LinearAttention kernel;

  Shape(const Tensor& q, const Tensor& v, int64_t degree) {
    kernel = {q.size(1), q.size(2), v.size(2), static_cast<int>(degree)};
    if (degree == 0) return;
    table = monomial_table(q.size(2), degree);
    kernel.monomials = table->view();
    if (!q.is_cuda()) return;
    there = on_device(*table, q.size(2), degree, q.device());
    kernel.packed.channels = reinterpret_cast<const uint32_t*>(there[0].data_ptr<int32_t>());
    kernel.packed.factor = there[1].data_ptr<float>();
  }

 private:
  // Kept, so that no step uploads them again.
  static std::vector<Tensor> on_device(const MonomialTable& table, int64_t width, int64_t degree,
                                       const at::Device& device) {
    thread_local std::map<std::tuple<std::string, int64_t, int64_t>, std::vector<Tensor>> known;
    std::vector<Tensor>& all = known[{device.str(), width, degree}];
    if (!all.empty()) return all;
    const PackedTable packed = pack(table.view());
    all = {at::tensor(at::ArrayRef<int32_t>(packed.channels), at::kInt).to(device),
           at::tensor(at::ArrayRef<float>(packed.factor), at::kFloat).to(device)};
    return all;
  }
};

const float* floats_of(const Tensor& x) { return x.numel() == 0 ? nullptr : x.data_ptr<float>(); }

// LibTorch 1.13 takes no undefined tensors here: an absent keep is a vector of no elements.
class LinearAttentionFunction : public torch::autograd::Function<LinearAttentionFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& q_, const Tensor& k_,
                        const Tensor& v_, const Tensor& keep_, int64_t degree) {
    const Tensor q = q_.contiguous(), k = k_.contiguous(), v = v_.contiguous(), keep = keep_.contiguous();
    context->save_for_backward({q, k, v, keep});
    context->saved_data["degree"] = degree;
    return linear_attention_values(q, k, v, keep, degree);
  }

  static Variables backward(torch::autograd::AutogradContext* context, const Variables& gradients) {
    refuse_second_derivatives();
    const Variables saved = context->get_saved_variables();
    Variables d =
        linear_attention_gradients(saved[0], saved[1], saved[2], saved[3],
                                   context->saved_data["degree"].toInt(), gradients[0].contiguous());
    d.resize(5);
    return d;
  }
};

Tensor polynomial(const Tensor& s, int64_t degree) {
  if (degree == 0) return s;
  Tensor f = s / degree + 1;  // Horner: 1 + s (1 + s / 2 (1 + s / 3))
  for (int64_t l = degree - 1; l >= 1; --l) f = f * s / l + 1;
  return f;
}

}  // namespace

Tensor linear_attention_values(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& keep,
                               int64_t degree) {
  const Tensor out = at::empty(v.sizes(), v.options());
  const Shape shape(q, v, degree);
  if (q.is_cuda()) {
    const Tensor work =
        at::empty({cuda::linear_attention_workspace(shape.kernel, q.size(0), false)}, q.options());
    cuda::linear_attention_forward(shape.kernel, q.size(0), tf32_allowed(), floats_of(q), floats_of(k),
                                   floats_of(v), floats_of(keep), out.data_ptr<float>(),
                                   work.data_ptr<float>(), current_stream(q));
    return out;
  }
  over_sequences(q, [&]<class T>(T, int64_t b) {
    linear_attention_forward<T>(shape.kernel, of_sequence<T>(q, b), of_sequence<T>(k, b),
                                of_sequence<T>(v, b), of_sequence<T>(keep, b), of_sequence<T>(out, b));
  });
  return out;
}

std::vector<Tensor> linear_attention_gradients(const Tensor& q, const Tensor& k, const Tensor& v,
                                               const Tensor& keep, int64_t degree, const Tensor& dout) {
  const Tensor dq = at::empty_like(q), dk = at::empty_like(k), dv = at::empty_like(v);
  const Shape shape(q, v, degree);
  if (q.is_cuda()) {
    const Tensor work =
        at::empty({cuda::linear_attention_workspace(shape.kernel, q.size(0), true)}, q.options());
    cuda::linear_attention_backward(shape.kernel, q.size(0), tf32_allowed(), floats_of(q), floats_of(k),
                                    floats_of(v), floats_of(keep), floats_of(dout), dq.data_ptr<float>(),
                                    dk.data_ptr<float>(), dv.data_ptr<float>(), work.data_ptr<float>(),
                                    current_stream(q));
    return {dq, dk, dv};
  }
  over_sequences(q, [&]<class T>(T, int64_t b) {
    linear_attention_backward<T>(shape.kernel, of_sequence<T>(q, b), of_sequence<T>(k, b),
                                 of_sequence<T>(v, b), of_sequence<T>(keep, b), of_sequence<T>(dout, b),
                                 of_sequence<T>(dq, b), of_sequence<T>(dk, b), of_sequence<T>(dv, b));
  });
  return {dq, dk, dv};
}

bool linear_attention_is_fused(const Tensor& q, const Tensor& v, int64_t degree) {
  if (const double work = work_gib(q, v, degree); work > kMostWorkGiB) {
    if (q.size(1) <= kPairTokens) return false;  // the plain composition has no state there
    throw usage_error(fmt::format(
        "a width of {} makes a state of {:.3g} rows by {} at degree {}, which works in {:.3g} GiB: more than "
        "the {} allowed",
        q.size(2), state_rows_of(q.size(2), degree), v.size(2), degree, work, kMostWorkGiB));
  }
  return fused_for(q) && (!q.is_cuda() || cuda::running_attention_takes(q.size(2), degree));
}

int64_t monomial_count(int64_t width, int64_t degree) { return std::llround(state_rows_of(width, degree)); }

Tensor monomials(const Tensor& x, int64_t degree) {
  if (degree == 0) return x;
  const auto table = monomial_table(x.size(-1), degree);
  std::vector<Tensor> levels{at::ones_like(x.narrow(-1, 0, 1))};
  for (size_t l = 1; l + 1 < table->begins.size(); ++l) {
    const auto from = static_cast<size_t>(table->begins[l]), to = static_cast<size_t>(table->begins[l + 1]);
    const auto part = [&](const auto& all, at::ScalarType type) {
      using Number = typename std::decay_t<decltype(all)>::value_type;
      const std::vector<Number> own(all.begin() + static_cast<int64_t>(from),
                                    all.begin() + static_cast<int64_t>(to));
      return at::tensor(at::ArrayRef<Number>(own), type).to(x.device());
    };
    const Tensor parent = part(table->parent, at::kLong) - table->begins[l - 1];
    levels.push_back(levels.back().index_select(-1, parent) *
                     x.index_select(-1, part(table->channel, at::kLong)) *
                     part(table->factor, x.scalar_type()));
  }
  return at::cat(levels, -1);
}

Tensor linear_attention_reference(const Tensor& q_, const Tensor& k_, const Tensor& v_, const Tensor& keep,
                                  int64_t degree) {
  const int64_t T = q_.size(1);
  if (T == 0) return v_.clone();
  const Tensor q = in_chunks(q_), k = in_chunks(k_), v = in_chunks(v_);
  const KeptInChunks kept(keep.defined() ? keep.detach() : keep);
  const Tensor f = polynomial(at::matmul(q, k.transpose(2, 3)), degree);
  Tensor out = at::matmul(kept.G.defined() ? f * kept.G : f.tril(), v);
  const int64_t chunks = q.size(1);
  if (chunks > 1) {
    const std::vector<Tensor> whole = of_each_chunk(kept.whole, chunks);
    const std::vector<Tensor> written = of_each_chunk(
        at::matmul(KeptInChunks::times(monomials(k, degree), kept.to_end).transpose(2, 3), v), chunks);
    std::vector<Tensor> states{at::zeros_like(written.front())};
    for (size_t c = 0; c + 1 < written.size(); ++c)
      states.push_back(KeptInChunks::times(states.back(), whole[c]) + written[c]);
    out = out + at::matmul(KeptInChunks::times(monomials(q, degree), kept.before), at::stack(states, 1));
  }
  return out_of_chunks(out, T);
}

Tensor linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& keep,
                        int64_t degree) {
  if (!linear_attention_is_fused(q, v, degree)) return linear_attention_reference(q, k, v, keep, degree);
  const Tensor none = at::empty({0}, q.options());
  return LinearAttentionFunction::apply(q, k, v, keep.defined() ? keep.detach() : none, degree);
}

// By name, from Python and other programs: checked first, since the functions above trust their callers.
namespace {

Tensor call_linear_attention(const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& keep,
                             int64_t degree) {
  require_running(q, k, v);
  if (keep.has_value()) require_each_token(*keep, q, "keep");
  require(degree >= 0 && degree <= kMaxDegree,
          fmt::format("the degree is a number from 0 to {}, not {}", kMaxDegree, degree));
  return linear_attention(q, k, v, or_none(keep), degree);
}

}  // namespace
}  // namespace rankscope

TORCH_LIBRARY_FRAGMENT(rankscope, m) {
  m.def("linear_attention(Tensor q, Tensor k, Tensor v, Tensor? keep=None, int degree=0) -> Tensor",
        rankscope::call_linear_attention);
}
