// SPDX-License-Identifier: MIT
// weft on Qt: an echo server of QTcpServer and QTcpSocket, whose signals are awaited.
//
// Run: build/release/examples/23_qt_echo
// See: two clients that are served side by side, a button that is pressed, and the server's end.
#include <QCoreApplication>
#include <QHostAddress>
#include <QTcpServer>
#include <QTcpSocket>
#include <QTimer>
#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "weft/adapt/qt.h"
#include "weft/weft.h"

using namespace weft;
using namespace std::chrono_literals;

// [echo]
// Returns: what there is to read; nothing at the end of the stream.
Task<QByteArray> read_some(QTcpSocket& socket) {
  // A signal is an edge: look first, or wait for something that has happened already.
  while (socket.bytesAvailable() == 0) {
    if (socket.state() != QAbstractSocket::ConnectedState) co_return QByteArray();
    co_await any_of(qt_signal(&socket, &QTcpSocket::readyRead),
                    qt_signal(&socket, &QTcpSocket::disconnected));
  }
  co_return socket.readAll();
}

Task<> serve(std::unique_ptr<QTcpSocket> socket) {
  while (true) {
    QByteArray bytes = co_await read_some(*socket);
    if (bytes.isEmpty()) co_return;
    socket->write(bytes);
  }
}

Task<> accept_all(QTcpServer& server, Nursery& clients) {
  while (true) {
    while (!server.hasPendingConnections()) {
      co_await qt_signal(&server, &QTcpServer::newConnection);
    }
    clients.start(serve(std::unique_ptr<QTcpSocket>(server.nextPendingConnection())));
  }
}
// [/echo]

Task<QByteArray> say(quint16 port, QByteArray text) {
  QTcpSocket socket;
  socket.connectToHost(QHostAddress::LocalHost, port);
  co_await qt_signal(&socket, &QTcpSocket::connected);
  socket.write(text);
  QByteArray reply;
  while (reply.size() < text.size()) reply += co_await read_some(socket);
  co_return reply;
}

Task<int> async_main() {
  QTcpServer server;
  if (!server.listen(QHostAddress::LocalHost)) co_return 1;
  auto body = [&](Nursery& clients) -> Task<NurseryEnd> {
    clients.start(accept_all(server, clients));
    auto [first, second] =
        co_await all_of(say(server.serverPort(), "hello"), say(server.serverPort(), "world"));
    std::printf("client: %s\nclient: %s\n", first.constData(), second.constData());
    co_return cancel;
  };
  co_await with_nursery(body);
  std::printf("server: closed\n");

  // Any signal will do for a button that is pressed.
  QTimer button;
  button.setSingleShot(true);
  button.start(10);
  // [any_of]
  auto [finished, pressed] = co_await any_of(sleep_for(1h), qt_signal(&button, &QTimer::timeout));
  std::printf("%s\n", pressed ? "cancelled by the button" : "finished");
  // [/any_of]
  co_return 0;
}

int main(int argc, char** argv) {
  QCoreApplication app(argc, argv);
  return run(app, async_main());
}
