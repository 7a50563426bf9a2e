// Reads a study's file (toml++ underneath).
#include "studies/study.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

// toml++ 3.3 asserts on some broken files ("[[["), and assumes instead where NDEBUG is set: a file from
// outside must end in an error, never in the end of the program.
#undef NDEBUG
namespace rankscope {
struct BrokenToml {};
[[noreturn]] void broken_toml();
}  // namespace rankscope
#define TOML_ASSERT(expr) ((expr) ? void() : ::rankscope::broken_toml())
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "studies/builtin.h"

namespace rankscope {
namespace {

constexpr uint64_t kLargestStudy = 1 << 20;

// One table of the file: every key must be one of those it may have, every value of the type that is wanted.
class Reader {
 public:
  Reader(const toml::table& table, std::string place, std::string title)
      : table_(table), place_(std::move(place)), title_(std::move(title)) {}

  void only(const std::vector<std::string>& known) const {
    for (const auto& [key, node] : table_)
      if (std::find(known.begin(), known.end(), key.str()) == known.end())
        throw unknown_name(title_.empty() ? "key" : fmt::format("key of [{}]", title_), key.str(), known)
            .in(at(node));
  }
  std::string at(const toml::node& node) const {
    return fmt::format("{}, line {}", place_, node.source().begin.line);
  }
  Error wrong(const std::string& key, const std::string& expected, const toml::node& node) const {
    return usage_error(fmt::format("{}: expected {}", key, expected)).in(at(node));
  }
  std::string string(const char* key, std::string otherwise = {}) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return otherwise;
    if (!node->is_string()) throw wrong(key, "a text in quotes", *node);
    return node->as_string()->get();
  }
  bool boolean(const char* key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return false;
    if (!node->is_boolean()) throw wrong(key, "true or false", *node);
    return node->as_boolean()->get();
  }
  std::vector<std::string> words(const char* key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr) return {};
    if (node->is_string()) return {node->as_string()->get()};
    if (!node->is_array()) throw wrong(key, "a list of texts", *node);
    std::vector<std::string> out;
    for (const toml::node& item : *node->as_array()) {
      if (!item.is_string()) throw wrong(key, "a list of texts", item);
      out.push_back(item.as_string()->get());
    }
    return out;
  }
  const toml::array& array(const char* key) const {
    const toml::node* node = table_.get(key);
    if (node == nullptr)
      throw usage_error(fmt::format("[{}] has no \"{}\"", title_, key))
          .in(fmt::format("{}, line {}", place_, table_.source().begin.line));
    if (!node->is_array()) throw wrong(key, "a list", *node);
    return *node->as_array();
  }
  Scalar scalar(const std::string& key, const toml::node& node) const {
    if (node.is_boolean()) return node.as_boolean()->get();
    if (node.is_integer()) return node.as_integer()->get();
    if (node.is_floating_point()) return node.as_floating_point()->get();
    if (node.is_string()) return node.as_string()->get();
    throw wrong(key, "a number, a text, true or false", node);
  }
  const toml::table& table() const { return table_; }

 private:
  const toml::table& table_;
  std::string place_, title_;
};

const toml::table* part(const toml::table& file, const char* name, const std::string& place) {
  const toml::node* node = file.get(name);
  if (node != nullptr && !node->is_table())
    throw usage_error(fmt::format("\"{}\" must be a table: [{}]", name, name))
        .in(fmt::format("{}, line {}", place, node->source().begin.line));
  return node == nullptr ? nullptr : node->as_table();
}

void note(Study& study, const std::string& key, const toml::node& node) {
  const int line = static_cast<int>(node.source().begin.line);
  const auto [first, fresh] = study.lines.emplace(key, line);
  if (!fresh)
    throw usage_error(fmt::format("\"{}\" is set twice: in line {} and in line {}", key, first->second, line))
        .in(study.place);
}

void read_settings(Study& study, const Reader& from, Config& to) {
  for (const auto& [key, node] : from.table()) {
    const std::string name(key.str());
    if (name == "seeds") {
      if (!node.is_integer() || node.as_integer()->get() < 1 || node.as_integer()->get() > 100000)
        throw from.wrong(name, "a whole number from 1 to 100000", node);
      note(study, "seed", node);
      study.seeds = node.as_integer()->get();
      continue;
    }
    note(study, name, node);
    to[name] = from.scalar(name, node);
  }
}

Axis coupled_axis(Study& study, const Reader& from, const std::string& name, const toml::array& points) {
  Axis axis;
  for (const auto& [key, node] : *points.get(0)->as_table()) {
    axis.names.emplace_back(key.str());
    note(study, axis.names.back(), node);
  }
  for (const toml::node& item : points) {
    const toml::table* point = item.as_table();
    if (point == nullptr || point->size() != axis.names.size())
      throw from.wrong(name, fmt::format("tables that all have the keys {}", fmt::join(axis.names, ", ")),
                       item);
    std::vector<Scalar>& values = axis.points.emplace_back();
    for (const std::string& key : axis.names) {
      const toml::node* node = point->get(key);
      if (node == nullptr)
        throw usage_error(fmt::format("this point of {} has no \"{}\"", name, key)).in(from.at(item));
      values.push_back(from.scalar(key, *node));
    }
  }
  return axis;
}

void read_grid(Study& study, const Reader& from) {
  std::vector<std::pair<int, Axis>>
      axes;  // toml++ sorts keys; the order of the file is the order of the grid
  for (const auto& [key, node] : from.table()) {
    const std::string name(key.str());
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty()) throw from.wrong(name, "a list of values", node);
    const int line = static_cast<int>(node.source().begin.line);
    if (list->get(0)->is_table()) {
      axes.emplace_back(line, coupled_axis(study, from, name, *list));
      continue;
    }
    note(study, name, node);
    Axis axis{{name}, {}};
    for (const toml::node& item : *list) axis.points.push_back({from.scalar(name, item)});
    axes.emplace_back(line, std::move(axis));
  }
  std::stable_sort(axes.begin(), axes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [line, axis] : axes) study.grid.push_back(std::move(axis));
}

