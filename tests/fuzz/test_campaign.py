"""The campaign runs as `make fuzz` starts it, with atheris or without."""

import subprocess
import sys
from pathlib import Path

import pytest

from . import corpus
from .distil import distil
from .seeds import seeds

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.fuzz", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


def test_a_short_campaign_ends_with_a_table() -> None:
    done = run("jwt", "tokens", "--seconds", "0.2")
    assert done.returncode == 0, done.stderr
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["target", "---", "jwt", "tokens"]


def test_an_unknown_target_is_rejected() -> None:
    done = run("nothing")
    assert (done.returncode, done.stderr) == (2, "no such target: nothing\n")


def test_what_is_stored_reads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "_DIRECTORY", tmp_path / "corpus")
    assert corpus.read("url") == []
    corpus.append("url", [b"a\n\xff'\"", b"b", b"b"], "what it\nbroke")
    corpus.append("url", [b"b"])
    assert corpus.read("url") == [b"a\n\xff'\"", b"b"]
    assert corpus.path_of("url").read_text().startswith("# what it\\nbroke\n")


def test_only_what_reaches_new_code_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(corpus, "_DIRECTORY", tmp_path)
    known = seeds("tokens")[0]
    assert distil("tokens", [known, known + b"\n", b"%FF"]) == [b"%FF"]
