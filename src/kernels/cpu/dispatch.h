// The instruction set that the training kernels run on. The best that the CPU has, unless RANKSCOPE_ISA names
// another (baseline, avx2, avx512).
#pragma once

#include <string_view>

#include "kernels/cpu/adamw.h"
#include "kernels/cpu/simd/kernels.h"

namespace rankscope {

enum class Isa { baseline, avx2, avx512 };

std::string_view isa_name(Isa isa);
bool cpu_has(Isa isa);
/// The best set of this CPU for an empty wish. Throws where the wish names no set, or one that the CPU or
/// this build does not have.
Isa isa_by_name(std::string_view wish);
/// What RANKSCOPE_ISA says; asked once.
Isa chosen_isa();

/// What `rule` makes of one step, in double precision.
simd::AdamWStep adamw_step(const AdamW& rule, float lr, int64_t step);

namespace simd {
const Table& table_of(Isa isa);
}  // namespace simd

}  // namespace rankscope
