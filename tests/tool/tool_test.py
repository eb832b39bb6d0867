#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: tool_test.py <weft, built> [unittest argument]...

The command weft as its users have it: started, spoken to by curl and by sockets, signalled, stopped, killed, and asked for
what it printed.
"""
import contextlib
import http.client
import http.server
import os
import pathlib
import pty
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = ""
SECONDS = 60  # until a test gives up: a sanitized build on a busy machine gets there, too
LARGE = 16 * 1024 * 1024  # more than sockets hold


def weft(*words, **more):
    """Runs it to its end."""
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=SECONDS, **more)


def curl(*words):
    return subprocess.run(["curl", "-sS", "--noproxy", "*", *words], capture_output=True, timeout=SECONDS)


def status_of(*words):
    return curl("-o", "/dev/null", "-w", "%{http_code}", *words).stdout.decode()


class Serving:
    """weft serve, from its first line to its end."""

    def __init__(self, directory, *words, port=0, under=()):
        self.process = subprocess.Popen([*under, PROGRAM, "serve", str(directory), "--port", str(port), *words],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.greeting = self.process.stdout.readline()
        found = re.search(r"(https?)://(.*):(\d+)/", self.greeting)
        if not found:
            raise AssertionError(f"no URL in {self.greeting!r}: {self.process.communicate()}")
        self.url = found.group(0)
        self.port = int(found.group(3))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, how=signal.SIGTERM):
        """Returns its exit code, and what it printed behind the greeting."""
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, out, err

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS)

    def certificate(self):
        """As openssl's client is shown it, PEM."""
        shown = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{self.port}"],
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS).stdout
        return shown[shown.index(b"-----BEGIN"):shown.index(b"-----END")] + b"-----END CERTIFICATE-----\n"

    def ask_and_wait(self, target):
        """Asks, and reads the first bytes of the answer, but no more."""
        peer = self.connect()
        peer.sendall(f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        return peer, peer.recv(1000)

    def wait_until_it_stops_listening(self):
        while True:
            try:
                self.connect().close()
            except ConnectionRefusedError:
                return
            except ConnectionResetError:
                pass  # it was in the backlog when the listener closed


class ToolTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        outside = pathlib.Path(directory.name)
        cls.www = outside / "www"
        (cls.www / "sub").mkdir(parents=True)
        (cls.www / "a.txt").write_text("warp and weft\n")
        (cls.www / "sub" / "index.html").write_text("<p>the index</p>\n")
        (cls.www / ".hidden").write_text("hidden\n")
        (outside / "secret").write_text("secret\n")
        (cls.www / "link").symlink_to("../secret")
        cls.large = os.urandom(1024) * (LARGE // 1024)
        (cls.www / "large.bin").write_bytes(cls.large)

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.root = pathlib.Path(directory.name)

    def serve(self, *words, **more):
        return Serving(self.www, *words, **more)

    def says(self, ran, code, text):
        """It ended with this code, and this one line."""
        self.assertEqual((ran.returncode, ran.stderr, ran.stdout), (code, text + "\n", ""))


class Help(ToolTest):
    def test_of_each_command_is_as_written_down(self):
        for words, name in ([], "weft"), (["serve"], "serve"), (["get"], "get"), (["lock"], "lock"), \
                (["lock", "ls"], "lock_ls"), (["lock", "show"], "lock_show"), (["lock", "revoke"], "lock_revoke"):
            for how in "--help", "-h":
                ran = weft(*words, how)
                self.assertEqual((ran.returncode, ran.stderr), (0, ""))
                self.assertEqual(ran.stdout, (HERE / "help" / f"{name}.txt").read_text())

    def test_version(self):
        self.assertRegex(weft("--version").stdout, r"\Aweft \d+\.\d+\.\d+\n\Z")

    def test_bad_usage_is_one_line_and_2(self):
        self.says(weft(), 2, "weft: a command is missing: see weft --help")
        self.says(weft("srve"), 2, "weft: there is no command 'srve': did you mean serve?")
        self.says(weft("--verbose"), 2, "weft: there is no option '--verbose': see weft --help")
        self.says(weft("serve", "--prot", "1"), 2, "weft serve: there is no option --prot: did you mean --port?")
        self.says(weft("serve", "--port", "http"), 2,
                  "weft serve: --port 'http': a number from 0 to 65535 is wanted")
        self.says(weft("serve", "--driver", "kqueue"), 2,
                  "weft serve: --driver 'kqueue': one of auto|io_uring|epoll|poll is wanted")
        self.says(weft("serve", "--host", "here"), 2,
                  "weft serve: --host 'here': an IP address is wanted, such as 127.0.0.1")
        self.says(weft("get"), 2, "weft get: URL is missing: see weft get --help")
        self.says(weft("get", "-H", "nothing", "http://a/"), 2,
                  "weft get: --header 'nothing': 'NAME: VALUE' is wanted")
        self.assertEqual(weft("get", "example.org").returncode, 2)
        self.says(weft("get", "-H", "Host: x", "http://a/"), 2,
                  "weft get: --header 'Host: x': the URL says which host is asked: leave it out")
        for name in "Connection", "content-length", "Transfer-Encoding", "expect":
            self.says(weft("get", "-H", f"{name}: x", "http://a/"), 2,
                      f"weft get: --header '{name}: x': this field is not yours to send: leave it out")


class Release(unittest.TestCase):
    """Other builds are for debuggers, which want the paths."""

    def test_it_does_not_know_where_it_was_built(self):
        self.assertNotIn(str(HERE.parent.parent).encode(), pathlib.Path(PROGRAM).read_bytes())


class Serve(ToolTest):
    def test_files_listings_and_what_is_not_there(self):
        with self.serve() as server:
            self.assertEqual(curl(server.url + "a.txt").stdout, b"warp and weft\n")
            self.assertEqual(curl(server.url + "sub/").stdout, b"<p>the index</p>\n")
            self.assertIn(b"large.bin", curl(server.url).stdout)
            self.assertEqual(status_of(server.url + "nothing"), "404")
            self.assertEqual(status_of("-X", "POST", server.url + "a.txt"), "405")
            self.assertEqual(status_of("-I", server.url + "a.txt"), "200")
            self.assertEqual(curl(server.url + "large.bin").stdout, self.large)

    def test_a_range(self):
        with self.serve() as server:
            self.assertEqual(curl("-r", "5-7", server.url + "a.txt").stdout, b"and")
            self.assertEqual(status_of("-r", "5-7", server.url + "a.txt"), "206")
            self.assertEqual(status_of("-r", "99-", server.url + "a.txt"), "416")

    def test_nothing_leaves_the_directory(self):
        with self.serve() as server:
            for path in "../secret", "sub/../../secret", "%2e%2e/secret", "..%2fsecret", "link", ".hidden":
                self.assertEqual(status_of("--path-as-is", server.url + path), "404", path)

    def test_every_driver_and_what_the_first_line_says(self):
        for driver in "io_uring", "epoll", "poll":
            for workers in 1, 3:
                with self.serve("--driver", driver, "--workers", str(workers)) as server:
                    threads = f"{workers} worker" + ("s" if workers > 1 else "")
                    self.assertEqual(server.greeting, f"serving {self.www} at http://127.0.0.1:{server.port}/ "
                                                      f"({driver}, {threads}); Ctrl-C ends it\n")
                    for _ in range(20):
                        self.assertEqual(status_of(server.url + "a.txt"), "200")
                    self.assertEqual(server.end()[0], 0)

    def test_a_line_per_request_unless_quiet(self):
        with self.serve() as server:
            curl(server.url + "a.txt", server.url + "nothing")
            code, out, err = server.end()
            self.assertEqual((code, err), (0, ""))
            lines = out.splitlines()
            self.assertEqual(len(lines), 2, out)
            self.assertRegex(lines[0], r'^127\.0\.0\.1:\d+ - - \[.*\] "GET /a\.txt HTTP/1\.1" 200 14$')
            self.assertRegex(lines[1], r'"GET /nothing HTTP/1\.1" 404 \d+$')
        with self.serve("--quiet") as server:
            curl(server.url + "a.txt")
            self.assertEqual(server.end(), (0, "", ""))

    def ask_at_length(self, server):
        """For 4 MB of log, of which it keeps one."""
        peer = http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)
        with contextlib.closing(peer):
            for _ in range(550):
                peer.request("GET", "/a.txt?" + 7500 * "x")
                self.assertEqual(peer.getresponse().read(), b"warp and weft\n")

    def test_a_log_that_nobody_reads_holds_up_neither_answers_nor_the_end(self):
        with self.serve("--workers", "1") as server:
            self.ask_at_length(server)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(SECONDS), 0)
        with self.serve("--workers", "1") as server:
            self.ask_at_length(server)
            code, out, err = server.end()  # which reads
            self.assertEqual((code, err), (0, ""))
            lines = out.splitlines()
            left_out = re.fullmatch(r"\((\d+) lines were left out: nobody read them\)", lines[-1])
            self.assertEqual(len(lines) - 1 + int(left_out.group(1)), 550)
        with self.serve("--workers", "1") as server:
            server.process.stdout.close()
            self.ask_at_length(server)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(SECONDS), 0)
            server.process.stdout = None  # which communicate() would read

    def test_a_signal_lets_it_finish_its_answers(self):
        for how in signal.SIGTERM, signal.SIGINT:
            with self.serve("--workers", "2") as server:
                peer, got = server.ask_and_wait("/large.bin")
                server.process.send_signal(how)
                server.wait_until_it_stops_listening()
                with peer:
                    while piece := peer.recv(1 << 20):
                        got += piece
                self.assertTrue(got.endswith(self.large))
                self.assertEqual(server.process.wait(SECONDS), 0)

    def test_a_second_signal_ends_it_at_once(self):
        for how in signal.SIGTERM, signal.SIGINT:
            with self.serve() as server:
                peer, _ = server.ask_and_wait("/large.bin")
                with peer:
                    server.process.send_signal(how)
                    server.wait_until_it_stops_listening()
                    self.assertIsNone(server.process.poll())
                    server.process.send_signal(how)
                    # Well before drain_timeout (10 s) would have ended it.
                    self.assertEqual(server.process.wait(8), -how)

    def test_a_signal_that_is_ignored_stays_so(self):
        with self.serve(under=["sh", "-c", "trap '' INT; exec \"$@\"", "sh"]) as server:
            server.process.send_signal(signal.SIGINT)
            for _ in range(3):
                self.assertEqual(status_of(server.url + "a.txt"), "200")
            self.assertEqual(server.end(signal.SIGTERM)[0], 0)

    def test_a_port_that_is_in_use(self):
        for workers in "1", "2":
            with self.serve("--workers", workers) as server:
                for others in "1", "2":
                    ran = weft("serve", str(self.www), "--port", str(server.port), "--workers", others)
                    self.says(ran, 1, f"weft serve: port {server.port} is in use: choose another with --port")

    def test_what_cannot_be_served(self):
        self.says(weft("serve", "nowhere"), 1,
                  "weft serve: there is no directory 'nowhere': name one that is there")
        path = str(self.www / "a.txt")
        self.says(weft("serve", path), 1,
                  f"weft serve: '{path}' is no directory: name the one that it lies in")
        self.says(weft("serve", "--host", "192.0.2.1"), 1,
                  "weft serve: 192.0.2.1 is no address of this machine: choose another with --host")


