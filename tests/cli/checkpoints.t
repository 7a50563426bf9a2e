Bad checkpoints: one error of up to three lines, exit code 1. `fresh` makes a copy to break.

  $ cat > fresh.sh <<'END'
  > rm -rf m; mkdir m; cp "$TREE/tests/fixtures/models/bert/config.json" "$TREE/tests/fixtures/models/bert/model.safetensors" m/; chmod -R u+w m
  > END
  $ rankscope scan nowhere
  error: there is no such folder
    in   nowhere
    try  check the path; a name on a hub is downloaded first: hf download nowhere --local-dir nowhere
  [1]
  $ rankscope inspect fresh.sh
  error: expected the folder of a checkpoint, but got a file
    in   fresh.sh
    try  give the folder that holds config.json
  [1]
  $ rankscope inspect .
  error: there is no config.json
    in   .
    try  give the folder of a Hugging Face checkpoint, or save one with model.save_pretrained(FOLDER)
  [1]

Files cut short, with a header that lies, or that are no files.

  $ . ./fresh.sh; truncate -s 4 m/model.safetensors; rankscope inspect m
  error: the file has 4 bytes, too few for a safetensors header
    in   m/model.safetensors
    try  download the file again
  [1]
  $ . ./fresh.sh; truncate -s 100 m/model.safetensors; rankscope inspect m
  error: the header's length is 6192, but only 92 bytes follow
    in   m/model.safetensors, byte 0
    try  download the file again: it is cut short or not a safetensors file
  [1]
  $ . ./fresh.sh; truncate -s 50000 m/model.safetensors; rankscope inspect m
  error: its data ends at byte 50288, but the file has 50000
    in   m/model.safetensors, tensor "bert.encoder.layer.1.attention.output.dense.weight"
    try  download the file again: it is cut short
  [1]
  $ . ./fresh.sh; truncate -s 5G m/model.safetensors; rankscope inspect m
  error: the last 5368606988 bytes belong to no tensor
    in   m/model.safetensors, byte 102132
  [1]
  $ . ./fresh.sh; printf '\377\377\377\377\377\377\377\177' | dd of=m/model.safetensors conv=notrunc 2>/dev/null; rankscope inspect m
  error: the header's length is 9223372036854775807, but only 102124 bytes follow
    in   m/model.safetensors, byte 0
    try  download the file again: it is cut short or not a safetensors file
  [1]
  $ . ./fresh.sh; rm m/model.safetensors; mkdir m/model.safetensors; rankscope inspect m
  error: this is not a regular file
    in   m/model.safetensors
  [1]
  $ . ./fresh.sh; rm m/model.safetensors; rankscope inspect m
  error: there is no model.safetensors and no model.safetensors.index.json
    in   m
    try  download the weights, too; without them: rankscope scan --init m/config.json
  [1]
  $ header() { printf "$(printf '\\%03o' ${#1})\0\0\0\0\0\0\0%s" "$1" > m/model.safetensors; printf '\0\0\0\0\0\0\0\0' >> m/model.safetensors; }
  > header '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}'; rankscope inspect m
  > header '{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}'; rankscope inspect m
  > header '{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}'; rankscope inspect m
  > header '{"a":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,8]}}'; rankscope inspect m
  > header '{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'; rankscope inspect m
  > header '{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}'; rankscope inspect m
  > header '{"a":{"dtype":"Q4","shape":[2],"data_offsets":[0,8]}}'; rankscope inspect m
  error: its data overlaps that of "a"
    in   m/model.safetensors, tensor "b", byte 117
  error: shape [3] of F32 needs 12 bytes, but its offsets hold 8
    in   m/model.safetensors, tensor "a"
  error: its data ends at byte 79, but the file has 71
    in   m/model.safetensors, tensor "a"
    try  download the file again: it is cut short
  error: shape [9223372036854775807, 4] of F32 needs too many bytes, but its offsets hold 8
    in   m/model.safetensors, tensor "a"
  error: the 4 bytes before it belong to no tensor
    in   m/model.safetensors, tensor "a", byte 66
  error: its data ends at 0 before it begins at 8
    in   m/model.safetensors, tensor "a"
  error: its type "Q4" is not supported
    in   m/model.safetensors, tensor "a"
    try  save the checkpoint in float32, float16 or bfloat16
  [1]

