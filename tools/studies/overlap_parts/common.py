"""How the parts of tools/study overlap call the simulator, and how they print."""
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
MEASURED = pathlib.Path(os.environ.get("HEMIOLA_MEASURED", str(ROOT.parent / "shared" / "measured")))


class Absent(Exception):
    """An input that is not part of the project is not there."""


@dataclasses.dataclass
class Binaries:
    hemiola: str
    gemm_table: str
    keep: str = ""


binaries = Binaries("hemiola", "gemm_table")


def say(text):
    print(text, file=sys.stderr, flush=True)


def measured(path):
    """A measured table that nobody may copy into the project."""
    file = MEASURED / path
    if not file.exists():
        raise Absent(f"../shared/measured/{path} is not there")
    return file


def result_of(arguments, files=None):
    """The JSON of one call of hemiola. `files`: written beside it, by name; {NAME} in the arguments is where."""
    key = hashlib.sha256(json.dumps([arguments, files], sort_keys=True).encode()).hexdigest()[:24]
    kept = pathlib.Path(binaries.keep, key + ".json") if binaries.keep else None
    if kept and kept.exists():
        return json.loads(kept.read_text())
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (files or {}).items():
            pathlib.Path(folder, name).write_text(text)
        places = {"{" + name.split(".")[0] + "}": os.path.join(folder, name) for name in files or {}}
        words = [places.get(word, word) for word in arguments]
        out = os.path.join(folder, "result.json")
        done = subprocess.run([binaries.hemiola, *words, "--quiet", "--json", out], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"hemiola {' '.join(words)}: {done.returncode}\n{done.stderr}")
        text = pathlib.Path(out).read_text()
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(text)
    return json.loads(text)


def explore(operator, sizes, *more, machine="mi300x-8"):
    """`sizes`: of the product of one GPU."""
    return result_of(["explore", operator, "--local", ",".join(map(str, sizes)), "--machine", machine, *more])


def run_job(launches, streams, machine="mi300x-8", *more):
    """A job of launches (dictionaries in the words of docs/jobs.md), by the engine fluid, unchecked."""
    job = json.dumps({"name": "study", "dtype": "bf16", "streams": streams, "launches": launches})
    return result_of(["run", "{job}", "--machine", machine, "--engine", "fluid", "--no-check", *more],
                     {"job.yaml": job})["results"][0]


def scenarios():
    """Of data/scenarios/overlap.yaml, in its order: name, operator, gather where it is said, dtype, ranks, and gemm as (m, n, k)."""
    for line in (ROOT / "data/scenarios/overlap.yaml").read_text().splitlines():
        of = dict(re.findall(r"(name|operator|gather|dtype|ranks): ([^,}]*)", line))
        if "operator" in of:
            yield {**of, "ranks": int(of["ranks"]), "gemm": tuple(map(int, re.search(r"gemm: \[(\d+), (\d+), (\d+)\]", line).groups()))}


def table(header, rows):
    """In Markdown; all columns but the first are numbers."""
    print("| " + " | ".join(header) + " |")
    print("| --- |" + " ---: |" * (len(header) - 1))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print(flush=True)


def ms(fs):
    return f"{fs / 1e12:.3f}"


def us(fs):
    return f"{fs / 1e9:.1f}"


def percent(share):
    return f"{100 * share:.0f} %"
