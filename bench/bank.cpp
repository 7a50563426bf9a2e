// The whole bank of planted networks: how often each statement of the verdict is true, false and "not known".
//   bank [networks] [seed] [processes] [file]   prints the tables of docs/VERDICT.md. Every statement that
//   was
//                                               false, not known or changed goes into the file, one a line
//   bank --only NUMBER [seed] [other]           one network of it, with all sentences
// Fails where more than 1 % is false or, at 32 samples of 128 tokens, more than 10 % not known, where a
// statement is planted fewer than 300 times either way in 6,400 networks, or where statements depend on how a
// network is written down.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "bank/bank.h"

namespace {

using namespace rankscope::bank;  // NOLINT(google-build-using-namespace): a program about it
using rankscope::Claim;

constexpr uint64_t kNetworks = 6400;
constexpr int64_t kLeastPlanted = 300;  // of kNetworks

/// One of the networks: of the main size, or of the others.
struct Number {
  uint64_t seed, i;
  bool other;

  std::pair<int64_t, int64_t> size() const {
    constexpr std::pair<int64_t, int64_t> sizes[] = {{8, 128}, {32, 48}, {16, 256}, {64, 64}};
    const uint64_t round = i / families().size();
    // Not in step with what takes turns in planting.
    return other ? sizes[(round + round / 2) % 4] : std::pair<int64_t, int64_t>(32, 128);
  }
  Planted plant() const {
    const auto [samples, length] = size();
    return network(seed + (other ? 1 : 0), i, samples, length);
  }
  Draw written_otherwise() const { return Draw(seed + 1000, i); }
};

struct Outcome {
  Counts counts;
  int64_t asked = 0, changed = 0;
};

/// Where two ways to write one network down got different answers.
std::vector<std::string> differences(const Planted& p, const Answers& a, const Answers& b, int64_t& asked) {
  std::set<std::string> subjects;
  for (const Answers* all : {&a, &b})
    for (const auto& [subject, answer] : *all) subjects.insert(subject);
  std::vector<std::string> out;
  for (const std::string& subject : subjects) {
    if (turned(p) && subject == "massive") continue;
    ++asked;
    const auto x = a.find(subject), y = b.find(subject);
    const auto said = [](bool there, auto at) { return there ? to_string(at->second) : "nothing"; };
    if (x == a.end() || y == b.end() || x->second != y->second)
      out.push_back(fmt::format("{}: {}, then {}", subject, said(x != a.end(), x), said(y != b.end(), y)));
  }
  return out;
}

/// Runs one network; what is worth a look goes out as lines that begin with "!".
void run(Outcome& out, const Number& number, FILE* to) {
  Planted p = number.plant();
  const auto [samples, length] = number.size();
  const auto tell = [&](std::string_view what, const std::string& text) {
    fmt::print(to, "!{} | {} {} {}{} | {} x {}, {} | {}\n", what, "--only", number.i, number.seed,
               number.other ? " other" : "", samples, length, p.family, text);
  };
  const Said said = ask(p);
  for (const Slip& slip : out.counts.add(p, said))
    tell(slip.wrong() ? "false" : "not known",
         fmt::format("{}: planted {}, said {}", slip.subject, slip.truth ? "yes" : "no",
                     to_string(slip.answer)));
  Draw draw = number.written_otherwise();
  reparametrise(p, draw);
  for (const std::string& difference : differences(p, said.answers, ask(p).answers, out.asked)) {
    ++out.changed;
    tell("changed", difference);
  }
}

/// All that is said of one network, in both ways to write it down.
void show(const Number& number) {
  Planted p = number.plant();
  std::cout << fmt::format("{}: {}{}, {}, {} x {}\n", p.family, p.spec.causal() ? "causal, " : "",
                           p.spec.pre_norm() ? "norms before" : "norms behind",
                           turned(p) ? "RMSNorm" : "LayerNorm", number.size().first, number.size().second);
  Counts counts;
  const Said said = ask(p);
  for (const Slip& slip : counts.add(p, said))
    std::cout << fmt::format("{} {}: planted {}, said {}\n", slip.wrong() ? "FALSE" : "not known",
                             slip.subject, slip.truth ? "yes" : "no", to_string(slip.answer));
  std::cout << fmt::format("  {}\n", fmt::join(said.sentences, "\n  "));
  Draw draw = number.written_otherwise();
  reparametrise(p, draw);
  const Said again = ask(p);
  int64_t asked = 0;
  const std::vector<std::string> changed = differences(p, said.answers, again.answers, asked);
  std::cout << fmt::format("Written down in another way, {} of {} statements change:\n", changed.size(),
                           asked);
  for (const std::string& difference : changed) std::cout << difference << '\n';
  if (!changed.empty()) std::cout << fmt::format("  {}\n", fmt::join(again.sentences, "\n  "));
}

bool good(const Outcome& o, double most_unknown, int64_t least_planted) {
  for (const auto& [rule, c] : o.counts.by_rule()) {
    const double n = static_cast<double>(c.planted(true) + c.planted(false));
    if (static_cast<double>(c.wrong()) >= 0.01 * n || static_cast<double>(c.unknown()) >= most_unknown * n ||
        std::min(c.planted(true), c.planted(false)) < least_planted)
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
  for (const bool other : {false, true})
    for (uint64_t i = 0; i < (other ? networks / 6 : networks); ++i)
      if ((i + i / families().size()) % shares == share) run(sizes[other], {seed, i, other}, to);
  for (int size = 0; size < 2; ++size) {
    fmt::print(to, "{} {} {}\n", size, sizes[size].asked, sizes[size].changed);
    for (const auto& [rule, c] : sizes[size].counts.by_rule())
      fmt::print(to, "{} {} {} {} {} {} {} {}\n", size, c.said[0][0], c.said[0][1], c.said[0][2],
                 c.said[1][0], c.said[1][1], c.said[1][2], rule);
  }
  std::fflush(to);
}

void gather(FILE* from, Outcome (&sizes)[2], std::vector<std::string>& told) {
  char line[1024];
  while (std::fgets(line, sizeof line, from) != nullptr) {
    if (line[0] == '!') {
      told.emplace_back(line + 1);
      continue;
    }
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
  if (argc > 2 && std::string_view(argv[1]) == "--only") {
    at::set_num_threads(1);
    show({number(3, 1), number(2, 0), argc > 4});
    return 0;
  }
  const uint64_t networks = number(1, kNetworks), seed = number(2, 1),
                 jobs = std::max<uint64_t>(1, number(3, 1));
  const std::string path = argc > 4 ? argv[4] : fmt::format("bank-seed{}.txt", seed);
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
  std::vector<std::string> told;
  for (const auto& [child, from] : children) {
    gather(from, sizes, told);
    int status = 0;
    whole = waitpid(child, &status, 0) == child && status == 0 && whole;
  }
  std::sort(told.begin(), told.end());
  std::ofstream file(path);
  for (const std::string& line : told) file << line;
  std::cout << fmt::format("{} networks of seed {}. ", networks, seed);
  print(sizes[0], "32 samples of 128 tokens:");
  print(sizes[1], "8 samples of 128 tokens, 32 of 48, 16 of 256 and 64 of 64:");
  if (!file.flush()) std::cerr << fmt::format("{} could not be written\n", path);
  if (!whole) std::cerr << "a process ended early: the counts are not whole\n";
  return whole && file && good(sizes[0], 0.1, networks >= kNetworks ? kLeastPlanted : 0) &&
                 good(sizes[1], 1.1, 0)
             ? 0
             : 1;
}
