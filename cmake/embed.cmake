# Turns a file into a function that returns it: `cmake -DFILE=web/dist/index.html -DHEADER=report/page.h
# -DFUNCTION=page_template -DOUT=page.cpp -P embed.cmake`.
cmake_minimum_required(VERSION 3.25)
file(READ ${FILE} bytes HEX)
string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
# Pieces of 64 characters, side by side: one literal to the compiler, lines to everyone else.
string(REPEAT "." 256 piece)
string(REGEX REPLACE "(${piece})" "\\1\"\n    \"" bytes "${bytes}")
file(WRITE ${OUT} "// Generated from ${FILE}: do not edit.
#include \"${HEADER}\"

namespace rankscope {
namespace {
constexpr char kBytes[] =
    \"${bytes}\";
}  // namespace
std::string_view ${FUNCTION}() { return {kBytes, sizeof(kBytes) - 1}; }
}  // namespace rankscope
")
