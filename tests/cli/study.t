study list: the built-in studies, without torch.

  $ RANKSCOPE_LIBRARY=/nowhere.so rankscope study list | grep -v '^ ' | cut -d' ' -f1 > names; wc -l < names | grep -c '[1-9]'
  1
  $ (cd "$TREE/src/studies" && LC_ALL=C ls *.toml | sed 's/\.toml$//') | diff - names
  $ RANKSCOPE_LIBRARY=/nowhere.so rankscope study list | grep -A3 '^quick'
  quick                   Rank against heads, in a minute
                          With heads times rank the same, do many heads of low
                          rank reach what one head of full rank does?
                          5 points x 3 seeds, runner train

--dry-run: the trials, what they cost, how they stack, how long that takes.

  $ rankscope study run quick rank=8..16*2 lr=1e-2 --seeds 2 --threads 2 --dry-run
  quick: Rank against heads, in a minute
  train batch=256 d=16 data=ortho model=layer n=2 queries=1 start_scale=2 steps=3000 task=nearest test_sequences=16384 rank=8,16 seed=0,1 lr=0.01

  trial             stack  FLOP      point
  ...

  4 trials in 2 stacks, 2.27e+10 FLOP, about 1s at 30 GFLOP/s (a guess for 2 threads, until a trial is finished)
  $ rankscope study run gate-samples --threads 2 --dry-run | tail -1 | grep -o 'about.*'
  about 1m11s at 15 GFLOP/s (a guess for 1 threads, until a trial is finished)
  $ rankscope study run fig1 rank=48 --seeds 3 --steps 10000 --dry-run | tail -1 | cut -d, -f1
  27 trials in 9 stacks
  $ rankscope study run quick rank=4 start_scale=1,2 --seeds 1 --dry-run | grep -o 'start_scale=[0-9]$'
  start_scale=1
  start_scale=2
  $ rankscope study run quick rank=16 lr=0.01,0.03 steps=1 batch=2 test_sequences=2 --seeds 1 --threads 1 --out beside -q | tr -s ' \n' ' ' | grep -o '[0-9]* of its 5 values'; rm -r beside
  1 of its 5 values
  $ rankscope study run quick rank=16 batch=2 test_sequences=2 --steps 1 --seeds 1 --threads 1 --out few -q | tr -s ' \n' ' ' | grep -o 'Ours were .*settings.'; rm -r few
  Ours were trained otherwise: batch=2 (the study has 256), steps=1 (the study has 3000), test_sequences=2 (the study has 16384). The ratio compares different settings.
  $ rankscope study run quick rank=16 attention=sigmoid batch=2 test_sequences=2 --steps 1 --seeds 1 --threads 1 --out few -q > /dev/null; rankscope study show few -q | tr -s ' \n' ' ' | grep -o 'Ours were [^,]*,'; rm -r few
  Ours were trained otherwise: attention=sigmoid (the study has soft),
  $ rankscope study run quick --precision tf16
  error: there is no precision "tf16"
    try  tf32, auto, fp32
  [2]
  $ rankscope study run quick --precision fp64 --dry-run
  error: there is no precision "fp64"
    try  fp32, auto, tf32
  [2]
  $ rankscope study run quick rank=1 weight_decay=0,-0 --seeds 1 --dry-run | grep -o 'weight_decay=[-0.]*' | sort -u
  weight_decay=0
  $ for do in run resume retry; do rankscope study $do quick --precision tf32; done 2>&1 | sort -u
    in   --precision tf32
    try  --device cuda
  error: TF32 is an arithmetic of GPUs
  $ test -e out || echo "nothing was made"
  nothing was made

