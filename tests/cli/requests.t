A request that cannot be meant is refused with exit code 2, before anything is read where that is possible.

  $ ln -s "$TREE/tests/fixtures/models/bert" bert
  > ln -s "$TREE/tests/fixtures/models/vit" vit
  > echo 3 4 5 6 7 8 9 10 > ids.txt
  $ rankscope scan bert --random-tokens --samples 0
  error: --samples: expected a whole number from 1 to 1000000, but got "0"
    try  rankscope scan --help
  [2]
  $ rankscope scan bert --random-tokens --samples -3
  error: --samples: expected a whole number from 1 to 1000000, but got "-3"
    try  rankscope scan --help
  [2]
  $ rankscope scan bert --random-tokens --samples many
  error: --samples: expected a whole number from 1 to 1000000, but got "many"
    try  rankscope scan --help
  [2]
  $ rankscope scan bert --random-tokens --samples 99999999999999999999
  error: --samples: expected a whole number from 1 to 1000000, but got "99999999999999999999"
    try  rankscope scan --help
  [2]
  $ rankscope scan bert --random-tokens --max-length 0
  error: --max-length: expected a whole number from 1 to 1048576, but got "0"
    try  rankscope scan --help
  [2]
  $ rankscope scan bert --random-tokens --batch-size -1
  error: --batch-size: expected a whole number from 1 to 65536, but got "-1"
    try  rankscope scan --help
  [2]
  $ rankscope scan bert --random-tokens --threads -1
  error: --threads: expected a whole number from 0 to 1024, but got "-1"
    try  rankscope scan --help
  [2]
  $ rankscope scan bert --random-tokens --seed -1
  error: --seed: expected a whole number of at least 0, but got "-1"
    try  rankscope scan --help
  [2]
  $ rankscope scan bert --random-tokens --format tabel
  error: there is no format "tabel"
    try  table, csv, json
  [2]
  $ rankscope scan bert --random-tokens --json --format csv
  error: --format excludes --json
    try  rankscope scan --help
  [2]
  $ rankscope scan bert --random-tokens --threshold colapse=0.1
  error: there is no threshold "colapse"
    try  collapse, use, read   (rankscope scan --help shows all 20)
  [2]
  $ rankscope scan bert --random-tokens --threshold resid=0.1 2>&1 | tail -1
    try  residual, residual_fro_rel_trimmed, residual_fro_rel_normed   (rankscope scan --help shows all 20)
  $ rankscope scan bert --random-tokens --threshold collapse
  error: expected a threshold as collapse=0.05, but got "collapse"
    in   --threshold
  [2]
  $ rankscope scan bert --random-tokens --threshold collapse=-1
  error: expected a threshold as collapse=0.05, but got "collapse=-1"
    in   --threshold
  [2]
  $ for value in 0x10 1e-400x ' 1' 1e999; do rankscope scan bert --random-tokens --threshold "sink_margin=$value" 2>&1 | head -1; done
  error: expected a threshold as sink_margin=0.05, but got "sink_margin=0x10"
  error: expected a threshold as sink_margin=0.05, but got "sink_margin=1e-400x"
  error: expected a threshold as sink_margin=0.05, but got "sink_margin= 1"
  error: expected a threshold as sink_margin=0.05, but got "sink_margin=1e999"
  $ rankscope scan bert --random-tokens --threshold collapse=nan
  error: expected a threshold as collapse=0.05, but got "collapse=nan"
    in   --threshold
  [2]
  $ for name in residual sinks massive massive_ratio unit_rank output_kl head_predicted; do rankscope scan bert --random-tokens --threshold $name=-1 2>&1 | head -1; done
  error: expected a threshold as collapse=0.05, but got "residual=-1"
  error: expected a threshold as sink_margin=0.05, but got "sinks=-1"
  error: expected a threshold as massive=0.05, but got "massive=-1"
  error: expected a threshold as massive=0.05, but got "massive_ratio=-1"
  error: expected a threshold as dimension=0.05, but got "unit_rank=-1"
  error: expected a threshold as epsilon=0.05, but got "output_kl=-1"
  error: expected a threshold as duplicate=0.05, but got "head_predicted=-1"
  $ rankscope scan bert --random-tokens --threshold eff.rank=0.5
  error: no sentence of the verdict is decided by eff.rank alone
    in   --threshold
    try  rankscope scan --help lists what sentences are decided by
  [2]
  $ rankscope verify bert --against x --tolerance -1
  error: --tolerance: expected a number of at least 0, but got "-1"
    try  rankscope verify --help
  [2]
  $ rankscope scan --text ids.txt bert
  error: expected a text file, but got a folder
    in   --text bert
    try  name the model before --text: rankscope scan MODEL --text FILE
  [2]

