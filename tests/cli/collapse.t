Every combination of parts on the same tokens, and who holds the rank up.

  $ cat > masked <<'END'
  > sed 's/[▁▂▃▄▅▆▇█]\{1,\}/~/; s/-\{0,1\}[0-9][0-9.]*\(e[-+][0-9]*\)\{0,1\}/N/g; s/  */ /g'
  > END
  $ ln -s "$TREE/tests/fixtures/models/bert" bert
  $ rankscope collapse bert --random-tokens --samples 2 --max-length 12 | sh masked
  residual_lNinf_rel
  variant by depth at N at N at N at N
  full ~ N N N N
  -mlp-skip ~ N N N N
  -mlp ~ N N N N
  -norm ~ N N N N
  -mlp-skip+norm ~ N N N N
  -mlp+norm ~ N N N N
  -attention-skip ~ N N N N
  -attention-skip+mlp-skip ~ N N N N
  -attention-skip+mlp ~ N N N N
  -attention-skip+norm ~ N N N N
  -attention-skip+mlp-skip+norm ~ N N N N
  -attention-skip+mlp+norm ~ N N N N

  noise floor of floatN: N

   support the attention skip keeps tokens apart: the last relative residual
   times N (median of N pairs that differ in it alone, on N
   texts; thresholds N and N), at most from N to N
   (-attention-skip+mlp-skip and -mlp-skip)
   support the MLP with its skip does little: the last relative residual times
   N (median of N pairs that differ in it alone, on N texts;
   thresholds N and N), at most from N to N (-mlp and full); N
   of them the other way, at most from N to N
   (-attention-skip+mlp+norm and -attention-skip+norm)
   support the norm makes tokens alike: the last relative residual times N
   (median of N pairs that differ in it alone, on N texts; thresholds
   N and N), at most from N to N
   (-attention-skip+mlp-skip+norm and -attention-skip+mlp-skip)
   theory of the first text the cubic bound says nothing at this size: sqrt(c)
   rN = N, and only below N it shrinks (c = N, beta = N,
   gamma = N, rN = N)
   theory of the first text layer by layer the bound is above the measured
   residual by a factor of at least N^N; its precondition (scores
   without what all queries share, within N along a row) holds in N
   of N layers
   theory of the first text with every part in its place: without what all
   queries share, scores range over N to N along a row, and the
   precondition holds in N of N layers; sqrt(c) r is below N in N

Further factors on request: norms whose statistics are held at the whole network's, positions left out.

  $ rankscope collapse bert --random-tokens --samples 2 --max-length 12 --frozen-norm --positions --no-theory --format csv | cut -d, -f1 | grep '^-\|^full' | sort -u | wc -l
  36
  $ rankscope collapse bert --random-tokens --samples 2 --max-length 12 --frozen-norm --positions --no-theory | sh masked | sed -n '3p; 6p; 15,17p; /support/,$p'
  full ~ N N
  -norm-statistics ~ N N
  -attention-skip+norm-statistics ~ N N
  -attention-skip+mlp-skip+norm-statistics ~ N N
  -attention-skip+mlp+norm-statistics ~ N N
   support the attention skip keeps tokens apart: the last relative residual
   times at least N (median of N pairs that differ in it alone, on N
   texts; thresholds N and N), at most from the rounding floor
   (N) to N (-attention-skip+mlp-skip+position and
   -mlp-skip+position)
   support the MLP with its skip does little: the last relative residual times
   N (median of N pairs that differ in it alone, on N texts;
   thresholds N and N), at most from N to N (-mlp and full); N
   of them the other way, at most from N to N
   (-attention-skip+mlp+norm and -attention-skip+norm)
   support the norm makes tokens alike: the last relative residual times at
   most N (median of N pairs that differ in it alone, on N texts;
   thresholds N and N), at most from N to the rounding floor
   (N) (-attention-skip+mlp-skip+norm+position and
   -attention-skip+mlp-skip+position)
   support the positions do little: the last relative residual times N
   (median of N pairs that differ in them alone, on N texts;
   thresholds N and N), at most from the rounding floor (N) to
   N (-attention-skip+mlp-skip+position and
   -attention-skip+mlp-skip); N of them the other way, at most from
   N to N (-mlp-skip+position+norm-statistics and
   -mlp-skip+norm-statistics)

