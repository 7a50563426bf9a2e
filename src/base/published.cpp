#include "base/published.h"

#include "base/csv.h"
#include "base/table.h"

namespace rankscope {

std::vector<std::vector<std::string>> published_rows(std::string_view name) {
  return parse_csv(published_csv(name), std::string(name)).rows;
}

double published_number(std::string_view field) { return as_number(field).value_or(kNone); }

}  // namespace rankscope
