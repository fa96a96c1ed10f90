"""What the tests share: the command line beside the module, and the project's files."""

import json
import os
import subprocess
import tempfile

BINARY = os.environ["HEMIOLA_BINARY"]
SOURCE = os.environ["HEMIOLA_SOURCE_DIR"]
VOLATILE = ("visited_hops", "simulated_ranks", "wall_s", "peak_rss_bytes")


def example(name):
    return os.path.join(SOURCE, "examples", name, "plan.json")


def command(*arguments, code=0):
    """What the command line prints."""
    done = subprocess.run([BINARY, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout


def command_json(*arguments, code=0):
    """What the command line writes with --json."""
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "result.json")
        command(*arguments, "--json", file, "--quiet", code=code)
        with open(file, encoding="utf-8") as text:
            return json.load(text)


def steady(result):
    """A result without what differs from run to run."""
    return {key: value for key, value in result.items() if key not in VOLATILE}
