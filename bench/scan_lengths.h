// User time of a whole scan over that of one with --lens massive, over lengths: 2,048 tokens in all, six
// layers of BERT-base's shape. Both are the program itself, start-up included.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "support/random_checkpoint.h"
#include "support/temporary_folder.h"
#include "timed_lenses.h"

namespace rankscope {

struct ProgramCost {
  double user = 0, wall = 0;
};

inline ProgramCost cost_of(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& w : words) arguments.push_back(const_cast<char*>(w.c_str()));
  arguments.push_back(nullptr);
  ProgramCost cost;
  cost.wall = seconds([&] {
    const pid_t child = fork();
    if (child == 0) {
      const int nowhere = open("/dev/null", O_WRONLY);
      dup2(nowhere, STDOUT_FILENO);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    int status = 0;
    struct rusage usage {};
    wait4(child, &status, 0, &usage);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Error("the scan failed").in(words[0]);
    cost.user =
        static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
  });
  return cost;
}

inline int scan_lengths(int threads, const std::filesystem::path& self) {
  constexpr std::array<std::pair<int, double>, 5> kGoals{
      {{128, 1.5}, {256, 1.7}, {512, 2.2}, {1024, 2.0}, {2048, 1.8}}};
  constexpr int kTokens = 2048, kRuns = 3;
  const TemporaryFolder folder;
  Json config = parse_json(test::bert_config(768, 6), "config.json");
  config["max_position_embeddings"] = kTokens;
  test::write_random_checkpoint(folder.path(), config.dump(), StoredType::f32);
  const std::string program = (self.parent_path() / "rankscope").string();
  fmt::print("{:>7} {:>12} {:>14} {:>8} {:>12} {:>6}\n", "tokens", "scan, user s", "massive, user s", "ratio",
             "ratio, wall", "goal");
  bool reached = true;
  for (const auto& [length, goal] : kGoals) {
    std::vector<std::string> words{program,        "scan",
                                   folder.path(),  "--random-tokens",
                                   "--samples",    std::to_string(kTokens / length),
                                   "--max-length", std::to_string(length),
                                   "--threads",    std::to_string(threads),
                                   "-q",           "--format",
                                   "csv"};
    // The least of three, taken in turns: what disturbs one does not disturb the other alone.
    ProgramCost all{1e30, 1e30}, massive{1e30, 1e30};
    for (int i = 0; i < kRuns; ++i) {
      const auto keep = [](ProgramCost& best, const ProgramCost& now) {
        best = {std::min(best.user, now.user), std::min(best.wall, now.wall)};
      };
      keep(all, cost_of(words));
      std::vector<std::string> one = words;
      one.insert(one.end(), {"--lens", "massive"});
      keep(massive, cost_of(one));
    }
    const double ratio = all.user / massive.user;
    reached = reached && ratio <= goal;
    fmt::print("{:>7} {:>12.2f} {:>14.2f} {:>8.2f} {:>12.2f} {:>6.1f}\n", length, all.user, massive.user,
               ratio, all.wall / massive.wall, goal);
  }
  fmt::print("{}\n", reached ? "every goal is reached" : "not every goal is reached");
  return 0;
}

}  // namespace rankscope
