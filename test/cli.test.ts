import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AutoModelForCausalLM } from "../src/generation/index.js";
import { runCommand, runInHost, type CommandOptions } from "./support/command.js";
import { FakeHub } from "./support/fake-hub.js";
import { writeRandomModel } from "./support/random-model.js";

const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8")) as {
  version: string;
};

let folder: string;
let home: string;
let remove: () => Promise<void>;
beforeAll(async () => {
  ({ folder, remove } = await writeRandomModel({ maxPositions: 512 }));
  home = await mkdtemp(join(tmpdir(), "home-"));
});
afterAll(async () => {
  await remove();
  await rm(home, { recursive: true });
});

/** The environment of an offline command with its own home folder. */
const offline = (env: CommandOptions["env"] = {}) => ({ HOME: home, HF_HUB_OFFLINE: "1", ...env });
const run = (args: readonly string[], { env, input }: Pick<CommandOptions, "env" | "input"> = {}) =>
  runInHost(args, { env: offline(env), input });
const runInProcess = (args: readonly string[], { env, ...options }: CommandOptions = {}) =>
  runCommand(args, { env: offline(env), ...options });

const generate = (...args: readonly string[]) =>
  run(["generate", "--model", folder, "--device", "cpu", "--threads", "1", ...args]);
const modelArgs = () => ["generate", "--model", folder, "--device", "cpu", "--threads", "1"];

describe("llamagym", () => {
  it("prints its version, its commands and their options", async () => {
    expect(await runInProcess(["--version"])).toMatchObject({ status: 0, out: `${version}\n`, err: "" });
    for (const args of [[], ["--help"], ["help"]]) {
      const { status, out } = await run(args);
      expect(status).toBe(0);
      for (const name of ["generate", "models", "doctor"]) expect(out).toMatch(new RegExp(`^ +${name} +\\w`, "m"));
    }
    const { out } = await run(["generate", "--help"]);
    expect(out).toMatch(/^Usage: llamagym generate \[options\]$/m);
    expect(out).toMatch(/^ {2}--max-new-tokens <integer> +\w/m);
    expect(out).toMatch(/--help-all lists \d+ more options/);
    expect(out).not.toContain("--top-k");
    expect((await run(["help", "generate", "--help-all"])).out).toMatch(/^Sampling:\n[^]*^ {2}--top-k <integer>/m);
  });

  it.each([
    [["genrate"], /^There is no command "genrate". Did you mean "generate"\?\n$/],
    [["xyz"], /Commands: train, .*generate, .*models, cache, doctor/],
    [["--model", "x"], /The command must come before --model/],
    [["generate", "--modle", "x"], /There is no option --modle. Did you mean --model\?/],
    [["generate", "--prompt", "hi"], /--model is missing/],
    [["generate", "--model"], /--model needs a value/],
    [["generate", "--model", "--prompt", "hi"], /--model needs a value/],
    [["generate", "--model", "x", "hello"], /Unexpected argument "hello"/],
    [["generate", "--model", "x", "--topP", "7"], /--top-p must be 0 or a number >= 0.000001 and <= 1, got 7/],
    [["generate", "--model", "x", "--seed", "abc"], /--seed must be an integer >= 0 and <= 281474976710656, got abc/],
    [["generate", "--model", "x", "--device", "gpu"], /--device must be auto, cpu or webgpu, got gpu\. (Use|No GPU) /],
    [
      ["generate", "--model", "x", "--device", "mps"],
      /got mps\. (Use webgpu, or cpu|No GPU device is installed here; use cpu)\./,
    ],
    [["generate", "--model", "x", "--choice", "a", "--stop", "b"], /`choices` is incompatible with `stop`/],
    [["generate", "--model", "x", "--choice", "a", "--regex", "b"], /`choices` and `regex` are mutually exclusive/],
    [["generate", "--model", "x", "--regex", "a(?=b)"], /"a\(\?=b\)": at character 3, lookaheads/],
    [["models", "--json=1"], /--json must be true or false, got 1/],
    [["models", "--no-json=1"], /--no-json takes no value/],
  ])("rejects %j with status 2 and one line", async (args, message) => {
    const { status, out, err } = await runInHost(args);
    expect({ status, out }).toEqual({ status: 2, out: "" });
    expect(err).toMatch(message);
    expect(err.trim()).not.toContain("\n");
  });

  it("prints one line for an error in a model, and a stack with --debug", async () => {
    const missing = await runInProcess(["generate", "--model", "./nowhere", "--prompt", "hi"]);
    expect(missing).toMatchObject({ status: 1, out: "" });
    expect(missing.err).toMatch(/^LlamaGymError \[FILE_NOT_FOUND\]: .*nowhere.*\n$/);
    const debugged = await runInProcess(["generate", "--model", "./nowhere", "--prompt", "hi", "--debug"]);
    expect(debugged.err).toMatch(/FILE_NOT_FOUND|nowhere[\s\S]*\n +at /);
    const broken = await mkdtemp(join(tmpdir(), "broken-"));
    await writeFile(join(broken, "config.json"), "{");
    expect((await run(["generate", "--model", broken, "--prompt", "hi"])).err).toMatch(/\[FILE_CORRUPT\].*config.json/);
    await rm(broken, { recursive: true });
    const overflow = await generate("--prompt", "word ".repeat(600), "--max-new-tokens", "20");
    expect(overflow).toMatchObject({ status: 1, out: "" });
    expect(overflow.err).toMatch(/\[CONTEXT_OVERFLOW\]/);
  });
});

