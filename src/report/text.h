// Text for terminals: how wide it is, where it breaks, and curves drawn in one line.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankscope {

/// Text from outside, made fit for a terminal: printable() with room for a paragraph.
std::string terminal_text(std::string_view text, size_t limit = 4000);

/// Columns a terminal gives to valid UTF-8: 0 for combining marks, 2 for wide scripts and emoji, 1 for the
/// rest.
int display_width(std::string_view text);

/// The longest beginning that fits `width` columns.
std::string_view fit(std::string_view text, int width);

/// Padded with spaces to `width` columns; too long a text is cut and ends in "~".
std::string pad_right(std::string_view text, int width);
std::string pad_left(std::string_view text, int width);

/// The names of one table or line, each in `width` columns: what is too long loses its middle, as in
/// "replace:soft~2,to=random". Names that differ stay different: where the middle is what tells them apart
/// they lose what stands before or behind it, and where nothing helps, or there are more than 64, all get
/// more room than `width`, up to 160 columns.
std::vector<std::string> short_names(const std::vector<std::string>& all, int width);

/// What the name of a variant gets in a heading, a legend or a line.
constexpr int kVariantWidth = 40;

/// Lines of at most `width` columns, broken at spaces, inside a word only where it does not fit a line.
std::vector<std::string> wrap(std::string_view text, int width);

/// One character per value, from 0 (lowest bar) to 1 and above (full bar); a space where a value is NaN. More
/// values than `width` are averaged in groups.
std::string sparkline(std::span<const double> values, int width, bool unicode);

/// Three significant digits, or a whole number up to a million: 0.412, 12345, 2.1e-07. NaN is "-".
std::string number_text(double value);

}  // namespace rankscope
