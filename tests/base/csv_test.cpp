#include "base/csv.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"

namespace rankscope {
namespace {

using Table = std::vector<std::vector<std::string>>;

Table read(std::string_view text) {
  CsvReader reader(text, "t.csv");
  Table rows;
  for (std::vector<std::string> cells; reader.next(cells);) rows.push_back(cells);
  return rows;
}

std::string fault(std::string_view text) {
  try {
    read(text);
  } catch (const Error& e) {
    return e.message() + " in " + e.place();
  }
  return "none";
}

TEST(CsvReader, ReadsCellsRowByRow) {
  EXPECT_EQ(read("a,b\n1,\n,2\n"), (Table{{"a", "b"}, {"1", ""}, {"", "2"}}));
  EXPECT_EQ(read(""), Table{});
  EXPECT_EQ(read("a,b"), (Table{{"a", "b"}}));
}

TEST(CsvReader, TakesTheLineEndsAndMarksOfSpreadsheets) {
  EXPECT_EQ(read("\xEF\xBB\xBF"
                 "a,b\r\n1,2\r\n"),
            (Table{{"a", "b"}, {"1", "2"}}));
}

TEST(CsvReader, WhatIsWrittenQuotedReadsBack) {
  for (const std::string text : {"a,b", "say \"x\"", "two\nlines", "\"", "\r\n", "plain", "\"\"\""})
    EXPECT_EQ(read("x,y\n" + csv_cell(text) + ",1\n"), (Table{{"x", "y"}, {text, "1"}})) << text;
}

TEST(CsvReader, CommasQuotesAndLineBreaksAreQuoted) {
  EXPECT_EQ(csv_cell("plain"), "plain");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_cell("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_cell("x\r"), "\"x\r\"");
}

TEST(CsvReader, WhatASpreadsheetWouldCarryOutIsMarkedAsText) {
  EXPECT_EQ(csv_cell("=1+1"), "'=1+1");
  EXPECT_EQ(csv_cell("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(csv_cell("-2+3+cmd|' /C calc'!A0"), "'-2+3+cmd|' /C calc'!A0");
  EXPECT_EQ(csv_cell("+HYPERLINK(\"x\")"), "\"'+HYPERLINK(\"\"x\"\")\"");
  // Numbers and the names of our variants stay what they are.
  for (const char* text : {"-0.5", "+1e-9", "-skip", "-skip-mlp", "-head:L5H3", "a=b", "", "'", "it's"})
    EXPECT_EQ(csv_cell(text), text);
  for (const std::string text : {"=x", "'=x", "''=x", "'x", "-1;x", "@", "\t", "\r", "'", "-skip"})
    EXPECT_EQ(read("x,y\n" + csv_cell(text) + ",1\n"), (Table{{"x", "y"}, {text, "1"}})) << text;
}

TEST(CsvReader, TextsOfOthersKeepTheirApostrophes) {
  CsvReader reader = CsvReader::of_texts("text;y\n'= x;1\n'@home;'-1 and '+2\n", "t.csv", ';');
  Table rows;
  for (std::vector<std::string> cells; reader.next(cells);) rows.push_back(cells);
  EXPECT_EQ(rows, (Table{{"text", "y"}, {"'= x", "1"}, {"'@home", "'-1 and '+2"}}));
}

TEST(CsvTable, FindsItsColumnsAndReadsBackAsItWasWritten) {
  const CellTable table{{"a", "b,c"}, {{"1", ""}, {"\"", "x"}}};
  EXPECT_EQ(table.find("b,c"), 1u);
  EXPECT_FALSE(table.find("b").has_value());
  const CellTable again = parse_csv(csv_text(table), "t.csv");
  EXPECT_EQ(again.columns, table.columns);
  EXPECT_EQ(again.rows, table.rows);
}

TEST(CsvTable, WithoutColumnsItIsNone) {
  EXPECT_THROW(parse_csv("", "t.csv"), Error);
  EXPECT_THROW(parse_csv("\n\n", "t.csv"), Error);
}

TEST(CsvReader, NamesTheLineOfWhatIsWrong) {
  EXPECT_EQ(fault("a,b\n1\n"), "expected 2 cells, but the row has 1 in t.csv, line 2");
  EXPECT_EQ(fault("a,b\n\"two\nlines\",1\n1,2,3\n"), "expected 2 cells, but the row has 3 in t.csv, line 4");
  EXPECT_EQ(fault("a\n\"open"), "a quoted cell does not end in t.csv, line 2");
  EXPECT_EQ(fault("a\n\"x\"y\n"), "text follows a quoted cell in t.csv, line 2");
}

TEST(CsvReader, NumbersAreNumbersOrNothing) {
  EXPECT_EQ(as_number("2.5"), 2.5);
  for (const char* wrong : {"", "1.5x", " 1", "one"}) EXPECT_FALSE(as_number(wrong).has_value()) << wrong;
  const CsvReader reader("", "t.csv");
  EXPECT_EQ(csv_number("-1.5e-3", reader), -1.5e-3);
  EXPECT_EQ(csv_number("inf", reader), INFINITY);
  EXPECT_TRUE(std::isnan(csv_number("", reader)));
  EXPECT_THROW(csv_number("1.5x", reader), Error);
  EXPECT_THROW(csv_number(" 1", reader), Error);
  EXPECT_EQ(csv_index("", reader), -1);
  EXPECT_EQ(csv_index("12", reader), 12);
  for (const char* wrong : {"-1", "1.0", "99999999999", "x", "0x1"})
    EXPECT_THROW(csv_index(wrong, reader), Error) << wrong;
}

}  // namespace
}  // namespace rankscope
