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
  length paths share norm its share residual eff.rank only: kl
   N N N N N N N N

  length up to: kl without: kl
   N N N
   N N N
   N N N
   N N N

   paths paths of length N carry the most, N % of the sum of the norms;
   counted, most paths have length N (N % of N^N)

By layer and by head; MLPs and norms counted as parts of their own.

  $ rankscope paths bert --token-ids ids.txt --by layer | sh masked | head -2
  layer norm residual eff.rank without: kl norm, N norm, N norm, N
   N N N N N N N N
  $ rankscope paths bert --token-ids ids.txt --by head | sh masked | head -3
  norm of all paths through each head
  layer HN HN HN
   N N N N
  $ rankscope paths bert --token-ids ids.txt --grade-mlp --grade-norm --format csv | grep path_share | cut -d, -f1,9 | tr '\n' ' '
  only,0 only,1 only,2 only,3 mlp,0 mlp,1 mlp,2 mlp,3 norm,0 norm,1 norm,2 norm,3 norm,4 norm,5 norm,6

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
    try  --token-ids FILE or --random-tokens
  [2]
