"""Receipt assertions about what the harness saw by itself: files that changed, and artifacts.

Owns ``state_diff`` and ``artifact_digest``. The receipt can lie, the files cannot: these are the only
kinds whose evidence the subject does not write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from agent_eval.records.problems import Problem

from .engine import Check, Evidence, Finding, Spec, failed, missing, not_applicable, passed, register, unsupported
from .fields import GLOBS, TEXT, Field, choice, record_of
from .matchers import glob_test
from .receipt_base import ARTIFACT_DIGESTS, STATE_DIFF, ReceiptKind, shown
from .receipt_kinds_files import MAX_NAMED, named_paths, pointers_of

_SECTION = "filesTouched"
_CHANGES = ("added", "removed", "changed")
_EXPECT = record_of("an expected difference", {name: Field(GLOBS, f"globs of files that may be {name}") for name in _CHANGES})


@register
class StateDiff(ReceiptKind):
    """The harness looked at the files itself: what changed is what the receipt declares."""

    name = "state_diff"
    summary = "passes when the files that really changed are the touched files, and match 'expect'"
    sections: ClassVar[tuple[str, ...]] = (_SECTION,)
    fields: ClassVar[Mapping[str, Field]] = {
        "before": Field(TEXT, "the name of the earlier tree in messages", default="before"),
        "after": Field(TEXT, "the name of the later tree in messages", default="after"),
        "expect": Field(_EXPECT, "which files may be added, removed and changed", default="any that are declared"),
        "ignore": Field(GLOBS, "changed files that need no declaration, such as build output", default="none"),
        "unobserved": Field(
            choice("unsupported", "not_applicable"), "the status when the harness was given no trees", default="unsupported"
        ),
    }

    def prepare(self, spec: Spec) -> Check:
        decide = super().prepare(spec)
        answer = not_applicable if spec.get("unobserved") == "not_applicable" else unsupported

        def check(evidence: Evidence) -> Finding:
            if STATE_DIFF not in evidence:
                return answer("the harness was given no trees to compare (--git, or --before and --after)", f"/{_SECTION}")
            return decide(evidence)

        return check

    def decide(self, spec: Spec) -> Check:
        ignored = glob_test(spec["ignore"]) if "ignore" in spec else lambda path: False
        expect = {name: glob_test(spec["expect"][name]) for name in spec.get("expect", ())}
        names = f"{spec.get('before', 'before')} -> {spec.get('after', 'after')}"

        def check(evidence: Evidence) -> Finding:
            difference, declared = evidence[STATE_DIFF], evidence[_SECTION]
            real = {path: name for name in _CHANGES for path in difference[name]}
            known = frozenset(declared)
            hidden = [path for path in sorted(real) if path not in known and not ignored(path)]
            if hidden:
                text = ", ".join(f"{real[path]} {shown(path)}" for path in hidden[:MAX_NAMED])
                return failed(f"changed and not declared ({names}): {text}", f"/{_SECTION}", reason="hidden_change")
            claimed = [index for index, path in enumerate(declared) if path not in real]
            if claimed:
                text = named_paths([declared[index] for index in claimed])
                return failed(f"declared and not changed ({names}): {text}", *pointers_of(claimed), reason="claimed_change")
            odd = [path for path, name in sorted(real.items()) if name in expect and not expect[name](path)]
            odd += [path for path, name in sorted(real.items()) if expect and name not in expect and not ignored(path)]
            if odd:
                strange = frozenset(odd)
                touched = [index for index, path in enumerate(declared) if path in strange]
                return failed(f"not an expected change ({names}): {named_paths(odd)}", *pointers_of(touched), reason="unexpected_change")
            return passed(f"{len(real)} changed files, all declared ({names})", f"/{_SECTION}")

        return check


@register
class ArtifactDigest(ReceiptKind):
    """The file is there and has the digest that the receipt gives: the harness looked."""

    name = "artifact_digest"
    summary = "passes when the artifacts of this path or role exist under the evidence root with the receipt's sha256"
    sections: ClassVar[tuple[str, ...]] = ("artifacts",)
    fields: ClassVar[Mapping[str, Field]] = {"path": Field(TEXT, "the path of the artifact"), "role": Field(TEXT, "the role of the artifacts")}

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        return [] if "path" in spec or "role" in spec else [Problem(where, "artifact_digest needs path or role")]

    def decide(self, spec: Spec) -> Check:
        def chosen(artifact: Mapping[str, Any]) -> bool:
            return all(artifact.get(key) == spec[key] for key in ("path", "role") if key in spec)

        def check(evidence: Evidence) -> Finding:
            artifacts = evidence["artifacts"]
            places = [index for index, artifact in enumerate(artifacts) if chosen(artifact)]
            if not places:
                return failed("no such artifact", "/artifacts")
            silent = [index for index in places if "sha256" not in artifacts[index]]
            if silent:
                return missing("an artifact has no sha256", *(f"/artifacts/{index}" for index in silent))
            if ARTIFACT_DIGESTS not in evidence:
                return unsupported("the harness was given no evidence root", *(f"/artifacts/{index}" for index in places))
            for index in places:
                real = evidence[ARTIFACT_DIGESTS].get(artifacts[index]["path"])
                if real is None:
                    return failed("no such file under the evidence root", f"/artifacts/{index}/path", reason="artifact_absent")
                if real != artifacts[index]["sha256"].removeprefix("sha256:"):
                    return failed("the file has another digest", f"/artifacts/{index}/sha256", reason="artifact_changed")
            return passed("digest as recorded", *(f"/artifacts/{index}" for index in places))

        return check
