import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { resolveWandbConfig } from "./wandb-config.js";

describe("resolveWandbConfig", () => {
  it("is disabled without a project", () => {
    expect(resolveWandbConfig({}, {})).toBeUndefined();
    expect(resolveWandbConfig({}, { WANDB_API_KEY: "k", WANDB_MODE: "online" })).toBeUndefined();
    expect(resolveWandbConfig({ mode: "disabled" }, { WANDB_PROJECT: "p" })).toBeUndefined();
    expect(resolveWandbConfig({ project: "p" }, { WANDB_MODE: "disabled" })).toBeUndefined();
    expect(resolveWandbConfig({ project: "p" }, { WANDB_MODE: "" })).toMatchObject({ mode: "online" });
    expect(() => resolveWandbConfig({ mode: "offline" }, {})).toThrow("there is no project");
  });

  it("reads W&B's environment variables; options take precedence", () => {
    const env = {
      WANDB_PROJECT: "p",
      WANDB_MODE: "dryrun",
      WANDB_ENTITY: "team",
      WANDB_NAME: "first",
      WANDB_RUN_GROUP: "seeds",
      WANDB_TAGS: "a,b",
      WANDB_API_KEY: "key",
      WANDB_BASE_URL: "http://127.0.0.1:8080//",
    };
    const settings = {
      project: "p",
      mode: "offline",
      entity: "team",
      name: "first",
      group: "seeds",
      tags: ["a", "b"],
      apiKey: "key",
      baseUrl: "http://127.0.0.1:8080",
    };
    expect(resolveWandbConfig({}, env)).toEqual(settings);
    const options = { project: "q", mode: "online", entity: "me", name: "n", group: "g", tags: [] } as const;
    expect(resolveWandbConfig(options, env)).toEqual({ ...settings, ...options });
    expect(resolveWandbConfig({ project: "p" }, {})).toMatchObject({ mode: "online", baseUrl: "https://api.wandb.ai" });
  });

  it("reads the API key of the server from .netrc, unless the environment has one", async () => {
    const folder = await mkdtemp(join(tmpdir(), "netrc-"));
    const entries = [
      "machine other.host login user password no",
      "machine api.wandb.ai\n  login user\n  password secret",
    ];
    await writeFile(join(folder, ".netrc"), entries.join("\n"));
    const env = { WANDB_PROJECT: "p", HOME: folder };
    expect(resolveWandbConfig({}, env)).toMatchObject({ apiKey: "secret" });
    expect(resolveWandbConfig({}, { ...env, WANDB_API_KEY: "key" })).toMatchObject({ apiKey: "key" });
    expect(resolveWandbConfig({}, { ...env, WANDB_BASE_URL: "http://127.0.0.1" })?.apiKey).toBeUndefined();
    await rm(folder, { recursive: true });
  });

  it("reads the run id, the resume mode and the sweep of wandb agent", () => {
    const env = { WANDB_PROJECT: "p", WANDB_RUN_ID: "first-run", WANDB_RESUME: "must", WANDB_SWEEP_ID: "s1" };
    expect(resolveWandbConfig({}, env)).toMatchObject({ runId: "first-run", resume: "must", sweepId: "s1" });
    expect(resolveWandbConfig({}, { ...env, WANDB_RESUME: "auto" })).toMatchObject({ resume: "allow" });
    const unset = resolveWandbConfig({ project: "p" }, { WANDB_RUN_ID: "", WANDB_RESUME: "", WANDB_SWEEP_ID: "" });
    expect(unset).toMatchObject({ runId: undefined, resume: undefined, sweepId: undefined });
  });

  it("rejects invalid values", () => {
    expect(() => resolveWandbConfig({}, { WANDB_PROJECT: "p", WANDB_MODE: "sometimes" })).toThrow(
      "online, offline, disabled",
    );
    expect(() => resolveWandbConfig({ project: "team/p" }, {})).toThrow("is not a valid W&B project name");
    expect(() => resolveWandbConfig({ project: "p" }, { WANDB_BASE_URL: "localhost:8080" })).toThrow("WANDB_BASE_URL");
    expect(() => resolveWandbConfig({ project: "p" }, { WANDB_RUN_ID: "../p" })).toThrow('WANDB_RUN_ID is "../p"');
    expect(() => resolveWandbConfig({ project: "p" }, { WANDB_RESUME: "yes" })).toThrow("allow, must, never");
    expect(() => resolveWandbConfig({ project: "p" }, { WANDB_RESUME: "must" })).toThrow("WANDB_RUN_ID is not set");
  });
});
