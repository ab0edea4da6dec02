import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";

import { ScoreEngine } from "../../src/app/server/score-engine.js";
import { loadEnvModule } from "../../src/envs/bridges/load-env-spec.js";
import { AutoModelForCausalLM } from "../../src/generation/auto-model.js";
import { DecodeSession } from "../../src/generation/cache/decode-session.js";
import type { LanguageModel } from "../../src/generation/language-model.js";
import { getPeftModel } from "../../src/models/adapters/get-peft-model.js";
import { FrozenStates } from "../../src/models/graphs/frozen-states.js";

describe("a failure that passes", () => {
  let model: LanguageModel;

  beforeAll(async () => {
    model = await AutoModelForCausalLM.fromPretrained("embedded");
    return () => model.close();
  });

  afterEach(() => vi.restoreAllMocks());

  const failNextSession = () =>
    vi.spyOn(model.causalLM, "createSession").mockRejectedValueOnce(new Error("out of memory"));

  it("does not end scoring for good", async () => {
    const scores = new ScoreEngine(model);
    failNextSession();
    await expect(scores.score([1, 2], [[3]])).rejects.toThrow("out of memory");
    await expect(scores.score([1, 2], [[3]])).resolves.toHaveLength(1);
  });

  it("does not end sampling for good", async () => {
    failNextSession();
    await expect(model.generate([1, 2], { maxNewTokens: 1 })).rejects.toThrow("out of memory");
    await expect(model.generate([1, 2], { maxNewTokens: 1, ignoreEos: true })).resolves.toMatchObject({
      finishReason: "length",
    });
  });

  it("does not end decoding from states for good, nor keep the session from being released", async () => {
    const trained = await getPeftModel(model.causalLM, { r: 2, layersToTransform: [1] });
    const session = await DecodeSession.create(trained, FrozenStates.create(trained));
    vi.spyOn(trained, "createSession").mockRejectedValueOnce(new Error("out of memory"));
    await expect(session.openFromStates()).rejects.toThrow("out of memory");
    await session.openFromStates();
    expect(session.fromStates).toBeInstanceOf(DecodeSession);
    await session.release();
  });

  it("does not end the use of frozen states for good", async () => {
    const trained = await getPeftModel(model.causalLM, { r: 2, layersToTransform: [1] });
    vi.spyOn(trained, "createSession").mockRejectedValueOnce(new Error("out of memory"));
    const states = FrozenStates.create(trained)!;
    await expect(states.open()).rejects.toThrow("out of memory");
    await states.open();
    await states.release();
  });

  it("does not make a file that was missing fail when it exists", async () => {
    const folder = await mkdtemp(join(tmpdir(), "llamagym-env-"));
    const file = join(folder, "env.mjs");
    await expect(loadEnvModule(file)).rejects.toMatchObject({ code: "ENV_INVALID" });
    await writeFile(file, "export default class {}");
    await expect(loadEnvModule(file)).resolves.toEqual([]);
    await rm(folder, { recursive: true });
  });
});
