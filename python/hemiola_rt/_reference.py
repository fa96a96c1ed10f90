"""What the results of known plans have to be: the formulas of src/compile/emit/torch_reference.cc."""

import torch

_FORMULAS = {
    "ag-gemm": ("a", lambda rank, held, wide, end: end(torch.stack([of["a"] for of in held]).to(wide) @ held[rank]["b"].to(wide), held[rank])),
    "dispatch-gemm": ("x", lambda rank, held, wide, end: end(torch.stack([_block(of["x"], rank, held) for of in held]).to(wide) @ held[rank]["b"].to(wide),
                                                             held[rank])),
    "gemm-rs": ("a", lambda rank, held, wide, end: sum(_block(end(of["a"].to(wide) @ of["b"].to(wide), of), rank, held) for of in held)),
    "gemm-ar": ("a", lambda rank, held, wide, end: sum(end(of["a"].to(wide) @ of["b"].to(wide), of) for of in held)),
    "a2a-gemm": ("x", lambda rank, held, wide, end: end(torch.cat([_block(of["x"], rank, held) for of in held], 1).to(wide) @ held[rank]["b"].to(wide),
                                                        held[rank])),
    "gemm-combine": ("a", lambda rank, held, wide, end: torch.stack([_block(end(of["a"].to(wide) @ of["b"].to(wide), of), rank, held) for of in held])),
}

# Layers of two products, by what stands before the slash: what lies in memory between them is rounded.
_LAYERS = {
    "gemm-a2a-gemm": lambda rank, held, wide: (torch.cat([_middle(of, wide).chunk(len(held))[rank] for of in held], 1).to(wide)
                                               @ held[rank]["w_out"].to(wide)),
    "mlp": lambda rank, held, wide: sum(_middle(of, wide).to(wide) @ of["w_out"].to(wide) for of in held),
}


def _experts(rank, held, wide):
    """Rows of all ranks for each of the own experts."""
    return torch.cat([of["x"].chunk(len(held))[rank] for of in held], 1).to(wide) @ held[rank]["b"].to(wide)


def _middle(of, wide):
    return (of["x"].to(wide) @ of["w_in"].to(wide)).to(of["x"].dtype)


def _block(tensor, rank, held):
    """Rows that are a rank's: blocks of launches, or parts of a matrix."""
    return tensor[rank] if tensor.dim() == 3 else tensor.chunk(len(held))[rank]


def _end(epilogue):
    """What a kernel makes of a product, which it takes for one matrix."""
    if epilogue is None:
        return lambda product, of: product
    return lambda product, of: epilogue(product.reshape(-1, product.shape[-1]), of).reshape(product.shape)


def reference_of(plan, epilogue=None):
    """reference(rank, held) of an emitted file, for operators with products and for collectives; None: it is not known.

    epilogue: that of the kernel's file, epilogue(product, what its rank was given)."""
    root = plan.root
    narrow = all(tensor["dtype"] in ("half", "float16", "bfloat16") for tensor in plan.tensors.values())
    wide = torch.float32 if narrow else torch.float64
    if root.get("collective", "custom") != "custom":
        return _collective(plan, root["collective"], wide)
    if epilogue is not None and root["name"].partition("/")[0] not in _FORMULAS:
        return None
    layer = _LAYERS.get(root["name"].partition("/")[0])
    if layer is not None and all(name in plan.tensors for name in ("x", "w_in", "w_out", "c")):
        return lambda rank, held: {"c": layer(rank, held, wide)}
    if root["name"].startswith("moe/") and all(name in plan.tensors for name in ("x", "b", "c")):
        return lambda rank, held: {"c": _experts(rank, held, wide)}
    left, formula = _FORMULAS.get(root["name"].partition("/")[0], (None, None))
    if formula is None or left not in plan.tensors or "b" not in plan.tensors or "c" not in plan.tensors:
        return None
    end = _end(epilogue)
    return lambda rank, held: {"c": formula(rank, held, wide, end)}


def _collective(plan, collective, wide):
    if any("resident" in code or "expected" in code for code in plan.root["codes"]):
        return None
    inputs = [name for name, tensor in plan.tensors.items() if tensor["role"] == "input"]
    outputs = [name for name, tensor in plan.tensors.items() if tensor["role"] == "output"]
    if len(inputs) != 1 or len(outputs) != 1:
        return None
    source, target, ranks, axis, root = inputs[0], outputs[0], plan.ranks, _axis_of_chunks(plan), plan.root.get("root", 0)

    def total(held):
        return sum(of[source].to(wide) for of in held)

    formulas = {
        "all-reduce": lambda rank, held: total(held),
        "reduce-scatter": lambda rank, held: total(held).chunk(ranks, axis)[rank],
        "all-gather": lambda rank, held: torch.cat([of[source] for of in held], axis),
        "all-to-all": lambda rank, held: torch.cat([of[source].chunk(ranks, axis)[rank] for of in held], axis),
        "broadcast": lambda rank, held: held[root][source],
        "reduce": lambda rank, held: total(held) if rank == root else None,
    }
    formula = formulas.get(collective)
    if formula is None:
        return None

    def reference(rank, held):
        value = formula(rank, held)
        return {} if value is None else {target: value}
    return reference


def _axis_of_chunks(plan):
    """The axis along which the plan cuts its tensors."""
    def regions(items):
        for item in items:
            if "loop" in item:
                yield from regions(item["items"])
            else:
                yield item["source"]
    for stream in plan.code_of[0]["streams"]:
        for region in regions(stream["items"]):
            for box in plan.boxes(region, 0, (0, 0)):
                for axis, (extent, size) in enumerate(zip(box.extent, plan.tensors[region["tensor"]]["shape"])):
                    if extent != size:
                        return axis
    return 0
