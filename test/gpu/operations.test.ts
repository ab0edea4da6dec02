import { afterAll, describe, expect, it } from "vitest";
import { whyNoGpu } from "../support/gpu.js";
import { elementwiseCases } from "../operations/elementwise.js";
import { indexingCases } from "../operations/indexing.js";
import { layoutCases } from "../operations/layout.js";
import { leafCases } from "../operations/leaves.js";
import { largeVocabularyCase, normCases } from "../operations/norm.js";
import { productCases } from "../operations/products.js";
import { operations, type OperationName } from "../../src/engine/graph/ops/operations.js";
import { Runtime } from "../../src/engine/runtime/runtime.js";
import { checkOperation } from "../../src/testing.js";

const reason = await whyNoGpu();
const cases = {
  ...leafCases,
  ...elementwiseCases,
  ...layoutCases,
  ...indexingCases,
  ...productCases,
  ...normCases,
};

/** Products of whole numbers are for processors. */
const CPU_ONLY = new Set<OperationName>(["int8Matmul", "int8GradientMatmul", "int8WeightMatmul"]);
const names = (Object.keys(operations) as OperationName[]).filter((name) => !CPU_ONLY.has(name));

// Compiling takes most of the time, so each operation runs its first case here, and all of them
// with LLAMAGYM_TEST_DEVICE=webgpu in test/contracts/operations.test.ts.
describe.skipIf(reason !== undefined)(`operations on the GPU${reason === undefined ? "" : ` (${reason})`}`, () => {
  const runtime = reason === undefined ? new Runtime({ device: "webgpu" }) : undefined;
  afterAll(() => runtime?.close());

  it.each(names)("%s has the values and gradients of its reference", async (name) => {
    const [first] = cases[name];
    const small = { ...first, sizes: first.sizes.slice(0, 2) };
    await expect(checkOperation(operations[name], [small], { runtime })).resolves.toBeUndefined();
  });

  it("adds up the terms of a large vocabulary in parts", async () => {
    const check = checkOperation(operations.tokenLogProbs, [largeVocabularyCase], { runtime });
    await expect(check).resolves.toBeUndefined();
  });

  it.each([...CPU_ONLY])("refuses %s, which is for processors", async (name) => {
    await expect(checkOperation(operations[name], [cases[name][0]], { runtime })).rejects.toThrow("for the processor");
  });
});
