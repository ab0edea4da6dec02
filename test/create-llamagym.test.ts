import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createProject } from "../packages/create-llamagym/src/create-project.js";
import { TEMPLATES } from "../packages/create-llamagym/src/templates.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const packageFolder = join(root, "packages/create-llamagym");
const execute = promisify(execFile);
const readJson = async (path: string) => JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;

describe("npm create llamagym", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "create-"));
  });
  afterAll(() => rm(folder, { recursive: true }));

  it("lists the templates that are there", async () => {
    const folders = await readdir(join(packageFolder, "templates"));
    expect(folders.filter((name) => name !== "common").toSorted()).toEqual(Object.keys(TEMPLATES).toSorted());
    const page = await readFile(join(packageFolder, "README.md"), "utf8");
    for (const [name, description] of Object.entries(TEMPLATES)) {
      expect(page).toContain(`\`${name}\``);
      expect(page).toContain(description);
    }
  });

  it("has the version of the llamagym that its projects install", async () => {
    const { version } = await readJson(join(root, "package.json"));
    expect((await readJson(join(packageFolder, "package.json"))).version).toBe(version);
    await createProject(join(folder, "Version Two"), "blackjack");
    const manifest = await readJson(join(folder, "Version Two", "package.json"));
    expect(manifest).toMatchObject({
      name: "version-two",
      type: "module",
      dependencies: { llamagym: `^${String(version)}` },
    });
  });

  it("has the environment and the server of the examples", async () => {
    const template = (path: string) => readFile(join(packageFolder, "templates", path), "utf8");
    const example = (name: string) => readFile(join(root, "examples", name), "utf8");
    expect(await template("own-env/own-env.ts")).toBe(await example("own-env.ts"));
    expect(await template("mcp-tools/server.ts")).toBe(await example("mcp-server.ts"));
  });

  // The AI SDK is not installed here; the first hour compiles its template.
  it.each(Object.keys(TEMPLATES).filter((name) => name !== "ai-sdk-agent"))("%s compiles", async (name) => {
    const project = join(folder, name);
    await createProject(project, name);
    expect(await readdir(project)).toEqual(expect.arrayContaining([".gitignore", ".npmrc", "README.md"]));
    await mkdir(join(project, "node_modules"));
    for (const module of await readdir(join(root, "node_modules")))
      if (!/^\.|^(create-)?llamagym$/.test(module))
        await symlink(join(root, "node_modules", module), join(project, "node_modules", module));
    await symlink(root, join(project, "node_modules", "llamagym"));
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    const { stdout } = await execute(process.execPath, [tsc, "--noEmit"], { cwd: project }).catch(
      (error: unknown) => error as { stdout: string },
    );
    expect(stdout).toBe("");
  });

  it("refuses unknown templates, folders with files, and files, and leaves them as they are", async () => {
    const project = join(folder, "taken");
    await mkdir(join(project, ".git"), { recursive: true });
    await writeFile(join(project, "notes.txt"), "mine");
    await expect(createProject(project, "chess")).rejects.toThrow('no template "chess". Templates: blackjack');
    await expect(createProject(project, "blackjack")).rejects.toThrow("is not empty: it contains notes.txt");
    await expect(createProject(join(project, "notes.txt"), "blackjack")).rejects.toThrow("is a file");
    expect((await readdir(project)).toSorted()).toEqual([".git", "notes.txt"]);
    expect((await readdir(folder)).filter((name) => name.startsWith("."))).toEqual([]);
    await rm(join(project, "notes.txt"));
    await createProject(project, "blackjack");
    expect(await readdir(project)).toEqual(expect.arrayContaining([".git", "main.ts", "package.json"]));
  });
});
