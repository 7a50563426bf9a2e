The loss stands in front of every scan: of the full network and of every variant, with its error.

  $ cat > masked <<'END'
  > sed 's/[▁▂▃▄▅▆▇█]\{1,\}/~/; s/-\{0,1\}[0-9][0-9.]*\(e-[0-9]*\)\{0,1\}/N/g; s/  */ /g'
  > END
  $ rankscope scan --samples 4 --max-length 32 --off skip --lens residual > table.txt; sed -n '1,3p' table.txt | sh masked
  loss full N ± N nats a token (perplexity N), -skip N ± N; the
   next token, N samples

  $ rankscope scan --samples 4 --max-length 32 --off skip --lens residual --format csv | sed -n '1,5p' | cut -d, -f1,2,5
  variant,site,metric
  full,unembed.hook_out,nll
  full,unembed.hook_out,perplexity
  -skip,unembed.hook_out,nll
  -skip,unembed.hook_out,perplexity
  $ rankscope scan --samples 4 --max-length 32 --lens residual --json | grep -o '"loss":"full [0-9]' | cut -c1-12
  "loss":"full

A masked model is asked for 15 % of its tokens, hidden behind the token that its tokenizer names; where none is
known, and where there is no head, nothing is invented.

  $ cp -r "$TREE/tests/fixtures/models/bert" bert; chmod -R u+w bert
  > { printf '[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n'; seq 5 96; } > vocab.txt
  > printf '5 6 7 8 9 10 11 12 13 14 15\n25 24 23 22 21 20 19 18 17\n' > text.txt
  > sed 's/^/5 /' text.txt > ids.txt
  $ rankscope scan bert --token-ids ids.txt --lens residual | grep -c '^loss'
  0
  [1]
  $ rankscope scan bert --token-ids ids.txt --lens residual | grep 'note'
    note      no loss is given: the mask token is not known
  $ cp vocab.txt bert/; rankscope scan bert --text text.txt --lines --lens residual > table.txt; sed -n '1p' table.txt | sh masked; grep note table.txt
  loss full N ± N nats a token; N % of the tokens hidden, N samples
  [1]
  $ rankscope scan "$TREE/tests/fixtures/models/bert-classifier" --token-ids ids.txt --lens residual | grep -c 'loss'
  0
  [1]

Heads that are taken out for the verdict are those of every way to name them.

  $ for kinds in heads all all,estimates mlps; do
  >   rankscope scan "$TREE/tests/fixtures/models/gpt2" --random-tokens --samples 2 --max-length 8 --ablate $kinds --threshold dead=0.9 --quiet --format csv | grep -c '^-head-mean' | sed 's/^[1-9][0-9]*$/some/'
  > done
  some
  some
  some
  0

Every head, one at a time: cells in the terminal, what can go together, what the estimates are worth, and the
passes counted beside their bound.

  $ rankscope scan --samples 8 --max-length 24 --lens residual --ablate > table.txt; sed -n '/^heads by/,/^$/p' table.txt | sh masked | sed 's/\(~ \{0,1\}\)\{1,\}/~ /g; s/[▁▂▃▄▅▆▇█]/~/g; s/\(~ \)\{1,\}/~ /g'
  heads by head_zero_kl, ~ N to ~ N, logarithmic
   N ~ HN N
   N ~ HN N
   N ~ HN N
   N ~ HN N
   N ~ HN N
   N ~ HN N

  $ tr -s '\n ' ' ' < table.txt | grep -o 'forward passes of 8 samples, counted'
  forward passes of 8 samples, counted
  $ rankscope scan --samples 8 --max-length 24 --lens residual --ablate --format csv > all.csv; cut -d, -f5 all.csv | sort | uniq -c | grep 'head_\|prune_kl\|correlation' | sed 's/^ *//'
  1 estimate_kl_rank_correlation
  1 estimate_loss_rank_correlation
  48 head_estimate_kl
  48 head_estimate_loss
  48 head_zero_kl
  48 head_zero_loss
  1 head_zero_passes
  1 head_zero_passes_bound
  10 prune_kl
  $ awk -F, '$5 == "head_zero_passes" { p = $6 } $5 == "head_zero_passes_bound" { b = $6 } END { print (p <= b ? "within" : "beyond") }' all.csv
  within

