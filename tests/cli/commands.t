inspect: what a checkpoint is, without its weights and without torch.

  $ ln -s "$TREE/tests/fixtures/models" models
  > ln -s "$TREE/models/builtin" builtin
  > echo 'export RANKSCOPE_LIBRARY=/nowhere.so' > no_torch
  $ . ./no_torch; rankscope inspect models/bert
  bert        BERT, MiniLM: post-norm encoder
  bert width=30 positions=learned vocabulary=97
  blocks 0-2: softmax:heads=3,rank=10 mlp=plain:gelu,width=42 norm=layer:post

  parameters  23,983: embedding 3,600, 3 blocks of 6,432, head 1,087
  in float32  25.1 KiB a block, 93.7 KiB in all
  head        transformed to 97 tokens, tied to the embedding, with bias
  tensors     58 in F32
  file        model.safetensors, 99.7 KiB, 58 tensors
  tokenizer   no files
  unused      nothing
  $ . ./no_torch; rankscope inspect models/llama | grep -v ^blocks
  llama       Llama, Mistral, Qwen2: pre-norm causal decoder, rotary positions
  llama width=24 positions=rotary vocabulary=101

  parameters  18,408: embedding 2,424, 3 blocks of 4,512, head 2,424
  in float32  17.6 KiB a block, 71.9 KiB in all
  head        linear to 101 tokens, with its own matrix
  tensors     30 in BF16
  file        model-00001-of-00003.safetensors, 16.5 KiB, 12 tensors
  file        model-00002-of-00003.safetensors, 15.4 KiB, 13 tensors
  file        model-00003-of-00003.safetensors, 7.1 KiB, 5 tensors
  tokenizer   no files
  unused      nothing
  $ . ./no_torch; rankscope inspect models/bert --json | head -12
  {
    "folder": "models/bert",
    "architecture": "bert",
    "spec": "bert width=30 positions=learned vocabulary=97\nblocks 0-2: softmax:heads=3,rank=10 mlp=plain:gelu,width=42 norm=layer:post\n",
    "width": 30,
    "blocks": 3,
    "stored_blocks": 3,
    "parameters": {
      "total": 23983,
      "embedding": 3600,
      "block": 6432,
      "head": 1087
  $ . ./no_torch; rankscope inspect models/bert --tensors | sed -n '/embed/p'
  parameters  23,983: embedding 3,600, 3 blocks of 6,432, head 1,087
  head        transformed to 97 tokens, tied to the embedding, with bias
  embed.W_E                  [97, 30]         F32   bert.embeddings.word_embeddings.weight
  embed.W_pos                [19, 30]         F32   bert.embeddings.position_embeddings.weight
  embed.W_type               [2, 30]          F32   bert.embeddings.token_type_embeddings.weight
  embed.ln.w                 [30]             F32   bert.embeddings.LayerNorm.weight
  embed.ln.b                 [30]             F32   bert.embeddings.LayerNorm.bias
  unembed.W_T                [30, 30]         F32   cls.predictions.transform.dense.weight
  unembed.b_T                [30]             F32   cls.predictions.transform.dense.bias
  unembed.ln.w               [30]             F32   cls.predictions.transform.LayerNorm.weight
  unembed.ln.b               [30]             F32   cls.predictions.transform.LayerNorm.bias
  unembed.W_U                [97, 30]         F32   bert.embeddings.word_embeddings.weight
  unembed.b_U                [97]             F32   cls.predictions.bias
  $ . ./no_torch; rankscope inspect --architectures | grep -A1 '^qwen3_next ' | grep -o 'differs.*'
  differs from the published formulas by 1.4e-06 in float32, 2.4e-15 in float64
  $ rankscope inspect "$TREE/models/builtin" --architectures 2>&1 | head -1
  error: FOLDER excludes --architectures
  $ rankscope lenses --sites --attention 2>&1 | head -1
  error: --sites excludes --attention
  $ . ./no_torch; rankscope inspect --architectures | grep -A1 '^qwen3 '
  qwen3       Qwen3: Llama's block with normed queries and keys
              model_type qwen3; differs from the original by 6.4e-07 in float32, 1.3e-15 in float64
  $ . ./no_torch; rankscope inspect models/t5 | grep -e ^encoder -e ^blocks
  encoder blocks 0-1: softmax:heads=3,rank=5 mlp=plain:relu,width=30 norm=rms:pre
  blocks 0-2: softmax:heads=3,rank=5,causal softmax:heads=3,rank=5 mlp=plain:relu,width=30 norm=rms:pre cross-reads=encoder
  $ . ./no_torch; rankscope inspect models/t5/encoder | sed -n '/^head/p'
  head        none: this is a base model, or its head is not a language model's

tokenize: texts in, ids out, one JSON line each.

  $ . ./no_torch; rankscope tokenize builtin --text 'the whale' --text '' --tokens
  {"ids": [726, 376], "tokens": ["the","Ġwhale"]}
  {"ids": [], "tokens": []}
  $ . ./no_torch; printf '{"text": "the whale"}\n\n{"text": "the", "text_pair": " whale"}\n' | rankscope tokenize builtin
  {"ids": [726, 376]}
  {"ids": [726, 376], "types": [0, 1]}
  $ . ./no_torch; printf '{"text": "the whale"}\n' > in.jsonl; rankscope tokenize builtin --jsonl in.jsonl
  {"ids": [726, 376]}
  $ . ./no_torch; cat in.jsonl | rankscope tokenize builtin --jsonl -
  {"ids": [726, 376]}
  $ . ./no_torch; mkdir only; cp builtin/tokenizer.json only; rankscope tokenize only --jsonl in.jsonl
  {"ids": [726, 376]}

lenses: what can be measured, what it means, what it costs.

  $ rankscope lenses > lenses.txt; grep -A3 '^residual:' lenses.txt; [ "$(grep -c '^  cost: ' lenses.txt)" = "$(grep -c '^[a-z]' lenses.txt)" ] && echo "each has its cost"
  residual: Distance of the tokens from all being alike
    cost: about 0.01 forward passes at T = 128
    residual_l1inf                       sqrt(||R||_1 ||R||_inf), R = X - 1 x^T, x the mean token
                                         falls towards 0 as the tokens become one and the same
  each has its cost
  $ grep '^Costs' lenses.txt
  Costs are shares of a plain forward pass at T = 128 tokens. With the length they grow
  $ rankscope lenses --json > lenses.json; for key in name formula meaning mean; do grep -c "\"$key\": \"" lenses.json; done | awk 'NR == 1 { names = $1 } NR == 2 { metrics = $1 } NR > 2 { print ($1 == metrics && names > metrics ? "told" : "missing") }'
  told
  told
  $ rankscope lenses --attention | sed -n '/^sinkhorn/,/^$/p'
  sinkhorn: shares over queries and over keys in turn, rows last
    rows sum to one; entries are shares; never causal
    rounds=5  of both normalisations; 1 is doubly_normalised (1 to 100)

  $ rankscope lenses --attention --json | grep -c '"may_be_causal"'
  17
  $ rankscope lenses --sites models/bert | head -9
  hook_resid_pre             tokens x 30, whole
    the residual stream before the block (blocks 0-2)
    read by massive (blocks.0), residual (blocks.0), residual_min (blocks.0), similarity (blocks.0), spectra (blocks.0), trimmed (blocks.0)
  attn.hook_q                tokens x 3 heads x 10, whole
    queries, before positions turn them (blocks 0-2)
    read by no lens
  attn.hook_k                tokens x 3 heads x 10, whole
    keys, before positions turn them (blocks 0-2)
    read by no lens
  $ rankscope lenses --sites | grep -A2 -e ^attn.hook_pattern -e ^ln_final | sed 's/read by attention, .*, sinks/read by attention ... sinks/; s/read by massive, .*, trimmed/read by massive ... trimmed/'
  attn.hook_pattern          8 heads x queries x keys, tiles
    attention: how much each query takes of each key (blocks 0-5)
    read by attention ... sinks
  --
  ln_final.hook_normalized   tokens x 128, whole
    after the norm behind the last block
    read by massive ... trimmed
  $ rankscope lenses --sites models/llama --json | grep -c '"form"'
  19
  $ rankscope lenses --sites nowhere
  error: there is no such folder
    in   nowhere
    try  check the path; a name on a hub is downloaded first: hf download nowhere --local-dir nowhere
  [1]
