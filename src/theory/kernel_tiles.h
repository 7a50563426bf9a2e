// The hot loops of the kernel matrix: products of a few rows with a block of columns, and arcsines of many
// numbers.
#pragma once

#include <cstdint>

namespace rankscope {

constexpr int64_t kTile = 256;     // columns of a block
constexpr int64_t kStripRows = 4;  // rows done together

/// out [kStripRows, kTile] = rows [kStripRows, depth] columns [depth, kTile].
void strip_product(const double* rows, int64_t depth, const double* columns, double* out);

/// x [count] = asin(x), arguments clipped to [-1, 1]; accurate to a few units of the last place. `count` is a
/// multiple of 8.
void arcsines(double* x, int64_t count);

/// For a tile s [kTile, kTile] of a symmetric matrix: row_out += s x_columns and column_out += s^T x_rows.
void symmetric_tile(const float* s, const double* x_rows, const double* x_columns, double* row_out,
                    double* column_out);
/// row_out += s x only.
void plain_tile(const float* s, const double* x, double* row_out);

}  // namespace rankscope
