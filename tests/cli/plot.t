plot: curves from tables, without torch and without a browser. Files are in plot_files.t.

  $ cp "$TREE"/tests/cli/tables/metrics.csv .

Of one column any of the values named will do.

  $ rankscope plot metrics.csv --y residual_l1inf_rel --site resid_post --where variant=full --where variant=-skip | tail -2
             ● full
             ■ -skip

Without --out the curves are drawn here.

  $ rankscope plot metrics.csv --y residual_l1inf_rel --site resid_post --log | tail -3
               0                              depth                              2
             ● full
             ■ -skip
  $ rankscope plot metrics.csv --y residual_l1inf_rel --site resid_post --log | awk '{ if (length($0) > 3 * 80) print "too wide" }'

The headings of scan's table are names, too: the same metric, place and tokens.

  $ (cat metrics.csv; for d in 1 2; do echo "full,blocks.$d.ln1.hook_normalized,$d,,effective_rank_rel,0.5,0.1,4,$d,content"; done) > ranks.csv
  $ rankscope plot ranks.csv --y eff.rank | head -1; rm ranks.csv
  effective_rank_rel

Heads are counted where a table has a value for each.

  $ printf 'metric,depth\nsink_margin,1\n' > bare.csv; rankscope plot bare.csv --y sinks
  error: heads are counted by their sink_margin, and this table has no column "value"
    try  --y sink_margin draws what it has
  [1]
  $ rm bare.csv

Of several tables it is the metric that all of them have, in whatever order they come.

  $ row='full,blocks.1.ln1.hook_normalized,1,,residual_fro_rel'; head -1 metrics.csv | tee one.csv > other.csv
  > for d in 1 2; do echo "${row}_trimmed,0.5,0.1,4,$d,content"; echo "$row,0.$d,0.1,4,$d,content"; done >> one.csv
  > for d in 1 2; do echo "$row,0.$d,0.1,4,$d,content"; done >> other.csv
  $ rankscope plot one.csv other.csv --y residual | head -1; rankscope plot other.csv one.csv --y residual | head -1
  residual_fro_rel
  residual_fro_rel
  $ sed -i '/residual_fro_rel,/d' one.csv; rankscope plot other.csv one.csv --y residual; rm one.csv other.csv
  error: these tables measure residual by different metrics
    try  --y NAME, one of residual_fro_rel_trimmed, residual_fro_rel

A metric of content tokens alone, one without a depth: what is there is drawn. One number is no curve.

  $ (cat metrics.csv; for l in 1 2; do echo "full,blocks.$l.mlp.hook_pre,$l,,unit_rank,5,0.1,4,$l,content"; echo "full,blocks.$l.hook_mlp_out,$l,,mlp_zero_kl,0.$l,0.1,4,,all"; done; echo "full,unembed.hook_out,,,prune_passes,11.5,,8,,all") > more.csv
  $ rankscope plot more.csv --y unit_rank | head -1
  unit_rank
  $ rankscope plot more.csv --y mlp_zero_kl | tail -2
               1                              layer                              2
             ● full
  $ rankscope plot more.csv --y prune_passes
  error: prune_passes is no curve: it has neither a depth nor a layer
    in   full 11.5
    try  rankscope report shows it beside the rest
  [1]
  $ rm more.csv

Tables of one name are told apart by their paths, and a logarithmic axis says what it leaves out.

  $ mkdir -p a/x b/x; printf 'rank,mse\n1,0.5\n2,0\n4,0.25\n' | tee a/x/t.csv > b/x/t.csv
  $ rankscope plot a/x/t.csv b/x/t.csv --x rank --y mse | tail -2 | tr -d ' '
  ●a/x/t.csv
  ■b/x/t.csv
  $ rankscope plot a/x/t.csv --x rank --y mse --log > /dev/null
  note: 1 of 3 points at or below 0 are not on the logarithmic axis
  $ rankscope plot a/x/t.csv --x rank --y mse --log --where rank=2
  error: nothing can be drawn on these axes
    try  a logarithmic axis shows values above 0 only
  [1]
  $ rm -r a b

