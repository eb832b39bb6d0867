// SPDX-License-Identifier: MIT
#include "arguments.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace weft::tool;

enum class Colour { red, green };

class Arguments : public ::testing::Test {
 protected:
  Arguments() {
    line.operand("where from", text("FROM", from));
    line.operand("where to", text("TO", to));
    line.option('n', "number", "how many", number<unsigned>("N", count, 1, 10));
    line.option('c', "colour", "of what kind",
                choice<Colour>(colour, {{"red", Colour::red}, {"green", Colour::green}}));
    line.option('l', "loud", "with noise", flag(loud));
    line.option('x', "extra", "more noise", flag(extra));
    line.option(0, "word", "one of several", texts("WORD", words));
    line.option('t', "time", "how long", duration("TIME", time));
    line.note("That is all.");
  }

  bool read(std::vector<std::string_view> given) { return line.read(given); }
  std::string refused(std::vector<std::string_view> given) {
    try {
      static_cast<void>(line.read(given));
    } catch (const BadUsage& error) {
      return error.what();
    }
    return "nothing was refused";
  }

  std::string from, to = "here";
  unsigned count = 3;
  Colour colour = Colour::green;
  bool loud = false, extra = false;
  std::vector<std::string> words;
  std::optional<std::chrono::milliseconds> time;
  CommandLine line{"tool copy", "Copies things."};
};

TEST_F(Arguments, TheFirstOperandIsFoundBehindOptionsOfEveryForm) {
  auto first = [&](std::vector<std::string_view> given) { return line.first_operand(given); };
  EXPECT_EQ(first({"a", "--loud"}), 0u);
  EXPECT_EQ(first({"--number", "4", "--colour=red", "-lx", "-n5", "-lc", "green", "a", "b"}), 7u);
  EXPECT_EQ(first({"-l", "-", "a"}), 1u);
  EXPECT_EQ(first({"--loud"}), 1u);
  EXPECT_EQ(first({"-l", "--number"}), 2u) << "its value is missing";
  EXPECT_EQ(first({"-l", "--", "a"}), 3u);
  EXPECT_EQ(first({"--help", "a"}), 2u);
  EXPECT_EQ(first({"--unknown", "a"}), 2u);
  EXPECT_EQ(first({"-lq", "a"}), 2u);
  EXPECT_EQ(count, 3u) << "nothing is taken";
}

TEST_F(Arguments, EveryFormOfAnOption) {
  EXPECT_TRUE(read({"--number", "4", "a", "--colour=red", "-lx", "b"}));
  EXPECT_EQ(count, 4u);
  EXPECT_EQ(colour, Colour::red);
  EXPECT_TRUE(loud && extra);
  EXPECT_EQ(from + to, "ab");
  EXPECT_TRUE(read({"-n5", "a", "-lc", "green", "-t", "2.5s"}));
  EXPECT_EQ(count, 5u);
  EXPECT_EQ(colour, Colour::green);
  EXPECT_EQ(time, std::chrono::milliseconds(2500));
}

TEST_F(Arguments, WhatIsNotGivenStaysAsItWas) {
  EXPECT_TRUE(read({"a"}));
  EXPECT_EQ(to, "here");
  EXPECT_EQ(count, 3u);
  EXPECT_FALSE(loud || extra || time);
}

TEST_F(Arguments, RepeatedTextsAreKeptInOrderAndMayBeginWithADash) {
  EXPECT_TRUE(read({"a", "--word", "-1", "--word=two=2"}));
  EXPECT_EQ(words, (std::vector<std::string>{"-1", "two=2"}));
}

TEST_F(Arguments, BehindTwoDashesAndAsOneDashThereAreOperands) {
  EXPECT_TRUE(read({"-l", "--", "--number", "-"}));
  EXPECT_EQ(from + to, "--number-");
  EXPECT_EQ(count, 3u);
  EXPECT_TRUE(read({"-", "x"}));
  EXPECT_EQ(from + to, "-x");
}

TEST_F(Arguments, HelpIsAskedForBeforeWhatIsMissingIsMissed) {
  EXPECT_FALSE(read({"--help"}));
  EXPECT_FALSE(read({"a", "-h"}));
  EXPECT_TRUE(read({"--", "--help"}));
}

