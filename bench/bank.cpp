// The whole bank of planted networks: how often each statement of the verdict is true, false and "not known".
// bank [networks] [seed]; prints the tables of docs/VERDICT.md and fails where more than 1 % is false or, at
// 32 samples of 128 tokens, more than 10 % not known, or where a statement depends on how a network is
// written down.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <iostream>

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

}  // namespace

int main(int argc, char** argv) {
  const uint64_t networks = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 6300;
  const uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Outcome main_size, other_sizes;
  for (uint64_t i = 0; i < networks; ++i) run(main_size, seed, i, 32, 128);
  const std::pair<int64_t, int64_t> sizes[] = {{8, 128}, {32, 48}, {16, 256}, {64, 64}};
  for (uint64_t i = 0; i < networks / 6; ++i) {
    const auto& [samples, length] = sizes[i / families().size() % 4];
    run(other_sizes, seed + 1, i, samples, length);
  }
  print(main_size, "32 samples of 128 tokens:");
  print(other_sizes, "8 samples of 128 tokens, 32 of 48, 16 of 256 and 64 of 64:");
  return good(main_size, 0.1) && good(other_sizes, 1.1) ? 0 : 1;
}
