Paths of each length, exactly: how many there are, what they carry, what the output is without them.

  $ cat > masked <<'END'
  > sed 's/-\{0,1\}[0-9][0-9.]*\(e-[0-9]*\)\{0,1\}/N/g; s/  */ /g'
  > END
  $ ln -s "$TREE/tests/fixtures/models/bert" bert
  > printf '3 4 5 6 7 8 9 10 11 12\n13 14 15 16 17 18 19 20\n' > ids.txt
  $ rankscope paths bert --token-ids ids.txt | cut -c1-22 | head -5
  length  paths   share
       0      1  0.0156
       1      9   0.141
       2     27   0.422
       3     27   0.422
  $ rankscope paths bert --token-ids ids.txt | sh masked | sed -n '1,2p; 6,$p'
  length paths share norm its share residual effective rank only: kl
   N N N N N N N N

  length up to: kl without: kl
   N N N
   N N N
   N N N
   N N N

   paths paths of length N carry more than any other length, N % of the sum
   of the norms, and biases N %; counted, lengths N and N have equally
   many paths (N % of N each)

By layer and by head; MLPs and norms counted as parts of their own.

  $ rankscope paths bert --token-ids ids.txt --by layer | sh masked | head -2
  layer norm residual effective rank without: kl alpha norm, N norm, N
   N N N N N N N N
  $ rankscope paths bert --token-ids ids.txt --by head | sh masked | head -3
  norm of all paths through each head
  layer HN HN HN
   N N N N
  $ rankscope paths bert --token-ids ids.txt --grade-mlp --grade-norm --format csv | grep path_share | cut -d, -f1,9 | tr '\n' ' '
  only,0 only,1 only,2 only,3 bias, mlp,0 mlp,1 mlp,2 mlp,3 norm,0 norm,1 norm,2 norm,3 norm,4 norm,5 norm,6

The published way beside it: the network run again along sampled paths, with error bars.

  $ rankscope paths bert --token-ids ids.txt --semantics rerun --paths 3 --repeats 4 | sh masked | sed -n '2p; 4p; /note/,$p'
   N N N N N N
   N N N N ± N N ± N N ± N
   note N draws of N different paths of each length, all of them where there
   are no more
  $ rankscope paths bert --token-ids ids.txt --semantics subpaths --json | grep -c '"metric":"output_kl"'
  4

Counting needs no model and no torch.

  $ RANKSCOPE_LIBRARY=/nowhere.so rankscope paths --count --layers 12 --heads 12 | sed -n '1,3p; 11,$p'
  length     paths     share
       0         1  4.29e-14
       1       144  6.18e-12
       9  10^12.06    0.0487
      10  10^12.61     0.175
      11  10^12.95     0.383
      12  10^12.95     0.383

  10^13.37 paths, mean length 11.077, standard deviation 0.923

The models of the paper, counted; and its model of what paths weigh.

  $ RANKSCOPE_LIBRARY=/nowhere.so rankscope paths --count --published | sed -n '1p; 5p; 10p; 12,13p; 17p; 22,$p'
  model                 layers  heads      paths    mean   s.d.  mode     all
  BERT-base and ViT-B       12     12   10^13.37  11.077  0.923    12   0.383
  GPT-3                     96     96  10^190.73  95.010  0.990    96    0.37
  model                    -1      -2        -3        -4  ratio
  DeiT-T                0.127   0.232     0.258     0.194  0.999
  BERT-large and ViT-L   0.35   0.252     0.115    0.0378  1.001

  all, -1, ...: share of the paths through every layer, all but one, ...
  ratio: the farthest of our numbers over the published one (Dong, Cordonnier and
  Loukas 2021), which has four decimals
  $ RANKSCOPE_LIBRARY=/nowhere.so rankscope paths --count --layers 6 --heads 2 --alpha 0.6 | sed -n '1,4p; 8p'
  length  paths    share  modelled weight
       0      1  0.00137             18.7
       1     12   0.0165              136
       2     60   0.0823              339
       6     64   0.0878         7.32e-14
  $ for a in 1 -0; do RANKSCOPE_LIBRARY=/nowhere.so rankscope paths --count --layers 2 --heads 2 --alpha=$a | sed -n 2,4p | tr -s ' ' | cut -d' ' -f5; done | paste -sd' '
  400 0 0 0 0 1090
  $ RANKSCOPE_LIBRARY=/nowhere.so rankscope paths --count --layers 6 --heads 2 --alpha 0.6 | sed -n '10,11p'
  modelled weight, of length k: over all choices of k layers, 1 - A of each layer taken
  times A of each of the others, summed; times heads^k and 400 / 1.0491046^(3^k - 1)