TEST_F(Arguments, WhatIsWrongIsSaidInOneLineWithWhatToDo) {
  EXPECT_EQ(refused({}), "tool copy: FROM is missing: see tool copy --help");
  EXPECT_EQ(refused({"a", "b", "c"}), "tool copy: 'c' is one word too many: see tool copy --help");
  EXPECT_EQ(refused({"a", "--numbre", "3"}),
            "tool copy: there is no option --numbre: did you mean --number?");
  EXPECT_EQ(refused({"a", "--zzzzzz"}),
            "tool copy: there is no option --zzzzzz: see tool copy --help");
  EXPECT_EQ(refused({"a", "-lz"}), "tool copy: there is no option -z: see tool copy --help");
  EXPECT_EQ(refused({"a", "--loud=yes"}), "tool copy: --loud takes no value");
  EXPECT_EQ(refused({"a", "--number"}), "tool copy: --number wants a value: --number N");
  EXPECT_EQ(refused({"a", "-n"}), "tool copy: -n wants a value: -n N");
  EXPECT_EQ(refused({"a", "-c", "blue"}), "tool copy: -c 'blue': one of red|green is wanted");
  for (std::string_view number : {"", "0", "11", "-1", "4 ", "4x", " 4", "99999999999999999999"}) {
    EXPECT_EQ(refused({"a", "-n", number}),
              "tool copy: -n '" + std::string(number) + "': a number from 1 to 10 is wanted");
  }
  for (std::string_view time :
       {"", "0", "-1", "nan", "inf", "s", "1 s", "1d", "1e99", "0.0001ms", "8761h"}) {
    EXPECT_EQ(refused({"a", "-t", time}), "tool copy: -t '" + std::string(time) +
                                              "': a time is wanted, such as 30s, 500ms or 2m");
  }
  EXPECT_EQ(count, 3u);
  EXPECT_FALSE(time);
}

TEST_F(Arguments, TheHelpIsMadeOfTheTable) {
  EXPECT_EQ(line.help(), R"(usage: tool copy [OPTION]... FROM [TO]
Copies things.

  FROM  where from
  TO    where to (here)

  -n, --number N          how many (3)
  -c, --colour red|green  of what kind (green)
  -l, --loud              with noise
  -x, --extra             more noise
      --word WORD         one of several
  -t, --time TIME         how long
  -h, --help              print this

That is all.
)");
}

// As `weft lock` has it.
class ArgumentsWithCommand : public ::testing::Test {
 protected:
  ArgumentsWithCommand() {
    line.operand("what it is called", text("NAME", name));
    line.option('l', "loud", "with noise", flag(loud));
    line.command("what to run, and its arguments", texts("COMMAND...", command));
  }
  std::string refused(std::vector<std::string_view> given) {
    try {
      static_cast<void>(line.read(given));
    } catch (const BadUsage& error) {
      return error.what();
    }
    return "nothing was refused";
  }

  std::string name;
  bool loud = false;
  std::vector<std::string> command;
  CommandLine line{"tool run", "Runs things."};
};

TEST_F(ArgumentsWithCommand, ItIsTakenAsItIs) {
  std::vector<std::string_view> words = {"a", "--", "ls", "-l", "--help", "--", ""};
  EXPECT_TRUE(line.read(words));
  EXPECT_EQ(name, "a");
  EXPECT_FALSE(loud);
  EXPECT_EQ(command, (std::vector<std::string>{"ls", "-l", "--help", "--", ""}));
}

TEST_F(ArgumentsWithCommand, TwoDashesBeforeTheNameAreNotThoseBeforeTheCommand) {
  std::vector<std::string_view> words = {"-l", "--", "--loud", "--", "b"};
  EXPECT_TRUE(line.read(words));
  EXPECT_EQ(name, "--loud");
  EXPECT_TRUE(loud);
  EXPECT_EQ(command, std::vector<std::string>{"b"});
}

TEST_F(ArgumentsWithCommand, WhatIsMissing) {
  EXPECT_EQ(refused({"a"}), "tool run: -- COMMAND is missing: see tool run --help");
  EXPECT_EQ(refused({"a", "--"}), "tool run: -- COMMAND is missing: see tool run --help");
  EXPECT_EQ(refused({"a", "ls"}), "tool run: 'ls': put -- before the command");
  EXPECT_EQ(refused({"--", "a"}), "tool run: -- COMMAND is missing: see tool run --help");
  EXPECT_EQ(refused({"--"}), "tool run: NAME is missing: see tool run --help");
}

TEST_F(ArgumentsWithCommand, TheHelpShowsWhereItStands) {
  EXPECT_TRUE(line.help().starts_with("usage: tool run [OPTION]... NAME -- COMMAND...\n"))
      << line.help();
}

TEST(Duration, UnitsAndNone) {
  using std::chrono::milliseconds;
  EXPECT_EQ(read_duration("500ms"), milliseconds(500));
  EXPECT_EQ(read_duration("30s"), milliseconds(30'000));
  EXPECT_EQ(read_duration("2m"), milliseconds(120'000));
  EXPECT_EQ(read_duration("1.5h"), milliseconds(5'400'000));
  EXPECT_EQ(read_duration("0.2"), milliseconds(200));
  for (std::string_view none : {"", "m", "2 m", "2M", "-2s", "1s1s", "1s "}) {
    EXPECT_FALSE(read_duration(none)) << none;
  }
}

TEST(Duration, IsShownAsItIsGiven) {
  for (std::string_view shown : {"500ms", "30s", "2m", "1h", "90s", "1500ms"}) {
    EXPECT_EQ(to_string(read_duration(shown).value()), shown);
  }
}

TEST(Nearest, IsASlipAwayOrNothing) {
  const std::vector<std::string_view> names = {"serve", "get", "top"};
  EXPECT_EQ(nearest("srve", names), "serve");
  EXPECT_EQ(nearest("serves", names), "serve");
  EXPECT_EQ(nearest("gte", names), "get");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest("abcdef", names), "");
}

}  // namespace