Settings that vary together: what is given holds in every trial, in whatever order, and a combination that is none of the study's own is told.

  $ rankscope study run hybrid-share task=lookup,majority depth=1 --steps 400 --seeds 1 --threads 2 --dry-run
  note: no entry of hybrid-share has task=lookup,majority with steps=400: the other settings of task=lookup,majority are kept
  hybrid-share: How much double normalisation heads choose
  kinds asked=last d=32 kind=hybrid_normalised layers=2 lr=0.005 {task,positions,tokens,mlp,steps,batch}={lookup,false,9,64,400,28},{majority,false,16,64,400,16} depth=1 seed=0

  trial             stack  FLOP      point
  ...

  2 trials in 2 stacks, 2.23e+10 FLOP, about 1s at 30 GFLOP/s (a guess for 2 threads, until a trial is finished)
  $ rankscope study run variants kind=sigmoid causal=true task=lookup heads=1 skips=on depth=1 --seeds 1 --dry-run > one
  note: no entry of variants has kind=sigmoid with causal=true: the other settings of kind=sigmoid are kept
  $ sed -n 2p one | grep -o '{kind.*'
  {kind,causal}={sigmoid,true} skips=on depth=1 seed=0
  $ rankscope study run variants heads=1 skips=on depth=1 task=lookup causal=true kind=sigmoid --seeds 1 --dry-run -q | diff one - && echo "the same trials"
  the same trials
  $ rankscope study run variants kind=sigmoid task=lookup heads=1 --steps 300 --seeds 1 --dry-run | tail -1 | cut -d, -f1
  6 trials in 2 stacks
  $ rankscope study run variants kind=softmax task=lookup --steps 50 --dry-run -q | sed -n 2p | grep -o '{task.*28}'
  {task,heads,positions,tokens,mlp,steps,batch}={lookup,1,false,9,64,50,28},{lookup,8,false,9,64,50,28}
  $ rankscope study run heads-mixed kind=mixed:local=4,window=12 --seeds 1 --dry-run | tail -1 | cut -d, -f1
  note: no entry of heads-mixed has kind=mixed:local=4,window=12: its entries run with it and keep the rest
  note: left out: kind=mixed:local=4,window=12 heads=1 rank=8 seed=0: "mixed:local=4,window=12" has 4 heads, the layer 1
  1 trials in 1 stacks
  $ rankscope study run variants task=lookup task=backcopy
  error: "task" is given twice: task=lookup and task=backcopy
    try  give it once, with all of its values: task=A,B
  [2]
  $ rankscope study run quick steps=10 --steps 20
  error: "steps" is given twice: steps=10 and steps=20
    try  give it once, with all of its values: steps=A,B
  [2]

What cannot be is refused before anything runs, by name.

  $ rankscope study run quick rank=1,32
  error: rank=32 seed=0: a head's rank of 32 is not between 1 and the width 16
    in   study quick
    try  a smaller rank
  [2]
  $ rankscope study run fig1 rank=0 heads=5
  error: layers=1 width=1 rank=0 seed=0 heads=5: 5 heads do not divide the width 64
    in   study fig1
    try  give rank= too, or other heads
  [2]
  $ rankscope study run quick n=32
  error: rank=1 seed=0 n=32: there are no 32 orthonormal points in 16 dimensions
    in   study quick
    try  n of at most d, or data=iid
  [2]
  $ rankscope study run quick part=attention model=encoder rank=8
  error: rank=8 seed=0 part=attention model=encoder: the encoder answers at its own tokens and takes no separate queries
    in   study quick
    try  queries=0 or model=layer
  [2]
  $ rankscope study run quick rnak=8 2>&1 | sed 's/all [0-9]*)/all N)/'
  error: there is no key "rnak"
    in   rnak=8
    try  rank, task, n   (rankscope study keys RUNNER shows all N)
  $ rankscope study run quick rank=eight
  error: rank: expected a whole number, but got eight
    in   rank=eight
  [2]
  $ rankscope study run quick lr
  error: expected KEY=VALUES, but got "lr"
    try  rank=1,8,64
  [2]
  $ for list in ,0.1 0.1,; do rankscope study run quick lr=$list 2>&1 | head -1; done
  error: there is nothing before the first comma
  error: there is nothing behind the last comma
  $ rankscope study run quikc 2>&1 | sed 's/all [0-9]*)/all N)/'
  error: there is no study "quikc"
    try  quick, fig1, figN   (rankscope study list shows all N)
  $ rankscope study runn quick
  error: there is no study command "runn"
    try  run, list, keys   (rankscope study --help shows all 8)
  [2]
  $ rankscope study run quick --sedes 3
  error: there is no option "--sedes"
    try  --seeds, --steps, --lease   (--help shows all 11)
  [2]
  $ rankscope study run quick --seeds 10001
  error: --seeds: expected a whole number from 1 to 10000, but got "10001"
    try  rankscope study run --help
  [2]
  $ rankscope study show
  error: FOLDER is required
    try  rankscope study show --help
  [2]
  $ printf 'runner = "train"\n[protocol]\nseeds = 10001\n' > mine.toml; rankscope study run mine.toml
  error: seeds: expected a whole number from 1 to 10000
    in   mine.toml, line 3
  [2]
  $ printf 'runner = "train"\n[fixed]\nd = "8"\n' > mine.toml; rankscope study run mine.toml
  error: d: expected a whole number, but got the text "8"
    in   mine.toml, line 3
    try  without the quotes: d = 8
  [2]
  $ printf 'title = "Mine"\nrunner = "train"\n[fixed]\nd = 16\n[grid]\nrnak = [1, 8]\n' > mine.toml; rankscope study run mine.toml 2>&1 | sed 's/all [0-9]*)/all N)/'
  error: there is no key "rnak"
    in   mine.toml, line 6
    try  rank, task, n   (rankscope study keys RUNNER shows all N)
  $ printf 'title = "Mine"\nruner = "train"\n' > mine.toml; rankscope study run mine.toml
  error: there is no key "runer"
    in   mine.toml, line 2
    try  runner, paper, fixed
  [2]
  $ printf 'title = "Mine"\nrunner = "trian"\n' > mine.toml; rankscope study run mine.toml 2>&1 | sed 's/all [0-9]*)/all N)/'
  error: there is no runner "trian"
    in   mine.toml
    try  train, circle, kinds   (rankscope study keys shows all N)
  $ rankscope study resume nowhere
  error: there is no study in this folder: it has no study.db
    in   nowhere
    try  rankscope study run NAME --out nowhere
  [1]
  $ rankscope study run circle --steps 3
  error: --steps does not go with this study: its trials have no steps
    in   --steps 3
    try  leave out --steps
  [2]
  $ for empty in 'status' 'resume' 'show few --metric' 'export few --to' 'export'; do rankscope study $empty '' > /dev/null 2>&1; echo $?; done | sort -u
  2
  $ rankscope study run sort --device cuda
  error: this study runs on the CPU, not on cuda
    in   study sort
    try  leave out --device
  [2]
  $ for s in circle feature-representation quick random-features sort vote; do rankscope study run $s --device cuda --dry-run 2>&1 | grep -q 'runs on the CPU' && echo $s; done
  circle
  feature-representation
  random-features
  sort
  vote
  $ test -e out || echo "nothing was made"
  nothing was made

