"""Functions of Triton cut out of the source text of a package, which is never imported."""

import ast
import os
import tempfile
import textwrap

import torch
import triton
import triton.language as tl


class Package:
    """folder: what its absolute imports begin at. fallback: by name, what stands for names that no text says."""

    def __init__(self, folder, fallback):
        self.folder, self.fallback = folder, fallback
        self._trees, self._functions = {}, {}
        self._scratch = tempfile.TemporaryDirectory()  # Triton reads a function's text from a file

    def function(self, path, name):
        """The function `name` of a file as an interpreted one, without decorators of its own. KeyError: the file has none."""
        if (path, name) in self._functions:
            return self._functions[path, name]
        text, tree = self._tree(path)
        node = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == name), None)
        if node is None:
            raise KeyError(f"{path} has no function '{name}'")
        lines = text.split("\n")[node.lineno - 1:node.end_lineno]
        cut = "@triton.jit\n" + textwrap.dedent("\n".join(lines)) + "\n"
        written = os.path.join(self._scratch.name, f"{len(self._functions)}_{name}.py")
        with open(written, "w", encoding="utf-8") as file:
            file.write(cut)
        names = {"triton": triton, "tl": tl, "torch": torch}
        for used in sorted({n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - {name, *names}):
            found = self._value(path, used)
            if found is None:
                found = self.fallback.get(used)
            if found is not None:
                names[used] = found
        exec(compile(cut, written, "exec"), names)
        return self._functions.setdefault((path, name), names[name])

    def _tree(self, path):
        if path not in self._trees:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            self._trees[path] = text, ast.parse(text)
        return self._trees[path]

    def _value(self, path, name):
        """What a name of a file stands for. None: a builtin, a local variable, or what only running the package would tell."""
        for node in _statements(self._tree(path)[1].body):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return self.function(path, name) if any("jit" in ast.unparse(d) for d in node.decorator_list) else None
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                value = _constant(node.value)
                if value is not None:  # else another branch may say it
                    return value
            if isinstance(node, ast.ImportFrom):
                for one in node.names:
                    if (one.asname or one.name) == name:
                        return self._imported(path, node, one.name)
        return None

    def _imported(self, path, node, name):
        parts = node.module.split(".") if node.module else []
        if node.level == 0 and parts[0] == "triton":
            return getattr(__import__(node.module, fromlist=[name]), name, None)
        base = self.folder
        if node.level:
            base = os.path.dirname(path)
            for _ in range(node.level - 1):
                base = os.path.dirname(base)
        at = os.path.join(base, *parts)
        for file in (os.path.join(at, name + ".py"), os.path.join(at, name, "__init__.py")):
            if os.path.exists(file):
                return _Module(self, file)
        for file in (at + ".py", os.path.join(at, "__init__.py")):
            if os.path.exists(file) and file != path:
                return self._value(file, name)
        return None


class _Module:
    """A module of a package, of which only the functions that are asked for are cut out."""

    def __init__(self, package, path):
        self._package, self._path = package, path

    def __getattr__(self, name):
        found = None if name.startswith("_") else self._package._value(self._path, name)
        if found is None:
            raise AttributeError(f"{os.path.basename(self._path)} has no '{name}' that its text alone tells")
        setattr(self, name, found)
        return found


def _statements(body):
    """Statements of a module, those that an if or a try chooses among them."""
    for node in body:
        yield node
        for inner in ("body", "handlers", "orelse", "finalbody"):
            if isinstance(node, (ast.If, ast.Try, ast.ExceptHandler)):
                yield from _statements(getattr(node, inner, []))


def _constant(node):
    """The value of an expression of numbers, texts, torch and Triton; None: it takes more."""
    try:
        return eval(compile(ast.Expression(node), "constant", "eval"), {"triton": triton, "tl": tl, "torch": torch})
    except Exception:  # a name or a call of the package
        return None
