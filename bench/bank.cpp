// The whole bank of planted networks: how often each statement of the verdict is true, false and "not known".
// bank [networks] [seed] [processes]; prints the tables of docs/VERDICT.md and fails where more than 1 % is
// false or, at 32 samples of 128 tokens, more than 10 % not known, or where a statement depends on how a
// network is written down.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>

#include "bank/bank.h"

namespace {

using namespace rankscope::bank;  // NOLINT(google-build-using-namespace): a program about it

struct Outcome {
  Counts counts;
  int64_t asked = 0, changed = 0;
};

void run(Outcome& out, uint64_t seed, uint64_t i, int64_t samples, int64_t length) {
  Planted p = network(seed, i, samples, length);
  const Said said = ask(p);
  for (const std::string& subject : out.counts.add(p, said))
    std::cerr << fmt::format("network {} ({}): \"{}\" is wrong\n  {}\n", i, p.family, subject,
                             fmt::join(said.sentences, "\n  "));
  Draw other(seed + 1000, i);
  reparametrise(p, other);
  for (const auto& [subject, answer] : ask(p).answers) {
    if (turned(p) && subject == "massive") continue;
    ++out.asked;
    const auto before = said.answers.find(subject);
    if (before != said.answers.end() && before->second == answer) continue;
    ++out.changed;
    std::cerr << fmt::format("network {} ({}): \"{}\" changed when it was written down in another way\n", i,
                             p.family, subject);
  }
}

bool good(const Outcome& o, double most_unknown) {
  for (const auto& [rule, c] : o.counts.by_rule()) {
    const double n = static_cast<double>(c.planted(true) + c.planted(false));
    if (static_cast<double>(c.wrong()) >= 0.01 * n || static_cast<double>(c.unknown()) >= most_unknown * n)
      return false;
  }
  return static_cast<double>(o.changed) < 0.001 * static_cast<double>(o.asked);
}

void print(const Outcome& o, std::string_view what) {
  std::cout << fmt::format(
      "{}\n\n{}\n{} of {} statements changed when the network was written down in another way.\n\n", what,
      o.counts.table(), o.changed, o.asked);
}

/// One share of the networks, told as lines: how many statements changed, then what was said of each rule.
void work(uint64_t networks, uint64_t seed, uint64_t share, uint64_t shares, FILE* to) {
  Outcome sizes[2];
  for (uint64_t i = share; i < networks; i += shares) run(sizes[0], seed, i, 32, 128);
  const std::pair<int64_t, int64_t> other[] = {{8, 128}, {32, 48}, {16, 256}, {64, 64}};
  for (uint64_t i = share; i < networks / 6; i += shares) {
    const auto& [samples, length] = other[i / families().size() % 4];
    run(sizes[1], seed + 1, i, samples, length);
  }
  for (int size = 0; size < 2; ++size) {
    fmt::print(to, "{} {} {}\n", size, sizes[size].asked, sizes[size].changed);
    for (const auto& [rule, c] : sizes[size].counts.by_rule())
      fmt::print(to, "{} {} {} {} {} {} {} {}\n", size, c.said[0][0], c.said[0][1], c.said[0][2],
                 c.said[1][0], c.said[1][1], c.said[1][2], rule);
  }
  std::fflush(to);
}

void gather(FILE* from, Outcome (&sizes)[2]) {
  char line[512];
  while (std::fgets(line, sizeof line, from) != nullptr) {
    std::istringstream words(line);
    int size = 0;
    Count c;
    words >> size >> c.said[0][0] >> c.said[0][1];
    if (!(words >> c.said[0][2])) {
      sizes[size].asked += c.said[0][0], sizes[size].changed += c.said[0][1];
      continue;
    }
    words >> c.said[1][0] >> c.said[1][1] >> c.said[1][2] >> std::ws;
    std::string rule;
    std::getline(words, rule);
    sizes[size].counts.add(rule, c);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto number = [&](int i, uint64_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const uint64_t networks = number(1, 6400), seed = number(2, 1), jobs = std::max<uint64_t>(1, number(3, 1));
  Outcome sizes[2];
  std::vector<std::pair<pid_t, FILE*>> children;
  for (uint64_t j = 0; j < jobs; ++j) {
    int ends[2];
    if (pipe(ends) != 0) return 2;
    const pid_t child = fork();
    if (child < 0) return 2;
    if (child == 0) {
      close(ends[0]);
      at::set_num_threads(1);
      work(networks, seed, j, jobs, fdopen(ends[1], "w"));
      _exit(0);
    }
    close(ends[1]);
    children.emplace_back(child, fdopen(ends[0], "r"));
  }
  bool whole = true;
  for (const auto& [child, from] : children) {
    gather(from, sizes);
    int status = 0;
    whole = waitpid(child, &status, 0) == child && status == 0 && whole;
  }
  print(sizes[0], "32 samples of 128 tokens:");
  print(sizes[1], "8 samples of 128 tokens, 32 of 48, 16 of 256 and 64 of 64:");
  if (!whole) std::cerr << "a process ended early: the counts are not whole\n";
  return whole && good(sizes[0], 0.1) && good(sizes[1], 1.1) ? 0 : 1;
}