Attention matrices multiplied along sampled paths, as the forward pass does or as the published code did.

  $ rankscope paths bert --token-ids ids.txt --chained --chains 5 | sh masked
  distance of the product P_k ... P_N of attention matrices from rank one
  length lower quartile median upper quartile
   N N N N
   N N N N
   N N N N

   chained each further attention matrix on a path multiplies the distance from
   rank one by N (lengths N to N, medians)
  $ rankscope paths bert --token-ids ids.txt --chained --chains 5 --reference-order | head -1
  distance of the product P_1 ... P_k of attention matrices from rank one

What is wrong is said in a line or two.

  $ printf '5\n' > one.txt; rankscope paths bert --token-ids one.txt
  error: a sample of one token has no rank to lose: at least two are needed
    in   sample 0
    try  a longer text
  [1]
  $ rankscope paths bert --token-ids ids.txt --max-length 1
  error: a sample of one token has no rank to lose: at least two are needed
    in   sample 0
    try  a larger --max-length
  [1]
  $ rankscope paths bert --token-ids ids.txt --by token
  error: there is no reading "token"
    try  layer, head, length   (rankscope paths --help shows all 3)
  [2]
  $ rankscope paths bert --token-ids ids.txt --semantics re-run
  error: there is no semantics "re-run"
    try  rerun, frozen, subpaths   (rankscope paths --help shows all 3)
  [2]
  $ rankscope paths bert --token-ids ids.txt --semantics rerun --by head
  error: paths run again are sampled by length: only frozen paths can be read by layer or head
    in   --semantics rerun
  [2]
  $ rankscope paths --count --layers 12 --heads 2 --json
  error: --count without a model prints one table, and takes no --json
    try  leave it out; or leave out --layers and --heads, to count the paths of a model
  [2]
  $ rankscope paths nowhere --count --layers 12 --heads 2 --by head --grade-mlp
  error: --count without a model prints one table, and takes no FOLDER, no --by, no --grade-mlp
    try  leave it out; or leave out --layers and --heads, to count the paths of a model
  [2]
  $ rankscope paths --count --published --random-tokens --seed 3
  error: --count without a model prints one table, and takes no --random-tokens, no --seed
    try  leave it out
  [2]
  $ rankscope paths --count --layers 12
  error: --count needs both --layers and --heads, or a model
  [2]
  $ rankscope paths --layers 12 --heads 12
  error: --layers and --heads belong to --count
  [2]
  $ rankscope paths --init bert-bsae
  error: there is no shape "bert-bsae"
    try  bert-base, albert-base, bert-large
  [2]
  $ rankscope paths --init bert-base --text ids.txt
  error: a shape at random initialisation has no tokenizer
    in   --init bert-base
    try  --random-tokens, or --token-ids FILE: rankscope tokenize FOLDER makes one with a tokenizer that you have
  [2]
  $ rankscope paths --published
  error: --published belongs to --count
  [2]
  $ rankscope paths --count --layers 6 --heads 2 --alpha 0.6,0.7
  error: --alpha takes one number, or one for each of 6 layers, not 2
  [2]
  $ rankscope paths --count --layers 2 --heads 2 --alpha 0.6,,0.7
  error: there is nothing between two commas
    in   --alpha 0.6,,0.7
  [2]
  $ rankscope paths --count --layers 6 --heads 2 --alpha 1.5
  error: --alpha: expected a number from 0 to 1, but got "1.5"
    try  rankscope paths --help
  [2]
  $ rankscope paths bert --token-ids ids.txt --chains 5
  error: --chains is of --chained
    try  --chained --chains 100
  [2]
  $ rankscope paths bert --token-ids ids.txt --reference-order
  error: --reference-order is of --chained
    try  --chained --reference-order
  [2]
  $ rankscope paths bert --token-ids ids.txt --by head --grade-mlp
  error: --grade-mlp and --grade-norm are of frozen paths by length
  [2]
  $ rankscope paths bert --token-ids ids.txt --paths 5
  error: --paths and --repeats are of paths that are drawn, and frozen paths are summed exactly
    try  --semantics rerun
  [2]
  $ rankscope paths bert --token-ids ids.txt --lines
  error: --lines, --whole and --column say how texts are read
    try  --text FILE
  [2]
  $ rankscope paths bert --token-ids ids.txt --chained --by head
  error: --chained multiplies attention matrices: there is nothing to grade, read by part or run again
  [2]
  $ rankscope paths bert --token-ids ids.txt --off head:L3H0
  error: there is no layer 3: the model has 3, counted from 0
  [2]
  $ cp -r "$TREE/tests/fixtures/models/bert" m; chmod -R u+w m
  > for i in 1 2 3 4; do printf '\377\377\177\177' | dd of=m/model.safetensors bs=1 seek=$((60000 + 4 * i)) conv=notrunc 2>/dev/null; done
  $ rankscope paths m --token-ids ids.txt
  error: the activations hold NaN or Inf
    in   blocks.1.hook_resid_post
    try  float64 arithmetic tells whether this is an overflow; inspect the checkpoint otherwise
  [1]
