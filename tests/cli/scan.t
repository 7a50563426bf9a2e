A scan without arguments reads the built-in model and its text; here a little of it.

  $ cat > masked <<'END'
  > sed 's/[▁▂▃▄▅▆▇█]\{1,\}/~/; s/-\{0,1\}[0-9][0-9.]*\(e-[0-9]*\)\{0,1\}/N/g; s/  */ /g'
  > END
  $ rankscope scan --samples 2 --max-length 24 --lens trimmed,attention --layers 0-1 | sh masked
  loss full N ± N nats a token (perplexity N); the next token, N samples

  full ~ content tokens at lnNhook_normalized, N samples
  layer residual entropy
  N N N
  N N N
  final N -

  residual: what tells the tokens apart, as a share of their size (N: all alike);
  entropy: of attention, mean over heads (N: uniform)

  verdict
  ? support not known which part holds the rank up: scan with --off skip
   note N of N samples were cut to N tokens
   note N of about N samples were read: --samples N reads more
   note --layers NN: what is said of layers and heads is about these alone

A checkpoint of one's own, with token ids: tables, variants side by side, a verdict with numbers.

  $ ln -s "$TREE/tests/fixtures/models/bert" bert
  > printf '3 4 5 6 7 8 9 10 11 12\n13 14 15 16 17 18 19 20\n[1, 2, 3, 4, 5, 6, 7, 8, 9]\n' > ids.txt
  $ rankscope scan bert --token-ids ids.txt --off skip --off skip+mlp --rank qk=2 --null --threshold collapse=0.05 > table.txt
  $ sed -n '/^full/,/^$/p' table.txt | sed -n '1,/^$/p' | head -7 | sh masked; grep '  content tokens' table.txt | sed 's/  .*  content/: content/'
  full ~ content tokens at hook_resid_post, N samples
  layer residual eff.rank cosine entropy sinks massive
  embed N N N - - N
  N N N N N N N
  N N N N N N N
  N N N N N N N

  full: content tokens at hook_resid_post, 3 samples
  -skip: content tokens at hook_resid_post, 3 samples
  -skip+mlp: content tokens at hook_resid_post, 3 samples
  rank:qk=2: content tokens at hook_resid_post, 3 samples
  null:init: content tokens at hook_resid_post, 3 samples
  null:shuffled: content tokens at hook_resid_post, 3 samples
  $ sed -n '/^variants/,/^$/p' table.txt | sh masked
  variants side by side
  variant output_kl residual first last
  full N ~ N N
  -skip N ~ N N
  -skip+mlp N ~ N N
  rank:qk=N N ~ N N
  null:init N ~ N N
  null:shuffled - ~ N N
  output_kl: divergence of the output from that of full, in nats

  $ sed -n '1,/^$/p' table.txt | grep -o '^what stands out\|^  support   the skips hold the rank up'
  what stands out
    support   the skips hold the rank up
  $ grep -c '^verdict' table.txt; tr -s '\n ' '  ' < table.txt | grep -o 'cutting every head to qk=2' | head -1
  1
  cutting every head to qk=2

What is left out takes no room; a lens without a table says where its numbers are.

  $ rankscope scan bert --token-ids ids.txt --lens circuits --samples 2 | head -5
  nothing stands out

  nothing measured here belongs into a table of layers: --format csv prints it,
  --out keeps it


A variant that changes nothing is said to change nothing.

  $ rankscope scan bert --token-ids ids.txt --replace softmax=softmax --off position+norm --lens residual | grep -A6 '^variants\|^  note' | sh masked | grep -v "verdict\|not known"
  variants side by side
  variant output_kl residual first last
  full N ~ N N
  replace:softmax=softmax N ~ N N
  -position+norm N ~ N N
  output_kl: divergence of the output from that of full, in nats

  --
   note replace:softmax=softmax takes nothing out of this model

The same seed gives the same numbers, another seed others.

  $ for seed in 1 1 2; do rankscope scan bert --random-tokens --samples 2 --seed $seed --lens residual --format csv > $seed.csv && cksum < $seed.csv; done | awk '{ print ($1 == last ? "same" : "new"); last = $1 }'
  new
  same
  new

