// The part of the library that needs no torch.
#include <rankscope/tables.h>

#include <cstdio>

int main() {
  rankscope::ResultTable table;
  rankscope::Row one;
  one.variant = "full";
  one.metric = "output_kl";
  one.value = 0.25;
  table.rows.push_back(one);
  const auto* row = table.find("full", "output_kl", -1);
  std::printf("rankscope %s\n", std::string(rankscope::version()).c_str());
  return row != nullptr && row->value == 0.25 ? 0 : 1;
}
