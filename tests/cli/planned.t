What `plan --write` copies beside the weights, and what is left of it when it is stopped. A model comes from anybody:
only files with known names go along, no link is followed out of the folder, and names do not drive the terminal.

  $ cp -r "$TREE/models/builtin" model; chmod -R u+w model; echo mine > secret; ln -s ../secret model/README.md; rm -f model/demo.txt
  > mkfifo model/vocab.txt; echo 'print("hello")' > model/modeling.py; dd if=/dev/zero of=model/LICENSE bs=1 count=0 seek=65M 2> dd.txt
  > echo 'rankscope plan "$@" --text "$TREE/models/builtin/demo.txt" --samples 8 --max-length 12 --budget 0.0005' > plan
  $ sh plan model --write "$(printf 'a\033[2Jb')" > plan.txt; grep -A1 'note .*--write' plan.txt; grep '^wrote' plan.txt | cut -c1-23; tr -cd '\033' < plan.txt | wc -c
    note      --write leaves out README.md: links that lead out of the model's
              folder are not followed
    note      --write leaves out vocab.txt: only regular files are copied
    note      --write leaves out LICENSE: files beside the weights are copied up
              to 64 MiB, and 256 MiB together
    note      --write leaves out modeling.py: only what belongs to a model and its
              tokenizer is copied
  wrote       a\x1b[2Jb;
  0
  $ ls a*
  activations.safetensors
  config.json
  model.safetensors
  tokenizer.json
  tokenizer_config.json

A config that lies elsewhere cannot go along, which is said before the search.

  $ mkdir links; for file in config.json model.safetensors tokenizer.json; do ln -s ../model/$file links/; done; sh plan links --write linked
  error: this is no file of the model's folder that could be copied
    in   links/config.json
    try  cp -rL links COPY puts files in the place of links
  [1]

A killed run leaves its mark, with what it was writing. The next one takes that away, and nothing else.

  $ mkdir killed; printf 'model.safetensors\nvocab.txt\n' > killed/unfinished.part999999999
  $ echo half > killed/model.safetensors; echo old > killed/vocab.txt; echo mine > killed/README-mine
  $ sh plan model --write killed > plan.txt; LC_ALL=C ls killed; rankscope verify killed --against killed/activations.safetensors | tail -1 | cut -c1-6
  README-mine
  activations.safetensors
  config.json
  model.safetensors
  tokenizer.json
  tokenizer_config.json
  agrees
  $ sh plan model --write killed
  error: there is something in this folder already
    in   --write killed
    try  a new folder
  [2]
  $ mkdir busy; touch busy/unfinished.part$$; sh plan model --write busy 2>&1 | head -1; ls busy | tr -d '0-9'
  error: there is something in this folder already
  unfinished.part
  $ cp -r killed marked; touch marked/unfinished.part999999999; sh plan marked --write ./marked 2>&1 | head -1
  error: there is something in this folder already

Whichever file it is that cannot be written: nothing of the model is left, and the error says why.

  $ rm model/LICENSE; dd if=/dev/zero of=model/LICENSE bs=1 count=0 seek=40M 2> dd.txt
  $ (trap '' XFSZ; ulimit -f 16000; sh plan model --write full 2> full.err) | grep -c '^wrote'; cat full.err; ls full
  0
  error: cannot write the file: File too large
    in   full/LICENSE
    try  ulimit -f sets how large a file may become
  ls: cannot access 'full': No such file or directory
  [2]

There is no plan for a model that overflows: nothing can be held against its loss.

  $ cp -r "$TREE/tests/fixtures/models/gpt2" huge; chmod -R u+w huge; for i in 0 1 2 3; do printf '\377\377\177\177' | dd of=huge/model.safetensors bs=1 seek=$((50720 + 4 * i)) conv=notrunc 2> dd.txt; done
  > for what in "plan huge" "scan huge --ablate"; do rankscope $what --random-tokens --samples 8 --max-length 12; done
  error: the activations hold NaN, Inf, or numbers whose squares overflow
    in   blocks.1.hook_resid_post, sample 0, token 0
    try  float64 arithmetic tells whether this is an overflow; inspect the checkpoint otherwise
  error: the activations hold NaN, Inf, or numbers whose squares overflow
    in   blocks.1.hook_resid_post, sample 0, token 0
    try  float64 arithmetic tells whether this is an overflow; inspect the checkpoint otherwise
  [1]
