// Which instruction set the kernels take.
#include "kernels/cpu/dispatch.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "kernels/support.h"

namespace rankscope {
namespace {

TEST(Dispatch, TakesTheBestSetUnlessOneIsNamed) {
  EXPECT_EQ(isa_by_name(""), available_isas().back());
  for (const Isa isa : available_isas()) EXPECT_EQ(isa_by_name(isa_name(isa)), isa);
  EXPECT_TRUE(cpu_has(Isa::baseline));
}

TEST(Dispatch, RefusesWhatTheCpuDoesNotHaveAndWhatIsNoSet) {
  for (const Isa isa : {Isa::avx2, Isa::avx512})
    if (!cpu_has(isa)) {
      EXPECT_THROW(isa_by_name(isa_name(isa)), Error);
    }
  try {
    isa_by_name("sse9");
    FAIL() << "sse9 was taken";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "no instruction set is called 'sse9'");
  }
}

}  // namespace
}  // namespace rankscope
