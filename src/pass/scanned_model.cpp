#include "pass/scanned_model.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>

#include "base/error.h"
#include "checkpoint/load.h"
#include "model/random_source.h"
#include "pass/precision.h"
#include "pass/shapes.h"
#include "spec/edit.h"
#include "tensors/device.h"
#include "tensors/torch_compat.h"

namespace rankscope {

ScannedModel::ScannedModel(const ScanRequest& request, const std::string& init)
    : request_(request), init_(init) {
  if (init.empty()) {
    checkpoint_.emplace(request.model);
    spec_ = checkpoint_->spec();
  } else {
    if (!request.model.empty()) throw usage_error("--init needs no folder").in(request.model.string());
    spec_ = shape_spec(init);
    if (!request.texts.empty())
      throw usage_error("a shape at random initialisation has no tokenizer")
          .in("--init " + init)
          .hint(
              "--random-tokens, or --token-ids FILE: rankscope tokenize FOLDER makes one with a tokenizer "
              "that "
              "you have");
  }
  for (const std::string& parts : request.off) spec_ = without(spec_, parts);
}

std::unique_ptr<WeightSource> ScannedModel::source(const std::string& dtype, uint64_t seed) const {
  return checkpoint_ ? checkpoint_source(*checkpoint_, dtype, request_.device)
                     : random_source(spec_, seed, dtype, request_.device);
}

ScanInput ScannedModel::input() const {
  if (!spec_.sources.empty())
    throw Error(fmt::format("this network has a stream \"{}\" beside the one that ends in the output; scans "
                            "follow both, but paths, operators and collapse follow one: attention to another "
                            "stream has no frozen form yet",
                            spec_.sources.front().name))
        .in(init_.empty() ? request_.model.string() : init_)
        .hint(fmt::format("{}, its {} alone", (folder() / spec_.sources.front().name).string(),
                          spec_.sources.front().name));
  ScanInput input = read_input(request_, spec_);
  if (checkpoint_) note_unused(*checkpoint_, input.notes);
  for (size_t i = 0; i < input.samples.size(); ++i)
    if (spec_.embedding.vocabulary > 0 && input.samples[i].ids.size() < 2)
      throw Error("a sample of one token has no rank to lose: at least two are needed")
          .in(fmt::format("sample {}", i))
          .hint(request_.max_length < 2 ? "a larger --max-length" : "a longer text");
  return input;
}

namespace {

void note_layers_behind(const Checkpoint& checkpoint, std::vector<std::string>& notes) {
  const std::vector<std::string> left = checkpoint.unused_layers();
  if (left.empty()) return;
  const size_t others = left.size() - 1;
  notes.push_back(
      fmt::format("{}{} {} in the weights, behind the last layer that is read: nothing is said of {}",
                  printable(left.front(), 200),
                  others == 0 ? "" : fmt::format(" and {} more module{}", others, others == 1 ? "" : "s"),
                  others == 0 ? "is" : "are", others == 0 ? "it" : "them"));
}

// The network that the numbers are of has no part in these.
void note_tensors_inside(const Checkpoint& checkpoint, std::vector<std::string>& notes) {
  const std::vector<std::string> left = checkpoint.unused_inside();
  if (left.empty()) return;
  std::string names;
  for (size_t i = 0; i < std::min<size_t>(left.size(), 2); ++i)
    names += (i == 0 ? "" : ", ") + printable(left[i], 200);
  const bool adapter = std::any_of(left.begin(), left.end(), [](const std::string& name) {
    return name.find("lora_") != std::string::npos;
  });
  notes.push_back(fmt::format("{} tensor{} in the layers {} not read: {}{}; {}", left.size(),
                              left.size() == 1 ? "" : "s", left.size() == 1 ? "is" : "are", names,
                              left.size() > 2 ? ", ..." : "",
                              adapter ? "an adapter counts once it is merged (merge_and_unload() of peft)"
                                      : "if they belong to the model, check config.json"));
}

}  // namespace

void note_unused(const Checkpoint& checkpoint, std::vector<std::string>& notes) {
  if (!checkpoint.wrapper().empty())
    notes.push_back(fmt::format("of this {} the language model is read, and nothing of what reads images",
                                printable(checkpoint.wrapper(), 60)));
  if (!checkpoint.untied().empty())
    notes.push_back(fmt::format(
        "{} is read, though config.json ties it to the embedding: its numbers differ; older "
        "versions of transformers take the embedding. \"tie_word_embeddings\": false says what holds",
        printable(checkpoint.untied(), 200)));
  note_layers_behind(checkpoint, notes);
  note_tensors_inside(checkpoint, notes);
}

std::filesystem::path ScannedModel::folder() const {
  if (init_.empty()) return request_.model;
  const std::filesystem::path path(init_);
  return path.filename() == "config.json" ? path.parent_path() : path;
}

void prepare_run(const ScanRequest& request) {
  dtype_of(request.dtype);  // a wrong word is answered before anything is read
  if (request.device_memory > 0 && request.device == "cpu")
    throw usage_error("--device-memory bounds the memory of a GPU").hint("--device cuda");
  check_precision(request);
  device_of(request.device);
  limit_device_memory(request.device, request.device_memory);
  allow_tf32(request.precision == "tf32");
  if (request.batch_size < 1) throw usage_error("--batch-size should be at least 1");
  if (request.threads < 0 || request.threads > kMostThreads)
    throw usage_error(fmt::format("--threads should be from 0 to {}, not {}", kMostThreads, request.threads));
  use_threads(request.threads);
  // Left alone, glibc raises its mmap threshold and keeps what it frees: the peak would grow with every
  // block. What is above the threshold goes back at once, at the price of fetching its pages again. Long
  // samples pay it: theirs are few and large, and holes between them would be a quarter of the peak.
  constexpr int64_t kLongSample = 2048;
  mallopt(M_MMAP_THRESHOLD, (request.max_length > kLongSample ? 2 : 32) << 20);
  mallopt(M_TRIM_THRESHOLD, 16 << 20);
}

}  // namespace rankscope
