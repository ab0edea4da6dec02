import { readFileSync } from "node:fs";
import { fromBinary, toBinary, type DescMessage } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import {
  decodeForwardBackward,
  decodeForwardBackwardOutput,
  encodeForwardBackward,
  encodeForwardBackwardOutput,
} from "./forward-backward.js";
import { decodeSampleResponse, encodeSampleResponse } from "./sample-response.js";
import { ForwardBackwardOutputSchema, ForwardBackwardRequestSchema, SampleResponseSchema } from "./tinker_pb.js";
import { decodeNumbers, decodeTensor, encodeNumbers, encodeTensor, toDense, type WireTensor } from "./wire-tensor.js";

/** A tensor as the script that recorded the messages prints it. */
interface RecordedTensor {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data?: readonly number[];
  readonly values?: readonly number[];
  readonly crow_indices?: readonly number[];
  readonly col_indices?: readonly number[];
}

interface Recorded {
  readonly kind: "forward_backward" | "forward_backward_output" | "sample";
  readonly base64: string;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  readonly decoded: any;
}

/**
 * Messages between the official SDK 0.38.0 and two servers, with what Python's protobuf reads in
 * them.
 */
const recorded = JSON.parse(
  readFileSync(new URL("../../../test/fixtures/tinker/messages.json", import.meta.url), "utf8"),
) as Recorded[];
const ofKind = (kind: Recorded["kind"]) =>
  recorded.filter((each) => each.kind === kind).map((each) => ({ ...each, bytes: Buffer.from(each.base64, "base64") }));

const readTensor = ({ dtype, shape, data, values, crow_indices: crow, col_indices: col }: RecordedTensor) => ({
  dtype,
  shape,
  data: data ?? values,
  ...(crow !== undefined && { sparse: { crow, col } }),
});
const listValues = ({ data, ...tensor }: WireTensor) => ({ ...tensor, data: Array.from(data) });

describe("messages of the Tinker API", () => {
  it("are written byte for byte as they were read", () => {
    const schemas: Readonly<Record<Recorded["kind"], DescMessage>> = {
      forward_backward: ForwardBackwardRequestSchema,
      forward_backward_output: ForwardBackwardOutputSchema,
      sample: SampleResponseSchema,
    };
    for (const { kind, base64 } of recorded) {
      const bytes = new Uint8Array(Buffer.from(base64, "base64"));
      const message = fromBinary(schemas[kind], bytes);
      // Maps have no order, so that a message with several entries is compared after another
      // reading.
      expect(fromBinary(schemas[kind], toBinary(schemas[kind], message))).toEqual(message);
      expect(toBinary(schemas[kind], message)).toHaveLength(bytes.length);
    }
  });

  it.each(ofKind("forward_backward"))("decode a training pass ($decoded.loss_fn)", ({ bytes, decoded }) => {
    const request = decodeForwardBackward(bytes);
    expect(request).toMatchObject({
      modelId: decoded.model_id,
      seqId: decoded.seq_id,
      lossFn: decoded.loss_fn,
      lossFnConfig: decoded.loss_fn_config_v2,
      forwardOnly: decoded.forward_only,
    });
    for (const [i, { tokens, lossFnInputs }] of request.data.entries()) {
      expect(tokens).toEqual(
        decoded.data[i].model_input.flatMap((chunk: Record<string, number[]>) => chunk.encoded_text),
      );
      const expected = Object.entries(decoded.data[i].loss_fn_inputs as Record<string, RecordedTensor>);
      expect(Object.fromEntries(Object.entries(lossFnInputs).map(([name, each]) => [name, listValues(each)]))).toEqual(
        Object.fromEntries(expected.map(([name, each]) => [name, readTensor(each)])),
      );
    }
    expect(decodeForwardBackward(encodeForwardBackward(request))).toEqual(request);
  });

  it.each(ofKind("forward_backward_output"))("decode the result of a training pass", ({ bytes, decoded }) => {
    const output = decodeForwardBackwardOutput(bytes);
    expect(output.metrics).toEqual(decoded.metrics);
    const [record] = decoded.loss_fn_outputs;
    for (const [name, { offsets, data }] of Object.entries<{ offsets: number[]; data: number[] }>(record.fields)) {
      const values = output.lossFnOutputs.map((datum) => Array.from(datum[name].data));
      expect(values.flat()).toEqual(data);
      expect(values.map(({ length }) => 4 * length)).toEqual(offsets.slice(1).map((end, i) => end - offsets[i]));
    }
    expect(decodeForwardBackwardOutput(encodeForwardBackwardOutput(output))).toEqual(output);
  });

  it.each(ofKind("sample"))("decode the result of a sample", ({ bytes, decoded }) => {
    const response = decodeSampleResponse(bytes);
    expect(response.sequences.map(({ tokens, logprobs }) => ({ tokens, logprobs }))).toEqual(
      decoded.sequences.map(({ tokens, logprobs }: Record<string, number[]>) => ({ tokens, logprobs })),
    );
    expect(response.promptLogprobs).toEqual(decoded.prompt_logprobs?.map((value: number | null) => value ?? undefined));
    expect(decodeSampleResponse(encodeSampleResponse(response))).toEqual(response);
  });

  it("keep outputs of different widths apart", () => {
    const logprobs = (shape: number[]): WireTensor => ({
      dtype: "float32",
      shape,
      data: new Float32Array(shape.reduce((a, b) => a * b)).fill(-1),
    });
    const output = {
      lossFnOutputType: "ArrayRecord",
      lossFnOutputs: [[3], [3, 2], [1, 2], [4, 5]].map((shape) => ({ logprobs: logprobs(shape) })),
      metrics: { "loss:sum": 1 },
    };
    expect(decodeForwardBackwardOutput(encodeForwardBackwardOutput(output))).toEqual(output);
  });
});

