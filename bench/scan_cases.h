// The cases of `scan_bench --device cuda`: what is written, how much is read, what it may take.
#pragma once

#include <string>
#include <vector>

#include "support/random_checkpoint.h"

namespace rankscope {

struct ScanCase {
  std::string name;
  std::string config;
  StoredType stored;
  int64_t samples, tokens;
  double must, aim;  // seconds; of the collapse: forward passes
  bool collapse = false;
};

inline std::string gpt2_medium_config() {
  return Json{{"model_type", "gpt2"},
              {"architectures", {"GPT2LMHeadModel"}},
              {"n_layer", 24},
              {"n_embd", 1024},
              {"n_head", 16},
              {"n_positions", 1024},
              {"vocab_size", 50257},
              {"activation_function", "gelu_new"},
              {"layer_norm_epsilon", 1e-5},
              {"initializer_range", 0.02}}
      .dump();
}

inline std::vector<ScanCase> scan_cases() {
  const std::string bert = test::bert_config();
  const std::string llama = test::llama_config(4096, 32, 32, 32, 11008);
  return {{"bert-base", bert, StoredType::f32, 32, 128, 0.30, 0.10},
          {"gpt2-medium", gpt2_medium_config(), StoredType::f32, 16, 512, 3.0, 1.4},
          {"llama-7b", llama, StoredType::f16, 8, 512, 6, 3},
          {"llama-7b-long", llama, StoredType::f16, 1, 8192, 30, 10},
          {"collapse", bert, StoredType::f32, 32, 128, 12, 9.5, true}};
}

}  // namespace rankscope
