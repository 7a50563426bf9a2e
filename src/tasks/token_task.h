// Tasks with a fixed training set and a label for every token: what the experiments on paths train on. One
// file of tasks/tokens/ each. Plain vectors: the sets are small and drawn once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

/// Sequences of equal length, short ones padded at their end. Tokens are ids or points of the plane.
struct TokenSet {
  int64_t tokens = 0;                // of a sequence
  std::vector<int64_t> ids = {};     // [S, T]; empty for points
  std::vector<double> points = {};   // [S, T, 2]
  std::vector<int64_t> labels = {};  // [S, T]; kNoToken where the sequence has ended
  std::vector<double> targets = {};  // [S, T, 2] instead of labels where points are asked for

  int64_t sequences() const {
    return static_cast<int64_t>((ids.empty() ? points.size() / 2 : ids.size()) / static_cast<size_t>(tokens));
  }
  /// Tokens of sequence s before its padding.
  int64_t length(int64_t s) const;
};

constexpr int64_t kNoToken = -1;

/// The network, the set and the training that belong to a task.
struct TokenRecipe {
  int64_t layers = 6, heads = 2, width = 48;
  bool mlp = false, positions = false;
  bool deep_input = false;  // points go through Linear, GELU, Linear instead of one Linear
  int64_t tokens = 8;       // of a sequence, at most
  int64_t train = 1000, test = 200;
  int64_t epochs = 65, batch = 30;
  double lr = 1e-4, dropout = 0.1;
  double l2 = 0;    // added to the gradient
  double clip = 0;  // of the gradient's norm; 0: none
  enum class Schedule { constant, linear, steps } schedule = Schedule::constant;
  bool shuffle = false;  // a new order every epoch
};

struct TokenTaskSpec {
  int64_t tokens = 8, train = 1000, test = 200;
  uint64_t seed = 0;
  std::string text = {};  // memorise: a file or a folder
};

struct TokenData {
  TokenSet train = {}, test = {};
  int64_t vocabulary = 0;  // 0: points
  int64_t classes = 0;
};

struct TokenTask {
  std::string_view name, summary;
  /// Ours, or that of the published code.
  TokenRecipe (*recipe)(bool reference);
  TokenData (*make)(const TokenTaskSpec& spec);
};

/// Every one, alphabetically (generated from the file names).
const std::vector<const TokenTask*>& token_tasks();
const TokenTask& token_task_named(std::string_view name);

/// What can be known without reading the tokens: the share of the most frequent label.
double majority_share(const TokenSet& set);

/// The best accuracy of a network that gives equal tokens of one sequence equal answers (it has no
/// positions): each gets the label most of them have.
double ceiling_without_positions(const TokenSet& set);

}  // namespace rankscope
