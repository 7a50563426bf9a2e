// Scans a model as `rankscope scan MODEL --text FILE` does, and prints some rows and what the verdict says.
#include <rankscope/scan.h>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fputs("usage: scan_example MODEL FILE\n", stderr);
    return 2;
  }
  rankscope::ScanRequest request;
  request.model = argv[1];
  request.texts = {argv[2]};
  const rankscope::ScanResult result = rankscope::scan(request, {});
  for (const rankscope::Row& row : result.table.rows)
    if (row.metric == "residual_fro_rel_trimmed")
      std::printf("%-32s %.3f +- %.3f\n", row.site.str().c_str(), row.value, row.stderr_);
  for (const rankscope::Finding& finding : result.verdict)
    std::printf("%s: %s\n", finding.topic.c_str(), finding.sentence.c_str());
} catch (const rankscope::Error& error) {
  std::fputs(error.render().c_str(), stderr);
  return 1;
}