Trials that look at one network in different ways share its training.

  $ rankscope study run sort --dry-run | tail -1 | cut -d, -f1
  147 trials in 3 stacks
  $ rankscope study run sort --seeds 1 --dry-run | tail -1 | cut -d, -f1-2
  49 trials in 1 stacks, 2.48e+11 FLOP
  $ rankscope study run sort --seeds 1 reading=only length=0 --dry-run | tail -1 | cut -d, -f1-2
  1 trials in 1 stacks, 1.94e+11 FLOP
  $ rankscope study run sort length=7
  error: semantics=frozen reading=only length=7 seed=0: a network of 6 layers has no path of length 7
    in   study sort
    try  a shorter length, or more layers
  [2]

A small study, run, added to, looked at.

  $ rankscope study run quick d=4 rank=1,4 --seeds 2 --steps 20 test_sequences=64 --threads 1 --out s > shown; tail -n +1 shown | head -2
  quick: 4 trials, 4 of them new, in s
  quick: Rank against heads, in a minute
  With heads times rank the same, do many heads of low rank reach what one head of
  $ grep -A1 '^test_mse$' shown | tail -1 | tr -s ' '
  rank seeds mean s.e. median best bound
  $ rankscope study run quick d=4 rank=1,2 --seeds 2 --steps 20 test_sequences=64 --threads 1 --out s > shown
  quick: 6 trials, 2 of them new, in s
  $ rankscope study status s
  quick: Rank against heads, in a minute
  6 of 6 done, 0 pending, 0 running, 0 failed
  $ rankscope study resume s -q | diff - shown && echo same
  same
  $ mv s moved; rankscope study run quick d=4 rank=1,2,4 --seeds 2 --steps 20 test_sequences=64 --out moved --dry-run | tail -1 | cut -d, -f1-2
  0 trials in 0 stacks, 0 FLOP
  $ rankscope study run fig1 --out moved
  error: this folder holds the study quick, not fig1
    in   moved
    try  another --out
  [2]

