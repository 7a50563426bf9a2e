#include "sweep/tables.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "sweep/fake_store.h"

namespace rankscope::test {
namespace {

StoredTrial trial(int64_t rank, int64_t seed, double mse) {
  StoredTrial t;
  t.config = canonical({{"rank", rank}, {"seed", seed}, {"d", int64_t{16}}});
  t.id = trial_id("fake", parse_canonical(t.config));
  t.state = TrialState::done;
  t.values = {{"test_mse", mse}, {"test_mse_stderr", 0.01}};
  return t;
}

TEST(Tables, SeedsAreGroupedAndEverySeedIsKept) {
  const std::vector<Point> all =
      points({trial(1, 0, 0.1), trial(8, 0, 0.5), trial(1, 1, 0.3), trial(1, 2, 0.8)});
  ASSERT_EQ(all.size(), 2u);
  const Summary s = summarise(all[0], "test_mse");
  EXPECT_EQ(s.every, (std::vector<double>{0.1, 0.3, 0.8}));
  EXPECT_DOUBLE_EQ(s.mean, 0.4);
  EXPECT_DOUBLE_EQ(s.median, 0.3);
  EXPECT_DOUBLE_EQ(s.best, 0.1);
  // Over seeds, and that of the test set (0.01 each, see above), which they share.
  EXPECT_DOUBLE_EQ(s.stderr_, std::hypot(std::sqrt((0.09 + 0.01 + 0.16) / 2 / 3), 0.01));
  EXPECT_TRUE(std::isnan(summarise(all[1], "test_mse").stderr_));
  EXPECT_EQ(varying(all), std::vector<std::string>{"rank"});
}

// The draws of `vote` are the seed's own: their error shrinks with more seeds, as the scatter over them does.
TEST(Tables, AnErrorOfDrawsThatTheSeedChoosesIsNoPartOfTheErrorOverSeeds) {
  std::vector<StoredTrial> trials;
  for (int64_t seed = 0; seed < 4; ++seed) {
    trials.push_back(trial(1, seed, 0.1));
    trials.back().values["advantage"] = seed % 2 == 0 ? 0.2 : 0.4;
    trials.back().values["advantage_stderr"] = 0.1;
  }
  // Four values .1 from their mean: a variance of 4 / 3 of .01, over four.
  EXPECT_NEAR(summarise(points(trials)[0], "advantage").stderr_, std::sqrt(0.01 / 3), 4 * 0x1p-53);
}

TEST(Tables, APublishedValueIsFoundByItsColumnsWhateverTheTypeOfTheNumber) {
  const Published table{"test_mse", "best", "", "", {"rank"}, {{{int64_t{1}}, 0.5}, {{8.0}, 0.25}}};
  Study study;
  EXPECT_EQ(published_value(study, table, {{"rank", int64_t{8}}, {"d", int64_t{16}}}), 0.25);
  EXPECT_FALSE(published_value(study, table, {{"rank", int64_t{4}}}));
  EXPECT_FALSE(published_value(study, table, {{"heads", int64_t{1}}}));
  study.fixed["d"] = int64_t{16};  // another width is another experiment
  EXPECT_EQ(published_value(study, table, {{"rank", int64_t{8}}, {"d", int64_t{16}}}), 0.25);
  EXPECT_FALSE(published_value(study, table, {{"rank", int64_t{8}}, {"d", int64_t{32}}}));
}

TEST(Tables, EverySettingThatIsNotTheStudysIsNamedBesideAPublishedValue) {
  const Published table{"test_mse", "best", "", "", {"rank"}, {{{int64_t{1}}, 0.5}}};
  Study study;
  study.grid = {{{"rank"}, {{int64_t{1}}}},
                {{"norm", std::string("heads")},
                 {{std::string("unit"), int64_t{2}}, {std::string("none"), int64_t{4}}}}};
  study.protocol["steps"] = int64_t{3000};
  const auto changed = [&](const Config& config) {
    return fmt::format("{}", fmt::join(changed_settings(study, table, config), ", "));
  };
  EXPECT_EQ(changed({{"rank", int64_t{7}},
                     {"norm", std::string("none")},
                     {"steps", 3000.0},
                     {"attention", std::string("sigmoid")}}),
            "");
  EXPECT_EQ(changed({{"norm", std::string("layer")}, {"heads", int64_t{4}}, {"steps", int64_t{50}}}),
            "norm=layer (the study has unit, none), steps=50 (the study has 3000)");
  study.defaults = {{"attention", std::string("softmax")}, {"steps", int64_t{10}}};
  EXPECT_EQ(changed({{"attention", std::string("sigmoid")}, {"steps", int64_t{3000}}}),
            "attention=sigmoid (the study has softmax)");
  EXPECT_EQ(changed({{"attention", std::string("softmax")}}), "");
}

TEST(Tables, AValueBelowTheBoundIsAFaultAndOneAtTheFloorHasLearnedNoSelection) {
  StoredTrial t = trial(1, 0, 0.10);
  const auto judged = [&](double bound, double floor) {
    t.values["lower_bound"] = bound;
    t.values["no_selection_floor"] = floor;
    return judgement({{}, {t}});
  };
  EXPECT_EQ(judged(0.131, 0.9), "fault of the experiment");
  EXPECT_EQ(judged(0.129, 0.9), "");
  EXPECT_EQ(judged(0.05, 0.129), "");  // a standard error of .01 cannot tell
  t.values["test_mse_stderr"] = 0.0006;
  EXPECT_EQ(judged(0.05, 0.1017), "no better than no selection");
  EXPECT_EQ(judged(0.05, 0.1019), "");
  EXPECT_EQ(judged(0.05, 0), "");                      // the farther of two points needs no selection
  EXPECT_EQ(judgement({{}, {trial(1, 0, 0.1)}}), "");  // no bound, no floor, nothing to say
}

TEST(Tables, AFewTestSequencesJudgeNothing) {
  StoredTrial low = trial(1, 0, 0.10), high = trial(1, 1, 0.49);
  for (StoredTrial* t : {&low, &high}) {
    t->values["lower_bound"] = 0.2;
    t->values["no_selection_floor"] = 0.49;
    t->values["test_mse_stderr"] = 0.001;
  }
  const auto judged = [](const StoredTrial& t, int64_t sequences) {
    return judgement({{{"test_sequences", sequences}}, {t}});
  };
  EXPECT_EQ(judged(low, 63), "");
  EXPECT_EQ(judged(low, 64), "fault of the experiment");
  EXPECT_EQ(judged(high, 63), "");
  EXPECT_EQ(judged(high, 64), "no better than no selection");
}

TEST(Tables, BestIsTheHighestWhereMoreIsBetterAndNothingWhereNeitherIs) {
  const auto best = [](const std::string& metric) {
    Point point;
    for (const double value : {0.4, 0.3, 0.6}) {
      point.trials.emplace_back();
      point.trials.back().values[metric] = value;
    }
    return summarise(point, metric).best;
  };
  for (const char* metric : {"accuracy", "full_accuracy", "recalled", "advantage"})
    EXPECT_EQ(best(metric), 0.6);
  for (const char* metric : {"test_mse", "mse", "loss", "error", "wrong", "voronoi"})
    EXPECT_EQ(best(metric), 0.3);
  for (const char* metric :
       {"temperature", "rank_rel", "effective_rank", "test_mse_stderr", "gate_slope_error"})
    EXPECT_TRUE(std::isnan(best(metric))) << metric;
}

TEST(Tables, ASettingAtItsDefaultIsWrittenOutWhereTheStudyOrAnotherTrialHasAnother) {
  Study study;
  study.defaults = {{"start_scale", 1.0}, {"part", std::string("plain")}};
  StoredTrial plain = trial(1, 0, 0.5), other = trial(1, 1, 0.25);
  Config config = parse_canonical(other.config);
  config["start_scale"] = 2.0;
  other.config = canonical(config);
  const auto said = [&](const std::vector<StoredTrial>& trials) {
    return parse_canonical(with_defaults(study, trials).front().config);
  };
  EXPECT_FALSE(said({plain}).contains("start_scale"));  // nobody speaks of it
  EXPECT_EQ(to_text(said({plain, other}).at("start_scale")), "1");
  EXPECT_FALSE(said({plain, other}).contains("part"));
  study.protocol["start_scale"] = 2.0;
  EXPECT_EQ(to_text(said({plain}).at("start_scale")), "1");
  const Published table{"test_mse", "best", "", "", {"rank"}, {{{int64_t{1}}, 0.5}}};
  EXPECT_EQ(changed_settings(study, table, said({plain})),
            std::vector<std::string>{"start_scale=1 (the study has 2)"});
  EXPECT_EQ(with_defaults(study, {plain}).front().id, plain.id);
}

TEST(Tables, AKeyThatAStudyFixesAtItsDefaultHidesNoPublishedValue) {
  Study study;
  study.fixed = {{"d", int64_t{16}}, {"start_scale", 1.0}};
  Published table;
  table.columns = {"rank"};
  table.rows = {{{int64_t{1}}, 0.5}};
  const Config ours{{"d", int64_t{16}}, {"rank", int64_t{1}}};  // start_scale came later: not there at 1
  EXPECT_FALSE(published_value(study, table, ours));            // a store from before knows no defaults
  study.defaults = {{"start_scale", 1.0}};
  EXPECT_EQ(published_value(study, table, ours), 0.5);
  Config other = ours;
  other["start_scale"] = 2.0;
  EXPECT_FALSE(published_value(study, table, other));
}

TEST(Tables, TrialsThatAnswerZeroAreCountedSinceTheirErrorSaysNothingAboutRank) {
  const auto ended = [](int64_t seed, double error, double scatter) {
    StoredTrial t = trial(1, seed, error);
    t.values["no_selection_floor"] = 0.891;
    t.values["test_mse_stderr"] = scatter;
    return t;
  };
  const StoredTrial dead = ended(0, 1, 1e-8), lives = ended(1, 0.4, 0.001), blind = ended(2, 0.891, 0.0003);
  EXPECT_EQ(judgement({{}, {dead, dead}}), "training died: answers zero");
  EXPECT_EQ(judgement({{}, {dead, lives, blind}}), "training died in 1 of 3");
  EXPECT_EQ(judgement({{}, {blind, lives}}), "");
  EXPECT_EQ(judgement({{}, {blind, blind}}), "no better than no selection");
}

TEST(Tables, TrialsThatAnswerALittleAreNotDead) {
  const auto ended = [](double error, double scatter, double start) {
    StoredTrial t = trial(1, 0, error);
    t.values["no_selection_floor"] = 0.5;
    t.values["test_mse_stderr"] = scatter;
    t.values["start_mse"] = start;
    return t;
  };
  const StoredTrial dead = ended(1, 1e-8, 2.2), lives = ended(0.997, 0.00011, 1.0001);
  EXPECT_EQ(judgement({{}, {dead, dead}}), "training died: answers zero");
  EXPECT_EQ(judgement({{}, {lives, lives}}), "about as good as answering zero");
  EXPECT_EQ(judgement({{}, {dead, lives}}), "training died in 1 of 2");
  EXPECT_EQ(judgement({{}, {lives, ended(0.5, 0.0003, 1.5)}}), "no better than no selection");
  const StoredTrial untrained = ended(1.0001, 0.00011, 1.0001);  // a start of .01, a learning rate of zero
  EXPECT_EQ(judgement({{}, {untrained}}), "about as good as answering zero");
}

TEST(Tables, EqualNumbersDoNotScatterByTheRoundingOfTheirSum) {
  Point point;
  for (int i = 0; i < 3; ++i) {
    point.trials.emplace_back();
    point.trials.back().values["seconds"] = 0.1;
  }
  const Summary s = summarise(point, "seconds");
  EXPECT_EQ(s.mean, 0.1);
  EXPECT_EQ(s.stderr_, 0);
}

TEST(Tables, TheErrorOfNumbersWhoseSquaresOverflowIsFinite) {
  Point point;
  for (const double value : {1e173, 2e173, 3e173}) {
    StoredTrial t;
    t.values["residual_log10"] = value;
    point.trials.push_back(t);
  }
  // A standard deviation of 1e173 over the root of three.
  EXPECT_NEAR(summarise(point, "residual_log10").stderr_ / 1e173, 1 / std::sqrt(3.0), 1e-14);
}

TEST(Tables, ColumnsOfAnExportHaveNoNamesOfSettings) {
  const TempFolder folder;
  const Study study = parse_study(
      "runner = \"fake\"\n[grid]\nrank = [1, 2]\n[protocol]\nsteps = 5\nseeds = 2\n[figure]\nx = \"rank\"\n"
      "[[reference]]\nbudget = \"b\"\nsource = \"s\"\ncolumns = [\"rank\"]\nrows = [[1, 0.5]]\n",
      "fake", "fake.toml");
  Store store(folder / "store", true);
  fill(store, study);
  for (const std::string& id : ids(store, TrialState::pending)) {
    store.claim({id}, "me", "cpu", 100);
    store.finish(id, "me", {false, "", {{"test_mse", 0.25}}, "fp32"}, 2);
  }
  export_store(store, folder / "out", "csv");
  for (const char* file : {"summary.csv", "published.csv"})
    for (const std::string& name : parse_csv(get(folder / "out" / file), file).columns)
      EXPECT_TRUE(name != "n" && name != "kind") << file;  // settings that studies have as columns
}

TEST(Tables, AnExportHasARowATrialAndARowAPublishedValue) {
  const TempFolder folder;
  Study study = fake_study(2, 5, 0);
  study.source +=
      "[published]\nstatistic = \"mean\"\nbudget = \"1,000 steps, x\"\nsource = \"s\"\ncolumns = [\"rank\"]\n"
      "rows = [[1, 0.5], [3, 0.25]]\n";
  study = parse_study(study.source, study.name, study.place);
  Store store(folder / "store", true);
  fill(store, study);
  const std::vector<std::string> all = ids(store, TrialState::pending);
  store.claim({all[0], all[1], all[2]}, "me", "cpu", 100);
  store.finish(all[0], "me", {false, "", {{"test_mse", 0.25}}, "fp32"}, 2);
  store.finish(all[1], "me", {false, "", {{"test_mse", 0.75}}}, 2);
  store.finish(all[2], "me", {true, "diverged, badly", {}}, 1);
  EXPECT_EQ(export_store(store, folder / "out", "csv"),
            (std::vector<std::string>{"trials.csv", "summary.csv", "published.csv", "study.json"}));
  const std::string trials = get(folder / "out/trials.csv");
  EXPECT_EQ(std::count(trials.begin(), trials.end(), '\n'), 9);
  EXPECT_TRUE(
      trials.starts_with("id,study,state,device,precision,attempts,wall_seconds,reason,bias,d,fault,heads,lr,"
                         "norm,pause,rank,seed,steps,test_mse\n" +
                         all[0] + ",fake,done,cpu,fp32,1,2,,true,16,none,1,0.01,unit,0,1,0,5,0.25\n"))
      << trials;
  EXPECT_NE(trials.find("failed,cpu,,1,1,\"diverged, badly\""), std::string::npos);
  EXPECT_EQ(
      get(folder / "out/published.csv"),
      "rank,metric,statistic,published,ours_best,ours_mean,seeds,ratio,budget,source,provenance,changed\n"
      "1,test_mse,mean,0.5,0.25,0.5,2,1,\"1,000 steps, x\",s,published,\n"
      "3,test_mse,mean,0.25,,,0,,\"1,000 steps, x\",s,published,\n");
  EXPECT_EQ(csv_text(study_tables(store).trials), trials);  // the report reads what the files hold
  export_store(store, folder / "out", "jsonl");
  const std::string lines = get(folder / "out/trials.jsonl");
  EXPECT_TRUE(lines.starts_with("{\"attempts\":1,\"config\":{\"bias\":true,"));
  EXPECT_NE(lines.find("\"precision\":\"fp32\""), std::string::npos);
  EXPECT_NE(lines.find("\"precision\":null"), std::string::npos);
}

// What export_tables says to these trials; nothing where it writes them.
std::string refusal(const Study& study, const std::vector<StoredTrial>& trials,
                    const std::filesystem::path& folder, const std::string& format = "csv") {
  try {
    export_tables(study, trials, folder, format);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.place(), "--to " + folder.string());
    EXPECT_EQ(error.advice(), "another --to, or --force to replace what is there");
    return error.message();
  }
}

TEST(Tables, AnExportLosesNoTrialsOfAnotherOne) {
  const TempFolder folder;
  const Study study = fake_study(1, 5, 0);
  Study other = study;
  other.name = "other";
  std::vector<StoredTrial> three{trial(1, 0, 0.5), trial(2, 0, 0.25), trial(4, 0, 0.125)};
  for (StoredTrial& t : three) t.study = "fake";
  const std::vector<StoredTrial> two{three[0], three[1]};
  for (const char* format : {"csv", "jsonl"}) {
    const std::filesystem::path out = folder / format;
    EXPECT_EQ(refusal(study, two, out, format), "");    // a new folder
    EXPECT_EQ(refusal(study, three, out, format), "");  // more
    EXPECT_EQ(refusal(study, three, out, format), "");  // the same again
    const std::string before = get(out / fmt::format("trials.{}", format));
    EXPECT_EQ(refusal(study, two, out, format),
              "this folder holds tables of 3 trials of this study, and 1 of them would be lost");
    EXPECT_EQ(refusal(study, two, out, format == std::string("csv") ? "jsonl" : "csv"),
              "this folder holds tables of 3 trials of this study, and 1 of them would be lost");
    std::vector<StoredTrial> again = three;
    again[2].state = TrialState::pending;
    EXPECT_EQ(refusal(study, again, out, format),
              "this folder holds tables of 3 trials of this study, and 1 of them would be lost");
    EXPECT_EQ(refusal(other, three, out, format),
              "this folder holds tables of the study fake, not of other: 3 trials would be lost");
    EXPECT_EQ(get(out / fmt::format("trials.{}", format)), before);
    export_tables(study, two, out, format, true);
    EXPECT_NE(get(out / fmt::format("trials.{}", format)), before);
  }
}

TEST(Tables, AnExportGoesIntoNoOtherStore) {
  const TempFolder folder;
  const Study study = fake_study(1, 5, 0);
  Store store(folder / "store", true);
  fill(store, study);
  Study other = study;
  other.name = "other";
  const std::vector<StoredTrial> all = store.trials(), some{all.begin(), all.begin() + 3};
  EXPECT_EQ(refusal(study, some, folder / "store"),
            "the study in this folder has 1 trial that these tables lack");
  EXPECT_EQ(refusal(other, all, folder / "store"), "this folder is that of the study fake, not of other");
  EXPECT_EQ(refusal(study, all, folder / "store"), "");
}

TEST(Tables, ThePlaceOfAnExportIsCalledByItsOption) {
  const TempFolder folder;
  put(folder / "file", "");
  const Error error = error_of([&] { export_tables(fake_study(1, 5, 0), {}, folder / "file", "csv"); });
  EXPECT_EQ(error.place(), "--to " + (folder / "file").string());
  EXPECT_EQ(error.advice(), "choose another --to");
}

TEST(Tables, ThePrecisionIsToldWhereThereWasAChoice) {
  const auto on = [](const char* device, const char* precision, int64_t seed, double rounding) {
    StoredTrial t = trial(1, seed, 0.5);
    t.device = device;
    t.precision = precision;
    if (std::isfinite(rounding)) t.values["tf32_rounding"] = rounding;
    return t;
  };
  const double none = std::nan("");
  EXPECT_EQ(precision_notes(points({on("cpu", "fp32", 0, none), on("cuda", "", 1, none)})),
            std::vector<std::string>{});
  EXPECT_EQ(precision_notes(points({on("cuda", "tf32", 0, 0.0123), on("cuda:1", "tf32", 1, 0.004),
                                    on("cpu", "tf32", 4, none), on("cuda", "fp32", 2, 0.25),
                                    on("cpu", "fp32", 3, none)})),
            (std::vector<std::string>{
                "trained in fp32: 1 trial; TF32 moves a first gradient by 0.25 of what another batch does",
                "trained in tf32: 3 trials; TF32 moves a first gradient by 0.004 to 0.012 of "
                "what another batch does"}));
}

}  // namespace
}  // namespace rankscope::test
