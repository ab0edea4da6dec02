import { fromBinary } from "@bufbuild/protobuf";
import { afterAll, describe, expect, it } from "vitest";
import { Runtime } from "../runtime/runtime.js";
import { float32, int32, tensor } from "../tensor/tensor.js";
import {
  add,
  addDims,
  cast,
  compile,
  constant,
  exp,
  dimValue,
  gradient,
  input,
  layerNorm,
  logSoftmax,
  matmul,
  mul,
  mulDims,
  neg,
  reduceSum,
  reshape,
  rmsNorm,
  scalar,
  slice,
  sub,
  subDims,
  dim,
  tokenLogProbs,
  weight,
  withGradientOf,
  type CompiledGraph,
  type Node,
} from "./index.js";
import { ModelProtoSchema, type GraphProto, type ModelProto } from "./onnx/onnx_pb.js";
import { output } from "./ops/layout.js";

const runtime = new Runtime({ device: "cpu", threads: 1 });
afterAll(() => runtime.close());

function parse(graph: CompiledGraph): ModelProto {
  return fromBinary(
    ModelProtoSchema,
    graph.serialize(({ name }) => ({ file: `${name}.bin`, offset: 64, byteLength: 12 })),
  );
}

const bodies = (graph: GraphProto): GraphProto[] =>
  graph.node.flatMap(({ attribute }) => attribute.flatMap(({ g }) => (g === undefined ? [] : [g, ...bodies(g)])));

/** How often each ONNX operator stands in a graph and the graphs inside it. */
function operators(outputs: Readonly<Record<string, Node>>): Record<string, number> {
  const { graph } = parse(compile(outputs));
  const counts: Record<string, number> = {};
  for (const { opType } of [graph!, ...bodies(graph!)].flatMap(({ node }) => node))
    counts[opType] = (counts[opType] ?? 0) + 1;
  return counts;
}

/** Names that are computed or stored and then read by nothing. */
function unread(outputs: Readonly<Record<string, Node>>): string[] {
  const { graph } = parse(compile(outputs));
  const all = [graph!, ...bodies(graph!)];
  const read = new Set(
    all.flatMap((g) => [...g.node.flatMap((node) => node.input), ...g.output.map(({ name }) => name)]),
  );
  const made = all.flatMap((g) => [...g.node.map((node) => node.output[0]), ...g.initializer.map(({ name }) => name)]);
  return made.filter((name) => !read.has(name));
}

const rows = dim("rows");
const tokens = dim("tokens");
const x = () => input("x", "float32", [rows, 5]);

