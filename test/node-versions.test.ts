import { execFile, execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const dist = new URL("../dist/", import.meta.url);
const command = fileURLToPath(new URL("app/cli/bin.js", dist));

/** Runs npm's package `node` from npm's cache, which `npx -y node@VERSION --version` fills. */
const npmNode = (version: number) => ["npm", "exec", "--offline", "--yes", `--package=node@${version}`, "--", "node"];

function isCached(version: number): boolean {
  const [npm, ...args] = npmNode(version);
  try {
    return execFileSync(npm, [...args, "--version"], { encoding: "utf8", stdio: "pipe" }).includes(`v${version}.`);
  } catch {
    return false;
  }
}

/** Opens the embedded model, drops it without closing it and collects garbage. */
const OPEN_WITHOUT_CLOSING = `
  import { AutoModelForCausalLM } from "${new URL("index.js", dist).href}";
  process.on("warning", ({ message }) => console.log(message));
  let model = await AutoModelForCausalLM.fromPretrained("embedded");
  model = undefined;
  for (let i = 0; i < 10; i++) {
    globalThis.gc();
    await new Promise((done) => setTimeout(done, 10));
  }
  console.log("collected");
`;
const GC_FLAGS = ["--expose-gc", "--input-type=module", "--eval", OPEN_WITHOUT_CLOSING];

describe("a model that is never closed", () => {
  it("is collected without warnings by this Node", async () => {
    expect(await run(process.execPath, GC_FLAGS)).toMatchObject({ stdout: "collected\n", stderr: "" });
  });

  for (const version of [20, 22, 24, 25]) {
    const isAvailable = isCached(version);
    const note = isAvailable ? "" : `: not tried, run \`npx -y node@${version} --version\` first`;
    it.skipIf(!isAvailable)(`is collected without warnings by Node ${version}${note}`, async () => {
      const [npm, ...args] = npmNode(version);
      const { stdout } = await run(npm, [...args, ...GC_FLAGS]);
      expect(stdout).toBe("collected\n");
    });
  }
});

describe("the command in an older Node", () => {
  const sentence = (version: string) =>
    `llamagym requires Node.js 20.19 or newer, but this is ${version}. Update Node.js.\n`;

  it("fails with one sentence", async () => {
    const pretend = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.18.3" } })`;
    const flags = ["--import", `data:text/javascript,${encodeURIComponent(pretend)}`];
    const failing = run(process.execPath, [...flags, command, "train", "blackjack"]);
    await expect(failing).rejects.toMatchObject({ code: 1, stdout: "", stderr: sentence("20.18.3") });
  });

  it.skipIf(!isCached(18))("fails with one sentence in Node 18", async () => {
    const [npm, ...args] = npmNode(18);
    const failing = run(npm, [...args, command, "train", "blackjack"]);
    await expect(failing).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/llamagym requires Node\.js 20\.19 or newer, but this is 18\.\d+\.\d+/) as string,
    });
  });
});
