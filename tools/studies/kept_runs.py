"""Single runs for tools/study fluid and tools/study sampled, and what the line engine said in earlier ones.

A program is a string of its name and parameters ("all-gather/direct transfer=pull"); a size is bytes ("16MiB") or axes
("m=2048 n=7168 k=2048"). What is kept of a run is short: its time, its CPU time and memory, and what its links carried.
"""
import hashlib
import json
import os
import pathlib
import resource
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEMIOLA = os.environ.get("HEMIOLA", str(ROOT / "build/release/hemiola"))
LINE_RESULTS = ROOT / "bench/line_results.json"


def simulate(program, machine, size, engine, limit):
    """What a run without a proof on one thread says: a dictionary, or a string that says why there is none:
    '...' where it took more than `limit` seconds of CPU time, '-' where it is refused, else the error."""
    name, *parameters = program.split()
    parameters += size.split() if "=" in size else []
    words = [w for p in parameters for w in ("--param", p)] + ([] if "=" in size else ["--size", size])

    def confine():
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 1, int(limit) + 2))

    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "result.json")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = subprocess.run([HEMIOLA, "run", name, *words, "--machine", machine, "--engine", engine, "--no-check", "--quiet",
                               "--round-size", "--threads", "1", "--json", out], capture_output=True, text=True, preexec_fn=confine)
        if done.returncode < 0:  # by a signal: SIGXCPU, or SIGKILL behind it
            return "..."
        if done.returncode == 2:
            return "-"
        if done.returncode != 0:
            return f"error {done.returncode}: {done.stderr.strip().splitlines()[0]}"
        with open(out) as file:
            result = json.load(file)["results"][0]
    carried = [(u["from"], u["to"], u["payload_bytes"], u["wire_bytes"]) for u in result["links"]]
    return {"time_fs": result["time_fs"], "cpu_s": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 3),
            "peak_rss_bytes": result["peak_rss_bytes"], "sampled": result.get("sampled"),
            "wire_bytes": sum(use["wire_bytes"] for use in result["links"]),
            "links": hashlib.sha256(json.dumps(carried).encode()).hexdigest()[:16]}


class LineResults:
    """What the line engine says, by program, machine and size, kept in a file, so that a table can be made again without
    waiting for it: throw the file away when the model changes. Two tables may fill one file at once."""

    def __init__(self, path):
        self.path = path
        self.known = self.stored()

    def stored(self):
        return json.loads(self.path.read_text()) if self.path and self.path.exists() else {}

    def of(self, program, machine, size, limit):
        key = f"{program} {machine} {size}"
        if key not in self.known:
            self.known[key] = simulate(program, machine, size, "line", limit)
            if self.path:
                self.known = {**self.stored(), **self.known}
                beside = self.path.with_suffix(f".{os.getpid()}")
                beside.write_text(json.dumps(self.known, indent=1, sort_keys=True) + "\n")
                beside.replace(self.path)
        return self.known[key]