Names of parts, heads, lenses, layers, ranks and devices come with the nearest, or with what there is.

  $ rankscope scan bert --random-tokens --off skp
  error: there is no part "skp"
    try  skip, mlp, norm   (rankscope scan --help shows all 8)
  [2]
  $ rankscope scan bert --random-tokens --off skip --off skip
  error: the variant -skip is asked for twice
  [2]
  $ rankscope scan bert --random-tokens --off head:L3H0
  error: there is no layer 3: the model has 3, counted from 0
  [2]
  $ rankscope scan bert --random-tokens --off head:L0H3
  error: there is no head 3 in layer 0: it has 3, counted from 0
  [2]
  $ rankscope scan bert --random-tokens --off head:5
  error: "head:5" does not name a head
    try  write head:L0H0
  [2]
  $ for part in head:2.1 head:2:1 head:l2h1 head:L2.H1 expert:2.1 L2H1 blocks.2.head.1; do rankscope scan bert --random-tokens --off $part 2>&1 | tail -1; done
    try  write head:L2H1
    try  write head:L2H1
    try  write head:L2H1
    try  write head:L2H1
    try  write expert:L2E1
    try  a head is written head:L2H1
    try  a head is written head:L2H1
  $ rankscope scan bert --random-tokens --off heads
  error: there is no part "heads"
    try  a head is written head:L5H3, layer and number in it
  [2]
  $ rankscope scan bert --random-tokens --off head:encoder.L2H1
  error: this network has one stream, and none called "encoder"
    in   --off head:encoder.L2H1
    try  --off head:L2H1
  [2]
  $ rankscope scan bert --random-tokens --off mlp+tokens+skip
  error: tokens measures the network as it is, and joins no other part
    in   --off mlp+tokens+skip
    try  each by itself: --off tokens --off mlp+skip
  [2]
  $ rankscope scan bert --random-tokens --rank qk=3+ov=10
  error: there is nothing to cut: the OV maps of this model have rank 10 at most
    in   --rank qk=3+ov=10
    try  ov=1 to ov=9, or ov=auto
  [2]
  $ rankscope scan bert --random-tokens --rank qv=8
  error: "qv=8" is not a rank
    try  write qk=8 or ov=16
  [2]
  $ rankscope scan bert --random-tokens --rank qk=8+qk=4
  error: "qk=8+qk=4" cuts one map twice
    try  write qk=8+ov=16
  [2]
  $ rankscope scan bert --random-tokens --threshold collapse=.05 --threshold residual=.2
  error: this threshold is given twice
    in   --threshold residual=.2
  [2]
  $ rankscope scan bert --random-tokens --lens residul
  error: there is no lens "residul"
  ...
  [2]
  $ rankscope scan bert --random-tokens --layers 1-3
  error: there is no layer 3: the model has 3, counted from 0
    in   --layers
  [2]
  $ rankscope scan bert --random-tokens --layers two
  error: "two" does not list layers
    in   --layers
    try  layers are listed as 0-5,11
  [2]
  $ rankscope scan bert --random-tokens --dtype flaot32
  error: there is no dtype "flaot32"
    try  float32, float64
  [2]
  $ rankscope scan bert --random-tokens --dtype bfloat16
  error: bfloat16 is a storage type; the arithmetic here is float32 or float64
    try  --dtype float32 reads a bfloat16 checkpoint as it is
  [2]
  $ rankscope scan bert --random-tokens --device gpu
  error: there is no device "gpu"
    try  cpu, cuda, cuda:0
  [2]
  $ rankscope scan bert --random-tokens --precision tf31
  error: there is no precision "tf31"
    try  tf32, float32
  [2]
  $ rankscope collapse bert --random-tokens --precision tf32
  error: TF32 is an arithmetic of GPUs
    in   --precision tf32
    try  --device cuda
  [2]
  $ rankscope scan bert --random-tokens --device-memory 4GB
  error: --device-memory: expected a size as 4GiB or 512MiB, but got "4GB"
    try  rankscope scan --help
  [2]
  $ rankscope operator bert --random-tokens --device-memory 4GiB
  error: --device-memory bounds the memory of a GPU
    try  --device cuda
  [2]

Parts are joined by a plus.

  $ rankscope scan bert --random-tokens --off skip,mlp
  error: there is no part "skip,mlp"
    try  parts that go together are joined by +: skip+mlp
  [2]

A name that is mistyped is told before the input is asked for, and a baseline is opened before the work.

  $ for words in '--off skp' '--lens residul' '--rank kq=3' '--layers 9' '--replace softmax=liner' '--baseline nowhere'; do rankscope scan bert $words 2>&1 | head -1; done
  error: there is no part "skp"
  error: there is no lens "residul"
  error: "kq=3" is not a rank
  error: there is no layer 9: the model has 3, counted from 0
  error: there is no attention variant "liner"
  error: there is no such folder

One input, of the kind the model reads.

  $ rankscope scan bert
  error: there is no input
    try  --text FILE, --token-ids FILE, --pixels FILE or --random-tokens
  [2]
  $ rankscope scan bert --text ids.txt --token-ids ids.txt
  error: --text, --token-ids, --pixels and --random-tokens exclude each other
  [2]
  $ rankscope scan vit --text ids.txt
  error: this model reads images, not tokens
    try  --pixels FILE.safetensors or --random-tokens
  [2]
  $ rankscope scan bert --pixels ids.txt
  error: this model reads tokens, not images
    try  --text FILE
  [2]
  $ rankscope scan "$TREE/tests/fixtures/models/bloom" --random-tokens --samples 1000000 --max-length 1000000
  error: 1000000 samples of 1000000 random numbers are more than the 1073741824 allowed
    try  a smaller --samples or --max-length
  [2]
