# Turns the built page into a source file: `cmake -DPAGE=web/dist/index.html -DOUT=page.cpp -P embed_page.cmake`.
# The page is in the tree, so building the program needs no Node.
cmake_minimum_required(VERSION 3.25)
file(READ ${PAGE} bytes HEX)
string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
# Pieces of 64 characters, side by side: one literal to the compiler, lines to everyone else.
string(REPEAT "." 256 piece)
string(REGEX REPLACE "(${piece})" "\\1\"\n    \"" bytes "${bytes}")
file(WRITE ${OUT} "// Generated from ${PAGE}: do not edit.
#include \"report/page.h\"

namespace rankscope {
namespace {
constexpr char kPage[] =
    \"${bytes}\";
}  // namespace
std::string_view page_template() { return {kPage, sizeof(kPage) - 1}; }
}  // namespace rankscope
")