double published_value(const Reader& from, const toml::node& node) {
  if (node.is_floating_point()) return node.as_floating_point()->get();  // nan where the table has a hole
  if (node.is_integer()) return static_cast<double>(node.as_integer()->get());
  throw from.wrong("rows", "a number for the published value", node);
}

// A row is a point and its value; in a wide table (`across`) a point without that key and a value for each of
// `values`.
Published read_published(const Reader& from) {
  from.only({"metric", "statistic", "budget", "source", "columns", "across", "values", "rows"});
  Published out;
  out.metric = from.string("metric", out.metric);
  out.statistic = from.string("statistic", out.statistic);
  if (out.statistic != "best" && out.statistic != "mean")
    throw from.wrong("statistic", "\"best\" or \"mean\"", *from.table().get("statistic"));
  out.budget = from.string("budget");
  out.source = from.string("source");
  out.columns = from.words("columns");
  const std::string across = from.string("across");
  std::vector<Scalar> values;
  if (!across.empty())
    for (const toml::node& item : from.array("values")) values.push_back(from.scalar("values", item));
  const size_t fixed = out.columns.size(), wanted = fixed + (across.empty() ? 1 : values.size());
  for (const toml::node& item : from.array("rows")) {
    const toml::array* cells = item.as_array();
    if (cells == nullptr || cells->size() != wanted)
      throw from.wrong("rows", fmt::format("rows of {} cells", wanted), item);
    std::vector<Scalar> point;
    for (size_t i = 0; i < fixed; ++i) point.push_back(from.scalar("rows", *cells->get(i)));
    for (size_t i = fixed; i < wanted; ++i) {
      out.rows.push_back({point, published_value(from, *cells->get(i))});
      if (!across.empty()) out.rows.back().point.push_back(values[i - fixed]);
      if (out.rows.back().value != out.rows.back().value) out.rows.pop_back();
    }
  }
  if (!across.empty()) out.columns.push_back(across);
  return out;
}

void read_all_published(Study& study, const toml::table& file, const char* kind) {
  const toml::node* node = file.get(kind);
  if (node == nullptr) return;
  const Reader all(file, study.place, "");
  const auto take = [&](const toml::table& table) {
    study.published.push_back(read_published({table, study.place, kind}));
    study.published.back().printed = kind == std::string_view("published");
  };
  if (node->is_table()) return take(*node->as_table());
  if (!node->is_array()) throw all.wrong(kind, "a table", *node);
  for (const toml::node& item : *node->as_array()) {
    if (!item.is_table()) throw all.wrong(kind, fmt::format("tables: [[{}]]", kind), item);
    take(*item.as_table());
  }
}

toml::table parsed(std::string_view text, const std::string& place) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& fault) {
    throw usage_error(std::string(fault.description()))
        .in(fmt::format("{}, line {}", place, fault.source().begin.line));
  } catch (const BrokenToml&) {
    throw usage_error("this is not valid TOML").in(place);
  }
}

}  // namespace

void broken_toml() { throw BrokenToml{}; }

Study parse_study(std::string_view toml, const std::string& name, const std::string& place) {
  const toml::table file = parsed(toml, place);
  const Reader top(file, place, "");
  top.only({"title", "question", "paper", "runner", "fixed", "grid", "protocol", "figure", "published", "reference"});
  Study study;
  study.name = name;
  study.place = place;
  study.source = toml;
  study.title = top.string("title", name);
  study.question = top.string("question");
  study.paper = top.string("paper");
  study.runner = top.string("runner");
  if (study.runner.empty())
    throw usage_error("the study names no runner").in(place).hint("runner = \"train\"");
  if (const toml::table* table = part(file, "fixed", place))
    read_settings(study, {*table, place, "fixed"}, study.fixed);
  if (const toml::table* table = part(file, "protocol", place))
    read_settings(study, {*table, place, "protocol"}, study.protocol);
  if (const toml::table* table = part(file, "grid", place)) read_grid(study, {*table, place, "grid"});
  if (const toml::table* table = part(file, "figure", place)) {
    const Reader figure(*table, place, "figure");
    figure.only({"x", "y", "by", "log_x", "log_y", "bound", "lines"});
    study.figure = {figure.string("x"),      figure.string("y", study.figure.y),
                    figure.words("by"),      figure.boolean("log_x"),
                    figure.boolean("log_y"), figure.string("bound"),
                    figure.words("lines")};
  }
  for (const char* kind : {"published", "reference"}) read_all_published(study, file, kind);
  return study;
}

Study load_study(const std::string& name_or_path) {
  namespace fs = std::filesystem;
  std::vector<std::string> known;
  for (const BuiltinStudy& study : builtin_study_files()) {
    if (study.name == name_or_path)
      return parse_study(study.toml, std::string(study.name), fmt::format("{}.toml (built in)", study.name));
    known.emplace_back(study.name);
  }
  const fs::path path = name_or_path;
  if (path.extension() == ".toml" || path.has_parent_path())
    return parse_study(read_file(path, kLargestStudy), path.stem().string(), path.string());
  throw unknown_name("study", name_or_path, known, "rankscope study list");
}

std::vector<std::string> builtin_studies() {
  std::vector<std::string> out;
  for (const BuiltinStudy& study : builtin_study_files()) out.emplace_back(study.name);
  return out;
}

}  // namespace rankscope
