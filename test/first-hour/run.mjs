// The first hour of a new user: packs the packages, installs them in an empty folder, runs the
// blocks and commands of README and guides as they are written, checking what each promises, and
// creates, compiles and starts a project from every template of `npm create llamagym`. usage:
// npm run first-hour -- [--node VERSION] [--quick] [--only WORDS] [--keep]
//   --node VERSION   runs everything with npm's package `node` of that version
//   --quick          leaves out what takes over half a minute, and what needs its results
//   --only WORDS     runs the steps whose title contains the words
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { prepareSteps } from "./steps.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { values: options } = parseArgs({
  options: {
    node: { type: "string" },
    quick: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    keep: { type: "boolean", default: false },
  },
});

const work = mkdtempSync(join(tmpdir(), "first-hour-"));
const project = join(work, "project");
const NPM_FLAGS = ["--no-audit", "--no-fund", "--loglevel=error"];
const MAX_OUTPUT_BYTES = 2 ** 26;
let path = process.env.PATH;
/** The packed packages: llamagym, create-llamagym. */
let packages = [];

/** The user's shell: a fresh home for models, and no settings of the machine's own. */
const environment = () => ({
  ...process.env,
  PATH: path,
  HF_HOME: join(work, "hf"),
  HF_HUB_OFFLINE: "1",
  NO_COLOR: "1",
  LLAMAGYM_PACKAGE: packages[0],
});
const shell = (command) =>
  spawnSync("bash", ["-c", command], {
    cwd: project,
    env: environment(),
    encoding: "utf8",
    maxBuffer: MAX_OUTPUT_BYTES,
    input: "",
  });

function install() {
  mkdirSync(project, { recursive: true });
  packages = ["", "packages/create-llamagym"].map((folder) => {
    const packing = ["pack", "--ignore-scripts", "--json", "--pack-destination", work];
    const packed = execFileSync("npm", packing, {
      cwd: join(root, folder),
      encoding: "utf8",
      maxBuffer: MAX_OUTPUT_BYTES,
    });
    const [{ filename, size }] = JSON.parse(packed.slice(packed.indexOf("[")));
    console.log(`packed ${filename}: ${(size / 1e6).toFixed(1)} MB`);
    return join(work, filename);
  });
  if (options.node !== undefined) {
    execFileSync("npm", ["install", ...NPM_FLAGS, "--prefix", join(work, "node"), `node@${options.node}`]);
    path = `${join(work, "node", "node_modules", "node", "bin")}:${path}`;
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "mine", private: true, type: "module" }));
  // installation.md's line for machines without a network beyond the registry.
  execFileSync("npm", ["install", ...NPM_FLAGS, ...packages, "typescript@7", "@types/node@20", "esbuild"], {
    cwd: project,
    env: { ...environment(), ONNXRUNTIME_NODE_INSTALL: "skip" },
    stdio: "inherit",
  });
  console.log(`Node ${shell("node --version").stdout.trim()}`);
}

/**
 * Writes the flags of `tsc --init`, and the folders of hub models: the embedded model under the
 * names that the pages use.
 */
function prepareProject(hubModels) {
  shell("npx tsc --init");
  const settings = join(project, "tsconfig.json");
  writeFileSync(settings, readFileSync(settings, "utf8").replace('"types": []', '"types": ["node"]'));
  writeFileSync(
    join(project, "stand-in.mjs"),
    `import { AutoModelForCausalLM } from "llamagym";
const model = await AutoModelForCausalLM.fromPretrained("embedded");
await model.savePretrained(process.argv[2]);
await model.close();`,
  );
  const [first, ...others] = hubModels.map((id) => join(work, "hf", "hub", `models--${id.replace("/", "--")}`));
  const commit = "0".repeat(40);
  const snapshot = (folder) => join(folder, "snapshots", commit);
  mkdirSync(dirname(snapshot(first)), { recursive: true });
  const { status, stderr } = shell(`node stand-in.mjs ${snapshot(first)}`);
  if (status !== 0) throw new Error(stderr);
  for (const folder of others) cpSync(first, folder, { recursive: true });
  for (const folder of [first, ...others]) {
    mkdirSync(join(folder, "refs"), { recursive: true });
    writeFileSync(join(folder, "refs", "main"), commit);
  }
}

/** Runs one step; returns what is wrong, or undefined. */
function runStep({ files = {}, command, status = 0, expect = [], expectFiles = [] }) {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), text);
  }
  const result = shell(command);
  const printed = `${result.stdout}${result.stderr}`;
  if (result.status !== status) return `status ${result.status}, expected ${status}\n${printed.slice(-2000)}`;
  for (const pattern of expect) {
    const problem =
      typeof pattern === "function" ? pattern(printed) : pattern.test(printed) ? undefined : String(pattern);
    if (problem !== undefined) return `not found: ${problem}\n${printed.slice(-2000)}`;
  }
  const missing = expectFiles.filter(
    (name) => !existsSync(join(project, name)) || statSync(join(project, name)).size === 0,
  );
  return missing.length > 0 ? `missing files: ${missing.join(", ")}` : undefined;
}

const { steps, hubModels } = prepareSteps(root);
install();
prepareProject(hubModels);
let failures = 0;
for (const step of steps) {
  if (!step.title.includes(options.only) || (options.quick && step.isLong)) continue;
  const start = Date.now();
  const problem = runStep(step);
  if (problem !== undefined) failures++;
  const seconds = ((Date.now() - start) / 1000).toFixed(0).padStart(4);
  console.log(
    `${problem === undefined ? "ok  " : "FAIL"} ${seconds} s  ${step.title}${problem === undefined ? "" : `\n${problem}`}`,
  );
}
console.log(failures === 0 ? "Everything works as written." : `${failures} steps failed.`);
if (options.keep) console.log(project);
else rmSync(work, { recursive: true, force: true });
process.exit(failures === 0 ? 0 : 1);