class Get(ToolTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve("--quiet")
        self.addCleanup(self.server.__exit__)
        self.file = self.root / "got"

    def leftovers(self):
        return sorted(path.name for path in self.root.iterdir())

    def test_to_standard_output(self):
        ran = weft("get", self.server.url + "a.txt")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "warp and weft\n", ""))

    def test_to_a_file_and_off_a_terminal_nothing_is_printed(self):
        ran = weft("get", "-o", str(self.file), self.server.url + "large.bin")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "", ""))
        self.assertEqual(self.file.read_bytes(), self.large)
        mask = os.umask(0)
        os.umask(mask)
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o666 & ~mask)
        self.assertEqual(self.leftovers(), ["got"])

    def test_a_file_that_is_there_is_not_touched_unless_forced(self):
        self.file.write_text("mine\n")
        ran = weft("get", "-o", str(self.file), self.server.url + "a.txt")
        self.says(ran, 1, f"weft get: '{self.file}' is there already: choose another name, "
                          "or overwrite it with --force")
        self.assertEqual(self.file.read_text(), "mine\n")
        self.assertEqual(weft("get", "-fo", str(self.file), self.server.url + "a.txt").returncode, 0)
        self.assertEqual(self.file.read_text(), "warp and weft\n")
        self.assertEqual(weft("get", "-o", "/dev/null", self.server.url + "a.txt").returncode, 0)

    def test_a_file_that_has_come_meanwhile_is_not_touched(self):
        with listening() as (listener, url):
            with subprocess.Popen([PROGRAM, "get", "-o", str(self.file), url], stderr=subprocess.PIPE) as process:
                peer, _ = listener.accept()
                with peer:
                    peer.recv(4096)
                    self.file.write_text("mine\n")
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nyours")
                    self.assertEqual(process.wait(SECONDS), 1)
                self.assertIn(b"is there already", process.stderr.read())
        self.assertEqual(self.file.read_text(), "mine\n")
        self.assertEqual(self.leftovers(), ["got"])

    def test_what_goes_wrong_leaves_no_file_and_forced_the_old_one(self):
        self.file.write_text("mine\n")
        for force in [], ["--force"]:
            target = self.file if force else self.root / "other"
            ran = weft("get", *force, "-o", str(target), self.server.url + "nothing")
            self.says(ran, 3, f"weft get: {self.server.url}nothing: the server answered 404 Not Found")
            with one_answer(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nnot a hundred") as url:
                ran = weft("get", *force, "-o", str(target), url)
            self.assertEqual(ran.returncode, 1)
            self.assertEqual(ran.stderr.count("\n"), 1)
            self.assertEqual(self.leftovers(), ["got"])
        self.assertEqual(self.file.read_text(), "mine\n")

    def test_a_redirect_is_followed(self):
        ran = weft("get", self.server.url + "sub")
        self.assertEqual((ran.returncode, ran.stdout), (0, "<p>the index</p>\n"))

    def test_behind_a_redirect_it_names_whom_it_failed_with(self):
        with listening() as (listener, url):
            port = listener.getsockname()[1]
        with one_answer(f"HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n".encode()) as first:
            self.says(weft("get", first), 1, f"weft get: nobody listens at 127.0.0.1:{port}: look at its host and port")
        with one_answer(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc") as second:
            with one_answer(f"HTTP/1.1 302 Found\r\nLocation: {second}\r\nContent-Length: 0\r\n\r\n".encode()) as first:
                ran = weft("get", first)
                self.assertEqual((ran.returncode, ran.stdout), (1, "abc"))
                self.assertEqual(ran.stderr,
                                 f"weft get: {second}: the connection ended before all of it was there: try again\n")

    def test_header_fields_are_sent(self):
        class Echo(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                self.wfile.write(f"{self.headers['x-warp']} {self.headers['x-weft']}".encode())

            def log_message(self, *_):
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Echo) as server:
            threading.Thread(target=server.handle_request).start()
            ran = weft("get", "-H", "X-Warp: up", "--header=x-weft:across",
                       f"http://127.0.0.1:{server.server_port}/")
        self.assertEqual((ran.returncode, ran.stdout), (0, "up across"))

    def test_a_bar_on_a_terminal(self):
        terminal, theirs = pty.openpty()
        with subprocess.Popen([PROGRAM, "get", "-o", str(self.file), self.server.url + "large.bin"],
                              stderr=theirs, stdout=subprocess.DEVNULL) as process:
            os.close(theirs)
            shown = b""
            with contextlib.suppress(OSError):  # the terminal's end, as Linux tells it
                while piece := os.read(terminal, 4096):
                    shown += piece
            os.close(terminal)
            self.assertEqual(process.wait(SECONDS), 0)
        shown = shown.decode()
        self.assertTrue(shown.startswith("\rgot    0% [>"), shown)
        self.assertRegex(shown, r"\rgot  100% \[=+\] 16\.0 MiB, .*/s, \d:\d\d\x1b\[K\r\n\Z")
        self.assertLess(max(len(part) for part in shown.split("\r")), 84)

    def test_no_bar_where_the_bytes_go_to_the_terminal_or_when_quiet(self):
        for words in [], ["--quiet", "-o", str(self.file)]:
            terminal, theirs = pty.openpty()
            with subprocess.Popen([PROGRAM, "get", *words, self.server.url + "a.txt"],
                                  stderr=theirs, stdout=theirs) as process:
                os.close(theirs)
                shown = b""
                with contextlib.suppress(OSError):
                    while piece := os.read(terminal, 4096):
                        shown += piece
                os.close(terminal)
                self.assertEqual(process.wait(SECONDS), 0)
            self.assertEqual(shown, b"" if words else b"warp and weft\r\n")

    def test_a_reader_that_leaves(self):
        with subprocess.Popen([PROGRAM, "get", self.server.url + "large.bin"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.read(1)
            process.stdout.close()
            self.assertEqual(process.wait(SECONDS), 1)
            self.assertEqual(process.stderr.read(), b"weft get: cannot write to standard output: Broken pipe\n")

    def test_a_server_that_is_silent_costs_the_timeout(self):
        with listening() as (listener, url):
            ran = weft("get", "--timeout", "0.2", "-o", str(self.file), url)
            self.says(ran, 4, f"weft get: {url}: not there in time: give it more with --timeout")
        self.assertEqual(self.leftovers(), [])

    def test_an_interrupt_leaves_nothing_behind(self):
        for how in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
            with listening() as (listener, url):
                with subprocess.Popen([PROGRAM, "get", "-o", str(self.file), url], stderr=subprocess.PIPE) as process:
                    peer, _ = listener.accept()
                    with peer:
                        peer.recv(1000)
                        self.assertEqual(len(self.leftovers()), 1)
                        process.send_signal(how)
                        self.assertEqual(process.wait(SECONDS), 128 + how)
                    self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(self.leftovers(), [])

    def test_what_nohup_has_had_ignored_does_not_end_it(self):
        with listening() as (listener, url):
            with subprocess.Popen(["sh", "-c", "trap '' HUP; exec \"$@\"", "sh", PROGRAM, "get", url],
                                  stdout=subprocess.PIPE) as process:
                peer, _ = listener.accept()
                with peer:
                    peer.recv(1000)
                    process.send_signal(signal.SIGHUP)
                    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nthere")
                    self.assertEqual(process.communicate(timeout=SECONDS)[0], b"there")
                self.assertEqual(process.returncode, 0)

    def test_a_reader_that_has_stopped_reading_does_not_keep_it(self):
        late = f"weft get: {self.server.url}large.bin: not there in time: give it more with --timeout\n".encode()
        for words, how, code, said in ([], signal.SIGINT, 130, b""), ([], signal.SIGTERM, 143, b""), \
                (["--timeout", "300ms"], None, 4, late):
            read, write = os.pipe()
            with subprocess.Popen([PROGRAM, "get", *words, self.server.url + "large.bin"], stdout=write,
                                  stderr=subprocess.PIPE) as process:
                os.close(write)
                self.assertEqual(len(os.read(read, 1)), 1)  # and not one more
                if how:
                    time.sleep(0.2)  # until the pipe is full
                    process.send_signal(how)
                try:
                    self.assertEqual(process.wait(SECONDS), code)
                finally:
                    os.close(read)
                self.assertEqual(process.stderr.read(), said)

    def test_without_standard_streams(self):
        script = "weft=$1; shift; \"$weft\" get \"$@\" >&-; echo $?; \"$weft\" get -o \"$OUT\" \"$@\" <&- >&- 2>&-; echo $?"
        ran = subprocess.run(["sh", "-c", script, "sh", PROGRAM, self.server.url + "large.bin"], capture_output=True, text=True,
                             env=os.environ | {"OUT": str(self.file)}, timeout=SECONDS)
        self.assertEqual((ran.stdout, ran.stderr),
                         ("1\n0\n", "weft get: cannot write to standard output: Bad file descriptor\n"))
        self.assertEqual(self.file.read_bytes(), self.large)

    def test_a_disk_that_is_full(self):
        self.says(weft("get", "-o", "/dev/full", self.server.url + "large.bin"), 1,
                  "weft get: cannot write '/dev/full': No space left on device")

    def test_nobody_is_there(self):
        with listening() as (listener, url):
            port = listener.getsockname()[1]
        self.says(weft("get", url), 1,
                  f"weft get: nobody listens at 127.0.0.1:{port}: look at its host and port")


    def test_what_ends_too_early(self):
        for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc",
                       b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
                       b"HTTP/1.1 200 OK\r\nCont"):
            with one_answer(answer) as url:
                ran = weft("get", "-o", str(self.file), url)
                self.says(ran, 1, f"weft get: {url}: the connection ended before all of it was there: try again")
                self.assertFalse(self.file.exists())

    def test_proxies(self):
        def through(url, **proxies):
            return subprocess.run([PROGRAM, "get", url], capture_output=True, text=True, timeout=SECONDS,
                                  env=os.environ | proxies)

        self.says(through("http://a/", http_proxy="ftp://b/"), 1,
                  "weft get: the environment names a proxy that is none: write http_proxy, https_proxy and "
                  "all_proxy as http://HOST:PORT")
        with listening() as (listener, url):
            port = listener.getsockname()[1]
        self.says(through("http://a/", http_proxy=url), 1,
                  f"weft get: nobody listens at the proxy 127.0.0.1:{port}: look at its host and port")
        for status, what in (403, "does not let us through to a: ask who runs it, or name the host in no_proxy"), \
                (407, "wants to know who asks: write http://USER:PASSWORD@HOST:PORT into the environment"):
            with one_answer(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode()) as url:
                self.says(through("https://a/", https_proxy=url), 1,
                          f"weft get: the proxy {url[len('http://'):-1]} {what}")

    def test_https_where_nobody_speaks_it(self):
        with one_answer(b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
            host = url[len("http://"):-1]
            self.says(weft("get", f"https://{host}/"), 1,
                      f"weft get: {host} does not speak TLS: look at the port, or ask by http://")


class Tls(ToolTest):
    def test_a_certificate_of_its_own_making(self):
        with self.serve("--tls") as server:
            self.assertTrue(server.url.startswith("https://127.0.0.1:"))
            self.assertIn(", self-signed certificate)", server.greeting)
            # Nobody vouches for it, and it is for this machine alone.
            self.assertEqual(curl(server.url + "a.txt").returncode, 60)
            self.assertEqual(curl("-k", server.url + "a.txt").stdout, b"warp and weft\n")
            self.assertEqual(curl("-k", server.url + "large.bin").stdout, self.large)
            pem = self.root / "own.pem"
            pem.write_bytes(server.certificate())
            for name in "localhost", "127.0.0.1", "[::1]":
                ran = curl("--cacert", str(pem), "--connect-to", f"::127.0.0.1:{server.port}",
                           f"https://{name}:{server.port}/a.txt")
                self.assertEqual((ran.returncode, ran.stdout), (0, b"warp and weft\n"), (name, ran.stderr))
            ran = curl("--cacert", str(pem), "--connect-to", f"::127.0.0.1:{server.port}",
                       f"https://example.org:{server.port}/a.txt")
            self.assertEqual(ran.returncode, 60)
            code, out, _ = server.end()
            self.assertEqual(code, 0)
            self.assertIn("- - no TLS: ", out)  # curl's refusal

    def test_get_of_https(self):
        with self.serve("--tls", "--quiet") as server:
            ran = weft("get", server.url + "a.txt")
            self.assertEqual((ran.returncode, ran.stdout), (1, ""))
            self.assertEqual(ran.stderr, f"weft get: {server.url}a.txt: the server's certificate is self-signed: if it is the right "
                                         "one, name it in SSL_CERT_FILE; if you trust it all the same: --insecure\n")
            pem = self.root / "own.pem"
            pem.write_bytes(server.certificate())
            ran = weft("get", server.url + "a.txt", env=os.environ | {"SSL_CERT_FILE": str(pem)})
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "warp and weft\n", ""))
            ran = weft("get", "--insecure", server.url + "a.txt")
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "warp and weft\n", ""))

    def test_a_certificate_of_the_users(self):
        cert, key = str(self.root / "cert.pem"), str(self.root / "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=a", "-addext",
                        "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        with self.serve("--cert", cert, "--key", key) as server:
            self.assertNotIn("self-signed", server.greeting)
            self.assertEqual(curl("--cacert", cert, server.url + "a.txt").stdout, b"warp and weft\n")
        self.says(weft("serve", "--cert", cert), 2, "weft serve: --cert and --key go together: give both")
        self.says(weft("serve", "--cert", cert, "--key", "nowhere"), 1,
                  f"weft serve: cannot read '{cert}' and 'nowhere': No such file or directory")
        ran = weft("serve", "--cert", key, "--key", key)
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (1, 1))


