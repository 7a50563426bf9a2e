#include "report/csv.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "tables.h"

namespace rankscope {
namespace {

std::string metrics(const ResultTable& table) {
  std::string out;
  write_metrics_csv(table, [&](std::string_view piece) { out += piece; });
  return out;
}

std::string samples(const ResultTable& table) {
  std::string out;
  write_samples_csv(table, [&](std::string_view piece) { out += piece; });
  return out;
}

const std::string kHeader = "variant,site,layer,head,metric,value,stderr,n,depth,tokens,stream\n";

TEST(Csv, AnEmptyTableIsItsHeader) {
  EXPECT_EQ(metrics({}), kHeader);
  EXPECT_EQ(samples({}), "variant,site,layer,head,metric,tokens,sample,value,stream,depth\n");
}

TEST(Csv, ARowHasEveryColumnInOrder) {
  ResultTable t;
  t.rows.push_back(
      {"-skip", "blocks.3.attn.hook_pattern", 3, 7, "attention_entropy", 0.5, 0.25, 32, 3, "all", "encoder"});
  EXPECT_EQ(metrics(t),
            kHeader + "-skip,blocks.3.attn.hook_pattern,3,7,attention_entropy,0.5,0.25,32,3,all,encoder\n");
}

TEST(Csv, WhatDoesNotApplyIsAnEmptyCell) {
  ResultTable t;
  t.rows.push_back({"full", "hook_embed", -1, -1, "residual_fro", kNone, kNone, 0, -1, "content"});
  EXPECT_EQ(metrics(t), kHeader + "full,hook_embed,,,residual_fro,,,0,,content,\n");
}

TEST(Csv, SampleRowsNameTheirSample) {
  ResultTable t;
  t.samples.push_back({"full", "hook_embed", -1, -1, "token_cosine", "content", 5, -0.125, "encoder"});
  EXPECT_EQ(samples(t),
            "variant,site,layer,head,metric,tokens,sample,value,stream,depth\nfull,hook_embed,,,token_cosine,"
            "content,5,-0."
            "125,encoder,\n");
}

TEST(Csv, NumbersReadBackTheSame) {
  for (const double x :
       {0.1, 1.0 / 3.0, 1e-300, 5e-324, 1.7976931348623157e308, -2.2250738585072014e-308, 123456789.125}) {
    ResultTable t;
    t.rows.push_back(plain_row("v", x));
    const std::string line = metrics(t).substr(kHeader.size());
    EXPECT_EQ(std::strtod(line.c_str() + 6, nullptr), x) << line;
  }
}

TEST(Csv, InfinityIsWrittenAsPandasReadsIt) {
  ResultTable t;
  t.rows.push_back(plain_row("v", -INFINITY));
  EXPECT_EQ(metrics(t), kHeader + "v,,,,,-inf,,0,,all,\n");
}

TEST(Csv, CommasQuotesAndLineBreaksAreQuoted) {
  ResultTable t;
  t.rows.push_back(plain_row("rank:qk=8,ov=4\n\"x\"", kNone));
  EXPECT_EQ(metrics(t), kHeader + "\"rank:qk=8,ov=4\n\"\"x\"\"\",,,,,,,0,,all,\n");
}

TEST(Csv, AManyRowedTableComesInPiecesAndWhole) {
  ResultTable t;
  for (int i = 0; i < 20000; ++i) t.rows.push_back(plain_row("full", i * 0.5, "m"));
  size_t pieces = 0, lines = 0, largest = 0;
  write_metrics_csv(t, [&](std::string_view piece) {
    ++pieces;
    largest = std::max(largest, piece.size());
    lines += static_cast<size_t>(std::count(piece.begin(), piece.end(), '\n'));
  });
  EXPECT_EQ(lines, 20001u);
  EXPECT_GT(pieces, 5u);
  EXPECT_LT(largest, 70000u);
}

}  // namespace
}  // namespace rankscope
