The program alone says what it can do.

  $ rankscope
  rankscope 0.1.0: shows where attention gains and loses rank

  Usage: rankscope COMMAND [options]

    bench      Time training beside LibTorch and beside what the machine could do, in one table
    bound      Say what heads of a given rank can reach at best, without training
    choose     How many heads: cost, bound and trained error of each choice
    collapse   Take skips, MLPs and norms out in every combination: who holds the rank up
    diff       Compare two scans of the same tokens: the layers and heads that changed
    inspect    Show what a checkpoint is, without reading its weights
    lenses     List what can be measured, what each metric means and what it costs
    operator   Read the network as one linear map: spectrum, ranks, which token is made of which
    paths      Sum all paths of each length exactly: which ones carry the output
    plan       Plan what a model can do without for a given rise of its loss, and write that model
    plot       Draw a figure for a paper from result tables: SVG, PDF or the terminal
    report     Show saved results as one HTML page, several folders side by side
    scan       Scan a checkpoint: how much rank is left, who holds it up, what to do
    serve      Show a folder of results in the browser and follow it while a study runs
    study      Train small models to answer a question about rank, beside the published figure
    tokenize   Turn texts into token ids, one JSON line each
    verify     Compare every layer with activations saved from another implementation

  rankscope COMMAND --help explains one, with examples.
  $ rankscope --help | head -1
  rankscope 0.1.0: shows where attention gains and loses rank
  $ rankscope help | head -1
  rankscope 0.1.0: shows where attention gains and loses rank
  $ rankscope help scan | sed -n 2p; rankscope help study run | sed -n 2p
  Usage: rankscope scan [OPTIONS] [FOLDER]
  Usage: rankscope study run [OPTIONS] STUDY [KEY-VALUES...]
  $ rankscope help scna
  error: there is no command "scna"
    try  scan, plan, bench   (rankscope --help shows all 17)
  [2]
  $ rankscope --version
  rankscope 0.1.0

Every command explains itself with examples, and needs no torch for it.

  $ export RANKSCOPE_LIBRARY=/nowhere.so
  > for c in $(rankscope | sed -n 's/^  \([a-z]\{1,\}\)  .*/\1/p'); do rankscope $c --help > $c.txt || echo "$c failed"; grep -q "^Usage: rankscope $c" $c.txt || echo "$c: no usage"; grep -A1 "^Examples:" $c.txt | grep -q "^  rankscope $c" || echo "$c: no example"; done; ls plan.txt scan.txt
  plan.txt
  scan.txt
  $ sed -n '/^Parts of/,$p' scan.txt
  Parts of --off, joined by + (post-norm: u = N1(x + attn x), y = N2(u + mlp u);
  pre-norm: u = x + attn(N1 x), y = u + mlp(N2 u)):
    attention-skip  post: u = N1(attn x)     pre: u = attn(N1 x)
    mlp-skip        post: y = N2(mlp u)      pre: y = mlp(N2 u)
    skip            both of them; parallel blocks have one skip, and this takes it out
    mlp             the MLP with its skip and, post-norm, N2: y = u
    norm            N1, N2 and the final norm become the identity; the embedding's norm stays
    position        learned positions are not added, rotary and relative terms left out
    head:L5H3       head 3 of layer 5 writes zero; head:encoder.L5H3, head:cross.L5H3: of
                    another stream, where a decoder reads an encoder
    expert:L3E5     expert 5 of layer 3 writes zero
  Alone, one after another, for the verdict:
    tokens          each layer's tokens become their mean: whether the output needs what tells
                    them apart (`use`); (L + 1) / 2 forward passes and one
    fisher          how much of what tells tokens apart the output sees, to first order
                    (`spread_fisher`); 8 backward passes and two forward ones
    length          half of every text, half of that, ...: how sinks fare, and what they drain;
                    under one forward pass

  Thresholds of the verdict, with their defaults:
    short_text=8        fewer content tokens than this decide nothing
    few_tokens=32       ... and than this, nothing about sinks or alike tokens
    few_samples=4       ... as do fewer samples than this
    spread=0.1          spread below this: the tokens of a sample are nearly all alike
    collapse_ratio=0.5  ... and below this share of the baseline's, where there is one
    read=0.1            nine units of ten differ by less than this between tokens: they tell nothing apart
    use=0.1             use below this: the output does not need what tells tokens apart
    dimension=2         unit_rank below this: most of what tells tokens apart lies along one direction
    collapse=0.1        normed residual below this: the tokens of the layer are nearly all alike
    kept=0.8            more than this share of the full network's normed residual and rank left: the part does not hold them up
    sink_margin=3       margin of one key over the mean of the others that makes a head a sink
    sink=0.3            attention on one key, above uniform, that sink_ratio counts by
    dead=0.01           a head whose output varies by less than this share of the stream: a candidate
    epsilon=0.001       output_kl below this: the output stays
    epsilon_error=0.01  output_error below this, of a model without a head: the output stays
    duplicate=0.9       share of a head's output that the layer's other heads write, too
    flat_scores=0.05    logit_rms below this: a query gives all of its keys nearly the same weight
    low_scores=0.5      logit_rank below this share of random initialisation's
    low_rank=0.1        effective rank of a QK or OV map below this share of the rank it could have, or of one direction
    massive=1000        largest over median activation that is not 0, above this: massive activations

  Examples:
    rankscope scan
    rankscope scan bert/ --text FILE --off skip --off skip+mlp
    rankscope scan bert/ --text FILE --rank qk=8 --rank ov=16
    rankscope scan tuned/ --baseline base/ --text FILE --out out/tuned
    rankscope scan bert/ --random-tokens --layers 0-5,11 --lens residual,spectra --json

  $ awk 'length > 140' *.txt
  $ RANKSCOPE_LIBRARY=/nowhere.so rankscope lenses
  error: cannot load the engine: /nowhere.so: cannot open shared object file: No such file or directory
    in   /nowhere.so
  [1]

Names that do not exist are answered with the nearest.

  $ rankscope scna
  error: there is no command "scna"
    try  scan, plan, bench   (rankscope --help shows all 17)
  [2]
  $ rankscope --hlep
  error: there is no option "--hlep"
    try  --help, --version   (rankscope --help shows all 2)
  [2]
  $ rankscope scan --rankk qk=8 2>&1 | sed 's/all [0-9]*/all N/'
  error: there is no option "--rankk"
    try  --rank, --init, --lines   (--help shows all N)
  $ rankscope inspect . --jsn
  error: there is no option "--jsn"
    try  --json, --help, --quiet   (--help shows all 5)
  [2]
  $ rankscope tokenize . --no-specials
  error: there is no option "--no-specials"
    try  --no-special, --tokens, --help   (--help shows all 6)
  [2]
  $ rankscope verify . --agianst x
  error: there is no option "--agianst"
    try  --against, --quiet, --threads   (--help shows all 8)
  [2]

What is missing or too much is named.

  $ rankscope inspect
  error: FOLDER is required
    try  rankscope inspect --help
  [2]
  $ rankscope verify bert
  error: --against is required
    try  rankscope verify --help
  [2]
  $ rankscope scan a b
  error: there is no place for b
    try  rankscope scan --help
  [2]
  $ rankscope scan --off
  error: --off: 1 required PARTS missing
    try  rankscope scan --help
  [2]
