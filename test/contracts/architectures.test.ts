import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { supportedModelTypes } from "../../src/models/architectures/index.js";
import { checkArchitecture, type ArchitectureFixture } from "../../src/testing.js";
import { ModelFixture } from "../parity/models/model-fixture.js";

/** Reads a model with Transformers' logits. */
async function readFixture(modelType: string): Promise<ArchitectureFixture> {
  const folder = fileURLToPath(new URL(`../fixtures/models/${modelType.replace("_text", "")}`, import.meta.url));
  const file = await ModelFixture.open(folder);
  const logits = await file.readPerToken("logits");
  await file.close();
  return { folder, rows: file.rows, logits };
}

describe("checkArchitecture", () => {
  it.each(supportedModelTypes)("accepts %s", async (modelType) => {
    await expect(checkArchitecture(await readFixture(modelType))).resolves.toBeUndefined();
  });

  it("rejects other logits than Transformers'", async () => {
    const fixture = await readFixture("llama");
    const logits = Float32Array.from(fixture.logits);
    logits[100] += 0.001;
    await expect(checkArchitecture({ ...fixture, logits })).rejects.toThrow(/logits: .* at 100, expected/);
    await expect(checkArchitecture({ ...fixture, logits: logits.slice(1) })).rejects.toThrow(/logits, expected/);
  });
});
