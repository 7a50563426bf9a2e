// A Hugging Face folder, opened: config, spec, tensors, and which parameter is where. Knows nothing of torch.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/architecture.h"
#include "checkpoint/safetensors.h"
#include "parts/parameters.h"

namespace rankscope {

/// Where the files of a model are: the folder itself. Of a folder that holds several networks,
/// "clip/text_model", "clip/vision_model" and "t5/encoder" name one; their files are in the folder above.
std::filesystem::path files_of(const std::filesystem::path& folder);

/// What the config.json of a folder describes, or one network of several in it as above; its weights need not
/// be there.
ModelSpec spec_of_folder(const std::filesystem::path& folder);

class Checkpoint {
 public:
  /// Opens and checks the whole folder: a missing tensor, a wrong shape or an unknown architecture is an
  /// error here, before any work. `.bin` checkpoints and adapters are refused with the conversion to run.
  explicit Checkpoint(const std::filesystem::path& folder);

  /// A tensor of a file.
  struct Stored {
    const SafetensorsFile* file;
    const TensorEntry* entry;
    std::string tensor;  // full name in the file
  };

  /// Where a parameter's numbers are. The stored tensor is a row-major [rows, columns] matrix (a vector: one
  /// column), those in `more` lie below it; transpose it if the source says so, take the parameter's rows
  /// (Source says which), reshape to its shape.
  struct Place {
    Source source;
    const SafetensorsFile* file;
    const TensorEntry* entry;
    std::string tensor;     // full name in the file
    int64_t rows, columns;  // as stored, before transposition
    std::vector<Stored> more = {};
  };

  const std::filesystem::path& folder() const { return folder_; }
  const Json& config() const { return config_; }
  const ModelSpec& spec() const { return spec_; }
  const Architecture& architecture() const { return *architecture_; }
  const TensorStore& store() const { return *store_; }
  const Place& place(const std::string& parameter) const;
  const std::map<std::string, Place>& places() const { return places_; }

  /// Stored tensors no parameter uses (pooler, classifier, buffers), alphabetically.
  std::vector<std::string> unused() const;

  /// Of these what stands in a numbered module that is read otherwise: an adapter that was not merged, a bias
  /// that config.json does not know. Buffers that libraries save along (causal masks, positions) are left
  /// out.
  std::vector<std::string> unused_inside() const;

  /// Of these the numbered modules behind the last that is used: "encoder.layer.4", where config.json has
  /// four.
  std::vector<std::string> unused_layers() const;

  /// What the spec promised and the tensors did not keep: the head's missing tensors, when it was dropped for
  /// them.
  const std::vector<std::string>& missing_head() const { return missing_head_; }

  /// The folder's own model type, where the language model that is read is a part of it ("gemma3"); or empty.
  const std::string& wrapper() const { return wrapper_; }

  /// The vocabulary matrix that is stored and differs from the embedding, to which config.json ties it; empty
  /// where there is none. It is read, as transformers does since version 5.
  const std::string& untied() const { return untied_; }

 private:
  // The last number of every numbered module that is used, by its name without the number.
  std::map<std::string, int64_t> last_used(const std::vector<std::string>& unused) const;

  /// Whether `finder` has a head that is not the embedding it should be tied to; the spec then says so.
  bool untie(const auto& finder);

  std::filesystem::path folder_;
  Json config_;
  const Architecture* architecture_ = nullptr;
  ModelSpec spec_;
  std::unique_ptr<TensorStore> store_;
  std::map<std::string, Place> places_;
  std::vector<std::string> missing_head_;
  std::string untied_, wrapper_;
};

}  // namespace rankscope