Asked to stop while the last trial runs, it is done when that is: there is nothing to go on with.

  $ rankscope study run vote d=64 n=4 heads=1 samples=250000 --out last > said 2>&1 & pid=$!
  > until rankscope study status last 2> /dev/null | grep -q '1 running\|1 of 1 done'; do sleep 0.02; done; kill -TERM $pid 2> /dev/null; wait $pid && grep -c 'stopped\|go on' said
  0
  [1]

Exports: tables for pandas, and a model that scan reads.

  $ rankscope study export moved
  wrote moved/trials.csv, summary.csv, published.csv, study.json
  $ head -1 moved/trials.csv | cut -d, -f1-8; wc -l < moved/trials.csv; cut -d, -f4,5 moved/trials.csv | sort -u
  id,study,state,device,precision,attempts,wall_seconds,reason
  7
  cpu,fp32
  device,precision
  $ rankscope study export moved --format jsonl --to tables; wc -l < tables/trials.jsonl
  wrote tables/trials.jsonl, summary.csv, published.csv, study.json
  6
  $ rankscope study export moved --model $(ls moved/trials | head -1) model -q; rankscope scan model --random-tokens -q > /dev/null && echo scanned
  scanned
  $ rankscope study show moved --metric tset_mse
  error: there is no result "tset_mse"
    try  test_mse, start_mse, best_loss
  [2]
  $ rankscope study run quick d=4 rank=4 --seeds 1 --steps 20 test_sequences=64 --out moved --tensorboard -q > /dev/null; ls moved/tensorboard | wc -l
  6

What the figure draws may be no result of the trials that ran: the table stands without it.

  $ rankscope study run hybrid-share kind=softmax task=majority --steps 2 --seeds 1 --threads 1 --out soft -q > shown; echo $?
  0
  $ rankscope study show soft -q | diff - shown && grep -o '^None of these trials has hybrid_share' shown; tail -3 shown | tr -s ' '
  None of these trials has hybrid_share
   task depth seeds
  majority 1 1
  majority 2 1
  $ rankscope study show soft --metric hybrid_share 2>&1 | head -1
  error: there is no result "hybrid_share"

Slices of several machines become one table, stores and exported tables alike; a row that was changed is not taken.

  $ rankscope study run quick d=4 rank=4 --seeds 1 --steps 20 test_sequences=64 --threads 1 --out slice1 -q > /dev/null; rankscope study run quick d=4 rank=1,4 --seeds 1 --steps 20 test_sequences=64 --threads 1 --out slice2 -q > /dev/null
  $ rankscope study export slice1 --to tables1 -q; rankscope study export slice2 tables1 --to all
  note: 1 row is of a trial that has another; the first finished one is kept
  wrote all/trials.csv, summary.csv, published.csv, study.json
  $ rankscope study export slice2 -q; cmp all/trials.csv slice2/trials.csv && cmp all/published.csv slice2/published.csv && echo "as from one store"
  as from one store
  $ rankscope study export slice1 slice2
  error: the tables of several folders need a place of their own
    try  --to FOLDER
  [2]
  $ sed -i 's/,nearest,/,farthest,/' tables1/trials.csv; rankscope study export slice2 tables1 --to all 2>&1 | sed -E 's/[0-9a-f]{16}/ID/g'
  error: the row ID has the settings of the trial ID
    in   tables1/trials.csv
    try  export the store again: a row that was changed is not taken