describe("llamagym generate", () => {
  it("leaves no temporary files", async () => {
    const TMPDIR = await mkdtemp(join(tmpdir(), "temporary-"));
    const { status } = await runInProcess(["generate", "--model", "embedded", "--prompt", "x"], { env: { TMPDIR } });
    expect([status, await readdir(TMPDIR)]).toEqual([0, []]);
    await rm(TMPDIR, { recursive: true });
  });

  it("streams the completion that the library generates", async () => {
    const opened = await AutoModelForCausalLM.fromPretrained(folder, { device: "cpu", threads: 1 });
    const messages = [
      { role: "system", content: "Be brief" },
      { role: "user", content: "Hello" },
    ];
    const { text } = await opened.generate(messages, { maxNewTokens: 60, seed: 4 });
    const raw = await opened.generate("Hello", { maxNewTokens: 9, stop: ["e"] });
    await opened.close();
    const streamArgs = [
      ...modelArgs(),
      ..."--prompt Hello --max-new-tokens 60 --seed 4 --system".split(" "),
      "Be brief",
    ];
    const { status, out, writeCount } = await run(streamArgs);
    expect({ status, out }).toEqual({ status: 0, out: text.endsWith("\n") ? text : `${text}\n` });
    expect(writeCount).toBeGreaterThan(3);
    const second = await run(
      [...modelArgs(), ..."--prompt - --raw --max-new-tokens 9 --stop zzz --stop e --stats".split(" ")],
      {
        input: "Hello\n",
      },
    );
    expect(second.out.trimEnd()).toBe(raw.text.trimEnd());
    expect(second.err).toMatch(/prompt \d+ tokens, completion \d+ tokens \((stop_string|length)\); loaded in/);
  });

  it("prints a completion constrained to choices as JSON", async () => {
    const { out } = await generate(..."--prompt Hello --seed 1 --choice left --choice right --json".split(" "));
    const reply = JSON.parse(out) as Record<string, unknown>;
    expect(["left", "right"]).toContain(reply.text);
    expect(reply).toMatchObject({ finishReason: "stop", choice: ["left", "right"].indexOf(reply.text as string) });
    expect(reply.tokens).toHaveLength((reply.logProbs as number[]).length);
  });

  it("constrains a completion to a regular expression or to a JSON schema in a file", async () => {
    const expression = await generate(
      ..."--prompt Hello --seed 1 --max-new-tokens 9 --regex (left|right)!+".split(" "),
    );
    expect(expression).toMatchObject({ status: 0, out: expect.stringMatching(/^(left|right)!+\n$/) as string });
    const file = join(home, "schema.json");
    await writeFile(file, '{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}');
    const json = await generate(..."--prompt Hello --seed 1 --max-new-tokens 30 --json-schema".split(" "), file);
    expect(json).toMatchObject({ status: 0, out: expect.stringMatching(/^\{"n": -?\d+\}\n$/) as string });
    await writeFile(file, '{"type": "array", "unevaluatedItems": false}');
    const refused = await generate("--prompt", "Hello", "--json-schema", file);
    expect(refused).toMatchObject({
      status: 2,
      err: expect.stringContaining('"unevaluatedItems" is not supported') as string,
    });
    await writeFile(file, "[]");
    const broken = await generate("--prompt", "Hello", "--json-schema", file);
    expect(broken).toMatchObject({ status: 1, err: expect.stringContaining("schema.json") as string });
  });

  it("chats line by line, clears the conversation with /reset and quits with /exit", async () => {
    const args = [...modelArgs(), ..."--json --max-new-tokens 6 --seed 1".split(" ")];
    const { status, out } = await runInProcess(args, { input: "Hello\nAgain\n\n/reset\nHello\n/exit\nnever\n" });
    const replies = out
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { promptTokens: number; tokens: number[] });
    expect(status).toBe(0);
    expect(replies).toHaveLength(3);
    expect(replies[1].promptTokens).toBeGreaterThan(replies[0].promptTokens + replies[0].tokens.length);
    expect(replies[2].promptTokens).toBe(replies[0].promptTokens);
  });

  it("drops the oldest messages of a chat that exceeds the context, with a message", async () => {
    const lines = Array.from({ length: 8 }, (_, i) => `${i} ${"word ".repeat(30)}`);
    const { status, out, err } = await run([...modelArgs(), ..."--json --max-new-tokens 20".split(" ")], {
      input: lines.join("\n"),
    });
    expect(status).toBe(0);
    expect(out.trim().split("\n")).toHaveLength(8);
    expect(err).toMatch(/Context full: dropped the oldest \d+ messages/);
    const whole = await run([...modelArgs(), "--max-new-tokens", "20"], { input: `${"word ".repeat(600)}\nHello\n` });
    expect(whole.err).toMatch(/\[CONTEXT_OVERFLOW\]/);
    expect(whole.out.trim()).not.toBe("");
  });

  it("stops a completion at the first Ctrl-C and quits at one without a running completion", async () => {
    let step = 0;
    const { status, out } = await runInProcess([...modelArgs(), ..."--max-new-tokens 450 --seed 1".split(" ")], {
      initialInput: "Hello\n",
      onStdout: (text, kill) => {
        if (step === 0 && text.length > 10) {
          step = 1;
          kill("SIGINT");
        } else if (step === 1 && text.endsWith("\n")) {
          step = 2;
          kill("SIGINT");
        }
      },
    });
    expect(status).toBe(130);
    expect(out.length).toBeGreaterThan(10);
  });

  it("exits without an error when its output is closed", async () => {
    const { err } = await runInProcess(
      [...modelArgs(), ..."--prompt Hello --max-new-tokens 400 --seed 2 --temperature 1".split(" ")],
      {
        onStdout: (_out, _kill, child) => child.stdout.destroy(),
      },
    );
    expect(err).toBe("");
  });

  it("downloads a model with messages on standard error, and opens it offline the next time", async () => {
    const files: Record<string, Uint8Array> = {};
    for (const name of await readdir(folder)) files[name] = await readFile(join(folder, name));
    const hub = await FakeHub.start({ "someone/tiny": { files, commit: "a".repeat(40) } });
    const cache = await mkdtemp(join(tmpdir(), "cache-"));
    const args = [
      "generate",
      "--model",
      "someone/tiny",
      ..."--device cpu --prompt Hello --max-new-tokens 3".split(" "),
    ];
    const first = await run(args, { env: { HF_ENDPOINT: hub.endpoint, HF_HOME: cache, HF_HUB_OFFLINE: "0" } });
    expect(first.status).toBe(0);
    expect(first.err).toMatch(/Downloaded model.safetensors \(\d+ kB\)/);
    await hub.stop();
    const second = await run(args, { env: { HF_HOME: cache } });
    expect(second).toMatchObject({ status: 0, out: first.out, err: "" });
    const unknown = await run(["generate", "--model", "someone/other", "--prompt", "x"], { env: { HF_HOME: cache } });
    expect(unknown).toMatchObject({ status: 1, out: "" });
    expect(unknown.err).toMatch(/\[HUB_OFFLINE\]/);
    await rm(cache, { recursive: true });
  });
});

