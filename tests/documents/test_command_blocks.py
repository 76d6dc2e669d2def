"""The runner of pages' commands finds what is wrong with a page."""

import os
from pathlib import Path

import pytest

from command_blocks import missing_lines, read_page, run

PAGE = """
# A page

```console
$ cat > name.txt <<END
> Ada
> END
$ greeting=hello
```

```toml
not = "run"
```

*Not run by the tests: needs root.*

```console
$ reboot
```

```console
$ echo $greeting $(cat name.txt), you are number 17
hello Ada, you are number 3
$ cat nothing # exit code 1
...
$ false
$ echo never > after.txt
```
"""


def findings(text: str, folder: Path) -> list[str]:
    (folder / "work").mkdir()
    return run(read_page(text).commands, folder / "work", os.environ)


def test_commands_share_a_shell_and_stop_at_the_first_that_fails(tmp_path: Path) -> None:
    page = read_page(PAGE)
    assert page.left_out == ["needs root"]
    assert [command.line for command in page.commands] == [5, 8, 22, 24, 26, 27]
    (finding,) = findings(PAGE, tmp_path)
    assert finding.startswith("line 26: false\nended with 1, not 0")
    assert not (tmp_path / "work" / "after.txt").exists()


def test_what_a_page_leaves_in_the_background_ends(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    assert findings(f"```console\n$ sleep 600 > {fifo} &\n```\n", tmp_path) == []
    os.set_blocking(reader, True)
    assert os.read(reader, 1) == b""  # the end of the file: no writer is left
    os.close(reader)


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("echo good day\ngood night", "does not say ['good night']"),
        ("true # exit code 2", "ended with 0, not 2"),
    ],
)
def test_what_a_page_says_amiss_is_found(tmp_path: Path, command: str, wrong: str) -> None:
    (finding,) = findings(f"```console\n$ {command}\n```\n", tmp_path)
    assert wrong in finding


def test_a_program_is_run_in_its_turn_and_a_fault_in_it_is_found(tmp_path: Path) -> None:
    page = """```console
$ echo 41 > number.txt
```

```python
from pathlib import Path
number = int(Path("number.txt").read_text()) + 1
Path("number.txt").write_text(f"{number}")
```

```console
$ cat number.txt; echo is the answer
the answer
```

*Not run by the tests: needs a printer.*

```python
import printer
```

```python
raise SystemExit("no more paper")
```
"""
    (finding,) = findings(page, tmp_path)
    assert finding.startswith("line 23: python")
    assert "no more paper" in finding
    assert (tmp_path / "work" / "number.txt").read_text() == "42"
    assert read_page(page).left_out == ["needs a printer"]


@pytest.mark.parametrize("block", ["```sh\nls\n```\n", "```console\nls\n```\n"])
def test_commands_without_a_prompt_are_an_error(block: str) -> None:
    with pytest.raises(ValueError, match="line 2: "):
        read_page(block)


def test_numbers_and_names_with_digits_may_differ() -> None:
    output = "unit 2: thunder3: settled\nRequest request-77 committed in 0.3 s\n"
    assert missing_lines(["unit 1: curie1: settled", "...", "Request request-1: committed"], output) == []
    assert missing_lines(["unit 1: curie1: refused"], output) == ["unit 1: curie1: refused"]


@pytest.mark.parametrize(
    "text",
    [
        "*Not run by the tests here: both stay.*\n\n```console\n$ sleep inf\n```\n",
        "*Not run by the tests: both stay*\n\n```console\n$ sleep inf\n```\n",
        "*Not run by the tests: both stay.* Indeed.\n\n```console\n$ sleep inf\n```\n",
        "*Not run by the tests: both stay.*\n\nSome words.\n\n```console\n$ sleep inf\n```\n",
    ],
)
def test_a_line_that_leaves_out_nothing_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"line 3: '\*Not run .* leaves out no block"):
        read_page("One page.\n\n" + text)