Configs that cannot be, and weights that are not those of the config.

  $ for change in 's/\("num_attention_heads": \)3/\10/' 's/\("num_attention_heads": \)3/\17/' 's/\("num_hidden_layers": \)3/\13000000000/' 's/\("vocab_size": \)97/\1-97/' 's/\("hidden_size": \)30/\11e99/' 's/\("model_type": \)"bert"/\1"mamba"/' 's/{/{{/'; do
  >   . ./fresh.sh; sed -i "$change" m/config.json; rankscope inspect m
  > done
  error: "num_attention_heads" should be a whole number from 1 to 16384, but is 0
    in   m/config.json
  error: "num_attention_heads" is 7, which does not divide the width 30
    in   m/config.json
  error: "num_hidden_layers" should be a whole number from 1 to 4096, but is 3000000000
    in   m/config.json
  error: "vocab_size" should be a whole number from 1 to 16777216, but is -97
    in   m/config.json
  error: "hidden_size" should be a whole number from 1 to 1048576, but is 1e+99
    in   m/config.json
  error: the model type "mamba" is not supported; the nearest known one is bert (bert), which knows every word of its config
    in   m/config.json
    try  rankscope inspect --architectures lists what is read
  error: this is not valid JSON
    in   m/config.json, line 1, byte 1
  [1]
  $ . ./fresh.sh; sed -i 's/\("num_hidden_layers": \)3/\14/' m/config.json; rankscope inspect m
  error: 16 tensors are missing: bert.encoder.layer.3.attention.output.LayerNorm.weight, bert.encoder.layer.3.attention.output.LayerNorm.bias, bert.encoder.layer.3.attention.self.query.weight, bert.encoder.layer.3.attention.self.key.weight, bert.encoder.layer.3.attention.self.value.weight and 11 more
    in   m
    try  check config.json against the weights, and that every file was downloaded
  [1]
  $ . ./fresh.sh; sed -i 's/\("num_hidden_layers": \)3/\12/' m/config.json; rankscope scan m --random-tokens --lens residual --samples 4 --quiet | grep -A1 bert.enc
    note      bert.encoder.layer.2 is in the weights, behind the last layer that
              is read: nothing is said of it
  $ cp -r "$TREE/models/builtin" short; chmod -R u+w short; sed -i 's/\("n_layer": \)6/\15/' short/config.json
  $ rankscope plan short --text "$TREE/models/builtin/demo.txt" --samples 10 --max-length 16 --quiet | grep -c 'transformer.h.5 is in the weights'; rm -r short
  1
  $ cp -r "$TREE/tests/fixtures/models/llama-linear" biased; chmod -R u+w biased; sed -i 's/\("attention_bias": \)true/\1false/' biased/config.json
  $ for command in scan paths; do rankscope $command biased --random-tokens --samples 2 --quiet | tr -s '\n ' ' ' | grep -o '[0-9]* tensors in the layers are not read: [a-z0-9_., ]*; if they belong to the model, check config.json'; done; rm -r biased
  12 tensors in the layers are not read: model.layers.0.self_attn.k_proj.bias, model.layers.0.self_attn.o_proj.bias, ...; if they belong to the model, check config.json
  12 tensors in the layers are not read: model.layers.0.self_attn.k_proj.bias, model.layers.0.self_attn.o_proj.bias, ...; if they belong to the model, check config.json
  $ . ./fresh.sh; sed -i 's/\("vocab_size": \)97/\198/' m/config.json; rankscope inspect m
  error: expected [98, 30], but got [97, 30]
    in   m/model.safetensors, tensor "bert.embeddings.word_embeddings.weight"
    try  check config.json
  [1]
  $ . ./fresh.sh; sed -i 's/embeddings.word_embeddings/embeddings.wrod_embeddings/' m/model.safetensors; rankscope inspect m
  error: no tensor is named embeddings.word_embeddings.weight or ends with it
    in   m
    try  check that the weights are those of a bert model
  [1]

NaN and Inf in the weights; numbers that are large but finite are no fault of the file.

  $ . ./fresh.sh; printf '\000\000\300\177' | dd of=m/model.safetensors bs=1 seek=60000 conv=notrunc 2>/dev/null; rankscope scan m --random-tokens --samples 1
  error: the weights hold NaN or Inf
    in   m/model.safetensors, tensor "bert.encoder.layer.1.attention.self.value.weight"
  [1]
  $ . ./fresh.sh; printf '\000\000\200\177' | dd of=m/model.safetensors bs=1 seek=60000 conv=notrunc 2>/dev/null; rankscope scan m --random-tokens --samples 1
  error: the weights hold NaN or Inf
    in   m/model.safetensors, tensor "bert.encoder.layer.1.attention.self.value.weight"
  [1]
  $ . ./fresh.sh; for i in 1 2 3 4; do printf '\377\377\177\177' | dd of=m/model.safetensors bs=1 seek=$((60000 + 4 * i)) conv=notrunc 2>/dev/null; done; rankscope scan m --random-tokens --samples 1 --lens residual 2>&1 | head -3
  error: the activations hold NaN, Inf, or numbers whose squares overflow
    in   blocks.1.hook_resid_post, sample 0, token 0
    try  float64 arithmetic tells whether this is an overflow; inspect the checkpoint otherwise

Formats that need a conversion first: one line says which.

  $ . ./fresh.sh; mv m/model.safetensors m/pytorch_model.bin; rankscope inspect m
  error: the weights are in the .bin format, which can run code when it is read
    in   m
    try  python -c "import glob, torch, safetensors.torch as s; w = {}; [w.update(torch.load(f, weights_only=True)) for f in glob.glob('m/pytorch_model*.bin')]; s.save_file({k: v.clone() for k, v in w.items()}, 'm/model.safetensors')"
  [1]
  $ rm -rf m; mkdir m; echo '{}' > m/adapter_config.json; rankscope scan m
  error: this is an adapter: it holds changes to a model, not a model
    in   m
    try  python -c "from peft import AutoPeftModelForCausalLM as M; M.from_pretrained('m').merge_and_unload().save_pretrained('OUT')"
  [1]
  $ . ./fresh.sh; sed -i 's/{/{"quantization_config": {},/' m/config.json; rankscope inspect m
  error: the weights are quantized ("quantization_config"), which is not supported
    in   m/config.json
    try  use the checkpoint in float32, float16 or bfloat16 that it was made from
  [1]

The only safetensors file of a folder is its model, whatever its name; of two, neither is.

  $ . ./fresh.sh; mv m/model.safetensors m/model.fp32.safetensors; rankscope inspect m | grep ^file
  file        model.fp32.safetensors, 99.7 KiB, 58 tensors
  $ cp m/model.fp32.safetensors m/other.safetensors; rankscope inspect m
  error: there is no model.safetensors, and which of the 2 other .safetensors files is the model is not clear
    in   m
    try  call it model.safetensors, or add model.safetensors.index.json
  [1]