No table goes that would not be written again, without being told to.

  $ rankscope study export slice1 --to all
  error: this folder holds tables of 2 trials of this study, and 1 of them would be lost
    in   --to all
    try  another --to, or --force to replace what is there
  [2]
  $ rankscope study export slice1 --to slice2 2>&1 | head -1
  error: this folder holds tables of 2 trials of this study, and 1 of them would be lost
  $ rm slice2/*.csv slice2/study.json; rankscope study export slice1 --to slice2 2>&1 | head -1
  error: the study in this folder has 1 trial that these tables lack
  $ rankscope study export slice2 --to all; rankscope study export slice1 --to all --force; wc -l < all/trials.csv
  wrote all/trials.csv, summary.csv, published.csv, study.json
  wrote all/trials.csv, summary.csv, published.csv, study.json
  2
  $ rankscope study run vote d=8 n=2 heads=1 samples=10 --threads 1 --out voted -q > /dev/null; rankscope study export voted --to all
  error: this folder holds tables of the study quick, not of vote: 1 trial would be lost
    in   --to all
    try  another --to, or --force to replace what is there
  [2]
  $ rankscope study export voted --to slice2 2>&1 | head -1
  error: this folder is that of the study quick, not of vote
  $ rankscope study export slice1 --to model
  error: this is the folder of a model: it has a config.json
    in   --to model
    try  choose another --to
  [2]
  $ rankscope study export slice1 --to slice1/study.db
  error: cannot make the folder: "slice1/study.db" is a file
    in   --to slice1/study.db
    try  choose another --to
  [1]
  $ rankscope study export slice1 --model ID slice1/study.db
  error: this is a file, not a folder
    in   --model ID slice1/study.db
    try  choose another folder
  [2]

A setting at its default is a setting: it is named beside a reference. A result that there is not is named before anything is trained, one that these trials do not have beside their table.

  $ rankscope study run quick rank=4 start_scale=1 --seeds 1 --steps 5 test_sequences=64 --threads 1 --out scale -q | tr '\n' ' ' | grep -o 'start_scale=1 (the study has 2)'
  start_scale=1 (the study has 2)
  $ printf 'runner = "train"\n[fixed]\ntask = "nearest"\ndata = "ortho"\nmodel = "layer"\nqueries = 1\nd = 4\nn = 2\ntest_sequences = 64\n[grid]\nrank = [1, 4]\n[protocol]\nsteps = 5\nseeds = 1\n[figure]\nx = "rank"\nlines = ["tf32_rounding"]\n' > my.toml; rankscope study run ./my.toml --threads 1 --out my -q | grep ^note
  note: none of these trials has tf32_rounding, the lines of the figure
  $ sed 's/^lines.*/bound = "lower_bond"/' my.toml > not.toml; rankscope study run ./not.toml --dry-run 2>&1 | sed 's/all [0-9]*)/all N)/'
  error: there is no result "lower_bond"
    in   ./not.toml, bound of [figure]
    try  lower_bound, steps_done, seconds   (rankscope study keys train shows all N)
  $ for typo in 'lines = ["nope"]' 'y = "nope"' '[published]\nmetric = "nope"\nrows = [[1]]'; do sed "s/^lines.*/$typo/" my.toml > not.toml; rankscope study run ./not.toml --out not 2>&1 | sed -n 2p; done; test -e not || echo "nothing was made"
    in   ./not.toml, lines of [figure]
    in   ./not.toml, y of [figure]
    in   ./not.toml, metric of [published]
  nothing was made
  $ rankscope study run quick d=8 rank=2 v_rank=1 --dry-run 2>&1 | tail -3
  error: rank=2 seed=0 d=8 v_rank=1: the one-layer model has no norm, no bias and values of full rank: v_rank is the encoder's
    in   study quick
    try  model=encoder
  $ rankscope study run quick d=8 rank=0,8 --seeds 1 --steps 5 test_sequences=64 --threads 1 --out zero -q | grep ^note
  note: 1 of 2 points at or below 0 are not on the logarithmic axis
  $ rankscope study run quick --lease 0 2>&1 | head -1
  error: --lease: expected a number from 1 to 1000000, but got "0"
  $ rankscope study run quick --lease 1e30 2>&1 | head -1
  error: --lease: expected a number from 1 to 1000000, but got "1e30"

Of several ratios those are told that compare other settings; results that are in no table any more are read back; a disk without room is no fault of the store.

  $ printf 'runner = "train"\n[fixed]\ntask = "nearest"\ndata = "ortho"\nmodel = "layer"\nqueries = 1\nd = 4\nn = 2\ntest_sequences = 64\n[grid]\nrank = [1, 4]\n[protocol]\nsteps = 5\nbatch = 4\nlr = 0.03\nseeds = 1\n[figure]\nx = "rank"\n[reference]\nmetric = "test_mse"\nstatistic = "mean"\nbudget = "5 steps"\nsource = "made up"\ncolumns = ["rank"]\nrows = [[1, 0.5], [4, 0.4]]\n' > ratios.toml; rankscope study run ./ratios.toml --threads 1 --out ratios -q | grep -c otherwise
  0
  [1]
  $ rankscope study run ./ratios.toml rank=4 lr=0.01 --threads 1 --out ratios -q | tr -s ' \n' ' ' | grep -o 'In 1 of .*settings.'
  In 1 of 3 ratios ours were trained otherwise: lr=0.01 (the study has 0.03) in 1. It compares different settings.
  $ rm ratios/study.db*; rankscope study run ./ratios.toml --threads 1 --out ratios > shown
  ratios: 2 trials, 0 of them new, 2 read back, in ratios
  $ (ulimit -f 1; rankscope study status ratios; rankscope study run ./ratios.toml --out none -q 2>&1 | head -1)
  error: the store could not be read or written: disk I/O error
    in   ratios/study.db
    try  the disk may be full, or a file may not grow (ulimit -f): make room and run the command again; what was finished before is kept
  error: the store could not be read or written: disk I/O error

