// The engine, called as a library: a folder that is not there gives our error, not a crash.
#include <ATen/ATen.h>
#include <rankscope/operators.h>
#include <rankscope/scan.h>

#include <cstdio>

int main() {
  const at::Tensor one = at::ones({1, 1}), two = rankscope::linear(one, one, at::ones({1}));
  if (two.item<double>() != 2) return 1;
  rankscope::ScanRequest request;
  request.model = "no/such/model";
  request.random_tokens = true;
  try {
    rankscope::scan(request, {});
  } catch (const rankscope::Error& error) {
    std::fputs(error.render().c_str(), stdout);
    return 0;
  }
  return 1;
}