# A command that says which signals it hears, and how often. (A shell hears of them when what it waits for ends, which has them, too.)
LISTENER = """
import os, signal, sys, time
heard = []
for name in "HUP", "INT", "QUIT", "TERM":
    signal.signal(getattr(signal, "SIG" + name), lambda number, _: heard.append(number))
print("held", os.environ["WEFT_FENCING_TOKEN"], flush=True)
if sys.argv[1] == "read":
    print("got", input(), flush=True)
end = time.monotonic() + 60
while not heard and time.monotonic() < end:
    time.sleep(0.01)
time.sleep(0.3)
print("heard", *heard, flush=True)
sys.exit(9)
"""


# A command that does not end by TERM, and writes down when it lived, on the clock of leases.
STUBBORN = """
import os, signal, sys, time
def note(what):
    os.write(file, f"{what} {time.clock_gettime_ns(time.CLOCK_BOOTTIME)}\\n".encode())
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
signal.signal(signal.SIGTERM, lambda *_: note("term"))
os.write(file, f"process {os.getpid()}\\n".encode())
print("held", os.environ["WEFT_FENCING_TOKEN"], flush=True)
end = time.monotonic() + 60
while time.monotonic() < end:
    note("lives")
    time.sleep(0.005)
"""


class Holding:
    """weft lock with a command of the shell, from that command's first line on."""

    def __init__(self, test, *words, script="echo held $WEFT_FENCING_TOKEN; read -r _", first="held"):
        self.process = subprocess.Popen([PROGRAM, "lock", *words, "--", "sh", "-c", script], env=test.environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        start_new_session=True)
        test.addCleanup(self.forget)
        self.first = first

    # What has lost its holder in a test that fails ends by itself.
    LOOP = "for _ in $(seq 600); do sleep 0.1; done"

    def wait_until_held(self):
        """Returns its token."""
        line = self.process.stdout.readline()
        found = re.fullmatch(self.first + r" (\d+)\n", line)
        if not found:
            raise AssertionError(f"{line!r}: {self.process.communicate()}")
        return int(found.group(1))

    def end(self):
        """Lets the command go on to its end. Returns weft lock's exit code, and what both printed."""
        out, err = self.process.communicate("\n", timeout=SECONDS)
        return self.process.returncode, out, err

    def forget(self):
        if self.process.poll() is None:
            self.process.terminate()  # which its command hears, too
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
            self.process.kill()
        self.process.wait()
        for each in self.process.stdin, self.process.stdout, self.process.stderr:
            each.close()