describe("llamagym models", () => {
  it("lists architectures and models with their memory", async () => {
    const { out } = await run(["models"]);
    expect(out).toMatch(
      /^HuggingFaceTB\/SmolLM2-135M-Instruct +135M +8192 +0\.8 +0\.4 +0\.3 +\S+ +\S+ +\S+ +\w+( \d)? +Apache-2\.0 +chat$/m,
    );
    const { architectures, models } = JSON.parse((await run(["models", "--json"])).out) as {
      architectures: string[];
      models: { id: string; modelType: string; memory: Record<string, Record<string, number>> }[];
    };
    for (const { modelType, memory } of models) {
      expect(architectures).toContain(modelType);
      expect(memory.train["8"]).toBeGreaterThan(memory.inference["8"]);
    }
  });

  it("gives the memory of a GPU, which holds each weight once and says nothing of what is free", async () => {
    const { out } = await run(["models", "--device", "webgpu"]);
    expect(out).toContain("memory of the GPU in GB");
    expect(out).not.toContain("FITS");
    const read = async (device: string) => {
      const { models } = JSON.parse((await run(["models", "--json", "--device", device])).out) as {
        models: { memory: Record<string, Record<string, number>> }[];
      };
      return models.map(({ memory }) => memory.train["32"]);
    };
    const cpu = await read("cpu");
    for (const [i, bytes] of (await read("webgpu")).entries()) expect(bytes).toBeLessThan(cpu[i]);
  });
});

