// BERT and its smaller kin (MiniLM).
#include "checkpoint/architecture.h"
#include "checkpoint/bert_encoder.h"

namespace rankscope {
namespace {

ModelSpec bert_spec(const JsonObject& config) {
  ModelSpec s = bert_encoder(config, "bert");
  if (promises_head(config, {"ForMaskedLM", "ForPreTraining"}))
    s.output = masked_head(config, s, s.blocks.front().mlp_branch()->mlp()->activation);
  return s;
}

WeightMap bert_weights(const ModelSpec& s) {
  WeightList list;
  bert_encoder_weights(list, s);
  list.linear("unembed.", "T", "cls.predictions.transform.dense", {.outside_base = true});
  list.norm("unembed.ln", "cls.predictions.transform.LayerNorm", true);
  list.vocabulary(s, "embeddings.word_embeddings.weight", "cls.predictions.decoder.weight");
  // Untied, the map to the vocabulary has a bias of its own; elsewhere both names are the same numbers.
  list.add("unembed.b_U",
           {.tensor = "cls.predictions.decoder.bias", .outside_base = true, .other = "cls.predictions.bias"});
  return list.take(s);
}

}  // namespace

extern const Architecture arch_bert{.name = "bert",
                                    .summary = "BERT, MiniLM: post-norm encoder",
                                    .model_types = {"bert"},
                                    .prefix = "bert.",
                                    .anchor = "embeddings.word_embeddings.weight",
                                    .spec = bert_spec,
                                    .weights = bert_weights};

}  // namespace rankscope