A trial that diverged is counted below the table and breaks nothing; `plot` reads the store itself, and no model is written into it.

  $ rankscope study run fig1 d=8 n=4 layers=3 width=1 rank=8 norm=none mlp=16 lr=0.01,1000 seed=0 batch=16 test_sequences=128 --steps 20 --threads 1 --out lost -q > shown
  failed: 49d7448b40c5491f (lr=1000): diverged: the training loss is not finite at step 2 (lr=1000)
  again: rankscope study retry lost
  [1]
  $ tail -1 shown; rankscope study show lost -q | tail -1; grep -c 'worse than answering zero' shown
  not in it: 1 failed, 0 pending, 0 running
  not in it: 1 failed, 0 pending, 0 running
  1
  $ rankscope plot lost --x rank --y test_mse | tail -1 | tr -d ' '
  ●
  $ rankscope study export lost --model $(ls lost/trials | head -1) lost
  error: this is the folder of a study
    in   --model ID lost
    try  choose another folder
  [2]

What is run again is what failed, and what a process left that is gone.

  $ rankscope study retry lost 2>&1 > /dev/null | head -1
  1 failed trial runs again
  $ rankscope study retry moved 2>&1 > /dev/null | head -1
  no trial has failed, and none is unfinished
  $ rankscope study run vote d=64 n=4 heads=1,2 samples=2000000 --threads 1 --out killed > said 2>&1 & pid=$!
  > until rankscope study status killed 2> /dev/null | grep -q '1 running' || ! kill -0 $pid 2> /dev/null; do sleep 0.02; done; kill -9 $pid; wait $pid 2> /dev/null
  > rankscope study retry killed 2>&1 > /dev/null | head -1 | sed 's/[12] unfinished go\(es\)*/N unfinished go/'
  no trial has failed; N unfinished go on

A network before training was not kept, so there is none to export.

  $ rankscope study run skip-scales look=start skip=1 seed=0 depth=0 --threads 1 --out started -q > /dev/null; rankscope study export started --model $(ls started/trials) model
  error: look=start is a network before training, and keeps none
    in   started/trials/a7d185d5fb259f36
    try  a trial with look=trained
  [1]

A warm-up that a study chose grows with the steps, which is said.

  $ rankscope study run fig1 layers=1 width=1 rank=1 seed=0 --steps 100000 --dry-run > /dev/null
  note: the warm-up is a share of the steps, 0.5 of 100000 where the study has 0.5 of 10000; warmup=0.05 keeps its 5000 steps
  $ rankscope study run fig1 layers=1 width=1 rank=1 seed=0 warmup=0.05 --steps 100000 --dry-run > /dev/null
  $ rankscope study run fig1 layers=1 width=1 rank=1 seed=0 protocol=reference --dry-run > /dev/null
  note: protocol=reference warms up for a twentieth of the steps, whatever warmup says; warmup=0.05 names it so

Settings that a figure does not tell apart are curves of their own.

  $ rankscope study run quick d=4 rank=1,4 steps=5,20 --seeds 1 test_sequences=64 --threads 1 --out curves -q | grep ', ours'
             ● steps=20, ours
             ■ steps=5, ours

Processes started together share one store (where there is an mpirun to start them).

  $ command -v mpirun > /dev/null && start='mpirun --allow-run-as-root --oversubscribe --enable-recovery -n 3'
  > $start rankscope study run quick d=4 rank=1,2,4 --seeds 2 --steps 20 test_sequences=64 --out together -q --threads 1 > /dev/null; rankscope study status together
  quick: Rank against heads, in a minute
  6 of 6 done, 0 pending, 0 running, 0 failed
  $ rankscope study export together -q; rankscope study export moved -q; cut -d, -f1,5,9-47 moved/trials.csv | sort > one; cut -d, -f1,5,9-47 together/trials.csv | sort > two; cmp one two && echo "the same numbers"
  the same numbers
