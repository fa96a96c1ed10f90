"""kernel_mutants.py BINARY ROOT COUNT: fuses damaged kernels with plans, and gives every text that is written to Python's own parser."""

import ast
import pathlib
import subprocess
import sys
import tempfile
import warnings

binary, root, count = sys.argv[1:]
warnings.simplefilter("ignore")  # `1 is 1`, which a damaged kernel may say
with tempfile.TemporaryDirectory() as folder:
    written = pathlib.Path(folder) / "written"
    status = subprocess.run([binary, root, count, str(written)], check=False).returncode
    texts = written.read_bytes().split(b"\0")[1:]
    refused = 0
    for number, text in enumerate(texts):
        try:
            ast.parse(text)
        except SyntaxError as error:
            refused += 1
            if refused <= 3:
                print(f"text {number} is not Python: {error}\n{error.text}")
                pathlib.Path(f"fuzz-not-python-{number}.py").write_bytes(text)
print(f"Python's parser takes {len(texts) - refused} of {len(texts)} texts")
sys.exit(status if status else 1 if refused or not texts else 0)
