// RoBERTa, XLM-RoBERTa and CamemBERT: BERT's encoder, whose positions count from the padding id on.
#include "checkpoint/architecture.h"
#include "checkpoint/bert_encoder.h"

namespace rankscope {
namespace {

ModelSpec roberta_spec(const JsonObject& config) {
  ModelSpec s = bert_encoder(config, "roberta");
  s.embedding.padding_id = config.integer("pad_token_id", 0, s.embedding.vocabulary - 1, 1);
  s.embedding.position_offset = s.embedding.padding_id + 1;
  if (s.embedding.position_offset >= s.embedding.positions)
    throw Error(
        fmt::format("\"max_position_embeddings\" is {}, which leaves no position after \"pad_token_id\", {}",
                    s.embedding.positions, s.embedding.padding_id))
        .in(config.place());
  // The head's activation is not the config's: it has always been GELU.
  if (promises_head(config, {"ForMaskedLM"})) s.output = masked_head(config, s, Activation::gelu);
  return s;
}

WeightMap roberta_weights(const ModelSpec& s) {
  WeightList list;
  bert_encoder_weights(list, s);
  list.linear("unembed.", "T", "lm_head.dense", {.outside_base = true});
  list.norm("unembed.ln", "lm_head.layer_norm", true);
  list.vocabulary(s, "embeddings.word_embeddings.weight", "lm_head.decoder.weight");
  // Untied, the map to the vocabulary has a bias of its own; elsewhere both names are the same numbers.
  list.add("unembed.b_U", {.tensor = "lm_head.decoder.bias", .outside_base = true, .other = "lm_head.bias"});
  return list.take(s);
}

}  // namespace

extern const Architecture arch_roberta{.name = "roberta",
                                       .summary = "RoBERTa, XLM-RoBERTa, CamemBERT: post-norm encoder",
                                       .model_types = {"roberta", "xlm-roberta", "camembert"},
                                       .prefix = "roberta.",
                                       .anchor = "embeddings.word_embeddings.weight",
                                       .spec = roberta_spec,
                                       .weights = roberta_weights};

}  // namespace rankscope
