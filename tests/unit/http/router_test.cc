// SPDX-License-Identifier: MIT
#include "weft/http/router.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/http_fixture.h"

namespace {

using namespace weft;
using namespace weft::http;
using test::Answer;
using test::parse_answers;
using test::Talk;

// Answers with its own name.
struct Named {
  std::string name;
  Task<void> operator()(const Request&, Response& response) {
    response.body(name);
    co_return;
  }
};

struct HttpRouter : testing::Test {
  Answer ask(std::string_view method, std::string_view path) {
    std::string bytes(method);
    bytes.append(" ").append(path).append(" HTTP/1.1\r\nHost: a\r\n\r\n");
    std::vector<Answer> answers = parse_answers(Talk{}(routes, bytes), method == "HEAD");
    EXPECT_EQ(answers.size(), 1u);
    return answers.empty() ? Answer{} : answers[0];
  }
  std::string get(std::string_view path) {
    Answer answer = ask("GET", path);
    return answer.status == 200 ? answer.body : std::to_string(answer.status);
  }
  Router routes;
};

TEST_F(HttpRouter, FindsTheHandlerByItsWords) {
  routes.get("/", Named{"root"});
  routes.get("/a", Named{"a"});
  routes.get("/a/", Named{"a/"});
  routes.get("/a/b", Named{"a/b"});
  EXPECT_EQ(get("/"), "root");
  EXPECT_EQ(get("/a"), "a");
  EXPECT_EQ(get("/a/"), "a/");
  EXPECT_EQ(get("/a/b"), "a/b");
  EXPECT_EQ(get("/a/b/"), "404");
  EXPECT_EQ(get("/a/c"), "404");
  EXPECT_EQ(get("/A"), "404");
  EXPECT_EQ(get("/a?b=/a/b"), "a");
  EXPECT_EQ(get("//a"), "404");
}

TEST_F(HttpRouter, AWordGoesBeforeAParameterAndThatBeforeTheRest) {
  routes.get("/x/new", Named{"word"});
  routes.get("/x/{id}", [](const Request& request, Response& response) -> Task<void> {
    response.body("id " + request.parameter("id"));
    co_return;
  });
  routes.get("/x/{id}/edit", [](const Request& request, Response& response) -> Task<void> {
    response.body("edit " + request.parameter("id"));
    co_return;
  });
  routes.get("/x/{path...}", [](const Request& request, Response& response) -> Task<void> {
    response.body("rest " + request.parameter("path"));
    co_return;
  });
  EXPECT_EQ(get("/x/new"), "word");
  EXPECT_EQ(get("/x/42"), "id 42");
  EXPECT_EQ(get("/x/new/edit"), "edit new");  // the word has no such child: back to the parameter
  EXPECT_EQ(get("/x/42/edit"), "edit 42");
  EXPECT_EQ(get("/x/42/delete"), "rest 42/delete");
  EXPECT_EQ(get("/x/"), "rest ");
}

TEST_F(HttpRouter, ParametersAreDecodedWordByWord) {
  routes.get("/x/{id}", [](const Request& request, Response& response) -> Task<void> {
    response.body(request.parameter("id"));
    co_return;
  });
  EXPECT_EQ(get("/x/a%20b"), "a b");
  EXPECT_EQ(get("/x/a%2Fb"), "a/b");
  EXPECT_EQ(get("/%78/y"), "y");
  EXPECT_EQ(get("/x/%zz"), "404");
  EXPECT_EQ(get("/x/%4"), "404");
}

TEST_F(HttpRouter, MethodsAreToldApart) {
  routes.get("/a", Named{"get"});
  routes.post("/a", Named{"post"});
  EXPECT_EQ(ask("POST", "/a").body, "post");
  Answer answer = ask("DELETE", "/a");
  EXPECT_EQ(answer.status, 405);
  EXPECT_EQ(answer.field("allow"), "GET, HEAD, POST");
  answer = ask("OPTIONS", "/a");
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.field("allow"), "GET, HEAD, POST");
  answer = ask("HEAD", "/a");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.field("content-length"), "3");
  EXPECT_EQ(ask("PROPFIND", "/a").status, 405);
}

// RFC 9110, 9.3.7.
TEST_F(HttpRouter, OptionsOfAStarIsAboutTheWholeServer) {
  EXPECT_EQ(ask("OPTIONS", "*").status, 204);
  routes.get("/a", Named{"get"});
  routes.post("/a/{b}", Named{"post"});
  routes.del("/c/{rest...}", Named{"delete"});
  Answer answer = ask("OPTIONS", "*");
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.field("allow"), "GET, HEAD, POST, DELETE");
  EXPECT_EQ(ask("GET", "*").status, 400);
}

TEST_F(HttpRouter, MiddlewaresRunInOrderAndMayAnswer) {
  std::vector<std::string> order;
  routes.use([&](const Request&, Response& response, Next next) -> Task<void> {
    order.push_back("first");
    co_await next();
    order.push_back("first again");
    response.set_header("x-status", std::to_string(response.status()));
  });
  routes.use([&](const Request& request, Response& response, Next next) -> Task<void> {
    order.push_back("second");
    if (request.path() == "/secret") {
      response.status(401);
      co_return;
    }
    co_await next();
  });
  routes.get("/a", Named{"a"});
  routes.get("/secret", Named{"secret"});
  EXPECT_EQ(ask("GET", "/a").field("x-status"), "200");
  EXPECT_EQ(order, (std::vector<std::string>{"first", "second", "first again"}));
  EXPECT_EQ(ask("GET", "/secret").field("x-status"), "401");
  EXPECT_EQ(ask("GET", "/nothing").field("x-status"), "404");
}

TEST_F(HttpRouter, PatternsThatAreMalformedAreRefused) {
  routes.get("/a/{id}", Named{""});
  EXPECT_THROW(routes.get("a", Named{""}), UsageError);
  EXPECT_THROW(routes.get("", Named{""}), UsageError);
  EXPECT_THROW(routes.get("/a/{}", Named{""}), UsageError);
  EXPECT_THROW(routes.get("/a/{id", Named{""}), UsageError);
  EXPECT_THROW(routes.get("/a/x{id}", Named{""}), UsageError);
  EXPECT_THROW(routes.get("/a/{other}", Named{""}), UsageError);
  EXPECT_THROW(routes.get("/a/{rest...}/b", Named{""}), UsageError);
  EXPECT_THROW(routes.get("/a/{id}", Named{""}), UsageError);
}

TEST_F(HttpRouter, AParameterThatIsNotThereIsAMistake) {
  routes.get("/a/{id}", [](const Request& request, Response& response) -> Task<void> {
    EXPECT_THROW(response.body(request.parameter("name")), UsageError);
    co_return;
  });
  EXPECT_EQ(ask("GET", "/a/1").status, 200);
}

TEST_F(HttpRouter, QueryValuesAreDecoded) {
  routes.get("/", [](const Request& request, Response& response) -> Task<void> {
    response.body(request.query_value("q").value_or("none"));
    co_return;
  });
  EXPECT_EQ(get("/?q=a+b%26c&q=second"), "a b&c");
  EXPECT_EQ(get("/?x=1&q"), "");
  EXPECT_EQ(get("/?x=1"), "none");
  EXPECT_EQ(get("/?%71=escaped"), "escaped");
}

}  // namespace
