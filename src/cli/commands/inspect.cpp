// What a checkpoint is, from its config and the headers of its files: no weights are read.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <ostream>

#include "base/error.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/parity_records.h"
#include "cli/command.h"
#include "cli/model_folder.h"

namespace rankscope {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

struct InspectOptions {
  std::string folder;
  bool json = false, tensors = false, architectures = false;
};

// The largest errors on record of an architecture's fixtures; none where it has none.
struct Agreement {
  double float32 = 0, float64 = 0;
  int64_t fixtures = 0;
  bool formulas = false;
};

Agreement agreement_of(const Architecture& a) {
  Agreement out;
  for (const ParityRecord& r : parity_records()) {
    if (r.architecture != a.name) continue;
    out.float32 = std::max(out.float32, r.float32);
    out.float64 = std::max(out.float64, r.float64);
    out.formulas = out.formulas || r.formulas;
    ++out.fixtures;
  }
  return out;
}

const char* beside(const Agreement& g) { return g.formulas ? "the published formulas" : "the original"; }

void print_architectures(bool json, std::ostream& out) {
  OrderedJson all = OrderedJson::array();
  for (const Architecture* a : architectures()) {
    const Agreement g = agreement_of(*a);
    if (json) {
      all.push_back({{"name", a->name}, {"summary", a->summary}, {"model_types", a->model_types}});
      if (g.fixtures > 0)
        all.back()["largest_error"] = {
            {"float32", g.float32}, {"float64", g.float64}, {"fixtures", g.fixtures}, {"beside", beside(g)}};
      continue;
    }
    out << fmt::format("{:<12}{}\n{:<12}model_type {}", a->name, a->summary, "",
                       fmt::join(a->model_types, ", "));
    if (g.fixtures > 0)
      out << fmt::format("; differs from {} by {:.1e} in float32, {:.1e} in float64", beside(g), g.float32,
                         g.float64);
    out << '\n';
  }
  if (json) out << all.dump(2) << '\n';
}

struct Counts {
  int64_t total = 0, embedding = 0, block = 0, blocks = 0, sources = 0, head = 0;  // block: the largest one
};

int64_t count(const std::vector<Parameter>& list) {
  int64_t n = 0;
  for (const Parameter& p : list) n += element_count(p);
  return n;
}

// A tied vocabulary matrix is the embedding's and counts once.
Counts counts_of(const ModelSpec& spec) {
  Counts c;
  c.embedding = count(parameters_of(spec, "embed"));
  for (int64_t i = 0; i < spec.stored_blocks; ++i) {
    const int64_t one = count(parameters_of(spec, fmt::format("blocks.{}", i)));
    c.block = std::max(c.block, one);
    c.blocks += one;
  }
  c.head = count(parameters_of(spec, "unembed"));
  if (spec.output.tied) c.head -= spec.output.vocabulary * spec.output.width;
  for (const StreamSpec& source : spec.sources) {  // their vocabulary is the same table
    for (int64_t i = 0; i < source.stored_blocks; ++i)
      c.sources += count(parameters_of(spec, fmt::format("{}.blocks.{}", source.name, i)));
    c.sources += count(parameters_of(spec, source.name + ".embed")) -
                 source.embedding.vocabulary * source.embedding.width +
                 count(parameters_of(spec, source.name + ".ln_final"));
  }
  c.total = c.sources + c.embedding + c.blocks + count(parameters_of(spec, "ln_final")) + c.head;
  return c;
}

std::string grouped(int64_t n) {
  std::string digits = std::to_string(n);
  for (auto i = static_cast<std::ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3)
    digits.insert(static_cast<size_t>(i), ",");
  return digits;
}

std::string human(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  auto size = static_cast<double>(bytes);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  for (size /= 1024; size >= 1024 && unit + 1 < std::size(units); ++unit) size /= 1024;
  return fmt::format("{:.1f} {}", size, units[unit]);
}

std::map<std::string_view, int64_t> stored_types(const Checkpoint& checkpoint) {
  std::map<std::string_view, int64_t> types;
  for (const auto& [name, located] : checkpoint.store().tensors()) ++types[to_string(located.entry->type)];
  return types;
}

std::vector<std::string> tokenizer_files(const fs::path& folder) {
  std::vector<std::string> found;
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "merges.txt", "spiece.model",
        "sentencepiece.bpe.model", "tokenizer.model", "preprocessor_config.json"}) {
    std::error_code ignored;
    if (fs::exists(folder / name, ignored)) found.emplace_back(name);
  }
  return found;
}

std::string head_line(const Checkpoint& checkpoint) {
  const OutputSpec& output = checkpoint.spec().output;
  if (!checkpoint.missing_head().empty())
    return fmt::format("none: {} is missing", printable(checkpoint.missing_head().front()));
  if (output.kind == HeadKind::none)
    return "none: this is a base model, or its head is not a language model's";
  return fmt::format("{} to {} tokens, {}{}", to_string(output.kind), grouped(output.vocabulary),
                     output.tied ? "tied to the embedding" : "with its own matrix",
                     output.bias ? ", with bias" : "");
}

// The first few of a list that may be long.
std::string listed(const std::vector<std::string>& names) {
  const size_t shown = std::min<size_t>(names.size(), 8);
  std::string out =
      names.empty() ? "nothing" : fmt::format("{} tensor{}:", names.size(), names.size() == 1 ? "" : "s");
  for (size_t i = 0; i < shown; ++i) out += (i == 0 ? " " : ", ") + printable(names[i]);
  return shown < names.size() ? out + ", ...   (--json lists all)" : out;
}

