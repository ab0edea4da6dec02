// Adapters and merged models between this project and Python PEFT, both ways: npm run bench:interop
// -- MODEL [--rslora] [--targets lm_head,embed_tokens,q_proj] [--layers 1,2] [--exclude v_proj]
// Saves an adapter and a merged model here and opens both in Python; makes an adapter in PEFT and
// opens it here. Prints the largest differences of logits, relative to max(1, |value|); ends with
// status 1 when one is above 1e-3.
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { SafetensorsFile } from "../src/models/files/index.js";
import { getPeftModel } from "../src/models/adapters/get-peft-model.js";
import { CausalLM } from "../src/models/causal-lm.js";
import { loraAName, loraBName } from "../src/models/adapters/lora-module.js";
import { mergeAdapter } from "../src/models/adapters/merge-adapter.js";
import { loadAdapter, saveModel } from "../src/models/save-model.js";
import { ForwardPass } from "../test/parity/models/forward-pass.js";
import { maxRelativeError } from "../test/parity/parity-report.js";
import { RandomStream } from "../src/core/random/random-stream.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const peers = join(root, "bench", "peers");
const { values, positionals } = parseArgs({
  options: {
    rslora: { type: "boolean", default: false },
    targets: { type: "string", default: "all-linear" },
    layers: { type: "string" },
    exclude: { type: "string" },
  },
  allowPositionals: true,
});
const [model] = positionals;
const folder = mkdtempSync(join(tmpdir(), "llamagym-interop-"));

/** Rounding of float32 alone parts PyTorch from its own float64 by 1.4e-4 on SmolLM2-135M. */
const TOLERANCE = 1e-3;

/**
 * Installed by bench:setup: current versions, and with --transformers4 Transformers 4.57 with PEFT
 * 0.11.
 */
const environments = [".venv", ".venv-transformers4"].filter((name) => existsSync(join(peers, name)));

function python(environment: string, ...args: string[]): string {
  const program = join(peers, environment, "bin", "python");
  const { status, stdout, stderr } = spawnSync(program, [join(peers, "peft_interop.py"), ...args], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`peft_interop.py ${args[0]} failed: ${stderr.slice(-2000)}`);
  return stdout;
}

/** Logits [tokens, vocabulary] of the ids, here. */
async function computeOurLogits(form: CausalLM): Promise<Float32Array> {
  const forward = await ForwardPass.create(form, "unmerged");
  const { logits } = await forward.run([ids]);
  await forward.release();
  return logits;
}

/** The same in Python. */
async function computePeftLogits(environment: string, modelFolder: string, adapter?: string): Promise<Float32Array> {
  const out = join(folder, "logits.safetensors");
  python(
    environment,
    "logits",
    modelFolder,
    "--ids",
    JSON.stringify([ids]),
    "--out",
    out,
    ...(adapter === undefined ? [] : ["--adapter", adapter]),
  );
  return read(out, "logits");
}

async function read(path: string, name: string): Promise<Float32Array> {
  const file = await SafetensorsFile.open(path);
  const values = await file.readFloat32(name);
  await file.close();
  return values;
}

let failed = false;
function report(label: string, actual: Float32Array, expected: Float32Array): void {
  const error = maxRelativeError(actual, expected);
  failed ||= !(error <= TOLERANCE);
  console.log(`${label}: ${error.toExponential(2)}`);
}

const base = await CausalLM.open(model, { device: "cpu" });
const ids = [1, 2, 3, 5, 8, 13, 21, 34, 55, 89].map((id) => id % base.config.vocabSize);
const adapted = await getPeftModel(base, {
  r: 16,
  loraAlpha: 32,
  useRslora: values.rslora,
  targetModules: values.targets === "all-linear" ? values.targets : values.targets.split(","),
  layersToTransform: values.layers?.split(",").map(Number) ?? [],
  excludeModules: values.exclude?.split(",") ?? [],
});
const random = new RandomStream(7);
for (const { module, kind } of adapted.adapter!.modules.values()) {
  // What is zero at first: of an embedding the other one.
  const zero = kind === "embedding" ? loraAName({ module, kind }) : loraBName({ module, kind });
  const [rows, columns] = adapted.parameters.shape(zero);
  await adapted.parameters.write(
    zero,
    Float32Array.from({ length: rows * columns }, () => random.normal(0, 0.01)),
  );
}
const expected = await computeOurLogits(adapted);
await saveModel(adapted, join(folder, "adapter"));
await saveModel(await mergeAdapter(adapted), join(folder, "merged"));
for (const environment of environments) {
  const form = join(folder, environment);
  const computed = await computePeftLogits(environment, model, join(folder, "adapter"));
  report(`${environment}: an adapter saved here, in PEFT`, computed, expected);
  const merged = await computePeftLogits(environment, join(folder, "merged"));
  report(`${environment}: a merged model saved here, in Transformers`, merged, expected);
  const settings = [
    "--ids",
    JSON.stringify([ids]),
    "--targets",
    values.targets,
    ...(values.rslora ? ["--rslora"] : []),
    ...(values.layers === undefined ? [] : ["--layers", values.layers]),
    ...(values.exclude === undefined ? [] : ["--exclude", values.exclude]),
  ];
  python(environment, "make", model, form, ...settings);
  report(
    `${environment}: an adapter saved by PEFT, here`,
    await computeOurLogits(await loadAdapter(base, form)),
    await read(join(form, "expected.safetensors"), "logits"),
  );
}
await base.close();
rmSync(folder, { recursive: true });
process.exit(failed ? 1 : 0);