describe("compile", () => {
  it("computes equal subexpressions once", () => {
    const squareOfExp = (value: Node) => mul(exp(value), exp(value));
    expect(operators({ y: add(squareOfExp(x()), neg(squareOfExp(x()))) })).toEqual({
      Exp: 1,
      Mul: 1,
      Neg: 1,
      Add: 1,
    });
    const norm = () => rmsNorm(x(), input("w", "float32", [5]), 1e-5);
    expect(operators({ y: add(norm(), output(norm(), 1)) }).SimplifiedLayerNormalization).toBe(1);
    // Nor is anything copied, but for an output of two names, and an input or a weight that is an
    // output.
    expect(operators({ a: neg(x()), b: neg(x()) })).toEqual({ Neg: 1, Identity: 1 });
    expect(operators({ a: x(), b: exp(neg(x())), c: neg(x()) })).toEqual({ Neg: 1, Exp: 1, Identity: 1 });
  });

  it("keeps nodes apart that differ only in an attribute", () => {
    const norm = (epsilon: number) => rmsNorm(x(), input("w", "float32", [5]), epsilon);
    expect(operators({ y: add(norm(1e-5), norm(1e-6)) }).SimplifiedLayerNormalization).toBe(2);
    const y = input("y", "float32", [rows, 5]);
    const products = [1, -1, Infinity, -Infinity, NaN, 0, -0].map((alpha) =>
      matmul(x(), y, { transposeB: true, alpha }),
    );
    expect(operators(Object.fromEntries(products.map((node, i) => [`p${i}`, node]))).FusedMatMul).toBe(7);
    const halves = [slice(x(), 1, 0, 2), slice(x(), 1, 3, 2)];
    expect(operators({ y: sub(halves[0], halves[1]) }).Slice).toBe(2);
    const cut = [rows, tokens].map((length) => slice(input("long", "float32", [addDims(rows, tokens)]), 0, 0, length));
    const giver = input("tokens", "float32", [tokens]);
    expect(operators({ a: cut[0], b: cut[1], c: neg(x()), d: neg(giver) }).Slice).toBe(2);
  });

  it("merges equal small constants, and large ones by identity", () => {
    const large = new Float32Array(100);
    const twice = [large, large, new Float32Array(100)].map((data) => constant("float32", [100], data));
    const { graph } = parse(compile({ y: twice.reduce(add), z: add(add(x(), 0.5), scalar(0.5)) }));
    expect(graph!.initializer.map(({ dims }) => dims.join())).toEqual(["100", "100", ""]);
  });

  it("declares each value's shape, with equal names for equal dimensions", () => {
    const long = reshape(x(), [mulDims(rows, 5)]);
    const { graph } = parse(compile({ y: reduceSum(mul(long, exp(long))), z: matmul(x(), x(), { transposeB: true }) }));
    const maker = new Map(graph!.node.map(({ opType, output: [name] }) => [name, opType]));
    const described = [...graph!.valueInfo, ...graph!.output];
    const shapes = described.map(({ name, type }) => {
      const dims = type?.value.case === "tensorType" ? type.value.value.shape!.dim : [];
      return [maker.get(name), ...dims.map(({ value }) => String(value.value))];
    });
    expect(shapes).toEqual(
      expect.arrayContaining([
        ["Reshape", "5*rows"],
        ["Exp", "5*rows"],
        ["Mul", "5*rows"],
        ["FusedMatMul", "rows", "rows"],
      ]),
    );
    expect(new Set(described.map(({ name }) => name)).size).toBe(described.length);
  });

  it("omits nodes that no output depends on", () => {
    const used = exp(x());
    const merged = withGradientOf(used, mul(input("gradient only", "float32", [rows, 5]), 3));
    gradient(reduceSum(merged), [x()]);
    expect(operators({ y: merged })).toEqual({ Exp: 1 });
    expect(compile({ y: merged }).inputs.map(({ name }) => name)).toEqual(["x"]);
    const norm = layerNorm(x(), input("w", "float32", [5]), input("b", "float32", [5]), 1e-5);
    const head = tokenLogProbs({
      hidden: norm,
      head: weight("head", "float32", [7, 5]),
      targets: input("targets", "int32", [rows]),
      inverseTemperature: scalar(2),
      softcap: 3,
      entropy: "gradient",
    });
    const [slope] = gradient(reduceSum(head.logProbs), [x()]);
    expect(unread({ y: head.logProbs })).toEqual([]);
    expect(unread({ y: head.entropy! })).toEqual([]);
    expect(unread({ slope })).toEqual([]);
    // Logits only, against logits and their way back through the head.
    expect(operators({ y: head.logProbs }).MatMul).toBeUndefined();
    expect(operators({ y: head.logProbs, slope }).MatMul).toBe(1);
  });

  it("rejects a name used twice", () => {
    const one = input("same", "float32", [3]);
    expect(() => compile({ y: add(one, input("same", "float32", [1])) })).toThrow(
      '"same" is declared both as float32[3] and as float32[1].',
    );
    expect(() => compile({ y: add(one, cast(input("same", "int32", [3]), "float32")) })).toThrow(
      expect.objectContaining({ code: "SHAPE_MISMATCH" }),
    );
    expect(() => compile({ y: add(one, weight("same", "float32", [3])) })).toThrow('"same" is used twice');
    expect(() => compile({ same: neg(one) })).toThrow('"same" is used twice');
    expect(() => compile({ same: weight("same", "float32", [3]) })).toThrow('"same" is used twice');
    expect(compile({ y: add(one, input("same", "float32", [3])) }).inputs).toHaveLength(1);
  });

  it("names a dimension that no input determines", () => {
    const doubled = input("doubled", "float32", [mulDims(2, rows)]);
    expect(() => compile({ y: mul(doubled, dimValue(rows)) })).toThrow('No graph input determines dimension "rows".');
  });

  it("serializes repeatedly and for any device", () => {
    const logits = matmul(x(), weight("w", "float32", [7, 5]), { transposeB: true });
    const graph = compile({ y: logits, n: logSoftmax(matmul(logits, logits, { transposeA: true, alpha: 2 })) });
    const written = (device?: "cpu" | "webgpu") =>
      graph.serialize(() => ({ file: "f", offset: 0, byteLength: 140 }), device);
    const forCpu = written();
    const forWebgpu = written("webgpu");
    expect(written("cpu")).toEqual(forCpu);
    expect(written("webgpu")).toEqual(forWebgpu);
    const operatorsOf = (bytes: Uint8Array) =>
      fromBinary(ModelProtoSchema, bytes).graph!.node.map(({ opType }) => opType);
    expect(operatorsOf(forCpu)).toEqual(expect.arrayContaining(["FusedMatMul", "LogSoftmax"]));
    // What WebGPU lacks would run on the processor, with the values copied there and back.
    expect(operatorsOf(forWebgpu).filter((name) => ["FusedMatMul", "LogSoftmax"].includes(name))).toEqual([]);
  });

  it("declares types, weights and operator sets", () => {
    const graph = compile({ y: add(x(), weight("w", "float32", [5])), rows: dimValue(rows) });
    expect(graph.inputs).toEqual([{ name: "x", dtype: "float32", shape: [rows, 5] }]);
    expect(graph.outputs.map(({ name }) => name)).toEqual(["y", "rows"]);
    expect(graph.weights).toEqual([{ name: "w", dtype: "float32", shape: [5] }]);
    const model = parse(graph);
    expect(model.opsetImport.map(({ domain, version }) => [domain, version])).toEqual([
      ["", 21n],
      ["com.microsoft", 1n],
    ]);
    const stored = model.graph!.initializer.find(({ name }) => name === "w")!;
    expect(stored.externalData.map(({ key, value }) => [key, value])).toEqual([
      ["location", "w.bin"],
      ["offset", "64"],
      ["length", "12"],
    ]);
    const [dim] = model.graph!.input[0].type!.value.value!.shape!.dim;
    expect(dim.value).toEqual({ case: "dimParam", value: "rows" });
  });
});