void print_inspect(const Checkpoint& checkpoint, const InspectOptions& options, std::ostream& out) {
  const ModelSpec& spec = checkpoint.spec();
  const Counts c = counts_of(spec);
  const auto line = [&](std::string_view name, const std::string& text) {
    out << fmt::format("{:<12}{}\n", name, text);
  };
  line(spec.architecture, std::string(checkpoint.architecture().summary));
  out << describe(spec) << '\n';
  const bool alike = c.blocks == c.block * spec.stored_blocks;
  line("parameters", fmt::format("{}: embedding {}, {} block{} of {}{}, head {}", grouped(c.total),
                                 grouped(c.embedding), spec.stored_blocks, spec.stored_blocks == 1 ? "" : "s",
                                 alike ? "" : "up to ", grouped(c.block), grouped(c.head)));
  line("in float32", fmt::format("{} a block, {} in all", human(4 * static_cast<uint64_t>(c.block)),
                                 human(4 * static_cast<uint64_t>(c.total))));
  line("head", head_line(checkpoint));
  std::string types;
  for (const auto& [type, tensors] : stored_types(checkpoint))
    types += fmt::format("{}{} in {}", types.empty() ? "" : ", ", tensors, type);
  line("tensors", types);
  for (const auto& file : checkpoint.store().files()) {
    std::error_code ignored;
    line("file", fmt::format("{}, {}, {} tensors", printable(file->path().filename().string()),
                             human(fs::file_size(file->path(), ignored)), file->tensors().size()));
  }
  const std::vector<std::string> tokenizer = tokenizer_files(files_of(checkpoint.folder()));
  line("tokenizer", tokenizer.empty() ? "no files" : fmt::format("{}", fmt::join(tokenizer, ", ")));
  line("unused", listed(checkpoint.unused()));
  if (!options.tensors) return;
  out << '\n';
  for (const Parameter& p : parameters(spec)) {
    const Checkpoint::Place& place = checkpoint.place(p.name);
    out << fmt::format("{:<26} {:<16} {:<5} {}\n", p.name, fmt::format("{}", p.shape),
                       to_string(place.entry->type), printable(place.tensor));
  }
}

OrderedJson inspect_json(const Checkpoint& checkpoint, const InspectOptions& options) {
  const ModelSpec& spec = checkpoint.spec();
  const Counts c = counts_of(spec);
  OrderedJson json{
      {"folder", checkpoint.folder().string()},
      {"architecture", spec.architecture},
      {"spec", describe(spec)},
      {"width", spec.width},
      {"blocks", spec.depth()},
      {"stored_blocks", spec.stored_blocks},
      {"parameters", {{"total", c.total}, {"embedding", c.embedding}, {"block", c.block}, {"head", c.head}}},
      {"float32_bytes", {{"block", 4 * c.block}, {"total", 4 * c.total}}},
      {"head", to_string(spec.output.kind)},
      {"tied", spec.output.tied},
      {"missing_head", checkpoint.missing_head()},
      {"types", stored_types(checkpoint)},
      {"files", OrderedJson::array()},
      {"tokenizer_files", tokenizer_files(files_of(checkpoint.folder()))},
      {"unused", checkpoint.unused()}};
  for (const auto& file : checkpoint.store().files()) {
    std::error_code ignored;
    json["files"].push_back({{"name", file->path().filename().string()},
                             {"bytes", fs::file_size(file->path(), ignored)},
                             {"tensors", file->tensors().size()}});
  }
  if (!options.tensors) return json;
  for (const Parameter& p : parameters(spec)) {
    const Checkpoint::Place& place = checkpoint.place(p.name);
    json["tensors"].push_back({{"parameter", p.name},
                               {"shape", p.shape},
                               {"type", to_string(place.entry->type)},
                               {"tensor", place.tensor},
                               {"file", place.file->path().filename().string()}});
  }
  return json;
}

std::function<int(Io&)> prepare_inspect(CLI::App& app) {
  const auto options = std::make_shared<InspectOptions>();
  CLI::Option* const folder =
      app.add_option("FOLDER", options->folder, "Hugging Face folder: config.json and *.safetensors");
  app.add_flag("--json", options->json, "One JSON object instead of lines");
  CLI::Option* const tensors =
      app.add_flag("--tensors", options->tensors, "List every parameter and the tensor it comes from");
  app.add_flag("--architectures", options->architectures,
               "List what is read, what makes each different, and how far it is from the original")
      ->excludes(folder)
      ->excludes(tensors);
  return [options](Io& io) {
    if (options->architectures) {
      print_architectures(options->json, io.out);
      return 0;
    }
    if (options->folder.empty()) throw usage_error("FOLDER is required").hint("rankscope inspect --help");
    const Checkpoint checkpoint(model_folder(options->folder, io));
    if (options->json) {
      io.out << inspect_json(checkpoint, *options).dump(2, ' ', false, OrderedJson::error_handler_t::replace)
             << '\n';
    } else {
      print_inspect(checkpoint, *options, io.out);
    }
    return 0;
  };
}

}  // namespace

extern const Command command_inspect{
    .name = "inspect",
    .summary = "Show what a checkpoint is, without reading its weights",
    .examples = {"rankscope inspect models/builtin", "rankscope inspect models/builtin --tensors --json",
                 "rankscope inspect --architectures"},
    .prepare = prepare_inspect};

}  // namespace rankscope