What is not there is named, with what is; so is what is no table.

  $ rankscope plot metrics.csv
  error: --y is required: what to draw
    try  --y NAME, one of residual_l1inf_rel
  [2]
  $ echo 'It was the best of times, it was the worst of times' > prose.txt; rankscope plot prose.txt --y loss
  error: this is no table: it has one line, and no rows below it
    in   prose.txt
    try  give a table (.csv) whose first line names its columns, or a folder that --out wrote
  [1]
  $ echo 'it was the age of wisdom' >> prose.txt; rankscope plot prose.txt --y loss 2>&1 | head -1
  error: this is no table: expected 2 cells, but the row has 1
  $ printf 'A heading\n\nand a line\n' > prose.txt; rankscope plot prose.txt --y loss 2>&1 | head -1; rm prose.txt
  error: this is no table: its first line names no columns, but is "A heading"

  $ rankscope plot metrics.csv --y residual_l1inf_rle
  error: there is no metric "residual_l1inf_rle"
    try  residual_l1inf_rel
  [2]
  $ rankscope plot metrics.csv --y residual_l1inf_rel --x dept
  error: there is no column "dept"
    try  depth, head, site
  [2]
  $ rankscope plot metrics.csv --y residual_l1inf_rel --site resid_mid
  error: no row has these values
    in   residual_l1inf_rel at resid_mid
    try  another --site, --tokens or --where; rankscope report shows what there is
  [1]
  $ rankscope plot metrics.csv --y residual_l1inf_rel --x site
  error: the column site has no numbers: blocks.0.hook_resid_pre
    in   --x
    try  --by site tells curves apart by it
  [1]
  $ rankscope plot metrics.csv --y residual_l1inf_rel --size 3in
  error: expected a size as 3.25x2.2in (in, cm, mm or pt), but got "3in"
    in   --size
  [2]
  $ rankscope plot metrics.csv --y residual_l1inf_rel --out fig.png
  error: expected a file that ends in .svg or .pdf
    in   fig.png
  [2]
  $ ls
  metrics.csv

Tables of studies have their results in columns; rows with the same x become their mean.

  $ cp "$TREE"/tests/cli/tables/trials.csv .
  $ rankscope plot trials.csv --y loss 2>&1 | sed 's/try .*test_mse.*/try  test_mse among others/'
  error: there is no column "loss"
    in   --y
    try  test_mse among others
  $ rankscope plot trials.csv --y test_mse 2>&1 | sed 's/one of .*rank.*/one of rank and others/'
  error: --x is required: this table has no depth
    try  --x NAME, one of rank and others
  $ rankscope plot --x rank --y test_mse --by state trials.csv --log-x | tail -1
             ● done
  $ rankscope plot trials.csv --x rank --y test_mse --by state,,seed
  error: there is nothing between two commas
    in   --by state,,seed
  [2]
  $ rankscope plot trials.csv --x rank --y test_mse --by state --log-x | tail -2
               1                           rank (log)                            2
             ● done

A point that stands for more than seeds says so.

  $ mkdir gates && cp "$TREE"/src/studies/results/gates/trials.csv "$TREE"/src/studies/results/gates/study.json gates
  $ rankscope plot gates --x seed --y sink_mass --by kind 2>&1 > /dev/null
  note: points of gates are means over heads (1, 2) as well; --by heads or --where heads=VALUE keeps them apart
  $ rankscope plot gates --x seed --y sink_mass --by kind --where heads=1 2>&1 > /dev/null
  $ rankscope plot gates --x seed --y sink_mass --by kind,heads 2>&1 > /dev/null
  $ echo broken > gates/study.json
  $ rankscope plot gates --x seed --y sink_mass --by kind 2>&1 > /dev/null