describe("llamagym cache", () => {
  it("lists and removes converted weights, also those of another version", async () => {
    const folder = await mkdtemp(join(tmpdir(), "llamagym-cache-"));
    const env = { LLAMAGYM_CACHE: folder, LLAMAGYM_CACHE_GB: "3" };
    await mkdir(join(folder, "weights", "old"), { recursive: true });
    await writeFile(join(folder, "weights", "old", "weights.bin"), new Uint8Array(5000));
    const { out } = await runInProcess(["cache"], { env });
    expect(out).toContain("damaged, or of another version");
    expect(out).toContain(`5.0 kB of at most 3.0 GB in ${folder}.`);
    const cleared = JSON.parse((await runInProcess(["cache", "--clear", "--json"], { env })).out) as object;
    expect(cleared).toMatchObject({ folder, maxBytes: 3e9, entries: [], removed: [{ key: "old", bytes: 5000 }] });
    await rm(folder, { recursive: true });
  });
});

describe("llamagym bench", () => {
  it("measures products, decoding and a LoRA step", async () => {
    const { status, out } = await run(["bench", "cpu", "--matrix-size", "16", "--json"]);
    expect(status).toBe(0);
    const { device, results } = JSON.parse(out) as { device: string; results: { unit: string; rate: number }[] };
    expect(device).toBe("cpu");
    expect(results.map(({ unit }) => unit)).toEqual(["GFLOP/s", "tokens/s", "tokens/s", "tokens/s"]);
    for (const { rate } of results) expect(rate).toBeGreaterThan(0);
  });

  it("refuses a device that it does not know", async () => {
    expect((await run(["bench", "npu"])).err).toContain("Expected gpu or cpu");
  });
});

describe("llamagym doctor", () => {
  it("reports devices, cache and environment variables without secrets", async () => {
    const { status, out } = await runInProcess(["doctor", "--json"], { env: { HF_TOKEN: "hf_secret" } });
    expect(status).toBe(0);
    expect(out).not.toContain("hf_secret");
    const { findings } = JSON.parse(out) as { findings: { name: string; state: string; value: string }[] };
    const find = (name: string) => findings.find((each) => each.name === name);
    expect(find("llamagym")).toMatchObject({ state: "ok", value: version });
    expect(find("device cpu")).toMatchObject({ state: "ok" });
    expect(find("cache")!.value).toContain(home);
    expect(find("HF_ variables")!.value).toContain("HF_TOKEN=(set)");
    expect(find("hub")!.value).toMatch(/HF_HUB_OFFLINE/);
    expect((await run(["doctor"])).out).toMatch(/^ok +device cpu +works/m);
  });
});
