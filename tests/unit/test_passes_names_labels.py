import numpy as np
import onnx
from trimming import kept, parse, passes, run

X = np.array([1, -2], np.float32)

TALKATIVE = parse("g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[2] a> { a = Mul(x, w) y = Abs(a) }")
TALKATIVE.doc_string, TALKATIVE.domain, TALKATIVE.model_version = "what it is\nfor", "org.example", 7
for key, value in (("names", "{0: '犬'}"), ("empty", "")):
    TALKATIVE.metadata_props.add(key=key, value=value)
TALKATIVE.graph.doc_string = "of the graph"
TALKATIVE.graph.input[0].doc_string = "of the input"
TALKATIVE.graph.node[0].doc_string = "made in file.py, line 3"
TALKATIVE.graph.node[0].metadata_props.add(key="pkg.torch.stack_trace", value="long")
TALKATIVE.graph.initializer[0].doc_string = "of the weight"


def test_what_an_application_reads_stays_and_what_an_exporter_left_goes() -> None:
    proto = kept(TALKATIVE, {"x": X}).proto

    assert (proto.doc_string, proto.domain, proto.model_version) == ("what it is\nfor", "org.example", 7)
    assert {entry.key: entry.value for entry in proto.metadata_props} == {"names": "{0: '犬'}", "empty": ""}
    assert (proto.graph.doc_string, proto.graph.input[0].doc_string) == ("of the graph", "of the input")
    assert not proto.graph.node[0].doc_string and not proto.graph.node[0].metadata_props
    assert not proto.graph.initializer[0].doc_string


def test_all_is_kept_when_asked() -> None:
    proto = kept(TALKATIVE, {"x": X}, keep_metadata=True).proto

    assert proto.graph.node[0].doc_string and proto.graph.node[0].metadata_props
    assert [info.name for info in proto.graph.value_info] == ["a"]


def test_all_is_dropped_when_asked() -> None:
    proto = kept(TALKATIVE, {"x": X}, drop_metadata=True).proto

    assert not proto.doc_string and not proto.metadata_props and not proto.graph.input[0].doc_string


def test_recorded_shapes_go_but_not_those_of_foreign_nodes() -> None:
    model = """<ir_version: 8, opset_import: ["" : 17, "my.own" : 1]>
    g (float[2] x) => (float[2] y) <float[2] a, float[2] b> { a = my.own.Thing(x) b = Exp(a) y = Abs(b) }"""

    assert [info.name for info in passes(model).proto.graph.value_info] == ["a"]


def test_nodes_that_share_a_name_get_their_own() -> None:
    proto = parse("g (float[2] x) => (float[2] y) { a = Exp(x) b = Abs(a) y = Sqrt(b) }")
    for node in proto.graph.node[:2]:
        node.name = "same"

    done = passes(proto)

    assert [node.name for node in done.proto.graph.node] == ["same", "same_2", ""]
    np.testing.assert_allclose(run(done.proto, {"x": X})[0], np.sqrt(np.exp(X)), rtol=1e-6)


def test_outputs_that_are_left_out_stay_left_out() -> None:
    """A BatchNormalization whose further outputs are named is in training mode."""
    model = """<ir_version: 8, opset_import: ["" : 12]>
    g (float[1, 2, 2] x) => (float[1, 2, 2] y) <float[2] s = {1, 2}>
    { y = BatchNormalization(x, s, s, s, s) }"""

    done = kept(model, {"x": np.ones((1, 2, 2), np.float32)})

    assert list(done.proto.graph.node[0].output) == ["y"]


def test_inputs_that_are_left_out_stay_left_out() -> None:
    model = "g (float[2] x) => (float[2] y) <float top = {1}> { a = Clip(x, , top) y = Identity(a) }"

    done = kept(model, {"x": X})

    assert list(done.proto.graph.node[0].input) == ["x", "", "top"]


def test_names_may_be_in_any_script() -> None:
    proto = parse("g (float[2] x) => (float[2] y) { a = Exp(x) b = Identity(a) y = Abs(b) }")
    for node in proto.graph.node:
        for names in (node.input, node.output):
            names[:] = [{"a": "中间", "x": "入力 ✓", "y": "ε/выход"}.get(name, name) for name in names]
    proto.graph.input[0].name, proto.graph.output[0].name = "入力 ✓", "ε/выход"

    done = kept(proto, {"入力 ✓": X})

    assert done.operators == ["Exp", "Abs"]


def test_nodes_out_of_order_are_sorted_in_branches_too() -> None:
    proto = parse("""g (bool c, float[2] x) => (float[2] y) {
        h = Exp(x)
        r = If (c) <then_branch = t () => (float[2] b) { a = Mul(h, h) b = Add(a, h) },
                    else_branch = e () => (float[2] d) { d = Neg(h) }>
        y = Abs(r)
    }""")
    right = [run(proto, {"c": np.array(c), "x": X})[0] for c in (True, False)]
    branch = proto.graph.node[1].attribute[0].g
    for graph in (proto.graph, branch):
        nodes = list(graph.node)
        del graph.node[:]
        graph.node.extend(reversed(nodes))

    done = passes(proto)

    onnx.checker.check_model(done.proto)
    for condition, answer in zip((True, False), right, strict=True):
        np.testing.assert_array_equal(run(done.proto, {"c": np.array(condition), "x": X})[0], answer)


def test_what_nothing_uses_goes() -> None:
    model = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3, "mine" : 1]>
    g (float[2] x) => (float[2] y) <float[2] w = {1, 2}, float[3] never = {1, 2, 3}> {
        dead = Exp(x) deader = Mul(dead, w) y = Neg(x)
    }
    <opset_import: ["" : 17], domain: "mine"> Twice (v) => (u) { u = Add(v, v) }"""

    proto = kept(model, {"x": X}).proto

    assert [node.op_type for node in proto.graph.node] == ["Neg"]
    assert not proto.graph.initializer and not proto.functions
    assert [opset.domain for opset in proto.opset_import] == [""]


def test_local_functions_are_inlined() -> None:
    model = """<ir_version: 8, opset_import: ["" : 17, "mine" : 1]> g (float[2] x) => (float[2] y) {
        a = mine.Twice(x) y = mine.Twice(a)
    } <opset_import: ["" : 17], domain: "mine"> Twice (v) => (w) { u = Add(v, v) w = Identity(u) }"""

    done = kept(model, {"x": X})

    assert done.operators == ["Add", "Add"] and not done.proto.functions


def test_a_function_that_would_unfold_a_thousandfold_stays_a_function() -> None:
    bodies = '<opset_import: ["" : 17], domain: "mine"> F0 (v0) => (v1) { v1 = Exp(v0) }'
    for level in range(1, 6):
        calls = " ".join(f"v{n} = mine.F{level - 1}(v{n - 1})" for n in range(1, 6))
        bodies += f'<opset_import: ["" : 17, "mine" : 1], domain: "mine"> F{level} (v0) => (v5) {{ {calls} }}'
    model = f"""<ir_version: 8, opset_import: ["" : 17, "mine" : 1]>
    g (float[2] x) => (float[2] y) {{ y = mine.F5(x) }} {bodies}"""

    assert len(passes(model).proto.functions) == 6