The exact number is that of the head taken out of the whole network.

  $ rankscope scan --samples 8 --max-length 24 --lens residual --ablate --off head:L2H3 --dtype float64 --format csv | awk -F, '$5 == "output_kl" { a = $6 } $5 == "head_zero_kl" && $3 == 2 && $4 == 3 { b = $6 } END { d = a - b; print (d < 1e-9 && d > -1e-9 ? "the same" : a " " b) }'
  the same

Other kinds and replacements, estimates alone, curves of rank.

  $ rankscope scan --samples 4 --max-length 16 --lens residual --ablate mlps,layers --ablate-by zero,mean --format csv | cut -d, -f5 | sort | uniq -c | grep 'mlp\|layer' | grep -v passes | sed 's/^ *//'
  6 layer_zero_kl
  6 layer_zero_loss
  6 mlp_mean_kl
  6 mlp_mean_loss
  6 mlp_zero_kl
  6 mlp_zero_loss
  $ rankscope scan --samples 4 --max-length 16 --lens residual --ablate estimates --format csv | cut -d, -f5 | sort | uniq -c | grep 'head_[ez].*_kl' | sed 's/^ *//'
  48 head_estimate_kl
  16 head_zero_kl
  $ rankscope scan --samples 4 --max-length 16 --lens residual --rank qk=1,16 --rank kv=8,32 --format csv | awk -F, '$3 == "" && $5 ~ /^rank_.*_kl$/ { print $5, $9, ($6 < 1e-6 ? "nothing" : "something") }'
  rank_qk_kl 1 something
  rank_qk_kl 16 nothing
  rank_kv_kl 8 something
  rank_kv_kl 32 nothing

Words that are none are answered before anything runs.

  $ rankscope scan --ablate head
  error: there is no kind of part "head"
    in   --ablate head
    try  all, estimates, heads, mlps, layers, experts; the model's folder stands before --ablate
  [2]
  $ rankscope scan --ablate-samples 4
  error: --ablate-samples says how many samples --ablate and curves of --rank run
    try  --ablate heads --ablate-samples 32
  [2]
  $ rankscope scan --ablate estimates --ablate-by mean
  error: estimates are of heads that write zero, and nothing else is put in their place
    in   --ablate-by
    try  --ablate heads --ablate-by mean
  [2]
  $ rankscope scan --ablate --ablate-by nothing 2>&1 | head -2
  error: there is no replacement "nothing"
    in   --ablate-by nothing
  $ rankscope scan --rank qk=1,x
  error: "qk=1,x" does not name ranks of one map
    in   --rank
    try  qk=1,2,4,8, ov=1,2,4,8 or kv=4,8,16
  [2]

A plan within a budget, written as a model whose loss scan repeats and which verify holds to its activations.

  $ rankscope plan --samples 10 --max-length 24 --budget 1.5 --write planned > plan.txt; grep -c '/' plan.txt | awk '{ print ($1 > 0 ? "cuts" : "none") }'; grep '^layer' plan.txt | tr -s ' '; grep -o '^[? ] *[a-z][a-z ]*[a-z]  \|^[a-z]*  ' plan.txt | sed 's/^[? ]*//; s/ *$//' | grep . | sort -u
  cuts
  layer heads out QK OV KV could share with
  all
  held out
  layer
  note
  peft
  plan
  search
  sharing
  wrote
  $ rankscope verify planned --against planned/activations.safetensors | tail -1 | cut -c1-6
  agrees
  $ said=$(grep '^all' plan.txt | sed 's/.* to \([0-9.]*\) nats.*/\1/'); rankscope scan planned --text "$TREE/models/builtin/demo.txt" --samples 10 --max-length 24 --lens residual --format csv | awk -F, -v said="$said" '$5 == "nll" { d = $6 - said; print (d < 2e-4 && d > -2e-4 ? "repeats" : $6 " " said) }'
  repeats

