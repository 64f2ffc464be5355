"""Hypothesis strategies for tasks with every field in use, bytes that are no UTF-8 and texts of every kind."""

from pathlib import Path

from hypothesis import strategies as st

from gagar_env.tasks.task import Environment, EpisodeLimits, Image, RepoSource, Solution, Task, Tests

SEPARATORS = "\r\n\t\u2028\u2029\u0085\x0b\x0c\x00\x7f\ufeff\\\"'#=[]"
texts = st.text(st.characters(codec="utf-8") | st.sampled_from(SEPARATORS), max_size=30)
filled = texts.map(lambda text: f"{text}x")
blobs = st.one_of(
    st.just(b""),
    st.binary(max_size=40),
    texts.map(str.encode),
    st.sampled_from([b"\xff\xfe", b"{", b'["a"]', b"a\r\nb\xe2\x80\xa8c", b"null", b'{"base64": "x"}']),
)
segments = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,8}", fullmatch=True)
task_ids = st.lists(segments, min_size=1, max_size=3).map("/".join)
relative = st.lists(st.sampled_from(["tests", "a b", "ä", "test_x.py", "x.y"]), min_size=1, max_size=3).map("/".join)
absolute = st.sampled_from(["/logs/verifier", "/tests", "/a b/ü"])
test_names = st.lists(filled, max_size=4, unique=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
positive = st.floats(min_value=0.001, max_value=1e9)


@st.composite
def repos(draw):
    kind = draw(st.sampled_from(["tree", "archive", "git", "image"]))
    path = Path() if kind == "image" else Path("/somewhere") / draw(relative)
    return RepoSource(
        kind=kind,
        path=path,
        url=draw(st.sampled_from(["", "https://example.org/x?y=1"])),
        commit=draw(st.sampled_from(["", "4c288bc97ea371817199908d0d9b12de9dae327e"])),
        sha256=draw(st.sampled_from(["", "ab" * 32])),
        patch=draw(blobs),
        missing=draw(st.sampled_from(["", "no clone: pass its folder"])),
    )


@st.composite
def images(draw):
    source = draw(
        st.sampled_from(
            [
                {"reference": "python:3.12-slim"},
                {"archive": Path("/somewhere/image.tar")},
                {"dockerfile": 'FROM x\nRUN echo "a\\\\b"\r\n', "context": Path("/somewhere")},
            ]
        )
    )
    return Image(
        **source,
        commands=tuple(draw(st.lists(texts, max_size=2))),
        platform=draw(st.sampled_from(["", "linux/amd64"])),
        workdir=draw(absolute),
        hidden=tuple(draw(st.lists(absolute, max_size=2))),
        capabilities=tuple(draw(st.sampled_from([[], ["SYS_PTRACE"]]))),
        shm_mb=draw(st.integers(1, 999)),
    )


@st.composite
def judged(draw, folder=None):
    """`Tests` of every mode; `folder` is where their files are, if they are not a patch."""
    mode = draw(st.sampled_from(["f2p_p2p", "exact_map", "exit_code", "reward_file"]))
    scripted = mode != "f2p_p2p" or draw(st.booleans())
    names = draw(st.lists(filled, min_size=1, max_size=6, unique=True))
    cut = draw(st.integers(1, len(names)))
    return Tests(
        mode=mode,
        files=tuple(draw(st.lists(relative, min_size=0 if scripted else 1, max_size=3))),
        fail_to_pass=tuple(names[:cut]),
        pass_to_pass=tuple(names[cut:]),
        expected=draw(st.dictionaries(texts, texts, min_size=1, max_size=3)) if mode == "exact_map" else {},
        script=f"#!/bin/bash\n{draw(texts)}" if scripted else "",
        parser="parse_log_pytest" if scripted else "",
        reward_folder=draw(absolute),
        pass_at=draw(st.floats(-5, 5)),
        patch=b"" if folder else draw(blobs),
        folder=folder,
        place=draw(absolute) if folder and scripted else "",
        support=tuple(draw(st.lists(relative, max_size=2))),
        timeout_s=draw(positive),
        arguments=tuple(draw(st.lists(texts, max_size=2))),
    )


@st.composite
def tasks(draw, folder=None):
    return Task(
        id=draw(task_ids),
        title=draw(texts),
        problem_statement=draw(filled),
        repo=draw(repos()),
        tests=draw(judged(folder)),
        environment=Environment(
            python=draw(texts),
            requirements=tuple(draw(st.lists(texts, max_size=2))),
            pythonpath=tuple(draw(st.lists(texts, max_size=2))),
            generated_files=draw(st.dictionaries(texts, texts, max_size=2)),
            variables=draw(st.dictionaries(texts, texts, max_size=2)),
            missing=draw(texts),
        ),
        limits=EpisodeLimits(turns=draw(st.integers(1, 999)), command_s=draw(positive), cpus=draw(positive)),
        image=draw(st.none() | images()),
        tags=tuple(draw(st.lists(texts, max_size=2))),
        concerns=tuple(draw(st.lists(texts, max_size=2))),
        solution_patch=draw(blobs),
        solutions=tuple(draw(st.lists(solutions, max_size=3))),
        extra=draw(st.dictionaries(texts, json_values, max_size=3)),
    )


solutions = st.builds(
    Solution,
    name=st.sampled_from(["clean-a", "clean-a-b", "wrong-z", "sloppy-", "x y", "../up", ""]),
    kind=st.sampled_from(["clean", "sloppy", "wrong"]),
    patch=blobs,
)
