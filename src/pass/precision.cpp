#include "pass/precision.h"

#include <ATen/Context.h>
#include <c10/core/GradMode.h>

#include "base/error.h"
#include "model/block.h"
#include "model/embed_and_unembed.h"

namespace rankscope {

void allow_tf32(bool allowed) { at::globalContext().setFloat32MatmulPrecision(allowed ? "high" : "highest"); }

void check_precision(const ScanRequest& request) {
  if (request.precision == "float32") return;
  if (request.precision != "tf32") throw unknown_name("precision", request.precision, {"float32", "tf32"});
  if (request.device == "cpu")
    throw usage_error("TF32 is an arithmetic of GPUs").in("--precision tf32").hint("--device cuda");
  if (request.dtype != "float32")
    throw usage_error(fmt::format("TF32 rounds float32 products: {} has none", request.dtype))
        .in("--precision tf32");
}

double tf32_error(const ModelSpec& spec, WeightSource& source, const Batch& batch) {
  const c10::NoGradGuard no_grad;
  BlockObserver nobody;
  allow_tf32(false);
  at::Tensor exact = embed(batch, spec, source.load("embed"), source), rounded = exact;
  std::vector<at::Tensor> errors;
  for (const BlockSpec& block : spec.blocks) {
    const Weights weights = source.load(fmt::format("blocks.{}", block.weights));
    allow_tf32(false);
    exact = run_block(exact, block, weights, batch, nobody);
    allow_tf32(true);
    rounded = run_block(rounded, block, weights, batch, nobody);
    errors.push_back((exact - rounded).abs().max() / exact.abs().max());
  }
  return at::stack(errors).max().item<double>();
}

void add_precision(Json& manifest, const ScanRequest& request, const ModelSpec& spec, WeightSource& source,
                   const Batch& batch) {
  manifest["precision"] = request.precision;
  if (request.precision == "tf32") manifest["precision_error"] = tf32_error(spec, source, batch);
}

}  // namespace rankscope
