import { execFile, execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";

const run = promisify(execFile);
const dist = new URL("../dist/", import.meta.url);
const command = fileURLToPath(new URL("app/cli/bin.js", dist));

/**
 * Path of npm's package `node` in npm's cache, which `npx -y node@VERSION --version` fills;
 * undefined if it is not there.
 */
function findCachedNode(version: number): string | undefined {
  const args = ["exec", "--offline", "--yes", `--package=node@${version}`, "--", "node", "-p"];
  try {
    const print = "process.version.slice(1) + ' ' + process.execPath";
    const [found, path] = execFileSync("npm", [...args, print], { encoding: "utf8", stdio: "pipe" })
      .trim()
      .split(" ");
    return found.startsWith(`${version}.`) ? path : undefined;
  } catch {
    return undefined;
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
    const path = process.version.startsWith(`v${version}.`) ? process.execPath : findCachedNode(version);
    if (path === process.execPath) continue;
    const note = path !== undefined ? "" : `: not tried, run \`npx -y node@${version} --version\` first`;
    it.skipIf(path === undefined)(`is collected without warnings by Node ${version}${note}`, async () => {
      const { stdout } = await run(path!, GC_FLAGS);
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

  const node18 = findCachedNode(18);
  it.skipIf(node18 === undefined)("fails with one sentence in Node 18", async () => {
    const failing = run(node18!, [command, "train", "blackjack"]);
    await expect(failing).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/llamagym requires Node\.js 20\.19 or newer, but this is 18\.\d+\.\d+/) as string,
    });
  });
});