describe("tensors of the Tinker API", () => {
  it("hold integers of 64 bits, negative ones as well", () => {
    const values = [0, 1, -1, 2 ** 31, -(2 ** 31) - 1, 2 ** 40 + 5, -(2 ** 45), Number.MAX_SAFE_INTEGER];
    expect([...decodeNumbers("int64", encodeNumbers("int64", values))]).toEqual(values);
  });

  it("fill the cells that a sparse one does not list", () => {
    const tensor: WireTensor = {
      dtype: "float32",
      shape: [2, 3],
      data: [5, 6],
      sparse: { crow: [0, 0, 2], col: [0, 2] },
    };
    expect(Array.from(toDense(tensor, -1))).toEqual([-1, -1, -1, 5, -1, 6]);
    expect(listValues(decodeTensor(encodeTensor(tensor)))).toEqual(tensor);
  });

  it.each([
    ["values that do not fill the shape", { shape: [2, 2], data: [1, 2, 3] }, /has 3 values; expected 4/],
    ["columns beyond the shape", { shape: [1, 2], data: [1], sparse: { crow: [0, 1], col: [2] } }, /do not fit/],
    ["rows that go back", { shape: [2, 2], data: [1], sparse: { crow: [0, 2, 1], col: [0] } }, /do not fit/],
    ["more cells than memory", { shape: [2 ** 20, 2 ** 20], data: [], sparse: { crow: [0], col: [] } }, /at most/],
  ])("refuse %s", (_, tensor, message) => {
    expect(() => decodeTensor(encodeTensor({ dtype: "float32", ...tensor }))).toThrow(message);
  });

  it("refuse bytes that are no message", () => {
    expect(() => decodeForwardBackward(Buffer.from("no message"))).toThrow(/not a valid protobuf message/);
    expect(() => decodeSampleResponse(Buffer.from("no message"))).toThrow(/not a valid protobuf message/);
  });
});
