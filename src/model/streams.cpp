#include "model/streams.h"

#include "model/embed_and_unembed.h"

namespace rankscope {

std::string stream_prefix(const StreamSpec& stream) { return stream.name.empty() ? "" : stream.name + "."; }

ModelSpec stream_alone(const StreamSpec& stream, const ModelSpec& spec) {
  ModelSpec alone;
  static_cast<StreamSpec&>(alone) = stream;
  alone.name.clear();
  alone.architecture = spec.architecture;
  alone.width = spec.width;
  alone.position = spec.position;
  return alone;
}

at::Tensor embed_stream(const Batch& batch, const StreamSpec& stream, WeightSource& source) {
  const std::string part = stream_prefix(stream) + "embed";
  const Weights weights = source.load(part);
  return embedded(source.rows(part + ".W_E", at::tensor(batch.ids, at::kLong)), batch, stream.embedding,
                  weights);
}

}  // namespace rankscope
