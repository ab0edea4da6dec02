// Installs the peers that benches compare with: npm run bench:setup [-- --llamagym]
// [--transformers4] [--node] [--skyrl]
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const peers = fileURLToPath(new URL("peers/", import.meta.url));
const torch = "torch==2.13.0";
const environments = {
  pytorch: { folder: ".venv", requirements: ["-r", "requirements.txt"] },
  // LlamaGym 0.1.1 asks for versions that exclude each other; the file lists every package, so
  // dependencies are not followed.
  llamagym: { folder: ".venv-llamagym", requirements: ["--no-deps", "-r", "requirements-llamagym.txt"] },
  // Needs Python 3.12 or later, which PYTHON names.
  skyrl: {
    folder: ".venv-skyrl",
    requirements: ["skyrl[tinker,jax]==0.4.0", "jax==0.12.0.1", "jaxlib==0.12.0.1", "flax==0.12.12", "aiohttp"],
  },
  // The previous dialect of config.json and the oldest supported PEFT, for bench:interop.
  transformers4: {
    folder: ".venv-transformers4",
    requirements: ["transformers==4.57.6", "peft==0.11.1", "safetensors==0.8.0"],
  },
};

function fail(message) {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

function run(program, parameters) {
  const { status, error } = spawnSync(program, parameters, { cwd: peers, stdio: "inherit" });
  if (error) fail(`${program} cannot be started: ${error.message}. Python 3.10 to 3.12 is needed; PYTHON names it.`);
  if (status !== 0) fail(`failed: ${program} ${parameters.join(" ")}`);
}

function install({ folder, requirements }) {
  const python = `${peers}${folder}/${process.platform === "win32" ? "Scripts/python.exe" : "bin/python"}`;
  const fallback = process.platform === "win32" ? "python" : "python3";
  if (!existsSync(python)) run(process.env.PYTHON ?? fallback, ["-m", "venv", "--clear", folder]);
  run(python, ["-m", "pip", "install", torch]);
  run(python, ["-m", "pip", "install", ...requirements]);
}

try {
  const flag = { type: "boolean", default: false };
  const { values } = parseArgs({ options: { llamagym: flag, transformers4: flag, node: flag, skyrl: flag } });
  if (values.node) run("npm", ["ci", "--prefix", "node", "--ignore-scripts", "--no-audit", "--no-fund"]);
  else install(environments.pytorch);
  for (const name of ["llamagym", "transformers4", "skyrl"]) if (values[name]) install(environments[name]);
} catch (error) {
  fail(`${error.message}\nusage: npm run bench:setup [-- --llamagym] [--transformers4] [--node] [--skyrl]`);
}
