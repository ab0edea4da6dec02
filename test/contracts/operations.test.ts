import { afterAll, describe, expect, it } from "vitest";
import { float, type OperationCase } from "../operations/case.js";
import { elementwiseCases } from "../operations/elementwise.js";
import { indexingCases } from "../operations/indexing.js";
import { layoutCases } from "../operations/layout.js";
import { leafCases } from "../operations/leaves.js";
import { normCases } from "../operations/norm.js";
import { productCases } from "../operations/products.js";
import { apply, defineOperation, mul, type Node } from "../../src/engine.js";
import { operations, type OperationName } from "../../src/engine/graph/ops/operations.js";
import type { Device } from "../../src/engine/runtime/device.js";
import { Runtime } from "../../src/engine/runtime/runtime.js";
import { checkOperation } from "../../src/testing.js";

/** Every operation of the table has cases; one without does not compile. */
const cases: { readonly [Name in OperationName]: readonly OperationCase[] } = {
  ...leafCases,
  ...elementwiseCases,
  ...layoutCases,
  ...indexingCases,
  ...productCases,
  ...normCases,
};

// LLAMAGYM_TEST_DEVICE=webgpu runs all of them there instead.
const runtime = new Runtime({ device: (process.env.LLAMAGYM_TEST_DEVICE as Device) ?? "cpu", threads: 1 });
afterAll(() => runtime.close());

describe.each(Object.keys(operations) as OperationName[])("%s", (name) => {
  it.each(cases[name].map((subject) => [subject.title, subject] as const))("%s", async (_, subject) => {
    await expect(checkOperation(operations[name], [subject], { runtime })).resolves.toBeUndefined();
  });
});

describe("checkOperation", () => {
  const double = (gradient: (upstream: Node) => Node) =>
    defineOperation<object>({
      name: "double",
      infer: ([{ dtype, shape }]) => ({ dtype, shape }),
      gradient: ({ upstream }) => [gradient(upstream)],
      onnx: ({ inputs: [x], emitter }) => emitter.emit("Add", [x, x]),
    });
  const doubleCase = (operation: ReturnType<typeof double>): OperationCase => ({
    title: "a vector",
    sizes: [{ length: 3 }, { length: 0 }],
    inputs: ({ length }) => ({ x: float([length]) }),
    build: ({ x }) => apply(operation, [x], {}),
    reference: ({ x }) => ({ shape: x.shape, data: x.data.map((value) => 2 * value) }),
    differentiable: ["x"],
  });
  const right = double((upstream) => mul(upstream, 2));

  it("accepts an operation from outside the package", async () => {
    await expect(checkOperation(right, [doubleCase(right)])).resolves.toBeUndefined();
  });

  it.each<[string, ReturnType<typeof double>, Partial<OperationCase>, RegExp]>([
    ["a wrong gradient", double((upstream) => upstream), {}, /double, "a vector": the gradient of x is/],
    ["a wrong value", right, { reference: ({ x }) => x }, /value 0 is .* at element 0/],
    [
      "a wrong shape",
      right,
      { reference: ({ x }) => ({ ...x, shape: [...x.shape, 1] }) },
      /`infer` returns shape \[3\]/,
    ],
    ["an unexpected gradient", right, { differentiable: [] }, /a gradient flows to x/],
    ["a case of another operation", right, { build: ({ x }) => mul(x, 2) }, /does not use the operation/],
  ])("rejects %s", async (_, operation, changes, message) => {
    const checked = checkOperation(operation, [{ ...doubleCase(operation), ...changes }], { runtime });
    await expect(checked).rejects.toThrow(message);
  });
});
