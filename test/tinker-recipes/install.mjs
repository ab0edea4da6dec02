// Installs the Tinker SDK, its cookbook and what the recipes need into a virtual environment: node
// test/tinker-recipes/install.mjs [FOLDER] The environment is for test/tinker-recipes.test.ts,
// which finds it in the same place.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const folder = process.argv[2] ?? join(tmpdir(), "llamagym-tinker");
const python = join(folder, "bin", "python");
const run = (file, ...args) => execFileSync(file, args, { stdio: "inherit" });

if (!existsSync(python)) run("python3", "-m", "venv", folder);
const pip = (...args) => run(python, "-m", "pip", "install", "--quiet", ...args);
const cpuBuilds = "https://download.pytorch.org/whl/cpu";
pip("torch", "--extra-index-url", cpuBuilds, "--retries", "1", "--timeout", "15");
pip("tinker==0.38.0", "textarena", "sympy", "pylatexenc", "math-verify");
// The recipes run without the newest version of a dependency that not every index has.
pip("--no-deps", "tinker-cookbook==0.6.1", "tml-renderers");
pip("aiohttp", "blobfile", "chz", "cloudpickle", "datasets", "pillow", "pyrage", "rich", "safetensors", "termcolor");
pip("tiktoken", "tqdm", "transformers>=4.57.6,<5");
