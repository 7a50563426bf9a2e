// How many paths there are, as tables on the terminal: needs no model and no torch.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <vector>

#include "report/columns.h"
#include "theory/path_counts.h"

namespace rankscope {

/// 0, 1, ... layers.
Column length_column(int64_t layers);

/// How many paths of each length, and which share of all.
void add_counts(std::vector<Column>& columns, const PathCounts& counts);

/// The same on its own; with the published model of what paths weigh where `alpha` says what a layer passes
/// on: one number for all layers, or one for each.
void print_count(int64_t layers, int64_t heads, std::vector<double> alpha, std::ostream& out);

/// The models of the paper, counted by us; how far the published digits are from that, at most.
void print_published_counts(std::ostream& out);

}  // namespace rankscope
