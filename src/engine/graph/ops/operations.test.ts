import { afterAll, describe, expect, it } from "vitest";
import type { OperationCase } from "../../../../test/operations/case.js";
import { findMismatches } from "../../../../test/operations/check.js";
import { elementwiseCases } from "../../../../test/operations/elementwise.js";
import { indexingCases } from "../../../../test/operations/indexing.js";
import { layoutCases } from "../../../../test/operations/layout.js";
import { leafCases } from "../../../../test/operations/leaves.js";
import { normCases } from "../../../../test/operations/norm.js";
import { productCases } from "../../../../test/operations/products.js";
import type { Device } from "../../runtime/device.js";
import { Runtime } from "../../runtime/runtime.js";
import { operations, type OperationName } from "./operations.js";

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
    expect(await findMismatches(runtime, operations[name], subject)).toEqual([]);
  });
});
