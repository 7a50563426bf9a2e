#include "report/study_results.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/json.h"
#include "base/table.h"
#include "support/source_tree.h"
#include "support/temporary_folder.h"

namespace rankscope {
namespace {
namespace fs = std::filesystem;

class StudyFolder : public testing::Test {
 protected:
  void SetUp() override {
    fs::copy(test::fixtures() / "study", folder_.path() / "study", fs::copy_options::recursive);
  }
  fs::path file(const std::string& name) const { return folder_.path() / "study" / name; }
  StudyResults read() const { return read_study(folder_.path() / "study"); }
  static Json json(const StudyResults& study) {
    std::string out;
    write_study(study, [&](std::string_view piece) { out += piece; });
    return Json::parse(out);
  }

  TemporaryFolder folder_;
};

TEST_F(StudyFolder, IsReadWhole) {
  const StudyResults study = read();
  EXPECT_EQ(study.title, "Rank against depth");
  EXPECT_EQ(study.figure.by, std::vector<std::string>{"layers"});
  EXPECT_EQ(study.figure.bound, "lower_bound");
  EXPECT_EQ(study.trials.rows.size(), 24u);
  EXPECT_EQ(study.published.columns, (std::vector<std::string>{"rank", "layers", "value", "note", "kind"}));
  EXPECT_EQ(study.published.rows.size(), 8u);  // another metric's value is left out
  EXPECT_EQ(study.published.rows[0],
            (std::vector<std::string>{"1", "1", "0.8", "100,000 steps", "published"}));
  EXPECT_EQ(study.curves.size(), 23u);  // one trial has not begun
  EXPECT_EQ(study.curves.at("t001").step.size(), 8u);
}

TEST_F(StudyFolder, AReferenceIsNotCalledPublishedAndAnotherBudgetIsTold) {
  std::ofstream(file("published.csv")) << "rank,layers,metric,published,kind,changed\n"
                                          "1,1,test_mse,0.1,reference,steps=50 (the study has 3000)\n"
                                          "2,1,test_mse,0.2,published,\n";
  const Json data = json(read());
  EXPECT_EQ(data["published"]["rows"][0].back(), "reference");
  EXPECT_EQ(data["published"]["rows"][1].back(), "published");
  EXPECT_EQ(data["changed"], Json::array({"steps=50 (the study has 3000)"}));
}

TEST_F(StudyFolder, ALineThatIsBeingWrittenIsLeftOut) {
  EXPECT_EQ(read().curves.at("t022").step, (std::vector<double>{25, 50, 75}));
}

TEST_F(StudyFolder, BecomesNumbersWhereTheyAreNumbers) {
  const Json data = json(read());
  EXPECT_EQ(data["trials"][0][0], "t001");
  const auto at = [&](const char* name) {
    return static_cast<size_t>(std::find(data["columns"].begin(), data["columns"].end(), name) -
                               data["columns"].begin());
  };
  EXPECT_TRUE(data["trials"][0][at("test_mse")].is_number());
  EXPECT_TRUE(data["trials"][0][at("task")].is_string());
  EXPECT_TRUE(data["trials"][22][at("test_mse")].is_null());
  EXPECT_EQ(data["states"], (Json{{"done", 21}, {"failed", 1}, {"pending", 1}, {"running", 1}}));
}

TEST_F(StudyFolder, ANewerSchemaIsRefused) {
  Json about = read_json(file("study.json"));
  about["schema"] = kResultSchema + 1;
  std::ofstream(file("study.json")) << about;
  EXPECT_THROW(read(), Error);
}

TEST_F(StudyFolder, AnIdThatLooksLikeANumberStaysAnId) {
  std::ofstream(file("trials.csv")) << "id,state,rank,layers\n1e5,done,1,1\n";
  EXPECT_EQ(json(read())["trials"][0][0], "1e5");
}

TEST_F(StudyFolder, AnIdCannotLeaveTheFolder) {
  for (const char* id : {"../x", "a/b", "", "..", "a.b"}) {
    std::ofstream(file("trials.csv")) << "id,state,rank,layers\n" << id << ",done,1,1\n";
    EXPECT_THROW(read(), Error) << id;
  }
}

TEST_F(StudyFolder, BeforeTheFirstResultThereIsNoColumnForIt) {
  std::ofstream(file("trials.csv")) << "id,state,rank,layers\nt001,running,1,1\n";
  EXPECT_EQ(json(read())["states"], (Json{{"running", 1}}));
}

TEST_F(StudyFolder, WhatTheFigureNeedsMustBeThere) {
  std::ofstream(file("trials.csv")) << "id,state,layers\nt001,done,1\n";
  EXPECT_THROW(read(), Error);
  std::ofstream(file("study.json")) << R"({"title": "x"})";
  EXPECT_THROW(read(), Error);
}

TEST_F(StudyFolder, WhatWasPublishedOfAnotherExperimentIsLeftOut) {
  std::ofstream(file("trials.csv")) << "id,state,rank,layers,lr,test_mse\nt001,done,1,1,0.01,0.5\n";
  std::ofstream(file("published.csv")) << "rank,layers,lr,metric,published\n"
                                          "1,1,0.01,test_mse,0.1\n2,1,,test_mse,0.2\n4,1,0.5,test_mse,0.4\n";
  const StudyResults study = read();
  ASSERT_EQ(study.published.rows.size(), 2u);  // ours, and one that says nothing of its rate
  EXPECT_EQ(study.published.rows[1][2], "0.2");
}

TEST_F(StudyFolder, ACurveHoldsWhateverWasLogged) {
  std::ofstream(file("trials/t001/curve.jsonl"))
      << "{\"step\": 1, \"accuracy\": 0.5, \"note\": \"x\"}\n{\"step\": 2, \"loss\": 3}\n";
  const Json curve = json(read())["curves"]["t001"];
  EXPECT_EQ(curve, Json::parse(R"({"step": [1, 2], "accuracy": [0.5, null], "loss": [null, 3]})"));
}

TEST_F(StudyFolder, ALongCurveIsThinnedAndKeepsItsEnd) {
  std::ofstream curve(file("trials/t001/curve.jsonl"));
  for (int i = 1; i <= 5000; ++i) curve << "{\"step\": " << i << ", \"loss\": 1}\n";
  curve.close();
  const StudyCurve read_back = read().curves.at("t001");
  EXPECT_EQ(read_back.step.size(), 400u);
  EXPECT_EQ(read_back.step.front(), 1);
  EXPECT_EQ(read_back.step.back(), 5000);
}

}  // namespace
}  // namespace rankscope
