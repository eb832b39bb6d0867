# SPDX-License-Identifier: MIT
"""Reading C++ as text: what the checkers in this directory share. A checker is a function root -> list of findings."""
import argparse
import pathlib
import re
import sys
import tempfile

# Numbers are matched so that the ' in 1'000 does not begin a character literal.
_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>R"(?P<tag>[^\s()\\]{0,16})\(.*?\)(?P=tag)")
      | (?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
      | \b\d(?:'?\w)*""",
    re.DOTALL | re.VERBOSE)


def code_of(text, keep_strings=False):
    """Returns text with comments (and literals) blanked out; every remaining character keeps its line."""
    def blank(match):
        kind = match.lastgroup
        if kind is None or (keep_strings and kind != "comment"):
            return match.group()
        return re.sub(r"[^\n]", " ", match.group())
    return _TOKEN.sub(blank, text)


def sources(root, *directories):
    """Yields (path relative to root, text) for every C++ file under the directories, in a fixed order."""
    for directory in directories:
        for path in sorted((root / directory).rglob("*")):
            if path.suffix in (".h", ".cc"):
                yield path.relative_to(root), path.read_text()


def matches(pattern, path, code, message):
    """Returns one finding per match of pattern in code."""
    return [f"{path}:{code.count(chr(10), 0, m.start()) + 1}: {message}" for m in pattern.finditer(code)]


def main(doc, check, good, bad):
    """Runs check over a tree; with --self-test over trees made of good and bad, which map path -> text.

    Every bad file is tried alone, among all the good ones, and must be found.
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("root", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent, help="the source tree")
    parser.add_argument("--self-test", action="store_true", help="show that violations are found")
    arguments = parser.parse_args()
    findings = _self_test(check, good, bad) if arguments.self_test else check(arguments.root.resolve())
    for finding in findings:
        print(finding)
    print("FAILED" if findings else "ok")
    sys.exit(1 if findings else 0)


def _check_tree(check, files):
    with tempfile.TemporaryDirectory() as directory:
        root = pathlib.Path(directory)
        for path, text in files:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return check(root)


def _self_test(check, good, bad):
    mistakes = [f"good code refused: {f}" for f in _check_tree(check, good)]
    for path, text in bad:
        findings = _check_tree(check, good + [(path, text)])
        if len(findings) != 1 or not findings[0].startswith(f"{path}:"):
            mistakes.append(f"expected one finding in {path} {text!r}, got {findings}")
    return mistakes
