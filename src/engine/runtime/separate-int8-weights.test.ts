import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { createSession, runSession, Tensor } from "#onnxruntime";
import { compile, concat, constant, dim, input, int8WeightMatmul, type Node, weight } from "../graph/index.js";
import { INT8_PRODUCT } from "../graph/emitter.js";
import { type ModelProto, ModelProtoSchema } from "../graph/onnx/onnx_pb.js";
import { separateInt8Weights } from "./separate-int8-weights.js";

const INNER = 8;
const COLUMNS = 4;
const x = input("x", "float32", [dim("rows"), INNER]);
/** Two products of the same codes, for the two halves of 16 bits. */
const multiply = (codes: Node) => int8WeightMatmul(x, { codes }, { transposeB: false, bits: 16, gradientBits: 16 });
const draw = (seed: number) =>
  constant(
    "int8",
    [INNER, COLUMNS],
    Int8Array.from({ length: INNER * COLUMNS }, (_, i) => (i * seed) % 101),
  );

const listCodes = ({ graph }: ModelProto): string[] =>
  graph!.node.filter(({ opType }) => opType === INT8_PRODUCT).map((node) => node.input[1]);

async function run(model: Uint8Array): Promise<ArrayLike<number>> {
  const session = await createSession(model, { logSeverityLevel: 4 });
  const values = Float32Array.from({ length: 2 * INNER }, (_, i) => i - INNER / 3);
  const { y } = await runSession(session, { x: new Tensor("float32", values, [2, INNER]) }, { y: null });
  await session.release();
  return y.data as Float32Array;
}

describe("separateInt8Weights", () => {
  it.each([
    ["constants", draw(7)],
    ["constants that are joined", concat([draw(7), draw(13)], 1)],
  ])("gives each product a copy of %s, and changes no value", async (_, codes) => {
    const given = compile({ y: multiply(codes) }).serialize(() => ({ file: "", offset: 0, byteLength: 0 }));
    const separated = separateInt8Weights(given);
    const [before, after] = [given, separated].map((bytes) => listCodes(fromBinary(ModelProtoSchema, bytes)));
    expect(before.length).toBeGreaterThan(1);
    expect(new Set(before).size).toBe(1);
    expect(new Set(after).size).toBe(before.length);
    expect(await run(separated)).toEqual(await run(given));
  });

  it("leaves weights in their file", () => {
    const location = { file: "weights.bin", offset: 64, byteLength: INNER * COLUMNS };
    const codes = weight("w.int8", "int8", [INNER, COLUMNS]);
    const model = fromBinary(
      ModelProtoSchema,
      separateInt8Weights(compile({ y: multiply(codes) }).serialize(() => location)),
    );
    const [first, second] = listCodes(model).map((name) =>
      model.graph!.initializer.find((each) => each.name === name)!,
    );
    expect(second.name).not.toBe(first.name);
    expect(second.externalData).toEqual(first.externalData);
  });
});
