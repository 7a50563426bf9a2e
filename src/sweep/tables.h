// The trials of a store as tables: grouped over seeds, beside the published values, as files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/study_results.h"
#include "sweep/store.h"

namespace rankscope {

/// Finished trials that differ in nothing but the seed.
struct Point {
  Config config;  // without the seed
  std::vector<StoredTrial> trials;
};

/// One metric of a point. Trials without a finite value are left out.
struct Summary {
  std::vector<double> every;  // by seed
  double mean = 0, median = 0;
  double best = 0;     // the lowest; of an accuracy the highest; NaN where neither is better
  double stderr_ = 0;  // over seeds and, of test_mse, of the test set they share; NaN for one seed
};

/// Keys that came later are not in configurations at their defaults, nor in trials' names. Here they are
/// written out where the study or another trial sets them, as far as the store knows defaults: a setting of 1
/// beside one of 2 is 1, and no gap.
std::vector<StoredTrial> with_defaults(const Study& study, std::vector<StoredTrial> trials);

/// In the order of the study.
std::vector<Point> points(const std::vector<StoredTrial>& trials);

Summary summarise(const Point& point, const std::string& metric);

/// "rank=4 lr=0.01": what a configuration says of these keys.
std::string settings_text(const Config& config, const std::vector<std::string>& keys);

/// Keys that take more than one value, the seed left out.
std::vector<std::string> varying(const std::vector<Point>& points);

/// Whether a trial was run with this value of a key, and with everything that the study fixes as it has it.
/// Keys at their defaults count where the store knows these.
bool has_setting(const Study& study, const Config& config, const std::string& key, const Scalar& value);
bool has_fixed_settings(const Study& study, const Config& config);

/// The published value for this configuration, where the table has one: its columns agree, and what the study
/// fixes is as the study has it. The budget may differ; that is what the ratio is about.
std::optional<double> published_value(const Study& study, const Published& table, const Config& config);

/// What theory says to the values, each trial with its own standard error: "fault of the experiment" when one
/// lies below its lower bound, "training died" where trials came to answer zero, "about as good as answering
/// zero" where they answer, and "no better than no selection" when none is better than a predictor without
/// selection.
std::string judgement(const Point& point);

/// "steps=50 (the study has 3000)": where the point was trained otherwise than the study says, and so
/// otherwise than what stands beside it means, one text for each such key. Columns of the table are told
/// apart already. Settings that the study leaves at their defaults count where its store knows these.
std::vector<std::string> changed_settings(const Study& study, const Published& table, const Config& config);

/// What trials on CUDA were trained in, and how far TF32 moves their gradients where `auto` measured it: a
/// line for each precision, none for what ran on the CPU alone, where there is no choice.
std::vector<std::string> precision_notes(const std::vector<Point>& points);

/// The trials of a store as the report reads them.
StudyTables study_tables(const Store& store);

/// Writes trials.csv or trials.jsonl (a row a trial), summary.csv (a row a point and metric), published.csv
/// (a row a published value, with ours beside it) and study.json into `folder`; returns their names.
///
/// Nothing is lost by it: a folder with another study, or with trials that are not among these (or were done
/// and are not so here), is refused unless `replace` says that they may go.
std::vector<std::string> export_tables(const Study& study, const std::vector<StoredTrial>& trials,
                                       const std::filesystem::path& folder, const std::string& format,
                                       bool replace = false);

}  // namespace rankscope
