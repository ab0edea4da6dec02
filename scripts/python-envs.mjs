// Plays Gymnasium environments through the Python bridge: those registered in Gymnasium, those of
// other modules (minigrid, ...), and with --tests FOLDER (a checkout of Gymnasium) every space of
// its tests and every broken environment of the tests of its checker. Prints a count of each
// outcome. Broken environments may fail, with an error that says so. --only takes the ids that a
// regular expression matches.
// usage: npm run build && node scripts/python-envs.mjs PYTHON [--tests FOLDER] [--only REGEX]
// [MODULE ...]
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { LlamaGymError } from "../dist/index.js";
import { PythonEnv } from "../dist/envs/bridges/index.js";

const STEPS = 20;
const { values, positionals } = parseArgs({
  options: { tests: { type: "string" }, only: { type: "string", default: "" } },
  allowPositionals: true,
});
const [python = "python3", ...modules] = positionals;
const folder = mkdtempSync(join(tmpdir(), "python-envs-"));

/** Registers environments with the spaces and functions of Gymnasium's tests. */
const TEST_ENVS = `
import gymnasium
from gymnasium import spaces
from tests.spaces.utils import TESTING_SPACES
from tests.testing_env import GenericTestEnv
import tests.utils.test_env_checker as checker

def add(name, **arguments):
    gymnasium.register(id=f"{name}-v0", entry_point=lambda **_: GenericTestEnv(**arguments))

for i, space in enumerate(TESTING_SPACES):
    add(f"SpaceObserved{i:03}", observation_space=space, action_space=spaces.Discrete(3))
    add(f"SpacePlayed{i:03}", observation_space=spaces.Discrete(3), action_space=space)
for name, test in list(vars(checker).items()):
    for mark in getattr(test, "pytestmark", []):
        key = "step_func" if "step" in name else "reset_func"
        for i, case in enumerate(mark.args[1] if mark.name == "parametrize" else []):
            if isinstance(case, (list, tuple)) and len(case) == 3 and callable(case[1]):
                add(f"Broken{name.replace('_', '')}{i}", **{key: case[1]})
`;
const LIST = `
import importlib, json, sys
import gymnasium
for name in sys.argv[1:]:
    module = importlib.import_module(name)
    register = getattr(module, "register_envs", None)
    if register and not any(name in str(spec.entry_point) for spec in gymnasium.registry.values()):
        gymnasium.register_envs(module)
newest = {}
for spec in gymnasium.registry.values():
    if "tabular" not in spec.id and "mujoco" not in str(spec.entry_point) and "box2d" not in str(spec.entry_point):
        name = (spec.namespace, spec.name)
        newest[name] = max(newest.get(name, spec), spec, key=lambda each: each.version or 0)
print(json.dumps([spec.id for spec in newest.values()]))
`;

const environment = { PYTHONPATH: [folder, ...(values.tests === undefined ? [] : [resolve(values.tests)])].join(":") };
if (values.tests !== undefined) {
  writeFileSync(join(folder, "gymnasium_test_envs.py"), TEST_ENVS);
  modules.push("gymnasium_test_envs");
}

/** Returns what happened to an environment: "played", or a sentence. */
async function play(id) {
  const env = await PythonEnv.open(id, { python, modules, environment, timeout: 30_000 });
  try {
    const [first, second] = [await env.reset({ seed: 1 }), await env.reset({ seed: 1 })];
    env.actionSpace.seed(1);
    for (let i = 0; i < STEPS; i++) {
      const action = env.actionSpace.sample();
      if (env.text !== undefined && env.text.parseAction(env.text.formatAction(action)) === undefined)
        return "an action is not read from its text";
      const { observation, terminated, truncated } = await env.step(action);
      if (!env.observationSpace.contains(observation)) return "an observation is out of its space";
      env.text?.formatObservation(observation);
      if (terminated || truncated) await env.reset();
    }
    return JSON.stringify(first.observation) === JSON.stringify(second.observation) ? "played" : "differs by seed";
  } finally {
    await env.close();
  }
}

const listing = spawnSync(python, ["-c", LIST, ...modules], {
  encoding: "utf8",
  env: { ...process.env, ...environment },
});
if (listing.status !== 0) throw new Error(listing.stderr);
const counts = new Map();
const ids = JSON.parse(listing.stdout.trim().split("\n").at(-1)).filter((id) => new RegExp(values.only).test(id));
for (const id of ids) {
  const outcome = await play(id).catch((error) => {
    const kind = error instanceof LlamaGymError ? error.code : "NO LLAMAGYM ERROR";
    return `${kind}: ${error.message.slice(0, 300)}`;
  });
  const kind = `${/^(SpaceObserved|SpacePlayed|Broken)/.exec(id)?.[1] ?? "environment"}: ${outcome.split(":")[0]}`;
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
  if (outcome !== "played") console.log(`${id}\t${outcome}`);
}
for (const [kind, count] of counts) console.log(`${count}\t${kind}`);
rmSync(folder, { recursive: true });
