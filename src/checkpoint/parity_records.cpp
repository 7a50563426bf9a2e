#include "checkpoint/parity_records.h"

namespace rankscope {
namespace {

// By transformers 5.17 and LibTorch 1.13 on x86-64. TheErrorOnRecordIsTheOneMeasured says what to write here.
constexpr ParityRecord kRecords[] = {
    {"albert", "albert", 9.2e-07, 1.9e-15},
    {"albert-groups", "albert", 2.5e-06, 3.3e-15},
    {"bart", "bart", 8.2e-07, 1.6e-15},
    {"bert", "bert", 8.6e-07, 1.1e-15},
    {"bert-base-noprefix", "bert", 1.3e-06, 1.8e-15},
    {"bert-classifier", "bert", 1.2e-06, 1.4e-15},
    {"bloom", "bloom", 5.4e-07, 1.3e-15},
    {"bloom-after", "bloom", 8.9e-07, 1.0e-15},
    {"clip-text", "clip_text", 1.0e-06, 8.9e-16},
    {"deepseek-v3", "deepseek", 2.3e-06, 2.8e-15},
    {"deepseek-v3-plain", "deepseek", 6.9e-07, 1.7e-15},
    {"distilbert", "distilbert", 1.3e-06, 3.3e-15},
    {"falcon", "falcon", 5.4e-07, 1.2e-15},
    {"falcon-new", "falcon", 4.8e-07, 8.9e-16},
    {"falcon-new-one-norm", "falcon", 5.8e-07, 9.5e-16},
    {"gemma2", "gemma", 9.1e-07, 1.3e-15},
    {"gemma3", "gemma", 3.1e-07, 5.8e-16},
    {"gpt-neox", "gpt_neox", 6.3e-07, 1.4e-15},
    {"gpt-neox-serial", "gpt_neox", 6.9e-07, 1.3e-15},
    {"gpt-oss", "gpt_oss", 1.2e-06, 1.1e-15},
    {"gpt2", "gpt2", 5.4e-07, 1.5e-15},
    {"gpt2-fp16", "gpt2", 7.2e-07, 1.1e-15},
    {"granite", "granite", 6.6e-07, 8.3e-16},
    {"llama", "llama", 2.7e-06, 2.4e-15},
    {"llama-dynamic", "llama", 1.1e-06, 3.2e-15},
    {"llama-linear", "llama", 6.6e-07, 1.1e-15},
    {"llama-rope3", "llama", 8.9e-07, 1.8e-15},
    {"llama-yarn", "llama", 8.3e-07, 1.5e-15},
    {"llama-yarn-old", "llama", 7.1e-07, 1.5e-15},
    {"mistral", "llama", 1.0e-06, 2.4e-15},
    {"mixtral", "mixtral", 9.0e-07, 1.0e-15},
    {"mixtral-fused", "mixtral", 1.4e-06, 3.4e-15},
    {"modernbert", "modernbert", 2.5e-06, 4.7e-15},
    {"modernbert-bias", "modernbert", 8.9e-07, 2.4e-15},
    {"olmo2", "olmo", 5.0e-07, 9.9e-16},
    {"opt", "opt", 6.4e-07, 2.4e-15},
    {"opt-after", "opt", 9.5e-07, 1.2e-15},
    {"opt-narrow", "opt", 5.8e-07, 1.3e-15},
    {"phi", "phi", 3.9e-07, 8.1e-16},
    {"phi-plain", "phi", 7.7e-07, 1.0e-15},
    {"phi3", "phi3", 8.1e-07, 1.9e-15},
    {"phi3-short", "phi3", 1.5e-06, 2.1e-15},
    {"qwen2", "llama", 1.0e-06, 1.5e-15},
    {"qwen3", "qwen3", 6.4e-07, 1.3e-15},
    {"qwen3-moe", "mixtral", 2.6e-06, 2.5e-15},
    {"roberta", "roberta", 9.1e-07, 1.0e-15},
    {"smollm3", "smollm3", 8.3e-07, 1.9e-15},
    {"stablelm", "stablelm", 8.6e-07, 1.9e-15},
    {"stablelm-parallel", "stablelm", 7.2e-07, 1.1e-15},
    {"t5", "t5", 1.7e-06, 5.0e-15},
    {"t5-gated", "t5", 4.2e-06, 1.5e-14},
    {"vit", "vit", 1.2e-06, 1.5e-15},
    {"vit-classifier", "vit", 1.1e-06, 1.8e-15},
    {"xlnet", "xlnet", 1.1e-06, 1.7e-15},
};

}  // namespace

std::span<const ParityRecord> parity_records() { return kRecords; }

}  // namespace rankscope
