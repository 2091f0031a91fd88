"""JSON schema of ``document`` (``cuda-lsp check --format json``), version 1.

Within a version fields are added only, so readers leave alone what they do not know; the schema itself is
strict, so that what is not described here is not written.
"""

from __future__ import annotations

from typing import Any

from cuda_lsp.model import Code, LaunchSource, RaceKind, Severity, Status, Verdict

Json = dict[str, Any]

_TEXT: Json = {"type": "string"}
_WHOLE: Json = {"type": "integer"}
_COUNT: Json = {"type": "integer", "minimum": 0}
_NUMBER: Json = {"type": "number"}
_FLAG: Json = {"type": "boolean"}
_SEVERITY: Json = {"enum": [severity.name.lower() for severity in Severity]}
_INTEGERS: Json = {"type": "object", "additionalProperties": _WHOLE}


def report_schema() -> Json:
    """The schema, draft 2020-12."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What cuda-lsp found in one run, schema 1",
        "description": "Ranges are 1-based, their ends exclusive, columns counted in Unicode code points.",
        **_object(
            schema={"const": 1},
            tool=_object(name={"const": "cuda-lsp"}, version=_TEXT),
            files=_list(_ref("file")),
        ),
        "$defs": {
            "file": _object(
                path=_TEXT,
                seconds=_NUMBER,
                kernels=_list(_ref("kernel")),
                findings=_list(_ref("finding")),
                errors=_list(_ref("error")),
            ),
            "error": _object(message=_TEXT, severity=_SEVERITY, path=_TEXT, range=_or_null(_ref("range"))),
            "kernel": _object(
                name=_TEXT,
                range=_ref("range"),
                verdict=_one_of(Verdict),
                reasons=_list(_TEXT),
                assumptions=_list(_TEXT),
                launch=_or_null(_ref("launch")),
            ),
            "launch": _object(
                block=_ref("extents"),
                grid=_or_null(_ref("extents")),
                dynamic_shared=_or_null(_COUNT),
                source=_one_of(LaunchSource),
                assumed=_FLAG,
                arguments=_INTEGERS,
            ),
            "finding": _object(
                code=_one_of(Code),
                status=_one_of(Status),
                severity=_SEVERITY,
                message=_TEXT,
                kernel=_TEXT,
                path=_TEXT,
                range=_ref("range"),
                related=_list(_object(range=_ref("range"), path=_TEXT, message=_TEXT)),
                also=_list(_ref("finding")),
                kind=_or_null(_one_of(RaceKind)),
                condition=_or_null(_TEXT),
                reason=_or_null(_TEXT),
                next=_TEXT,
                witness=_or_null(_ref("witness")),
                bank=_or_null(_ref("bank")),
                missed=_FLAG,
                observation=_or_null(_ref("observation")),
            ),
            "witness": _object(
                threads=_pair(_ref("indices")),
                blocks=_or_null(_pair(_ref("indices"))),
                array=_TEXT,
                index=_list(_WHOLE),
                values=_INTEGERS,
            ),
            "bank": _object(ways=_COUNT, wavefronts=_COUNT, ideal=_COUNT, histogram=_list(_COUNT)),
            "observation": _object(
                device=_TEXT,
                launch=_ref("launch"),
                seconds=_NUMBER,
                pairs=_COUNT,
                words=_COUNT,
                blocks=_object(checked=_COUNT, total=_COUNT),
                instance=_or_null(_TEXT),
                told=_TEXT,
                launches=_list({"type": "integer", "minimum": 1}),
                in_blocks=_COUNT,
                values=_or_null(_pair(_TEXT)),
            ),
            "range": _object(start=_ref("position"), end=_ref("position")),
            "position": _object(
                line={"type": "integer", "minimum": 1}, column={"type": "integer", "minimum": 1}
            ),
            "extents": _triple({"type": "integer", "minimum": 1}),
            "indices": _triple(_COUNT),
        },
    }


def _object(**properties: Json) -> Json:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _pair(items: Json) -> Json:
    return {**_list(items), "minItems": 2, "maxItems": 2}


def _triple(items: Json) -> Json:
    return {**_list(items), "minItems": 3, "maxItems": 3}


def _one_of(values: Any) -> Json:
    return {"enum": [value.value for value in values]}


def _or_null(kind: Json) -> Json:
    return {"anyOf": [kind, {"type": "null"}]}


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}
