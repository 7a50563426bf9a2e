What people give for a model: the folder around it, a name on a hub, a file of another program.

  $ mkdir -p download several; cp -r "$TREE/tests/fixtures/models/bert" download/model; cp -r download/model several/a; cp -r download/model several/b
  $ rankscope inspect download | head -2
  the model is one folder down: download/model
  ...
  $ rankscope inspect download 2>/dev/null | head -1 > found; rankscope inspect download/model | head -1 | diff - found
  $ mkdir -p hub/models--x--y/snapshots; cp -r download/model hub/models--x--y/snapshots/abc; rankscope inspect hub/models--x--y 2>&1 >/dev/null
  the model is 2 folders down: hub/models--x--y/snapshots/abc
  $ mkdir home; cp -r hub home; rankscope inspect home 2>&1 >/dev/null
  the model is 4 folders down: home/hub/models--x--y/snapshots/abc
  $ cp -r hub/models--x--y hub/models--z; rankscope inspect hub
  error: this folder holds 2 models, and it is not clear which one is meant
    in   hub
    try  hub/models--x--y/snapshots/abc, hub/models--z/snapshots/abc
  [1]

Of several snapshots the one that a hub's cache calls its own; what it says is no path.

  $ cd hub/models--z; cp -r snapshots/abc snapshots/def; rankscope inspect . 2>&1 | tail -1; mkdir refs; printf 'def\n' > refs/main; rankscope inspect . 2>&1 >/dev/null; printf '../abc' > refs/main; rankscope inspect . 2>&1 | tail -1
    try  ./snapshots/abc, ./snapshots/def
  the model is 2 folders down: ./snapshots/def
    try  ./snapshots/abc, ./snapshots/def
  $ printf def > hub/models--z/refs/main; rankscope inspect hub 2>&1 | tail -1
    try  hub/models--x--y/snapshots/abc, hub/models--z/snapshots/def
  $ rankscope scan download --random-tokens --samples 1 --lens residual --quiet | head -1 | cut -d' ' -f1
  full
  $ rankscope plan download --random-tokens --samples 1 2>&1 >/dev/null | head -1
  the model is one folder down: download/model
  $ rankscope inspect several
  error: this folder holds 2 models, and it is not clear which one is meant
    in   several
    try  several/a, several/b
  [1]
  $ rankscope scan bert-base-uncased --random-tokens
  error: there is no such folder
    in   bert-base-uncased
    try  check the path; a name on a hub is downloaded first: hf download bert-base-uncased --local-dir bert-base-uncased
  [1]
  $ for name in https://hub.example/x/small/tree/main http://hub.example https://a/b/c/d; do rankscope scan $name --random-tokens 2>&1 | tail -1; done
    try  check the path; a name on a hub is downloaded first: hf download x/small --local-dir small
    try  check the path
    try  check the path
  $ printf GGUF > model.gguf; rankscope scan model.gguf --random-tokens
  error: this is a GGUF file: quantized weights for llama.cpp, in a format that is not read here
    in   model.gguf
    try  use the Hugging Face folder it was made from: config.json and *.safetensors
  [1]
  $ rankscope inspect download/model/model.safetensors
  error: these are the weights of a model, and its config.json is needed, too
    in   download/model/model.safetensors
    try  give the folder: download/model
  [1]

A text longer than a model is made for is cut, for rotary positions, too; not where they stretch.

  $ cp -r "$TREE/tests/fixtures/models/llama" llama; sed -i 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 16/' llama/config.json
  $ rankscope scan llama --random-tokens --samples 2 --max-length 24 --lens residual | grep note
    note      --max-length 24 is more than the 16 tokens this model is made for:
  $ sed -i 's/"rope_type": "default"/"rope_type": "dynamic", "factor": 2.0/' llama/config.json
  $ rankscope scan llama --random-tokens --samples 2 --max-length 24 --lens residual | grep -c note
  0
  [1]

A lens that does not exist is answered with those that measure it.

  $ rankscope scan download/model --random-tokens --lens cosine 2>&1 | cut -d'(' -f1
  error: there is no lens "cosine"
    try  similarity measures it
  $ rankscope scan download/model --random-tokens --lens rank 2>&1 | grep -o 'circuits.*spectra.*measure it' | wc -l
  1
  $ for name in spectr attn eff.rank collapse; do rankscope scan download/model --random-tokens --lens $name 2>&1 | tail -1 | cut -d'(' -f1; done
    try  pattern_spectra, spectra measure it
    try  attention, written measure it
    try  circuits, expert_writes, latent, logits, pattern_spectra, readers, spectra, states, trimmed measure it
    try  readers measures it

A baseline with another tokenizer would read another text.

  $ cp -r "$TREE/models/builtin" mine; cp -r mine other; sed -i 's/",": 11/",": x/; s/"\.": 13/".": 11/; s/",": x/",": 13/' other/tokenizer.json
  $ rankscope scan mine --text "$TREE/models/builtin/demo.txt" --samples 2 --baseline other --lens residual 2>&1 | sed 's/id [0-9]* is "[^"]*" there and "[^"]*"/id N is A there and B/'
  error: the baseline has another tokenizer: id N is A there and B in the model
    in   --baseline other
    try  scan each by itself; numbers of different tokens are no baseline for each other
