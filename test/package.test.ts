import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listPages, writePrograms } from "./support/pages.js";
import { writeRandomModel } from "./support/random-model.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const execute = promisify(execFile);

/** What a user of the package writes; it must compile under strict settings, and run. */
const CONSUMER_SOURCE = `
import { AutoModelForCausalLM, AutoTokenizer, getPeftModel, LlamaGymError, type ChatMessage, type GenerationOptions, type LanguageModel, type Completion, type Tokenizer } from "llamagym";
import { make, type Env } from "llamagym/envs";

const path: string = process.argv[2];
const tokenizer: Tokenizer = await AutoTokenizer.fromPretrained(path);
const model: LanguageModel = await AutoModelForCausalLM.fromPretrained(path, { device: "cpu", threads: 1, tokenizer });
const messages: ChatMessage[] = [{ role: "user", content: "Hello" }];
const options: GenerationOptions = { maxNewTokens: 4, temperature: 0.9, seed: 1 };
let text = "";
for await (const piece of model.stream(messages, options)) text += piece;
const reply: Completion = await model.generate(messages, options);
const adapted: LanguageModel = await getPeftModel(model, { r: 2, targetModules: "all-linear" });
const [{ logProb }] = await adapted.score(messages, ["yes"]);
// @ts-expect-error a temperature is a number
const refused: unknown = await model.generate(messages, { temperature: "hot" }).catch((error: unknown) => error);
const env: Env = await make("Blackjack-v1");
await env.reset({ seed: 1 });
console.log(JSON.stringify({
  same: text === reply.text,
  score: Number.isFinite(logProb),
  code: refused instanceof LlamaGymError ? refused.code : String(refused),
}));
await model.close();
`;

/** The flags that `tsc --init` of TypeScript 7 writes, without the emitted files. */
const INIT_FLAGS = {
  module: "nodenext",
  target: "esnext",
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  strict: true,
  jsx: "react-jsx",
  verbatimModuleSyntax: true,
  isolatedModules: true,
  noUncheckedSideEffectImports: true,
  moduleDetection: "force",
  skipLibCheck: true,
  noEmit: true,
};

let folder: string;
let installed: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "package-"));
  const pack = ["pack", "--ignore-scripts", "--json", "--pack-destination", folder];
  const { stdout } = await execute("npm", pack, { cwd: root, maxBuffer: 2 ** 25 });
  const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
  const modules = join(folder, "node_modules");
  await mkdir(modules);
  // The dependencies are those at hand; the package itself is what was packed.
  for (const name of await readdir(join(root, "node_modules"))) {
    if (!name.startsWith(".")) await symlink(join(root, "node_modules", name), join(modules, name));
  }
  installed = join(modules, "llamagym");
  await mkdir(installed);
  await execute("tar", ["-xzf", join(folder, filename), "-C", installed, "--strip-components=1"]);
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(join(folder, "consumer.mts"), CONSUMER_SOURCE);
});
afterAll(() => rm(folder, { recursive: true }));

describe("the packed package", () => {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  const runCompiler = (args: readonly string[]) =>
    execute(process.execPath, [tsc, ...args], { cwd: folder }).catch((error: unknown) => error as { stdout: string });
  const compile = (module: string, resolution: string) => {
    const settings = ["--strict", "--target", "ES2023", "--types", "node", "--skipLibCheck", "false"];
    return runCompiler([...settings, "--module", module, "--moduleResolution", resolution, "consumer.mts"]);
  };

  it("has types with which a bundler's user compiles", async () => {
    expect((await compile("ESNext", "Bundler")).stdout).toBe("");
  });

  it("compiles every TypeScript block of the pages and every example with the flags of tsc --init", async () => {
    const programs = (await Promise.all((await listPages()).map((page) => writePrograms(page, folder)))).flat();
    await cp(join(root, "examples"), join(folder, "examples"), { recursive: true });
    const examples = (await readdir(join(root, "examples"))).filter((name) => name.endsWith(".ts"));
    const files = [...programs, ...examples.map((name) => join(folder, "examples", name))];
    const texts = await Promise.all(files.map((file) => readFile(file, "utf8")));
    const usesNode = texts.map((text) => /\bprocess\b|"node:|options\.js/.test(text));
    expect(files.length).toBeGreaterThan(50);
    // `tsc --init` writes `"types": []`; installation.md says which programs need "node" there.
    for (const types of [[], ["node"]]) {
      const selected = files.filter((_, i) => usesNode[i] === types.length > 0);
      const config = { compilerOptions: { ...INIT_FLAGS, types }, files: selected };
      await writeFile(join(folder, "tsconfig.init.json"), JSON.stringify(config));
      expect((await runCompiler(["-p", "tsconfig.init.json"])).stdout).toBe("");
    }
  });

  it("has types with which a Node user compiles, and runs with its worker and its command", async () => {
    expect((await compile("NodeNext", "NodeNext")).stdout).toBe("");
    const { folder: model, remove } = await writeRandomModel();
    const { stdout } = await execute(process.execPath, [join(folder, "consumer.mjs"), model], { cwd: folder });
    expect(JSON.parse(stdout)).toEqual({ same: true, score: true, code: "INVALID_ARGUMENT" });
    const command = join(installed, "dist", "app", "cli", "bin.js");
    expect((await execute(process.execPath, [command, "--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    await remove();
  });

  it("holds what is needed to run and nothing of the tests", async () => {
    const top = await readdir(installed);
    expect(top).toEqual(expect.arrayContaining(["CHANGELOG.md", "LICENSE", "README.md", "dist", "package.json"]));
    for (const name of ["src", "test", "bench", ".npmrc"]) expect(top).not.toContain(name);
    const files = await readdir(join(installed, "dist"), { recursive: true });
    expect(files.filter((name) => /\.test\.|fixtures|\.map$/.test(name))).toEqual([]);
    expect(files).toContain("engine/runtime/worker.js");
  });
});