Texts: one sample a line, several files, standard input, JSON lines with pairs, whole files in windows.

  $ printf 'the whale\nthe white whale swam on\n' > one.txt
  > printf 'call me Ishmael\r\n\n   \nsome years ago' > two.txt
  > printf '{"text": "the whale", "text_pair": "the sea"}\n{"text": "a ship"}\n' > pairs.jsonl
  $ rankscope scan --text one.txt two.txt --lens residual --format json | grep -o '"samples":[0-9]*' | head -1
  "samples":4
  $ rankscope scan --text one.txt --text two.txt --samples 3 --lens residual | grep -m1 hook_normalized | cut -d' ' -f5-
  content tokens at ln1.hook_normalized, 3 samples
  $ cat two.txt | rankscope scan --text - --lens residual | grep -m1 hook_normalized | cut -d' ' -f5-
  content tokens at ln1.hook_normalized, 2 samples
  $ rankscope scan --text pairs.jsonl --lens residual | grep -m1 hook_normalized | cut -d' ' -f5-
  content tokens at ln1.hook_normalized, 2 samples
  $ cat pairs.jsonl | rankscope scan --text - --lens residual --max-length 2 | sed -n '/hook_normalized/p; /note/p' | cut -d' ' -f5-
  all tokens at ln1.hook_normalized, 2 samples
      1 of 2 samples were cut to 2 tokens
  $ rankscope scan --whole --text "$TREE/models/builtin/demo.txt" --max-length 16 --samples 5 --lens residual | grep -m1 hook_normalized | cut -d' ' -f5-
  content tokens at ln1.hook_normalized, 5 samples
  $ rankscope scan --whole --text pairs.jsonl --lens similarity | grep note
    note      --whole reads text alone: 1 text_pair left out

Another checkpoint to judge against, on the same input; weak heads taken out; double precision.

  $ rankscope scan bert --baseline "$TREE/tests/fixtures/models/bert-base-noprefix" --token-ids ids.txt --lens residual,head_writes,trimmed --ablate --threshold dead=0.03 --dtype float64 > table.txt; sed -n '/^variants/,/^verdict/p' table.txt | sh masked; grep -o 'head *not known for L2H0' table.txt
  variants side by side
  variant output_kl residual first last
  full N ~ N N
  baseline N ~ N N
  -head-mean:LNHN N - -
  -head-bare:LNHN N - -
  -head-mean:LNHN N - -
  -head-bare:LNHN N - -
  output_kl: divergence from full in nats; where the output heads differ,
  output_error: relative change of the last hidden state

  residual (log)
  ...
   ● full
   ■ baseline

  heads by head_zero_kl, ~ N to █ N, logarithmic
  ...
  verdict
  head      not known for L2H0

Images go in as pixels, or random.

  $ vit="$TREE/tests/fixtures/models/vit"
  > rankscope scan "$vit" --pixels "$vit/activations.safetensors" --lens similarity | head -1
  > rankscope scan "$vit" --random-tokens --samples 2 --lens massive --quiet | sh masked | head -8
  full  content tokens at ln1.hook_normalized, 3 samples
  nothing stands out

  full
  layer massive
  N N
  N N
  N N


Another attention in the place of the trained one, as a stress test.

  $ rankscope scan --samples 4 --max-length 40 --lens pattern_spectra --replace softmax=prefix_normalised@L1-2 --replace softmax=linear@L0 --out replaced --quiet > replaced.txt
  $ cat > said <<'END'
  > awk '/ replaced / { on = 1; print; next } /^            / { if (on) print; next } { on = 0 }' "$1" |
  >   tr -s ' \n' ' ' | sed 's/\(?\? replaced\)/\n\1/g; s/[0-9]\.[0-9e.-]*/N/g'
  > END
  $ sh said replaced.txt; echo
  
   replaced softmax=prefix_normalised@L1-2, without training, costs output_kl N ± N, more than epsilon N; effective rank of attention there, as a share of the tokens: N before, N after
   replaced softmax=linear@L0, without training, costs output_kl N ± N, more than epsilon N; effective rank of attention there, as a share of the tokens: N before, N after
   replaced a stress test of these weights: a network trained with it may differ 
  $ grep 'linear@L0,blocks.0.attn.*,effective_rank,' replaced/metrics.csv | cut -d, -f2 | sort -u
  blocks.0.attn.hook_mixer

Each has a sentence with both numbers, also where the error leaves the cost open or nothing changes: none is called normal.

  $ rankscope scan --samples 8 --max-length 64 --lens pattern_spectra,massive --replace softmax=sigmoid@L5 --replace softmax=sigmoid@L2 --replace softmax=softmax@L1 --quiet > several.txt
  $ grep '^  normal' several.txt; sh said several.txt; echo
    normal    no massive activations in what blocks leave (numbers: --out, --json)
  
   replaced softmax=sigmoid@L2, without training, costs output_kl N ± N, more than epsilon N; effective rank of attention there, as a share of the tokens: N before, N after
  ? replaced softmax=sigmoid@L5, without training, costs output_kl N ± N, not known whether more than epsilon N, as its error is too large; effective rank of attention there, as a share of the tokens: N before, N after
   replaced softmax=softmax@L1, without training, costs output_kl 0, less than epsilon N; effective rank of attention there, as a share of the tokens: N before, N after
   replaced a stress test of these weights: a network trained with it may differ 