The paper's four networks, column by column; the split arithmetic goes on where float32 stalls.

  $ rankscope collapse bert --random-tokens --samples 2 --max-length 12 --preset paper --no-theory | sh masked
  depth SAN exponent SAN+skip SAN+MLP exponent transformer
   N N - N N - N
   N N - N N - N
   N N N N N N N
   N N N N N N N
  residual_lNinf_rel by depth: arithmetic means, as published; exponents, and what stands as N^x, are of geometric ones

  noise floor of floatN: N
  $ rankscope collapse bert --random-tokens --samples 2 --max-length 12 --arithmetic split --no-theory | sh masked | head -3
  depth SAN exponent SAN floatN SAN+skip SAN+MLP exponent
   N N - N N N -
   N N - N N N -
  $ rankscope collapse bert --random-tokens --samples 2 --arithmetic float64 --preset paper --minimiser --format csv | grep ',residual_l1inf_min,' | cut -d, -f1,5,9,10 | sort -u | head -3
  SAN+MLP,residual_l1inf_min,0,all
  SAN+MLP,residual_l1inf_min,0,content
  SAN+MLP,residual_l1inf_min,1,all

A mask is outside the theorem, and it says so.

  $ rankscope collapse "$TREE/tests/fixtures/models/gpt2" --random-tokens --samples 1 --max-length 8 | grep -A2 '^? theory'
  ? theory    the cubic bound does not speak of this attention: it needs softmax
              over all tokens in every block, without a mask, positions inside the
              scores or a gate

What is wrong is said in a line or two.

  $ rankscope collapse bert --random-tokens --arithmetic float16
  error: there is no arithmetic "float16"
    try  float32, float64, split   (rankscope collapse --help shows all 3)
  [2]
  $ rankscope collapse bert --random-tokens --preset papers
  error: there is no preset "papers"
    try  paper, factorial, published   (rankscope collapse --help shows all 3)
  [2]
  $ rankscope collapse bert --random-tokens --max-length 1
  error: a sample of one token has no rank to lose: at least two are needed
    in   sample 0
    try  a larger --max-length
  [1]
  $ rankscope collapse bert --random-tokens --arithmetic split --minimiser
  error: --minimiser needs --arithmetic float32 or float64
  [2]
  $ rankscope collapse bert --random-tokens --arithmetic split --preset factorial --frozen-norm
  error: --frozen-norm needs --arithmetic float32 or float64
  [2]
  $ rankscope collapse bert --random-tokens --preset paper --positions
  error: --positions is a factor of the factorial
    in   --preset paper
  [2]
  $ rankscope collapse bert --random-tokens --networks 3
  error: --networks draws several networks of a shape
    try  --init bert-base
  [2]
  $ rankscope collapse bert --zipf --text "$TREE/README.md"
  error: --zipf says how random tokens are drawn
    try  --random-tokens --zipf
  [2]
  $ printf '5\n' > one.txt; rankscope collapse bert --token-ids one.txt
  error: a sample of one token has no rank to lose: at least two are needed
    in   sample 0
    try  a longer text
  [1]
  $ rankscope collapse bert --random-tokens --off head:L0H9
  error: there is no head 9 in layer 0: it has 3, counted from 0
  [2]
  $ rankscope collapse bert --random-tokens --off head:L7H0
  error: there is no layer 7: the model has 3, counted from 0
  [2]
  $ rankscope collapse --init bert-basse
  error: there is no shape "bert-basse"
    try  bert-base, albert-base, bert-large
  [2]
  $ rankscope collapse bert --init bert-base
  error: --init needs no folder
    in   bert
  [2]

An overflow is named. The split arithmetic works in float64, where this is none.

  $ cp -r "$TREE/tests/fixtures/models/bert" m; chmod -R u+w m
  > for i in 1 2 3 4; do printf '\377\377\177\177' | dd of=m/model.safetensors bs=1 seek=$((60000 + 4 * i)) conv=notrunc 2>/dev/null; done
  $ rankscope collapse m --random-tokens --samples 1 --max-length 10
  error: the activations hold NaN, Inf, or numbers whose squares overflow
    in   blocks.1.hook_resid_post, sample 0, token 0
    try  float64 arithmetic tells whether this is an overflow; inspect the checkpoint otherwise
  [1]
  $ rankscope collapse m --random-tokens --samples 1 --max-length 10 --arithmetic split --no-theory | grep -A1 note
    note      float32 beside it: the activations hold NaN, Inf, or numbers whose
              squares overflow at blocks.1.hook_resid_post, sample 0, token 0