class Lock(ToolTest):
    def setUp(self):
        super().setUp()
        self.file = self.root / "locks.db"
        self.environment = dict(os.environ, WEFT_LOCK_ENGINE=str(self.file))
        self.listener = self.root / "listener.py"
        self.listener.write_text(LISTENER)

    def lock(self, *words, **more):
        more.setdefault("env", self.environment)
        return weft("lock", *words, start_new_session=True, **more)

    def hold(self, *words, **more):
        holding = Holding(self, *words, **more)
        holding.token = holding.wait_until_held()
        return holding

    def wait_for(self, name, how, count):
        """Until so many do that, by weft lock show. Returns the rows."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            shown = self.lock("show", name)
            self.assertEqual((shown.returncode, shown.stderr), (0, ""))
            if len(re.findall(rf"^{how}  ", shown.stdout, re.M)) == count:
                return shown.stdout.splitlines()[1:]
            time.sleep(0.02)
        self.fail(f"not {count} times {how!r}:\n{shown.stdout}")

    def test_streams_status_and_environment_are_the_commands(self):
        ran = self.lock("a", "--", "sh", "-c", "cat; echo $WEFT_LOCK_NAME; echo more >&2; exit 7", input="in\n",
                        env=dict(self.environment, WEFT_LOCK_NAME="another", WEFT_FENCING_TOKEN="0"))
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (7, "in\na\n", "more\n"))
        self.assertEqual(self.lock("a", "--", "true").returncode, 0)
        self.assertEqual(self.lock("a", "--", "sh", "-c", "kill -USR1 $$").returncode, 128 + signal.SIGUSR1)
        self.assertEqual(self.lock("a", "--", "printf", "%s.", "-n", "--", "", "b c").stdout, "-n.--..b c.")

    def test_the_token_rises(self):
        tokens = [int(self.lock(name, "--", "sh", "-c", "echo $WEFT_FENCING_TOKEN").stdout) for name in "aabab"]
        self.assertEqual(sorted(set(tokens)), tokens)

    def test_those_who_contend_have_it_in_order_one_at_a_time(self):
        log = self.root / "log"
        holder = self.hold("a")
        script = f"echo in $WEFT_FENCING_TOKEN >> {log}; sleep 0.05; echo out >> {log}"
        others = []
        for i in range(3):
            others.append(Holding(self, "--owner", f"number {i}", "a", script=script))
            rows = self.wait_for("a", "waits", i + 1)
        self.assertEqual([row.rsplit("  ", 1)[1] for row in rows[1:]], [f"number {i}" for i in range(3)])
        self.assertFalse(log.exists())
        self.assertEqual(holder.end(), (0, "", ""))
        for other in others:
            self.assertEqual(other.end(), (0, "", ""))
        lines = log.read_text().splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["in", "out"] * 3)
        tokens = [holder.token] + [int(line.split()[1]) for line in lines[::2]]
        self.assertEqual(sorted(set(tokens)), tokens)
        self.assertEqual(self.lock("show", "a").stdout, "nobody holds 'a' or waits for it\n")

    def test_try_is_busy_and_another_name_is_another_lock(self):
        holder = self.hold("a")
        for words in ["--try"], ["--try", "--shared"]:
            self.says(self.lock(*words, "a", "--", "true"), 120,
                      "weft lock: 'a' is held by somebody else: weft lock show 'a' says by whom")
        self.assertEqual(self.lock("--try", "b", "--", "true").returncode, 0)
        self.assertEqual(holder.end()[0], 0)
        self.assertEqual(self.lock("--try", "a", "--", "true").returncode, 0)

    def test_timeout(self):
        holder = self.hold("a")
        begun = time.monotonic()
        self.says(self.lock("--timeout", "300ms", "a", "--", "true"), 124,
                  "weft lock: 'a' was not acquired within 300ms: weft lock show 'a' says why; --timeout gives it more")
        self.assertGreaterEqual(time.monotonic() - begun, 0.3)
        self.assertEqual(len(self.lock("show", "a").stdout.splitlines()), 2)  # nobody is left in the queue
        self.assertEqual(holder.end()[0], 0)

    def expect_no_answer(self, *words):
        """Of this engine, within the time that was given. --try alone is asked for elsewhere: it has a time of its own."""
        for more, time_max, text in (["--timeout", "600ms"], 0.6, "within 600ms: see that it is there; --timeout gives it more"), \
                (["--try", "--timeout", "300ms", "--shared"], 0.3, "within 300ms: it is not known who has the lock"), \
                (["--try"], 2, "within 2s: it is not known who has the lock"):
            if more == ["--try"] and words:
                continue
            begun = time.monotonic()
            ran = self.lock(*words, *more, "a", "--", "echo", "it has run")
            took = time.monotonic() - begun
            self.says(ran, 123, "weft lock: the engine did not answer " + text)
            self.assertGreaterEqual(took, time_max)
            self.assertLess(took, time_max + 1.5)

    def test_the_time_is_for_a_file_that_is_locked_too(self):
        self.assertEqual(self.lock("a", "--", "true").returncode, 0)
        with contextlib.closing(sqlite3.connect(self.file, isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            self.expect_no_answer()
            # Nor is it waited for beyond a signal.
            waiter = Holding(self, "a")
            time.sleep(0.3)
            waiter.process.send_signal(signal.SIGINT)
            begun = time.monotonic()
            self.assertEqual(waiter.process.wait(20), 130)
            self.assertLess(time.monotonic() - begun, 3)
        self.assertEqual(self.lock("--try", "a", "--", "true").returncode, 0)

    def test_the_time_is_for_a_file_that_is_locked_when_it_was_opened(self):
        holder = self.hold("b")
        waiter = Holding(self, "--timeout", "2s", "b")
        self.wait_for("b", "waits", 1)
        begun = time.monotonic()
        with contextlib.closing(sqlite3.connect(self.file, isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            code, out, err = waiter.end()
            self.assertLess(time.monotonic() - begun, 3.5)
        self.assertEqual((code, out, err),
                         (124, "", "weft lock: 'b' was not acquired within 2s: weft lock show 'b' says why; "
                                   "--timeout gives it more\n"))
        self.assertEqual(holder.end()[0], 0)

    def test_the_time_is_for_an_etcd_that_is_silent_or_not_there(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:  # it takes connections, and says nothing
            engine = f"etcd://127.0.0.1:{listener.getsockname()[1]}/test"
            self.expect_no_answer("--engine", engine)
        self.expect_no_answer("--engine", engine)

    def test_the_time_is_for_an_etcd_that_falls_silent_when_it_was_opened(self):
        answer = b'{"header":{"revision":"7"},"succeeded":true}'
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer

        def serve(peer):
            with peer, contextlib.suppress(OSError):
                while asked := peer.recv(65536):
                    if asked.startswith(b"POST /v3/kv/txn "):  # of which version it is
                        peer.sendall(answer)

        def accept(listener):
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=accept, args=(listener,), daemon=True).start()
            self.expect_no_answer("--engine", f"etcd://127.0.0.1:{listener.getsockname()[1]}/test")
            listener.shutdown(socket.SHUT_RDWR)

    def test_shared_ones_run_together_and_nobody_else(self):
        first, second = self.hold("--shared", "a"), self.hold("-s", "a")
        self.assertEqual(self.lock("--try", "--shared", "a", "--", "true").returncode, 0)
        self.assertEqual(self.lock("--try", "a", "--", "true").returncode, 120)
        alone = Holding(self, "a")
        rows = self.wait_for("a", "waits", 1)
        self.assertEqual([row.split()[0] for row in rows], ["shares", "shares", "waits"])
        # It does not wait for ever because others come and share.
        self.assertEqual(self.lock("--try", "--shared", "a", "--", "true").returncode, 120)
        self.assertEqual(first.end()[0] + second.end()[0], 0)
        self.assertGreater(alone.wait_until_held(), second.token)
        self.assertEqual(alone.end()[0], 0)

    def test_ls_and_show_print_who_holds_and_who_waits(self):
        self.assertEqual(len(self.lock("ls").stdout.splitlines()), 1)
        holder = self.hold("--owner", "ann", "orders/42")
        # Another program may have written anything.
        with contextlib.closing(sqlite3.connect(self.file, isolation_level=None)) as file:
            file.execute("UPDATE tickets SET owner = ?", ("ann\n\x1b[2J",))
        other = self.hold("b")
        waiter = Holding(self, "orders/42")
        row = self.wait_for("orders/42", "waits", 1)[0]
        self.assertRegex(row, rf"^holds  {holder.token}  +\d+\.\d s  +1\d\.\d s  +ann\\x0a\\x1b\[2J$")
        title, *rows = self.lock("ls").stdout.splitlines()
        self.assertEqual(re.split("  +", title),
                         ["NAME", "HOLDERS", "WAITING", "TOKEN", "AGE", "LEASE LEFT", "FIRST OWNER"])
        rows = sorted(re.split("  +", row) for row in rows)
        self.assertEqual([row[:4] for row in rows], [["b", "1", "0", str(other.token)],
                                                     ["orders/42", "1", "1", str(holder.token)]])
        self.assertEqual(rows[0][6], f"{socket.gethostname()} weft[{other.process.pid}]: sh")
        for each in holder, other, waiter:
            self.assertEqual(each.end()[0], 0)
        self.assertEqual(len(self.lock("ls").stdout.splitlines()), 1)

    def test_an_owner_is_a_short_line(self):
        for owner in "two\nlines", "o" * 257:
            ran = self.lock("--owner", owner, "a", "--", "true")
            said = "weft lock: --owner: 256 bytes at most, and no control characters\n"
            self.assertEqual((ran.returncode, ran.stderr), (125, said))

    def test_ls_and_show_only_look(self):
        nothing = f": there is no sqlite://{self.file} yet\n"
        for words, said in (["ls"], "there are no locks" + nothing), (["show", "a"], "nobody holds 'a' or waits for it" + nothing):
            ran = self.lock(*words)
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, said, ""))
        own = self.without_set_up(HOME=str(self.root))
        self.assertEqual(self.lock("ls", env=own).returncode, 0)
        self.assertEqual([each.name for each in self.root.iterdir()], ["listener.py"])
        # Nobody has it open: not a file is made.
        self.assertEqual(self.lock("a", "--", "true").returncode, 0)
        before = sorted(each.name for each in self.root.iterdir())
        self.assertEqual(len(self.lock("ls").stdout.splitlines()), 1)
        self.assertEqual(self.lock("show", "a").stdout, "nobody holds 'a' or waits for it\n")
        self.assertEqual(sorted(each.name for each in self.root.iterdir()), before)
        # Somebody is in the midst of a commit: it is not waited for.
        holder = self.hold("a")
        with contextlib.closing(sqlite3.connect(self.file, isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            begun = time.monotonic()
            self.assertIn(f"weft[{holder.process.pid}]", self.lock("ls").stdout)
            self.assertRegex(self.lock("show", "a").stdout, rf"\nholds  {holder.token}  ")
            self.assertLess(time.monotonic() - begun, 4)
        self.assertEqual(holder.end()[0], 0)

    def test_a_signal_is_passed_on_and_the_lock_released(self):
        for how in signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT:
            holder = self.hold("a", script=f"exec {sys.executable} {self.listener} wait")
            holder.process.send_signal(how)
            self.assertEqual(holder.end(), (9, f"heard {how.value}\n", ""))
            self.assertEqual(self.lock("--try", "a", "--", "true").returncode, 0)
        holder = self.hold("a")
        holder.process.terminate()
        holder.process.wait(SECONDS)  # before its input says that it may go on
        self.assertEqual(holder.end(), (128 + signal.SIGTERM, "", ""))
        self.assertEqual(self.lock("--try", "a", "--", "true").returncode, 0)

    def test_a_signal_ends_the_wait(self):
        holder = self.hold("a")
        waiter = Holding(self, "a")
        self.wait_for("a", "waits", 1)
        waiter.process.send_signal(signal.SIGINT)
        self.assertEqual(waiter.end(), (130, "", ""))
        self.assertEqual(len(self.lock("show", "a").stdout.splitlines()), 2)
        self.assertEqual(holder.end()[0], 0)

    def test_a_killed_holder_is_waited_for_until_its_lease_ends(self):
        holder = self.hold("--lease", "2s", "a", script="echo held $WEFT_FENCING_TOKEN; exec sleep 60")
        begun = time.monotonic()
        holder.process.kill()
        holder.process.wait()
        self.addCleanup(os.killpg, self.sleeper_of(holder), signal.SIGKILL)
        self.assertEqual(self.lock("--try", "a", "--", "true").returncode, 120)
        ran = self.lock("a", "--", "sh", "-c", "echo $WEFT_FENCING_TOKEN")
        took = time.monotonic() - begun
        self.assertGreater(int(ran.stdout), holder.token)
        # The last renewal was not more than a third of the lease ago.
        self.assertGreater(took, 1.2)
        self.assertLess(took, SECONDS / 2)

    def sleeper_of(self, holder):
        """The command that was left: its group. It has the output that its holder had."""
        out = os.readlink(f"/proc/self/fd/{holder.process.stdout.fileno()}")
        for each in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if int(each.name) != os.getpid() and os.readlink(each / "fd" / "1") == out:
                    return int(each.name)
        self.fail("the command is gone")

    def test_revoke_stops_the_command_and_those_who_wait(self):
        holder = self.hold("a", script="sleep 60 & echo held $WEFT_FENCING_TOKEN; wait")
        waiter = Holding(self, "a")
        self.wait_for("a", "waits", 1)
        ran = self.lock("revoke", "a")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (0, "2 held 'a' or waited for it\n", ""))
        # The output ends with the last who has it: what the shell has started is gone, too.
        self.assertEqual(holder.end(),
                         (121, "", "weft lock: the lock was lost while the command ran: 'a': it was revoked\n"))
        self.assertEqual(waiter.end(),
                         (121, "", "weft lock: 'a' was taken away from all who held it or waited for it\n"))
        self.assertGreater(self.hold("a").token, holder.token)
        self.assertEqual(self.lock("revoke", "b").stdout, "0 held 'b' or waited for it\n")

    def test_a_command_that_ignores_term_is_killed_when_the_lock_is_lost(self):
        ignores = "trap '' TERM; echo held $WEFT_FENCING_TOKEN; " + Holding.LOOP
        for script in ignores, f"({ignores}) & trap 'exit 0' TERM; wait":
            holder = self.hold("--lease", "4s", "a", script=script)
            begun = time.monotonic()
            self.assertEqual(self.lock("revoke", "a").returncode, 0)
            code, out, err = holder.end()
            self.assertEqual((code, out), (121, ""), err)
            self.assertGreaterEqual(time.monotonic() - begun, 0.25)  # a sixteenth of the lease: its grace

    def hold_stubbornly(self, lease):
        """Returns the holder, and the file in which its command says when it lived."""
        command, lived = self.root / "stubborn.py", self.root / "lived"
        command.write_text(STUBBORN)
        return self.hold("--lease", lease, "a", script=f"exec {sys.executable} {command} {lived}"), lived

    def lease_end(self, file):
        """Of the only ticket, in the store."""
        [(end,)] = file.execute("SELECT ends FROM tickets").fetchall()
        return end

    def expect_dead_before(self, lease_end, lived, grace):
        """It is asked to end, has its time for that, and ends before anybody else can have the lock, with some time to spare."""
        command = pathlib.Path("/proc") / lived.read_text().split()[1]
        while command.exists() and time.clock_gettime_ns(time.CLOCK_BOOTTIME) < lease_end + 1e9:
            time.sleep(0.01)
        times = [line.split() for line in lived.read_text().splitlines()]
        asked = [int(when) for what, when in times if what == "term"]
        last = int(times[-1][1])
        self.assertEqual(len(asked), 1)
        self.assertGreater(last - asked[0], 0.8 * grace * 1e9)
        self.assertLess(last, lease_end - 0.2 * grace * 1e9)

    def test_whose_lease_cannot_be_renewed_its_command_is_dead_before_the_lease_ends(self):
        holder, lived = self.hold_stubbornly("8s")
        with contextlib.closing(sqlite3.connect(self.file, isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")  # now nobody can write
            end = self.lease_end(file)
            self.expect_dead_before(end, lived, grace=0.5)
            self.assertIsNone(holder.process.poll())  # it cannot give it back
            self.assertEqual(self.lease_end(file), end)
        code, out, err = holder.end()
        self.assertEqual((code, out), (121, ""), err)
        self.assertIn("its lease ran out before it could be renewed", err)

    def test_revoked_its_command_is_dead_before_the_lease_would_have_ended(self):
        holder, lived = self.hold_stubbornly("8s")
        with contextlib.closing(sqlite3.connect(self.file, isolation_level=None)) as file:
            end = self.lease_end(file)
        self.assertEqual(self.lock("revoke", "a").returncode, 0)
        self.expect_dead_before(end, lived, grace=0.5)
        code, out, err = holder.end()
        self.assertEqual((code, out), (121, ""), err)

    # Nobody can be kept out by what is in a file that is gone; but who was in it does not believe in it for longer than its lease.
    def test_a_file_that_is_removed_or_replaced_is_noticed(self):
        for replaced in False, True:
            holder, waiter = self.hold("--lease", "2s", "a"), Holding(self, "--lease", "2s", "a")
            self.wait_for("a", "waits", 1)
            begun = time.monotonic()
            for each in "", "-wal", "-shm":
                pathlib.Path(str(self.file) + each).unlink()
            if replaced:
                self.assertEqual(self.lock("--try", "a", "--", "true").returncode, 0)
            code, out, err = waiter.end()
            self.assertEqual((code, out), (123, ""), err)
            self.assertIn("the lock file was removed or replaced", err)
            holder.process.wait(SECONDS)  # before its input says that it may go on
            self.assertLess(time.monotonic() - begun, 2)
            code, out, err = holder.end()
            self.assertEqual((code, out), (121, ""), err)
            self.assertIn("weft lock: the lock was lost while the command ran", err)
            self.assertEqual(self.lock("--try", "a", "--", "true").returncode, 0)

    def test_a_holder_that_was_paused_past_its_lease_finds_it_lost(self):
        holder = self.hold("--lease", "600ms", "a", script="echo held $WEFT_FENCING_TOKEN; exec sleep 60")
        holder.process.send_signal(signal.SIGSTOP)
        ran = self.lock("a", "--", "sh", "-c", "echo $WEFT_FENCING_TOKEN")
        self.assertGreater(int(ran.stdout), holder.token)
        holder.process.send_signal(signal.SIGCONT)
        code, _, err = holder.end()
        self.assertEqual(code, 121)
        self.assertRegex(err, r"\Aweft lock: the lock was lost while the command ran: 'a': its lease .*\n\Z")

    def test_what_cannot_be_run(self):
        self.says(self.lock("a", "--", "no-such-program"), 127,
                  "weft lock: there is no program 'no-such-program': look at its spelling, and at PATH")
        file = self.root / "text"
        file.write_text("text\n")
        self.says(self.lock("a", "--", str(file)), 126, f"weft lock: cannot run '{file}': Permission denied")
        self.assertEqual(self.lock("--try", "a", "--", "true").returncode, 0)

    def test_bad_usage_is_one_line_and_125(self):
        self.says(self.lock(), 125, "weft lock: NAME is missing: see weft lock --help")
        self.says(self.lock("a"), 125, "weft lock: -- COMMAND is missing: see weft lock --help")
        self.says(self.lock("a", "true"), 125, "weft lock: 'true': put -- before the command")
        self.says(self.lock("--timeout", "soon", "a", "--", "true"), 125,
                  "weft lock: --timeout 'soon': a time is wanted, such as 30s, 500ms or 2m")
        self.says(self.lock("--engine", "memory://a", "a", "--", "true"), 125,
                  "weft lock: 'memory://a' is of one process, and so keeps nobody out: name a file, or etcd")
        self.says(self.lock("--engine", "redis://a", "a", "--", "true"), 125,
                  "weft lock: 'redis://a' names no lock engine: sqlite:///path/locks.db, etcd://host:port/prefix or "
                  "memory://name")
        self.assertEqual(self.lock("x" * 513, "--", "true").returncode, 125)
        self.assertEqual(self.lock("--lease", "1ms", "a", "--", "true").returncode, 125)
        self.says(self.lock("show"), 125, "weft lock show: NAME is missing: see weft lock show --help")

    def test_names_of_commands(self):
        for name in "ls", "show", "revoke":
            ran = self.lock("--", name, "--", "sh", "-c", "echo $WEFT_LOCK_NAME")
            self.assertEqual((ran.returncode, ran.stdout), (0, name + "\n"))

    def test_the_parts_take_options_before_their_name_and_behind_it(self):
        holder = self.hold("a")
        nowhere = dict(self.environment, WEFT_LOCK_ENGINE="/nowhere/locks.db")
        engine = ["--engine", str(self.file)]
        for words in [*engine, "show", "a"], [f"--engine={self.file}", "show", "a"], ["show", *engine, "a"], ["show", "a", *engine]:
            ran = self.lock(*words, env=nowhere)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            self.assertIn(f"weft[{holder.process.pid}]", ran.stdout)
        self.assertIn(f"weft[{holder.process.pid}]", self.lock(*engine, "ls", env=nowhere).stdout)
        ran = self.lock(*engine, "revoke", "a", env=nowhere)
        self.assertEqual((ran.returncode, ran.stdout), (0, "1 held 'a' or waited for it\n"))
        self.assertEqual(holder.end()[0], 121)
        self.says(self.lock("--try", *engine, "ls", env=nowhere), 125,
                  "weft lock ls: there is no option --try: see weft lock ls --help")
        # With a command it is a lock of that name, as ever.
        ran = self.lock(*engine, "ls", "--", "sh", "-c", "echo $WEFT_LOCK_NAME", env=nowhere)
        self.assertEqual((ran.returncode, ran.stdout), (0, "ls\n"))
        ran = self.lock("--owner", "ls", *engine, "a", "--", "true", env=nowhere)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_an_engine_that_cannot_be_used(self):
        self.file.write_text("this is no lock file, but a text that is long enough for one\n" * 20)
        for words in ["a", "--", "true"], ["ls"], ["show", "a"], ["revoke", "a"]:
            ran = self.lock(*words)
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr.count("\n")), (123, "", 1), ran.stderr)
            self.assertIn(str(self.file), ran.stderr)
        ran = self.lock("--engine", str(self.root / "nowhere" / "locks.db"), "a", "--", "true")
        self.assertEqual((ran.returncode, ran.stderr.count("\n")), (123, 1))

    def without_set_up(self, **more):
        names = "WEFT_LOCK_ENGINE", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "HOME"
        return {name: value for name, value in os.environ.items() if name not in names} | more

    def test_without_set_up_locks_are_in_a_folder_of_the_users_own(self):
        environment = self.without_set_up(XDG_STATE_HOME=str(self.root / "state"))
        folder = self.root / "state" / "weft"
        mask = os.umask(0)
        self.addCleanup(os.umask, mask)
        self.assertEqual(self.lock("a", "--", "true", env=environment).returncode, 0)
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        self.assertEqual(folder.parent.stat().st_mode & 0o777, 0o700)
        self.assertTrue((folder / "locks.db").exists())
        folder.chmod(0o755)
        self.says(self.lock("a", "--", "true", env=environment), 123,
                  f"weft lock: '{folder}' is open to others: chmod 700 it, or name another place with --engine")
        elsewhere = folder.rename(self.root / "elsewhere")
        elsewhere.chmod(0o700)
        folder.symlink_to(elsewhere)
        self.says(self.lock("a", "--", "true", env=environment), 123,
                  f"weft lock: '{folder}' is no folder: name another place with --engine")
        if os.geteuid() == 0:
            folder.unlink()
            folder.mkdir(0o700)
            os.chown(folder, 1, 1)
            self.says(self.lock("a", "--", "true", env=environment), 123,
                      f"weft lock: '{folder}' is somebody else's: name another place with --engine")

    # At a terminal there is an XDG_RUNTIME_DIR, which a logout removes; for cron there is none.
    def test_without_set_up_cron_and_a_shell_meet_and_tokens_outlive_a_logout(self):
        home, runtime = self.root / "home", self.root / "runtime"
        home.mkdir()
        runtime.mkdir()
        shell = self.without_set_up(HOME=str(home), XDG_RUNTIME_DIR=str(runtime))
        cron = self.without_set_up(HOME=str(home))
        self.environment = shell
        holder = self.hold("a")
        self.assertEqual(self.lock("--try", "a", "--", "true", env=cron).returncode, 120)
        self.assertEqual(holder.end()[0], 0)
        self.assertEqual(list(runtime.iterdir()), [])
        self.assertEqual([each.name for each in home.iterdir()], [".local"])
        self.assertEqual((home / ".local/state/weft").stat().st_mode & 0o777, 0o700)
        self.assertGreater(self.hold("a").token, holder.token)

    def test_without_a_home_locks_are_where_the_session_keeps_its_files(self):
        for homeless in {}, {"HOME": "/nowhere"}, {"HOME": "", "XDG_STATE_HOME": "here"}:
            environment = self.without_set_up(XDG_RUNTIME_DIR=str(self.root), **homeless)
            self.assertEqual(self.lock("a", "--", "true", env=environment).returncode, 0)
            self.assertTrue((self.root / "weft" / "locks.db").exists())
        if os.geteuid() == 0:  # as sudo may leave us the home of who called it
            home = self.root / "home"
            home.mkdir()
            os.chown(home, 1, 1)
            environment = self.without_set_up(XDG_RUNTIME_DIR=str(self.root), HOME=str(home))
            self.assertEqual(self.lock("a", "--", "true", env=environment).returncode, 0)
            self.assertEqual(list(home.iterdir()), [])

    def test_a_signal_ends_the_wait_for_an_engine_that_does_not_take_the_lock_back(self):
        holder = self.hold("--lease", "60s", "a")
        with contextlib.closing(sqlite3.connect(self.file, isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            holder.process.stdin.write("\n")
            holder.process.stdin.flush()
            time.sleep(0.3)  # the command ends, and the release cannot be written
            self.assertIsNone(holder.process.poll())
            holder.process.send_signal(signal.SIGINT)
            self.assertEqual(holder.process.wait(20), 130)
        self.assertIn("is free when its lease has ended", holder.process.stderr.read())

    def kill(self, pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def test_at_a_terminal_what_the_command_has_started_is_stopped_with_it(self):
        # One of them in a session of its own, where no group and no terminal reaches it.
        left = f"exec {sys.executable} -c 'import time; time.sleep(60)'"
        script = f"sh -c \"{left}\" & echo $!; setsid sh -c \"echo \\$\\$; {left}\" & wait"
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(PROGRAM, [PROGRAM, "lock", "--lease", "4s", "a", "--", "sh", "-c", script], self.environment)
        shown = b""
        while shown.count(b"\n") < 2:
            shown += os.read(terminal, 4096)
        started = [int(each) for each in shown.split()[:2]]
        for each in started:
            self.addCleanup(self.kill, each)
        self.assertEqual(self.lock("revoke", "a").returncode, 0)
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(status), 121, shown)
        for each in started:
            with contextlib.suppress(OSError):  # or it waits for somebody to collect it
                self.assertIn(") Z ", pathlib.Path(f"/proc/{each}/stat").read_text(), started)

    def test_what_the_command_leaves_running_goes_on(self):
        ran = self.lock("a", "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
        self.assertEqual(ran.returncode, 0)
        os.kill(int(ran.stdout), signal.SIGKILL)  # it is there

    def test_what_is_ignored_and_what_is_open_is_the_commands_too(self):
        asks = "grep SigIgn /proc/self/status; cat <&9"
        read, write = os.pipe()
        os.write(write, b"nine\n")
        os.close(write)
        ignoring = f"trap '' HUP INT USR1; exec \"$@\" 9<&{read}"
        plain = f"exec \"$@\" 9<&{read}"
        ignored = []
        for shell in ignoring, plain:
            ran = subprocess.run(["sh", "-c", shell, "sh", PROGRAM, "lock", "a", "--", "sh", "-c", asks], pass_fds=[read],
                                 env=self.environment, capture_output=True, text=True, timeout=SECONDS,
                                 start_new_session=True)
            self.assertEqual((ran.returncode, ran.stderr), (0, ""))
            lines = ran.stdout.splitlines()
            ignored.append(int(lines[0].split()[1], 16) & 0x7fffffff)  # above are those of the C library
            self.assertEqual(lines[1:], ["nine"] if shell == ignoring else [])
        os.close(read)
        bits = sum(1 << (each - 1) for each in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR1))
        self.assertEqual(ignored, [bits, 0])

    def test_who_ignores_the_end_of_children_has_the_status_all_the_same(self):
        code = "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
        ran = subprocess.run([sys.executable, "-c", code, PROGRAM, "lock", "a", "--", "sh", "-c", "exit 7"],
                             env=self.environment, capture_output=True, timeout=SECONDS, start_new_session=True)
        self.assertEqual((ran.returncode, ran.stderr), (7, b""))

    def test_at_a_terminal_the_command_reads_from_it_and_ctrl_c_comes_once(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(PROGRAM, [PROGRAM, "lock", "a", "--", sys.executable, str(self.listener), "read"], self.environment)
        shown = b""
        os.write(terminal, b"a line\n")
        interrupted = False
        with contextlib.suppress(OSError):  # the terminal's end, as Linux tells it
            while piece := os.read(terminal, 4096):
                shown += piece
                if b"got a line" in shown and not interrupted:
                    interrupted = True
                    os.write(terminal, b"\x03")
        os.close(terminal)
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 9, shown)
        self.assertIn(b"heard 2\r\n", shown)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Etcd:
    """One member, on loopback, from its first answer on. Its files are in memory where that can be."""

    def __init__(self):
        memory = pathlib.Path("/dev/shm")
        self.directory = tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None)
        self.port = free_port()
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.port, free_port()))
        self.process = subprocess.Popen(
            ["etcd", "--name", "n", "--data-dir", self.directory.name + "/n", "--listen-client-urls", client,
             "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
             "--initial-cluster", "n=" + peer, "--election-timeout", "300", "--heartbeat-interval", "50",
             "--logger", "zap", "--log-level", "error"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + SECONDS
        while status_of("-d", '{"key":"YQ=="}', client + "/v3/kv/range") != "200":
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError("etcd does not start: script/setup installs it")
            time.sleep(0.05)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


# The same as on a file, as far as another engine can make a difference.
class LockOnEtcd(Lock):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.etcd = Etcd()
        cls.addClassCleanup(cls.etcd.close)

    def setUp(self):
        super().setUp()
        self.engine = f"etcd://127.0.0.1:{self.etcd.port}/{self.id().rsplit('.', 1)[1]}"
        self.environment["WEFT_LOCK_ENGINE"] = self.engine

    def pause(self):
        """etcd hangs, until it is told to go on."""
        self.etcd.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.etcd.process.send_signal, signal.SIGCONT)

    def test_whose_lease_cannot_be_renewed_its_command_is_dead_before_the_lease_ends(self):
        holder, lived = self.hold_stubbornly("8s")
        self.pause()
        # etcd's lease cannot be asked for; it began after the last that was seen of the command's.
        end = time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 8e9
        self.expect_dead_before(end, lived, grace=0.5)
        self.etcd.process.send_signal(signal.SIGCONT)
        code, out, err = holder.end()
        self.assertEqual((code, out), (121, ""), err)
        self.assertIn("its lease ran out before it could be renewed", err)

    def test_the_time_is_for_an_etcd_that_hangs(self):
        self.assertEqual(self.lock("a", "--", "true").returncode, 0)
        self.pause()
        self.expect_no_answer("--engine", self.engine)
        self.etcd.process.send_signal(signal.SIGCONT)
        self.assertEqual(self.lock("a", "--", "true").returncode, 0)

    def test_another_prefix_is_another_place(self):
        holder = self.hold("a")
        self.assertEqual(self.lock("--engine", self.engine + "2", "--try", "a", "--", "true").returncode, 0)
        self.assertEqual(self.lock("--try", "a", "--", "true").returncode, 120)
        self.assertEqual(holder.end()[0], 0)

    def test_ls_and_show_print_who_holds_and_who_waits(self):
        self.assertEqual(len(self.lock("ls").stdout.splitlines()), 1)
        holder, other = self.hold("--owner", "ann", "orders/42"), self.hold("b")
        waiter = Holding(self, "orders/42")
        row = self.wait_for("orders/42", "waits", 1)[0]
        self.assertRegex(row, rf"^holds  {holder.token}  +\d+\.\d s  +1\d\.\d s  +ann$")
        rows = sorted(re.split("  +", row) for row in self.lock("ls").stdout.splitlines()[1:])
        self.assertEqual([row[:4] for row in rows], [["b", "1", "0", str(other.token)],
                                                     ["orders/42", "1", "1", str(holder.token)]])
        for each in holder, other, waiter:
            self.assertEqual(each.end()[0], 0)
        self.assertEqual(len(self.lock("ls").stdout.splitlines()), 1)


# What is about the file, the command or the terminal is not asked for twice.
for name in dir(Lock):
    again = "those_who_contend", "try_is_busy", "test_timeout", "shared_ones", "killed_holder", "revoke_stops", "token_rises", \
        "paused_past_its_lease"
    if name.startswith("test_") and name not in vars(LockOnEtcd) and not any(part in name for part in again):
        setattr(LockOnEtcd, name, None)


@contextlib.contextmanager
def listening():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(SECONDS)
        yield listener, f"http://127.0.0.1:{listener.getsockname()[1]}/"


@contextlib.contextmanager
def one_answer(answer):
    """A server that says this once, whatever it is asked, and closes."""
    def run(listener):
        peer, _ = listener.accept()
        with peer:
            peer.recv(4096)
            peer.sendall(answer)

    with listening() as (listener, url):
        thread = threading.Thread(target=run, args=(listener,))
        thread.start()
        yield url
        thread.join()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = str(pathlib.Path(sys.argv[1]).resolve())
    # A shell has it ignored in what it starts in the background, and what is ignored is inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The machine's proxies are not for loopback.
    for name in "http_proxy", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "WEFT_DRIVER", "WEFT_LOCK_ENGINE":
        os.environ.pop(name, None)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
