import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseModelReference } from "./model-reference.js";
import { resolveHubConfig } from "./hub-config.js";

let home = "";
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), "home-"));
});
afterEach(async () => {
  await rm(home, { recursive: true });
});

describe("resolveHubConfig", () => {
  it("has Hugging Face's defaults", async () => {
    expect(await resolveHubConfig({}, { HF_TOKEN_PATH: join(home, "none") })).toEqual({
      endpoint: "https://huggingface.co",
      cacheDir: join(homedir(), ".cache", "huggingface", "hub"),
      token: undefined,
      offline: false,
      responseTimeoutMs: 10_000,
      stallTimeoutMs: 10_000,
      retryDelayMs: 500,
    });
  });

  it("reads the same variables as huggingface_hub", async () => {
    await writeFile(join(home, "token"), "hf_stored\n");
    const stored = await resolveHubConfig(
      {},
      { HF_HOME: home, HF_ENDPOINT: "https://mirror.example/", HF_HUB_OFFLINE: "1" },
    );
    expect(stored).toMatchObject({
      endpoint: "https://mirror.example",
      cacheDir: join(home, "hub"),
      token: "hf_stored",
      offline: true,
    });
    const overridden = await resolveHubConfig(
      {},
      { HF_HOME: home, HF_HUB_CACHE: "~/models", HF_TOKEN: " hf_given ", HF_HUB_ETAG_TIMEOUT: "3" },
    );
    expect(overridden).toMatchObject({
      cacheDir: join(homedir(), "models"),
      token: "hf_given",
      responseTimeoutMs: 3000,
    });
    expect((await resolveHubConfig({}, { XDG_CACHE_HOME: home })).cacheDir).toBe(join(home, "huggingface", "hub"));
    expect(
      (await resolveHubConfig({}, { HF_HOME: home, HF_HUB_DISABLE_IMPLICIT_TOKEN: "true" })).token,
    ).toBeUndefined();
  });

  it("rejects an invalid URL and never prints a token", async () => {
    await expect(resolveHubConfig({}, { HF_HOME: home, HF_ENDPOINT: "hub" })).rejects.toMatchObject({
      code: "INVALID_ARGUMENT",
    });
    const failing = resolveHubConfig({}, { HF_HOME: home, HF_TOKEN: "hf_se\ncret" });
    await expect(failing).rejects.toMatchObject({
      code: "HUB_UNAUTHORIZED",
      message: expect.not.stringContaining("cret") as string,
    });
  });

  it("prefers options to the environment", async () => {
    const environment = { HF_HOME: home, HF_TOKEN: "hf_other", HF_HUB_CACHE: "/other" };
    expect(await resolveHubConfig({ cacheDir: "/mine", token: "hf_mine" }, environment)).toMatchObject({
      cacheDir: "/mine",
      token: "hf_mine",
    });
    expect((await resolveHubConfig({ token: false }, environment)).token).toBeUndefined();
  });
});

describe("parseModelReference", () => {
  it.each([
    ["owner/name", { id: "owner/name" }],
    ["gpt2", { id: "gpt2" }],
    ["owner/name.v1:file-Q4_0.gguf", { id: "owner/name.v1", file: "file-Q4_0.gguf" }],
    ["owner/name:folder/file.gguf", { id: "owner/name", file: "folder/file.gguf" }],
    ["owner/name#Q4_K_M", { id: "owner/name", file: "Q4_K_M" }],
  ])("reads %s", (text, reference) => {
    expect(parseModelReference(text)).toEqual(reference);
  });

  it.each([
    "",
    "./folder",
    "/root",
    "~/x",
    "a/b/c",
    "a\\b",
    "model.gguf",
    "owner/na..me",
    "owner/",
    "C:/models",
    "a/b:",
    "a b/c",
  ])("does not parse %j as a hub id", (text) => {
    expect(parseModelReference(text)).toBeUndefined();
  });
});
