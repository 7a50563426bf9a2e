// Normalizers that live in files of their own, and the step several of them share.
#pragma once

#include "text/pieces.h"

namespace rankscope::text {

std::unique_ptr<Normalizer> read_bert_normalizer(const JsonObject& object);
std::unique_ptr<Normalizer> read_precompiled(const JsonObject& object);

/// Drops the characters for which `test` holds, and with the first of them the piece's claim to the start.
void drop_characters(Piece& piece, bool (*test)(char32_t));

}  // namespace rankscope::text
