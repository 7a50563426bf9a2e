plot --out: figures for papers.
Needs cairo.

  $ cat > metrics.csv <<'END'
  > variant,site,layer,head,metric,value,stderr,n,depth,tokens
  > full,blocks.0.hook_resid_pre,0,,residual_l1inf_rel,1,0.1,4,0,all
  > full,blocks.0.hook_resid_post,0,,residual_l1inf_rel,0.5,0.1,4,1,all
  > full,blocks.1.hook_resid_post,1,,residual_l1inf_rel,0.25,0.1,4,2,all
  > full,blocks.1.hook_resid_post,1,,residual_l1inf_rel,9,0.1,4,2,content
  > -skip,blocks.0.hook_resid_post,0,,residual_l1inf_rel,0.1,0.01,4,1,all
  > -skip,blocks.1.hook_resid_post,1,,residual_l1inf_rel,0.001,0.0001,4,2,all
  > END
  $ rankscope plot metrics.csv --x depth --y residual_l1inf_rel --site resid_post --by variant --band stderr --log --size 3.25x2.2in --out fig.svg
  wrote fig.svg
  $ grep -o '<svg [^>]*width="[^"]*" height="[^"]*"' fig.svg | grep -o 'width.*'; grep -c '<text\|font-family\|href="http' fig.svg
  width="234pt" height="158.4pt"
  0
  [1]
  $ rankscope plot metrics.csv --y residual_l1inf_rel --site resid_post --out fig.pdf --quiet; head -c 5 fig.pdf; echo; grep -ac '/Font\b' fig.pdf
  %PDF-
  0
  [1]

  $ ls
  fig.pdf
  fig.svg
  metrics.csv

Tables of studies have their results in columns; rows with the same x become their mean.

  $ printf 'id,state,rank,seed,test_mse\na,done,1,0,0.5\nb,done,1,1,0.7\nc,done,2,0,0.2\nd,pending,4,0,\n' > trials.csv
  $ rankscope plot trials.csv --x rank --y test_mse --by state --log-x --out s.svg; ls s.svg
  wrote s.svg
  s.svg
