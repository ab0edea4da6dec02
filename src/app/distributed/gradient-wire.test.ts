import { describe, expect, it } from "vitest";
import { float32, int32, tensor } from "../../engine/tensor/tensor.js";
import type { GradientLimits } from "../../rl/algorithms/update/gradient-transport.js";
import type { GradientJob, GradientResult } from "../../rl/algorithms/update/micro-batch-graphs.js";
import { bytesOf, compress } from "./encoding.js";
import { decodeGradients, describeGradientJob, encodeGradients } from "./gradient-wire.js";
import { decodeJob, encodeMessage } from "./wire.js";

const scalar = (value: number) => tensor("float32", [], Float32Array.of(value));
const limits: GradientLimits = {
  outputs: new Map([
    ["loss", true],
    ["ratio", false],
  ]),
  lengths: [3, 2],
  parameterCount: 4,
};
const result: GradientResult = {
  outputs: { loss: scalar(0.5), ratio: float32([1, 2, 3]) },
  gradients: Float32Array.of(1, -2, 0, 1e-30),
};

describe("gradient jobs", () => {
  const job: GradientJob = {
    kind: "masked",
    withHeadTokens: true,
    tokens: {
      groups: [{ prefix: [1, 2], rows: [[3], [4, 5]] }],
      selected: [
        { group: 0, row: 0, index: -1, target: 7, allowedTokens: Int32Array.of(7, 8) },
        { group: 0, row: 1, index: 1, target: 8, allowedTokens: Int32Array.of(7, 8) },
        { group: 0, row: 1, index: 0 },
      ],
      headTokens: [7, 8],
      temperature: 0.7,
    },
    inputs: { advantages: float32([0.1, Number.NaN]), rows: int32([0, 1]) },
  };
  const weights = "0".repeat(64);

  it("arrive as they were sent, with equal sets of allowed tokens once", async () => {
    const described = describeGradientJob(job);
    expect(described.allowedTokens).toEqual([[7, 8]]);
    const decoded = await decodeJob(await encodeMessage({ weights, gradients: described }));
    expect(decoded).toEqual({ weights, gradients: job });
    const [first, second] = decoded.gradients!.tokens.selected;
    expect(first.allowedTokens).toBe(second.allowedTokens);
  });

  it.each([
    ["another kind of graph", { kind: "unknown" }],
    ["a token id below 0", { headTokens: [-1] }],
    ["a tensor of another length", { inputs: { rows: { dtype: "int32", shape: [3], data: "" } } }],
  ])("are refused with %s", async (_, change) => {
    const message = { weights, gradients: { ...describeGradientJob(job), ...change } };
    await expect(decodeJob(await encodeMessage(message))).rejects.toMatchObject({ code: "FILE_CORRUPT" });
  });
});

describe("gradient results", () => {
  it("arrive as they were sent", async () => {
    expect(await decodeGradients(await encodeGradients(result, 2), limits)).toEqual({ seconds: 2, result });
  });

  it("have no gradients where a number is not finite", async () => {
    const diverged = { outputs: { ...result.outputs, loss: scalar(Number.NaN) }, gradients: undefined };
    expect((await decodeGradients(await encodeGradients(diverged, 2), limits)).result).toEqual(diverged);
  });

  it.each([
    ["a statistic too few", { outputs: { loss: scalar(1) } }, "Statistics are missing"],
    ["another name", { outputs: { loss: scalar(1), other: float32([1, 2, 3]) } }, "The statistic ratio"],
    ["another shape", { outputs: { ...result.outputs, ratio: float32([1, 2, 3, 4]) } }, "The statistic ratio"],
    ["a vector in place of the loss", { outputs: { ...result.outputs, loss: float32([1, 2]) } }, "The statistic loss"],
    ["too few gradients", { gradients: new Float32Array(3) }, "number of gradients"],
    ["too many gradients", { gradients: new Float32Array(5) }, "number of gradients"],
    ["a gradient that is not finite", { gradients: Float32Array.of(1, 2, Infinity, 4) }, "not finite"],
  ])("are refused with %s", async (_, change, message) => {
    const answer = decodeGradients(await encodeGradients({ ...result, ...change }, 2), limits);
    await expect(answer).rejects.toThrow(message);
    await expect(answer).rejects.toMatchObject({ code: "FILE_CORRUPT" });
  });

  it("are refused when they unpack to more than the gradients need", async () => {
    const bomb = await compress(bytesOf(new Uint8Array(65 * 2 ** 20)));
    await expect(decodeGradients(bomb, limits)).rejects.toMatchObject({ code: "FILE_CORRUPT" });
  });
});