Where a kind of attention cannot have every rank, the most it can have stands behind the rank: linear attention of heads 10 wide, on 19 tokens.

  $ seq -s ' ' 3 21 > long.txt; rankscope scan bert --token-ids long.txt --lens pattern_spectra --replace softmax=linear@L1 --out ceiling --quiet | sed -n '/attn.rank$/,/^$/p' | tr -s ' '
  layer attn.rank
  0 -
  1 10/10
  2 -

  $ grep -c ',rank_ceiling,10,' ceiling/metrics.csv; rankscope plot ceiling --y attn.rank --where variant=replace:softmax=linear@L1 | head -1
  3
  numerical_rank

A dose of sink: so many nats on the first key, and the same mass moved elsewhere.

  $ rankscope scan --samples 2 --max-length 24 --lens similarity --sink-shift -2,2 --out dosed --quiet > /dev/null; grep ',output_kl,' dosed/metrics.csv | sed 's/,unembed.*//'
  replace:softmax=shifted_sink:nats=-2
  "replace:softmax=shifted_control:nats=-2,to=nothing"
  "replace:softmax=shifted_control:nats=-2,to=uniform"
  "replace:softmax=shifted_control:nats=-2,to=random"
  replace:softmax=shifted_sink:nats=2
  "replace:softmax=shifted_control:nats=2,to=nothing"
  "replace:softmax=shifted_control:nats=2,to=uniform"
  "replace:softmax=shifted_control:nats=2,to=random"
  $ rankscope scan --lens residual,,spectra
  error: there is nothing between two commas
    in   --lens residual,,spectra
  [2]
  $ rankscope scan --sink-shift 1,
  error: there is nothing behind the last comma
    in   --sink-shift 1,
  [2]
  $ rankscope scan --sink-shift 1,two
  error: expected nats from -100 to 100, not 0, but got "two"
    in   --sink-shift 1,two
    try  --sink-shift -2,2
  [2]

Names too long for their place lose what they have in common, so that each is told from the others: in the loss, over its layers, side by side and in the picture.

  $ rankscope scan --samples 2 --max-length 24 --lens residual --sink-shift 2 --quiet | grep -o 'replace:softmax=s[^ ]*' | LC_ALL=C sort | uniq -c | sed 's/^ *//'
  4 replace:softmax=shifted_sink:nats=2
  3 replace:softmax=shif~l:nats=2,to=nothing
  3 replace:softmax=shif~l:nats=2,to=uniform
  3 replace:softmax=shif~ol:nats=2,to=random
  1 replace:softmax=sh~:nats=2,to=nothing
  1 replace:softmax=sh~:nats=2,to=uniform
  1 replace:softmax=sh~l:nats=2,to=random
  $ rankscope scan --samples 2 --max-length 24 --lens residual --replace softmax=prefix_normalised@L1-2 --replace softmax=prefix_normalised@L3 --quiet | sed -n '/^variants/,/^output_kl/s/^\(replace[^ ]*\).*/\1/p'
  replace:softmax=pr~ix_normalised@L1-2
  replace:softmax=prefix_normalised@L3

Heads of different kinds: of the three of this layer two look around themselves and one is linear, 10 wide. Compressed heads would need filters.

  $ rankscope scan bert --token-ids long.txt --lens pattern_spectra --replace softmax=mixed:local=2,linear=1,window=9@L1 --out heads --quiet | sed -n '/attn.rank$/,/^$/p' | tr -s ' '
  layer attn.rank
  0 -
  1 16/16
  2 -

  $ grep ',rank_ceiling,' heads/metrics.csv | sed 's/.*rank_ceiling,//' | cut -d, -f1 | tr '\n' ' '; echo
  19 19 10 
  $ rankscope scan bert --token-ids long.txt --replace softmax=mixed
  error: mixed attention has parameters that the checkpoint has not: attn.key_filter, attn.value_filter
    try  rankscope study trains networks with them
  [2]
  $ rankscope scan bert --token-ids long.txt --replace softmax=mixed:local=2
  error: "mixed:local=2" has 2 heads, the layer 3
    try  mixed:full=1,local=2,compressed=1 is for four heads
  [2]
  $ rankscope scan --replace softmax=sinkhorn@L9
  error: there is no layer 9: the model has 6, counted from 0
    in   --replace softmax=sinkhorn@L9
  [2]
  $ rankscope scan --replace softmax=hybrid_normalised
  error: hybrid_normalised attention has parameters that the checkpoint has not: attn.mix
    try  rankscope study trains networks with them
  [2]
  $ rankscope scan --replace hard=softmax
  error: there is no hard attention in these layers to replace
    try  rankscope inspect names what there is
  [2]
