// rankscope verify: parity with activations saved from another implementation.
#include "scan/verify.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>

#include "cli/command.h"
#include "cli/engine.h"
#include "cli/model_folder.h"
#include "cli/options.h"
#include "cli/parity.h"

namespace rankscope {
namespace {

struct VerifyOptions {
  VerifyRequest request;
  double tolerance = kParityTolerance;
  bool json = false;
};

void print_verify(const std::vector<LayerError>& errors, const VerifyOptions& o, Io& io) {
  if (o.json) {
    io.out << parity_list(errors, o.tolerance).dump(2) << "\n";
    return;
  }
  io.out << fmt::format("{:<20} {:>12} {:>12} {:>12} {:>12}\n", "tensor", "largest err", "mean err",
                        "largest val", "ratio");
  for (const LayerError& e : errors)
    io.out << fmt::format("{:<20} {:>12.3g} {:>12.3g} {:>12.4g} {:>12.3g}{}\n", e.tensor, e.largest, e.mean,
                          e.magnitude, e.relative(), passes(e, o.tolerance) ? "" : "  FAIL");
}

int run_verify(VerifyOptions& o, Io& io) {
  o.request.model = model_folder(o.request.model, io);
  const std::vector<LayerError> errors = engine().verify(o.request);
  print_verify(errors, o, io);
  const LayerError& worst = worst_of(errors);
  const bool all = all_pass(errors, o.tolerance);
  if (!o.json)
    io.out << fmt::format("{}: worst ratio {:.3g} at {}, tolerance {:g}\n", all ? "agrees" : "DIFFERS",
                          worst.relative(), worst.tensor, o.tolerance);
  return all ? 0 : 1;
}

std::function<int(Io&)> prepare_verify(CLI::App& app) {
  auto o = std::make_shared<VerifyOptions>();
  app.add_option("FOLDER", o->request.model, "Hugging Face folder")->required();
  app.add_option("--against", o->request.against, "safetensors file of saved activations (below)")
      ->type_name("FILE")
      ->required();
  app.add_option("--tolerance", o->tolerance, "Largest error over largest value that passes")
      ->check(number_from())
      ->capture_default_str();
  app.add_option("--dtype", o->request.dtype, "float32 or float64")->capture_default_str();
  app.add_option("--device", o->request.device, "cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--threads", o->request.threads, "CPU threads, 0 for all cores")
      ->check(whole_number(0, 1024))
      ->capture_default_str();
  app.add_flag("--json", o->json, "One JSON array instead of a table");
  app.footer(
      "The file holds, as Hugging Face returns them: input_ids (or pixel_values), attention_mask, "
      "token_type_ids,\n"
      "hidden_states.0 to L, attentions.0 to L-1 (of layers that have a pattern), last_hidden_state, "
      "logits.\nWhat is not there is not compared.\n\n" +
      app.get_footer());
  return [o](Io& io) { return run_verify(*o, io); };
}

}  // namespace

extern const Command command_verify{
    .name = "verify",
    .summary = "Compare every layer with activations saved from another implementation",
    .examples =
        {"rankscope verify bert/ --against activations.safetensors",
         "rankscope verify bert/ --against activations.safetensors --dtype float64 --tolerance 1e-10"},
    .prepare = prepare_verify};

}  // namespace rankscope