describe("named dimensions", () => {
  it("take their values from the inputs of each run, including sums and products", async () => {
    const both = input("both", "float32", [addDims(mulDims(2, rows, tokens), rows)]);
    const giver = input("giver", "int32", [tokens, rows]);
    const length = addDims(mulDims(rows, tokens), rows);
    const graph = compile({
      tail: slice(both, 0, mulDims(rows, tokens), length),
      square: reshape(slice(both, 0, 0, mulDims(rows, tokens)), [tokens, rows]),
      size: dimValue(subDims(mulDims(length, length), tokens)),
      asFloat: cast(giver, "float32"),
    });
    const session = await runtime.createSession(graph);
    for (const [r, t] of [
      [2, 3],
      [1, 1],
      [3, 0],
      [0, 4],
      [5, 2],
    ]) {
      const values = Float32Array.from({ length: 2 * r * t + r }, (_, i) => i);
      const results = await session.run({
        both: tensor("float32", [values.length], values),
        giver: tensor("int32", [t, r], new Int32Array(r * t)),
      });
      expect([...results.tail.data]).toEqual([...values.subarray(r * t)]);
      expect(results.square.shape).toEqual([t, r]);
      expect([...results.square.data]).toEqual([...values.subarray(0, r * t)]);
      expect(results.size.data[0]).toBe((r * t + r) ** 2 - t);
    }
    await expect(session.run({ both: float32([1, 2, 3]), giver: int32([0, 0], [2, 1]) })).rejects.toThrow(
      'Input "both" must be float32[rows+2*rows*tokens], got float32[3]',
    );
    await session.release();
  });
});