On so little text nothing can be promised within a small budget, and nothing is changed.

  $ rankscope plan --samples 8 --max-length 12 --budget 0.0005 --write same > small.txt; head -1 small.txt | cut -c1-47; grep -c '/[0-9]' small.txt
  ? plan      these samples are too few to decide
  0
  [1]
  $ grep 'note .* samples were read' small.txt | tr -d '0-9' | tr -s ' '
   note of about samples were read: --samples reads more
  $ rankscope plan --samples 8 --max-length 12 --budget 0.0005 --json | grep -o '"parameters_saved": [0-9]*,' | sort -u
  "parameters_saved": 0,
  $ rankscope plan "$TREE/tests/fixtures/models/t5" --random-tokens 2>&1 | head -1
  error: a plan follows one stream, and this network has several
  $ rankscope scan "$TREE/tests/fixtures/models/t5" --random-tokens --rank qk=1,2 2>&1 | head -1
  error: --ablate and curves of --rank change one stream, and this network has several
  $ rankscope plan --write here --out ./here 2>&1 | head -1
  error: the model and the report need a folder each
  $ rankscope plan --samples 3
  error: a plan needs at least 6 samples, and there are 3
    try  a larger --samples
  [2]
  $ for budget in -1 inf nan abc; do rankscope plan --budget $budget; done
  error: --budget must be a number of nats, 0 or more
  error: --budget must be a number of nats, 0 or more
  error: --budget must be a number of nats, 0 or more
  error: --budget must be a number of nats, 0 or more
  [2]

Everything may go: no cut of a layer without heads, no parameter saved twice, the count that inspect gives.

  $ awk 'BEGIN { for (i = 0; i < 40; ++i) { for (j = 0; j < 10; ++j) printf "%d ", 5 + (i * 37 + j * j * 11 + i * j * 7) % 60; print "" } }' > forty.txt
  > head -1 forty.txt | sed p | sed p | sed p > same.txt; rankscope plan "$TREE/tests/fixtures/models/gpt2" --token-ids same.txt 2>&1 | head -1
  > cat forty.txt same.txt > more.txt; rankscope plan "$TREE/tests/fixtures/models/gpt2" --token-ids more.txt --samples 48 --budget 1e9 | grep 'repeat' | tr -s ' '
  error: a plan needs at least 6 samples that differ, and there are 1
   note 8 samples that repeat an earlier one were left out: what was
  $ rankscope plan "$TREE/tests/fixtures/models/gpt2" --token-ids forty.txt --samples 40 --budget 1e9 > all.txt; head -1 all.txt | grep -o 'nats 9 of 9 heads go:'; grep -A3 '^layer' all.txt | tr -s ' '; grep -o '^search .*changes' all.txt | tr -s ' '; grep '^peft' all.txt | tr -s ' '
  nats 9 of 9 heads go:
  layer heads out QK OV KV could share with
   0 0 1 2 - - - -
   1 0 1 2 - - - layer 0
   2 0 1 2 - - - layer 1
  search 9 changes
  peft rank_pattern = {}
  $ rankscope plan "$TREE/tests/fixtures/models/gpt2" --token-ids forty.txt --samples 40 --budget 1e9 --json | grep -o '"parameters[a-z_]*": [0-9]*' | sort -u
  "parameters": 23322
  "parameters_saved": 11070
  "parameters_saved": 3720
  $ rankscope inspect "$TREE/tests/fixtures/models/gpt2" | grep -o '^ *parameters *[0-9,]*' | tr -s ' '
  parameters 23,322

Folders that cannot be written are answered before the search, and before the model is read; a plan is printed before
it is written.

  $ echo > file; rankscope plan nowhere --write file/planned
  error: cannot make the folder: Not a directory
    in   --write file/planned
    try  another folder
  [1]
  $ rankscope plan nowhere --write file 2>&1 | head -2
  error: cannot make the folder: Not a directory
    in   --write file
  $ rankscope plan nowhere --out file/planned 2>&1 | head -2
  error: cannot make the folder: "file" is a file
    in   file/planned
  $ (trap '' XFSZ; ulimit -f 200; rankscope plan --samples 10 --max-length 24 --budget 1.5 --write full 2> full.err) | grep -o '^search\|^wrote'; head -1 full.err; ls full
  search
  error: cannot write the file: File too large
  ls: cannot access 'full': No such file or directory
  [2]
  $ rankscope plan "$TREE/tests/fixtures/models/bert-classifier" --random-tokens 2>&1 | head -1
  error: a plan is judged by the loss, and this model has none
